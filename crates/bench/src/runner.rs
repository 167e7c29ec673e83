//! The parent's half of a case: needs, knobs, traces, fresh processes, and the record that is left.
//!
//! Whatever happens to a case (the host lacks something, its process dies, hangs, is killed for
//! memory), a record says so and the run goes on.

use std::{cell::RefCell, collections::BTreeMap, path::PathBuf, process::Command, rc::Rc};

use pagelab_record::{Case, Host, Measured, Nature, Outcome, Record, schema};
use pagelab_sys::{
    SysError, arch,
    child::{self, Care, Ended, Heirloom},
    clock::ClockChoice,
    counters::Counters,
    environment::{self, Class, Fact},
    knobs::{KnobError, KnobGuard, Knobs, Place},
    pulse::{Beat, Pulse},
    rights,
};
use serde::{Deserialize, Serialize};

use crate::{
    Need,
    inputs::{Handed, Inputs, Supply},
    measure::{Method, measure},
    plan::{Plan, Planned},
    trace::load::{Loaded, Stopped, load},
};

/// The protocol between parent and child; they are one binary, so a difference is a mistake.
const PROTOCOL: u32 = 2;

#[derive(Debug, Serialize, Deserialize)]
struct Request {
    protocol: u32,
    workload: String,
    case: Case,
    method: Method,
    process: u32,
    handed: Handed,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Measured {
        measured: Box<Measured>,
        /// Counters that do not add up over processes.
        constants: BTreeMap<String, u64>,
    },
    Failed(String),
}

/// The child's half: reads the request from stdin, measures, answers.
///
/// # Errors
/// A sentence for stderr when there is nobody to answer to.
pub fn case_main() -> Result<(), String> {
    let request = child::request().map_err(|error| format!("stdin: {error}"))?;
    let request: Request =
        serde_json::from_slice(&request).map_err(|error| format!("request: {error}"))?;
    if request.protocol != PROTOCOL {
        return Err(format!("request of protocol {}, not {PROTOCOL}", request.protocol));
    }
    child::volunteer_for_oom();
    child::abort_on_panic();
    let workload = crate::workload(&request.workload)?;
    let Request { case, method, process, handed, .. } = request;
    let inputs = Inputs::take(handed)?;
    let answer = match measure(workload, &case, &method, process, &inputs) {
        Ok((measured, constants)) => Answer::Measured { measured: Box::new(measured), constants },
        Err(error) => Answer::Failed(error.to_string()),
    };
    let bytes = serde_json::to_vec(&answer).map_err(|error| error.to_string())?;
    child::answer(&bytes).map_err(|error| format!("answer: {error}"))
}

/// What came of trying a case.
#[derive(Debug)]
pub enum Attempt {
    /// A record, whatever its outcome.
    Done(Box<Record>),
    /// The user interrupted; the case leaves nothing.
    Interrupted,
}

/// How a case comes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Its trace is being loaded; so far has that come.
    Loading(Beat),
    /// This process of it is about to start.
    Process(u32),
    /// Its process has come so far; told only when there is news.
    Working(Beat),
}

/// Is told how a case comes along.
pub type Progress<'p> = dyn FnMut(Step) + 'p;

/// Runs cases one after the other and makes records of them.
#[derive(Debug)]
pub struct Runner {
    run: String,
    boot: String,
    executable: PathBuf,
    watchdog: Vec<String>,
    child: Vec<String>,
    place: Place,
    knobs: Option<Knobs>,
    traces: RefCell<Vec<(Supply, Rc<Loaded>)>>,
}

impl Runner {
    /// A runner for the run of this name; `child` and `watchdog` are the sub-commands of
    /// `executable` that play these parts.
    pub fn new(run: &str, executable: PathBuf, child: &[&str], watchdog: &[&str]) -> Self {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        Self {
            run: run.to_owned(),
            boot: environment::boot_id(),
            executable,
            watchdog: words(watchdog),
            child: words(child),
            place: Place::machine(),
            knobs: None,
            traces: RefCell::default(),
        }
    }

    /// Takes the machine's knobs if any case of the plan needs one and this process may.
    ///
    /// # Errors
    /// When another run holds them.
    pub fn take_knobs(&mut self, plan: &[Planned]) -> Result<(), KnobError> {
        let needs_one = |planned: &Planned| {
            planned.needs().iter().any(|need| !need.check() && need.knob().is_some())
        };
        if rights::is_root() && self.knobs.is_none() && plan.iter().any(needs_one) {
            let mut watchdog = Command::new(&self.executable);
            watchdog.args(&self.watchdog).arg(self.place.directory());
            self.knobs = Some(Knobs::acquire(&self.place, &self.run, watchdog)?);
        }
        Ok(())
    }

