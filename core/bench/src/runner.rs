//! The parent's half of a case: needs, knobs, belongings, traces, fresh processes, and the record
//! that is left.
//!
//! Whatever happens to a case (the host lacks something, its process dies, hangs, is killed for
//! memory), a record says so and the run goes on.

use std::{cell::RefCell, ops::Range, path::Path, rc::Rc};

use pagelab_record::{Arm, Claim, Outcome, Record, ab::Change, schema, vocabulary::Check};
use pagelab_sys::{
    SysError,
    counts::Counters,
    knobs::{KnobError, Knobs, Place, restore_unattended},
    machine::{
        environment::{self, Fact},
        rights,
    },
    process::{
        Beat, Heirloom, Pulse,
        child::{self, Care, Ended},
    },
    time::ClockChoice,
};

use crate::{
    arm::{self, InForce},
    guards::Guards,
    inputs::{Handed, Loaded, Stopped, Supplied},
    need::Needed,
    origin::{host, nature},
    partial::Partial,
    plan::{Planned, told, unique},
    program::{self, Program},
    request::{Answer, PROTOCOL, Request, Task},
};

pub use crate::request::case_main;

/// What came of trying a case.
#[derive(Debug)]
pub enum Attempt {
    /// A record, whatever its outcome.
    Done(Box<Record>),
    /// The user interrupted; the case leaves nothing.
    Interrupted,
}

/// What came of some processes of a case.
#[derive(Debug)]
pub enum Came {
    /// All of them answered.
    Answered(Box<Partial>),
    /// It cannot be measured, or one of them failed.
    Settled(Outcome),
    /// The user interrupted, or settings can be changed no more: see [`Runner::lost`].
    Interrupted,
}

/// How a case comes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// What it needs is being made; so far has that come.
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
    watchdog: Vec<String>,
    child: Vec<String>,
    place: Place,
    knobs: Option<Rc<Knobs>>,
    /// What was put back before the run began, for its first record.
    leftovers: RefCell<Vec<String>>,
    supplies: RefCell<Vec<(Supplied, Rc<Loaded>)>>,
    /// Programs of arms, as they were when the run began.
    programs: Vec<(Arm, Program)>,
}

impl Runner {
    /// A runner for the run of this name; `child` and `watchdog` are the sub-commands of this
    /// program that play these parts.
    pub fn new(run: &str, child: &[&str], watchdog: &[&str]) -> Self {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        Self {
            run: run.to_owned(),
            boot: environment::boot_id(),
            watchdog: words(watchdog),
            child: words(child),
            place: Place::machine(),
            knobs: None,
            leftovers: RefCell::default(),
            supplies: RefCell::default(),
            programs: Vec::new(),
        }
    }

    /// Takes the machine's knobs where a case needs one or a thing of its own, if we may.
    ///
    /// What a run that was killed together with its watchdog left is put back before: a need that
    /// it happens to meet would not be asked for, and nobody would put it back.
    ///
    /// # Errors
    /// When another run holds them.
    pub fn take_knobs(&mut self, plan: &[Planned]) -> Result<(), KnobError> {
        if !rights::is_root() || self.knobs.is_some() {
            return Ok(());
        }
        self.leftovers = restore_unattended(&self.place)?.into();
        if unique(plan).iter().any(|need| need.pending().is_some()) {
            let mut watchdog = child::this_program();
            watchdog.args(&self.watchdog).arg(self.place.directory());
            self.knobs = Some(Rc::new(Knobs::acquire(&self.place, &self.run, watchdog)?));
        }
        Ok(())
    }

    /// Why no setting can be changed any more, where that is so: what needs one is interrupted.
    pub fn lost(&self) -> Option<String> {
        let lost = self.knobs.as_deref()?.unguarded()?;
        Some(format!("{lost}; no setting is changed without it"))
    }

    /// Uses the machine's knobs that whoever runs it has taken already.
    pub fn share_knobs(&mut self, knobs: Rc<Knobs>) {
        self.knobs = Some(knobs);
    }

    /// Finds out whether this machine takes the setting of an arm, and whether its program is there
    /// and can measure these cases, before anything is.
    ///
    /// # Errors
    /// A sentence, when it does not, or this process may not set it.
    pub fn try_out(&mut self, arm: &Arm, cases: &[Planned]) -> Result<(), String> {
        if let Some((path, value)) = arm.setting() {
            let tried = match &self.knobs {
                Some(knobs) => knobs.try_out(Path::new(path), value),
                None => Err(KnobError::Denied { path: path.into() }),
            };
            return tried.map_err(|error| error.to_string());
        }
        let Change::Program { path, digest, .. } = &arm.change else { return Ok(()) };
        // Looked at first: what is changed while it is read is not the same afterwards.
        let program = Program::of(arm).transpose().map_err(|error| format!("{path}: {error}"))?;
        let found = program::digest(Path::new(path))?;
        if found != *digest {
            return Err(format!(
                "{path} is another program than this run began with (sha256 {found}, not \
                 {digest}): put that back, or begin a new run"
            ));
        }
        program::greet(Path::new(path), &self.child, told(cases))?;
        self.programs.extend(program.map(|program| (arm.clone(), program)));
        Ok(())
    }

