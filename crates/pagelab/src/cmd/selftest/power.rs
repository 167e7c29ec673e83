//! `pagelab selftest --power`: is a slowdown found that is there?
//!
//! The one idea: the same case is measured three times in processes that take turns: as it is, with
//! work planted into its body, and as it is once more. What the comparison says of the second is
//! whether it finds, of the third whether it cries wolf. A trial begins with a few processes and
//! goes on with as many as the verdict plans, as far as its time reaches.
//!
//! How much work makes the body slower by which share is tried out first, and what it came to is
//! measured in each trial.

use clap::Args;
use pagelab_bench::{
    asked::Forks,
    partial::Partial,
    plan::{self, Plan, Planned},
    planted::{self, Planted},
    runner::{Came, Runner},
    suite::Entry,
};
use pagelab_record::{
    Outcome, Record, RunHeader,
    verdict::{DELTA, Verdict},
};
use pagelab_report::{Comparison, Power, Question, Side, Taken};
use pagelab_sys::{process::catch_interrupts, time::monotonic_raw_ns};

use super::{super::compare::share, Selftest, orders};
use crate::{
    exit::{Exit, Failure},
    output,
    session::{self, Place},
};

/// What is measured: of the cases that touch no memory of their own it scatters the least from
/// process to process.
const WORKLOAD: &str = "limit/syscall";

/// What one process measures for, in nanoseconds, and how often at most.
const BUDGET_NS: u64 = 30_000_000;
const REPETITIONS: u32 = 60;

/// Seconds that a trial may take where nobody says.
const TRIAL_S: f64 = 10.0;

/// Processes of each side beyond which no trial goes.
const PROCESSES_MAX: u32 = 256;

/// With what is tried out how much work is needed.
const PILOT: Planted = Planted { turns: 10_000 };

/// The sides of a trial: as it is, slower, as it is once more.
const SIDES: [&str; 3] = ["plain", "slower", "again"];

/// The flags that `--power` has for itself.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Plant a slowdown into what is measured, again and again: how often is it found?
    #[arg(long, conflicts_with = "aa")]
    pub(super) power: bool,
    /// How much slower (default 5%, and 2% where a tie is within 1%; twice --delta where that is
    /// given).
    #[arg(long, value_name = "SHARE", value_parser = slowdown, conflicts_with = "aa")]
    planted: Option<f64>,
    /// A difference of less is none (default 3%).
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "aa")]
    delta: Option<f64>,
    /// So many trials of each slowdown.
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "aa")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    trials: u32,
}

fn slowdown(text: &str) -> Result<f64, String> {
    share(text).and_then(|share| {
        let is_some = share > 0.0;
        is_some.then_some(share).ok_or_else(|| format!("`{text}` is no slowdown: write 2% or 5%"))
    })
}

impl Flags {
    /// What is asked: as told, or the two that this host is judged by.
    fn questions(&self) -> Vec<Question> {
        let question = |planted, delta| Question { planted, delta };
        match (self.planted, self.delta) {
            (None, None) => vec![question(0.05, DELTA), question(0.02, 0.01)],
            (Some(planted), delta) => vec![question(planted, delta.unwrap_or(DELTA))],
            (None, Some(delta)) => vec![question(2.0 * delta, delta)],
        }
    }
}

/// Runs all trials and prints what they come to.
pub(super) fn run(asked: &Selftest) -> Result<Exit, Failure> {
    let questions = asked.power.questions();
    let over = asked.method.overrides();
    let plain = plain(asked)?;
    let trials = asked.power.trials * u32::try_from(questions.len()).unwrap_or(1);
    let seconds = over.budget.map_or(TRIAL_S, |budget| budget.get() / f64::from(trials));
    let place = asked.output.place();
    let cases = std::slice::from_ref(&plain);
    let runner = session::runner(&place.run, cases, asked.conduct.wait.patience())?;
    catch_interrupts();
    let bench = Bench { runner, plain, seconds, first: over.forks.unwrap_or(super::FORKS).get() };
    let mut all: Vec<Power> = Vec::new();
    let end =
        bench.ask(&questions, asked.power.trials, &place, asked.conduct.quiet.quiet, &mut all);
    let end = end?;
    all.retain(|power| !power.is_empty());
    output::drawn(&if asked.format.is_json() {
        Power::json(&all)
    } else {
        Power::terminal(&all, output::style())
    })?;
    output::warn(&format!("\nall runs: {}", place.directory.display()));
    Ok(end)
}