    /// Gets the trace that a case needs, unless an earlier case needed the same.
    ///
    /// # Errors
    /// When there is none, or the user interrupts.
    pub fn load(
        &self,
        planned: &Planned,
        progress: &mut Progress<'_>,
    ) -> Result<Option<Rc<Loaded>>, Stopped> {
        let Some(supply) = planned.supply().map_err(Stopped::Failed)? else { return Ok(None) };
        let known = self.traces.borrow().iter().find(|(known, _)| *known == supply).cloned();
        if let Some((_, loaded)) = known {
            return Ok(Some(loaded));
        }
        let loaded = Rc::new(load(&supply, &mut |beat| progress(Step::Loading(beat)))?);
        self.traces.borrow_mut().push((supply, Rc::clone(&loaded)));
        Ok(Some(loaded))
    }

    /// Lets go of the traces that none of these cases needs.
    pub fn keep_traces_of(&self, rest: &[Planned]) {
        let mut traces = self.traces.borrow_mut();
        if !traces.is_empty() {
            let wanted: Vec<_> = rest.iter().map(Planned::supply).collect();
            traces.retain(|(supply, _)| {
                wanted.iter().any(|wanted| matches!(wanted, Ok(Some(wanted)) if wanted == supply))
            });
        }
    }

    /// Runs one case; `progress` is told how it comes along.
    ///
    /// # Errors
    /// When not even a process can be started.
    pub fn run(&self, planned: &Planned, progress: &mut Progress<'_>) -> Result<Attempt, SysError> {
        let mut guards = Guards::default();
        if let Some(skipped) = self.meet_needs(planned, &mut guards) {
            return Ok(Attempt::Done(Box::new(self.record(planned, skipped))));
        }
        let loaded = match self.load(planned, progress) {
            Ok(loaded) => loaded,
            Err(Stopped::Interrupted) => return Ok(Attempt::Interrupted),
            Err(Stopped::Failed(reason)) => return Ok(self.failed(planned, reason)),
        };
        let oom_before = Counters::read(None);
        let mut all = Measured::default();
        let mut constants = BTreeMap::new();
        for process in 0..planned.method.forks {
            progress(Step::Process(process));
            match self.run_process(planned, process, loaded.as_deref(), progress)? {
                Ended::Interrupted => return Ok(Attempt::Interrupted),
                Ended::Answered(bytes) => match serde_json::from_slice(&bytes) {
                    Ok(Answer::Measured { measured, constants: found }) => {
                        merge(&mut all, *measured);
                        constants.extend(found);
                    }
                    Ok(Answer::Failed(reason)) => return Ok(self.failed(planned, reason)),
                    Err(error) => return Ok(self.failed(planned, format!("its answer: {error}"))),
                },
                Ended::TimedOut => {
                    let seconds = planned.method.limit_ns / 1_000_000_000;
                    let reason = format!(
                        "hung: no answer within {seconds} s (--time-limit raises the limit)"
                    );
                    return Ok(self.failed(planned, reason));
                }
                Ended::Died(why) => {
                    let killed = Counters::read(None).since(&oom_before).get("oom_kill");
                    let reason = if killed.is_some_and(|count| count > 0) {
                        let is_trace = planned.case.get("ops").is_some();
                        let what = if is_trace { "fewer --ops" } else { "a smaller --size" };
                        format!("{why}: out of memory (choose {what})")
                    } else {
                        why
                    };
                    return Ok(self.failed(planned, reason));
                }
            }
        }
        if let Some(loaded) = loaded {
            all.warnings.extend(loaded.facts.warnings.iter().cloned());
        }
        constants.insert("processes_measured".to_owned(), u64::from(planned.method.forks));
        all.counters.extend(constants);
        drop(guards);
        Ok(Attempt::Done(Box::new(self.record(planned, Outcome::Measured(all)))))
    }