    /// What is wrong with the program of an arm where it is not what the run began with.
    fn changed(&self, arm: Option<&Arm>) -> Option<String> {
        let mine = self.programs.iter().find(|(known, _)| Some(known) == arm);
        mine.and_then(|(_, program)| program.changed())
    }

    /// Gets what a case needs made, unless an earlier case needed the same.
    ///
    /// # Errors
    /// When it cannot be had, or the user interrupts.
    pub fn load(
        &self,
        planned: &Planned,
        progress: &mut Progress<'_>,
    ) -> Result<Option<Rc<Loaded>>, Stopped> {
        let Some(supply) = planned.supply() else { return Ok(None) };
        let known = self.supplies.borrow().iter().find(|(known, _)| **known == *supply).cloned();
        if let Some((_, loaded)) = known {
            return Ok(Some(loaded));
        }
        let loaded = Rc::new(supply.load(&mut |beat| progress(Step::Loading(beat)))?);
        self.supplies.borrow_mut().push((supply, Rc::clone(&loaded)));
        Ok(Some(loaded))
    }

    /// Lets go of what no case wants any more.
    pub fn keep_supplies(&self, is_wanted: impl Fn(&Supplied) -> bool) {
        self.supplies.borrow_mut().retain(|(supply, _)| is_wanted(supply));
    }

    /// Runs one case; `progress` is told how it comes along.
    ///
    /// # Errors
    /// When not even a process can be started.
    pub fn run(&self, planned: &Planned, progress: &mut Progress<'_>) -> Result<Attempt, SysError> {
        Ok(match self.processes(planned, 0..planned.method.forks, progress)? {
            Came::Answered(partial) => Attempt::Done(Box::new(self.conclude(planned, *partial))),
            Came::Settled(outcome) => Attempt::Done(Box::new(self.record(planned, outcome))),
            Came::Interrupted => Attempt::Interrupted,
        })
    }

    /// Runs some processes of a case, by number; what they measured is not a record yet.
    ///
    /// # Errors
    /// When not even a process can be started.
    pub fn processes(
        &self,
        planned: &Planned,
        numbers: Range<u32>,
        progress: &mut Progress<'_>,
    ) -> Result<Came, SysError> {
        let mut guards = Guards::default();
        let skipped = self.meet_needs(planned, &mut guards);
        let is_pending = |wish: &Needed| wish.pending().is_some();
        let lacks = skipped.is_some() || planned.wishes().iter().any(is_pending);
        if lacks && self.lost().is_some() {
            return Ok(Came::Interrupted);
        }
        if let Some(skipped) = skipped {
            return Ok(Came::Settled(skipped));
        }
        let failed = |reason| Ok(Came::Settled(Outcome::Failed { reason }));
        let loaded = match self.load(planned, progress) {
            Ok(loaded) => loaded,
            Err(Stopped::Interrupted) => return Ok(Came::Interrupted),
            Err(Stopped::Failed(reason)) => return failed(reason),
        };
        let oom_before = Counters::read(None);
        let mut partial = Partial::default();
        let lasting: Vec<(&Needed, (Check, String))> =
            planned.needs().iter().filter_map(|need| Some((need, need.lasting()?))).collect();
        let held = || lasting.iter().map(|(need, _)| i64::from(need.check())).collect::<Vec<_>>();
        for process in numbers {
            progress(Step::Process(process));
            let before = held();
            let arm = planned.arm.as_deref();
            if let Some(why) = self.changed(arm) {
                return failed(why);
            }
            let ended = self.run_process(planned, process, loaded.as_deref(), &guards, progress)?;
            if let Some(why) = self.changed(arm) {
                return failed(why);
            }
            match ended {
                Ended::Interrupted => return Ok(Came::Interrupted),
                Ended::Answered(bytes) => match serde_json::from_slice(&bytes) {
                    Ok(Answer::Measured { measured, constants }) => {
                        partial.add(*measured, constants);
                        for ((_, (check, claim)), (before, after)) in
                            lasting.iter().zip(before.into_iter().zip(held()))
                        {
                            partial.prove(Claim::check((*check, claim), "", 2, before + after, 0));
                        }
                    }
                    Ok(Answer::Settled(outcome)) => return Ok(Came::Settled(outcome)),
                    Err(error) => return failed(format!("its answer: {error}")),
                },
                Ended::TimedOut => {
                    let seconds = planned.method.limit_ns / 1_000_000_000;
                    return failed(format!(
                        "hung: no answer within {seconds} s (--time-limit raises the limit)"
                    ));
                }
                Ended::Died(why) => {
                    let killed = Counters::read(None).since(&oom_before).get("oom_kill");
                    return failed(if killed.is_some_and(|count| count > 0) {
                        let is_trace = planned.case.get("ops").is_some();
                        let what = if is_trace { "fewer --ops" } else { "a smaller --size" };
                        format!("{why}: out of memory (choose {what})")
                    } else {
                        why
                    });
                }
            }
        }
        if let Some(loaded) = loaded {
            partial.warn(&loaded.warnings);
        }
        Ok(Came::Answered(Box::new(partial)))
    }