/// The case as it is.
fn plain(asked: &Selftest) -> Result<Planned, Failure> {
    let row = pagelab_workloads::workload(WORKLOAD).map_err(Failure::usage_text)?;
    let over = asked.method.overrides();
    let entry = Entry { forks: Forks::of(1), ..Entry::new(row, Vec::new()) };
    let over = plan::Overrides { forks: None, budget: None, ..over };
    let cases = plan::of_cases(&entry, asked.conduct.clock.choice(), over);
    let mut cases = cases.map_err(Failure::usage_text)?.cases;
    let mut plain = cases.pop().ok_or_else(|| Failure::usage_text("no case"))?;
    plain.method.budget_ns = BUDGET_NS;
    plain.method.repetitions_max = REPETITIONS;
    plain.method.precision = 0.0;
    Ok(plain)
}

/// What measures trials.
struct Bench {
    runner: Runner,
    plain: Planned,
    /// Seconds of a trial.
    seconds: f64,
    /// Processes of each side that a trial begins with.
    first: u32,
}

/// How a trial ended before it told anything.
enum Broken {
    Interrupted,
    Failed(Failure),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Bench {
    fn ask(
        &self,
        questions: &[Question],
        trials: u32,
        place: &Place,
        quiet: bool,
        all: &mut Vec<Power>,
    ) -> Result<Exit, Failure> {
        for question in questions {
            let mut power = Power::new(*question, WORKLOAD);
            let came = self.trials(*question, trials, place, quiet, &mut power);
            all.push(power);
            match came {
                Ok(()) => {}
                Err(Broken::Interrupted) => return Ok(Exit::Interrupted),
                Err(Broken::Failed(failure)) => return Err(failure),
            }
        }
        Ok(Exit::Good)
    }

    fn trials(
        &self,
        question: Question,
        trials: u32,
        place: &Place,
        quiet: bool,
        power: &mut Power,
    ) -> Result<(), Broken> {
        let slower = self.slower(question.planted)?;
        for number in 1..=trials {
            let name = format!("slower-{:.1}%-{number:04}", question.planted * 100.0);
            let name = Place { directory: place.directory.join(&name), run: name };
            let told = self.trial(question, &slower, &name, power)?;
            if !quiet {
                output::warn(&format!("[{number}/{trials}] {told}"));
            }
        }
        Ok(())
    }

    /// The case with as much planted as makes it slower by a share: tried out twice, because the
    /// first time says it of another amount.
    fn slower(&self, share: f64) -> Result<Planned, Broken> {
        let mut slower = self.plain.clone();
        let mut planted = PILOT;
        for _ in 0..2 {
            slower.method.planted = Some(planted);
            let mut pilot = Partial::default();
            self.processes(&slower, 0, &mut pilot)?;
            self.processes(&slower, 1, &mut pilot)?;
            let measured = planted::share(pilot.measured()).ok_or_else(|| {
                Failure::internal(anyhow::anyhow!("{WORKLOAD}: nothing was planted"))
            })?;
            planted = planted.scaled(share, measured);
        }
        slower.method.planted = Some(planted);
        Ok(slower)
    }

    /// One process of a case.
    fn processes(&self, planned: &Planned, process: u32, into: &mut Partial) -> Result<(), Broken> {
        let came = self.runner.processes(planned, process..process + 1, &mut |_| {});
        match came.map_err(Failure::internal)? {
            Came::Answered(more) => {
                into.join(*more);
                Ok(())
            }
            Came::Interrupted => Err(Broken::Interrupted),
            Came::Settled(Outcome::Skipped { need, cure }) => Err(Broken::Failed(Failure::host(
                anyhow::anyhow!("{WORKLOAD} needs {need}: {cure}"),
            ))),
            Came::Settled(Outcome::Failed { reason }) => {
                Err(Broken::Failed(Failure::host(anyhow::anyhow!("{WORKLOAD}: {reason}"))))
            }
            Came::Settled(Outcome::Measured(_)) => Ok(()),
        }
    }

    /// One trial; says in a line what it came to.
    fn trial(
        &self,
        question: Question,
        slower: &Planned,
        place: &Place,
        power: &mut Power,
    ) -> Result<String, Broken> {
        let start = monotonic_raw_ns();
        let cases = [&self.plain, slower, &self.plain];
        let mut came = [(); 3].map(|()| Partial::default());
        let (mut done, mut wanted) = (0, self.first);
        let mut control = Verdict::Inconclusive;
        loop {
            for (process, order) in orders(done..wanted, SIDES.len()) {
                for side in order {
                    self.processes(cases[side], process, &mut came[side])?;
                }
            }
            done = wanted;
            let seconds = (monotonic_raw_ns() - start) as f64 / 1e9;
            let sides = came.each_ref().map(Clone::clone);
            let sides = self.sides(&cases, done, sides, place);
            let [base, more, again] = sides.each_ref().map(|(header, record)| Side {
                name: &header.run,
                header,
                records: std::slice::from_ref(record),
                damage: None,
            });
            let asked = question.asked();
            let of = |side| Comparison::of(&[base, side], &asked);
            let (Some(found), Some(nothing)) = (of(more), of(again)) else {
                return Err(Failure::internal(anyhow::anyhow!("a trial of no sides")).into());
            };
            let (verdict, needs) = Power::look(&found);
            // A trial of its own would have ended with its first verdict.
            if control == Verdict::Inconclusive {
                control = Power::look(&nothing).0;
            }
            // With the time that processes took so far.
            let affordable = f64::from(done) * self.seconds / seconds;
            let planned = needs.unwrap_or(PROCESSES_MAX).max(done + done / 4).min(PROCESSES_MAX);
            wanted = if f64::from(planned) > affordable {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "less")]
                let affordable = affordable as u32;
                affordable
            } else {
                planned
            };
            if verdict != Verdict::Inconclusive || wanted <= done {
                let share = planted::share(came[1].measured()).unwrap_or_default();
                power.add(&found, &nothing, control, Taken { planted: share, seconds });
                keep(sides, place)?;
                return Ok(format!(
                    "{:.1} % planted, {:.2} % measured: {verdict} by {done} processes of each \
                     side in {seconds:.1} s",
                    question.planted * 100.0,
                    share * 100.0
                ));
            }
        }
    }

    /// The runs of a trial as they would be read.
    fn sides(
        &self,
        cases: &[&Planned; 3],
        forks: u32,
        came: [Partial; 3],
        place: &Place,
    ) -> [(RunHeader, Record); 3] {
        let mut came = came.into_iter();
        let mut nth = 0;
        SIDES.map(|side| {
            let mut planned = cases[nth].clone();
            planned.method.forks = forks;
            nth += 1;
            let record = self.runner.conclude(&planned, came.next().unwrap_or_default());
            let run = format!("{}-{side}", place.run);
            let plan = Plan { cases: vec![planned], ..Plan::default() };
            (session::header(&run, "", &[], &plan), record)
        })
    }
}

/// Leaves the runs of a trial.
fn keep(sides: [(RunHeader, Record); 3], place: &Place) -> Result<(), Failure> {
    for ((header, record), side) in sides.into_iter().zip(SIDES) {
        let place = Place { run: header.run.clone(), directory: place.directory.join(side) };
        session::Run::start(&place, header)?.keep(record)?;
    }
    Ok(())
}