    fn run_process(
        &self,
        planned: &Planned,
        process: u32,
        loaded: Option<&Loaded>,
        progress: &mut Progress<'_>,
    ) -> Result<Ended, SysError> {
        let pulse = Pulse::new()?;
        let shared = Heirloom::new(pulse.file())?;
        let request = Request {
            protocol: PROTOCOL,
            workload: planned.workload.clone(),
            case: planned.case.clone(),
            method: planned.method,
            process,
            handed: Loaded::handed(loaded, &shared),
        };
        let request = serde_json::to_vec(&request).expect("a request has text keys");
        let mut command = Command::new(&self.executable);
        command.args(&self.child);
        let mut heirlooms = vec![&shared];
        heirlooms.extend(loaded.into_iter().flat_map(Loaded::heirlooms));
        let mut seen = Beat::default();
        // Only what is new is told: while a repetition is timed nothing is, and nothing is drawn.
        let watch = &mut || {
            let beat = pulse.beat();
            if beat != seen {
                seen = beat;
                progress(Step::Working(beat));
            }
        };
        let limit_ns = planned.method.limit_ns;
        child::run(command, &request, Care { limit_ns, heirlooms: &heirlooms, watch })
    }

    /// Checks what the case needs, sets the knobs that help, and says what is still missing.
    fn meet_needs<'k>(&'k self, planned: &Planned, guards: &mut Guards<'k>) -> Option<Outcome> {
        for need in planned.needs() {
            if need.check() {
                continue;
            }
            let skipped = || Some(Outcome::Skipped { need: need.to_string(), cure: need.cure() });
            let (Some(knobs), Some((path, value))) = (&self.knobs, need.knob()) else {
                return skipped();
            };
            match knobs.set(&path, &value) {
                Ok(guard) => guards.0.push(guard),
                Err(error) => {
                    let cure = error.to_string();
                    return Some(Outcome::Skipped { need: need.to_string(), cure });
                }
            }
            // A pool may have grown by less than was asked for.
            if !need.check() {
                return skipped();
            }
        }
        None
    }

    fn failed(&self, planned: &Planned, reason: String) -> Attempt {
        Attempt::Done(Box::new(self.record(planned, Outcome::Failed { reason })))
    }

    fn record(&self, planned: &Planned, mut outcome: Outcome) -> Record {
        let facts = environment::facts();
        let about_knobs = self.knobs.as_ref().map(Knobs::take_warnings).unwrap_or_default();
        if let Outcome::Measured(measured) = &mut outcome {
            measured.warnings.extend(about_knobs);
            // What disturbs times says nothing where there are none, or only scripted ones.
            let is_scripted = matches!(planned.method.clock, ClockChoice::Scripted { .. });
            if !planned.is_one_pass() && !is_scripted {
                measured.warnings.extend(environment::warnings(&facts));
            }
        }
        Record {
            schema: schema::SCHEMA.to_owned(),
            run: self.run.clone(),
            boot: self.boot.clone(),
            workload: planned.workload.clone(),
            nature: nature(planned),
            case: planned.case.clone(),
            host: host(&facts),
            outcome,
        }
    }
}

/// The knobs of one case; the last one set is the first one put back.
#[derive(Debug, Default)]
struct Guards<'k>(Vec<KnobGuard<'k>>);

impl Drop for Guards<'_> {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

/// What the numbers of this case are, taken here with its clock.
fn nature(planned: &Planned) -> Nature {
    match planned.method.clock {
        _ if planned.is_simulated() => Nature::Simulated,
        ClockChoice::Scripted { .. } => Nature::Simulated,
        _ if arch::is_emulated() => Nature::Emulated,
        _ => Nature::Measured,
    }
}

/// Adds what one process measured to what the others did.
fn merge(all: &mut Measured, one: Measured) {
    all.series.extend(one.series);
    all.tables.extend(one.tables);
    for claim in one.witness {
        claim.fold_into(&mut all.witness);
    }
    for (name, value) in one.counters {
        *all.counters.entry(name).or_default() += value;
    }
    for warning in one.warnings {
        if !all.warnings.contains(&warning) {
            all.warnings.push(warning);
        }
    }
}

/// Facts in the three classes of a record.
pub fn host(facts: &[Fact]) -> Host {
    let class = |class: Class| {
        facts
            .iter()
            .filter(|fact| fact.class == class)
            .map(|fact| (fact.key.to_owned(), fact.value.clone()))
            .collect()
    };
    Host {
        identity: class(Class::Identity),
        settings: class(Class::Setting),
        volatile: class(Class::Volatile),
    }
}

/// The needs of a plan that this host does not meet and no knob would.
pub fn unmet(plan: &Plan) -> Vec<Need> {
    let mut unmet: Vec<Need> = plan
        .cases
        .iter()
        .flat_map(Planned::needs)
        .filter(|need| !need.check() && need.knob().is_none())
        .collect();
    unmet.sort();
    unmet.dedup();
    unmet
}