    /// The record of what the processes of a case answered.
    pub fn conclude(&self, planned: &Planned, partial: Partial) -> Record {
        self.record(planned, Outcome::Measured(partial.finish()))
    }

    fn run_process(
        &self,
        planned: &Planned,
        process: u32,
        loaded: Option<&Loaded>,
        guards: &Guards<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<Ended, SysError> {
        let pulse = Pulse::new()?;
        let shared = Heirloom::new(pulse.file())?;
        let task = Task {
            protocol: PROTOCOL,
            workload: planned.workload.name().to_owned(),
            case: planned.case.as_ref().clone(),
            method: planned.method,
            process,
            handed: Handed::new(loaded, &shared, guards.obtained(), guards.spent_ns),
        };
        let request = Request::Measure(Box::new(task));
        let request = serde_json::to_vec(&request).expect("a request has text keys");
        let mut command = arm::command(planned.arm.as_deref());
        command.args(&self.child);
        let mut heirlooms = vec![&shared];
        heirlooms.extend(loaded.into_iter().flat_map(|loaded| &loaded.files));
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
        let door = guards.door()?;
        let group = door.as_ref();
        child::run(command, &request, Care { limit_ns, heirlooms: &heirlooms, group, watch })
    }

    /// Checks what the case needs, sets the knobs and makes the things that help, and says what is
    /// still missing. What only some of its arms need is met as far as it can be.
    pub(crate) fn meet_needs<'k>(
        &'k self,
        planned: &Planned,
        guards: &mut Guards<'k>,
    ) -> Option<Outcome> {
        let setting = planned.arm.as_deref().and_then(InForce::of);
        let mut meet =
            |need: &Needed| guards.meet(&**need, self.knobs.as_deref(), setting.as_ref());
        for need in planned.needs() {
            if let Err(cure) = meet(need) {
                return Some(Outcome::Skipped { need: need.name(), cure });
            }
        }
        for wish in planned.wishes() {
            // The arm says what it lacks, and how to get it.
            let _ = meet(wish);
        }
        None
    }

    /// The record of a case that came out this way.
    pub fn record(&self, planned: &Planned, mut outcome: Outcome) -> Record {
        let facts = environment::facts();
        let about_knobs = self.knobs.as_deref().map(Knobs::take_warnings).unwrap_or_default();
        if let Outcome::Measured(measured) = &mut outcome {
            let leftovers = std::mem::take(&mut *self.leftovers.borrow_mut());
            let mut warnings: Vec<String> = leftovers.into_iter().chain(about_knobs).collect();
            // What disturbs times says nothing where there are none, or only scripted ones.
            let is_scripted = matches!(planned.method.clock, ClockChoice::Scripted { .. });
            if !planned.is_one_pass() && !is_scripted {
                let overruled: Vec<_> =
                    planned.needs().iter().filter_map(|need| need.overrules()).collect();
                let told = |fact: &&Fact| !overruled.contains(&fact.key);
                let facts: Vec<Fact> = facts.iter().filter(told).cloned().collect();
                warnings.extend(environment::warnings(&facts));
            }
            // Of a case that is measured in turns some are there already.
            warnings.retain(|warning| !measured.warnings.contains(warning));
            measured.warnings.append(&mut warnings);
        }
        Record {
            schema: schema::SCHEMA.to_owned(),
            run: self.run.clone(),
            boot: self.boot.clone(),
            workload: planned.workload.name().to_owned(),
            nature: nature(planned),
            case: planned.case.as_ref().clone(),
            ab: None,
            host: host(&facts),
            outcome,
        }
    }
}
