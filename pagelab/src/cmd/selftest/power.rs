//! `pagelab selftest --power`: is a slowdown found that is there?
//!
//! The one idea: a trial is a run of two arms, as any `run --ab` is, with two cells: in the one
//! there is work planted into the body of the second arm, in the other there is nothing in either.
//! What the comparison says of the one is whether it finds, of the other whether it cries wolf. A
//! trial begins with a few blocks and goes on with more, as far as its time reaches.
//!
//! How much work makes the body slower by which share is tried out before each trial, because a
//! shared host has slower minutes, and what it came to is measured in it.

use clap::Args;
use pagelab_bench::{
    asked::{Forks, Seconds, Share, share},
    plan::{self, Plan, Planned},
    planted::{self, Planted},
    runner::{Came, Runner},
    suite::Entry,
};
use pagelab_record::{Arm, Asked, Outcome, Record, ab::Change, verdict::DELTA};
use pagelab_report::{Power, Question, Taken};
use pagelab_sys::{process::catch_interrupts, time::monotonic_raw_ns};

use super::{super::ab, Selftest};
use crate::{
    exit::{Exit, Failure},
    output, part,
    session::{self, Place},
    settings,
};

/// What is measured: of the cases that touch no memory of their own it scatters the least from
/// process to process.
const WORKLOAD: &str = "limit/syscall";

/// What one process measures for, in nanoseconds, and how often at most.
const BUDGET_NS: u64 = 30_000_000;
const REPETITIONS: u32 = 60;

/// What a trial may take where nobody says.
const TRIAL: Seconds = Seconds::of_ms(15_000);

/// Blocks that a trial begins with.
const FORKS: Forks = Forks::of(16);

/// Trials of each slowdown where nobody says.
const TRIALS: u32 = 50;

/// With what is tried out how much work is needed.
const PILOT: Planted = Planted { turns: 10_000 };

/// What the two arms are called: as it is, and slower.
const ARMS: [&str; 2] = ["plain", "slower"];

/// The flags that `--power` has for itself.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Plant a slowdown into what is measured, again and again: how often is it found?
    #[arg(long, conflicts_with = "aa")]
    pub(super) power: bool,
    /// How much slower (default 5%, and 2% where a tie is within 1%; twice --delta where that is
    /// given).
    #[arg(long, value_name = "SHARE", conflicts_with = "aa")]
    planted: Option<Share>,
    /// Treat differences below this share as equal, 3% or 0.03 (default 3%).
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "aa")]
    delta: Option<f64>,
}

impl Flags {
    /// What is asked: as told, or the two that this host is judged by.
    fn questions(&self) -> Vec<Question> {
        let question = |planted, delta| Question { planted, delta };
        match (self.planted.map(Share::get), self.delta) {
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
    let trials = asked.trials.unwrap_or(TRIALS);
    let all_trials = trials * u32::try_from(questions.len()).unwrap_or(1);
    let seconds = over.budget.map_or(TRIAL, |budget| budget.part(1.0 / f64::from(all_trials)));
    let place = asked.output.place();
    let cases = std::slice::from_ref(&plain);
    let runner = settings::runner(&place.run, cases, asked.conduct.wait.patience())?;
    catch_interrupts();
    let quiet = asked.conduct.quiet.quiet;
    let bench = Bench { runner, plain, seconds, trials, quiet };
    let mut all: Vec<Power> = Vec::new();
    let end = bench.ask(&questions, &place, &mut all)?;
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
    let row = part::workload(WORKLOAD)?;
    let over = asked.method.overrides();
    let entry = Entry { forks: Forks::of(1), ..Entry::new(row, Vec::new()) };
    let over = plan::Overrides { forks: None, budget: None, ..over };
    let cases = plan::of_cases(&entry, asked.conduct.clock.choice(), over);
    let mut cases = cases?.cases;
    let mut plain = cases.pop().ok_or_else(|| usage!("no case"))?;
    plain.method.budget_ns = BUDGET_NS;
    plain.method.repetitions_max = REPETITIONS;
    plain.method.precision = 0.0;
    plain.method.forks = asked.method.overrides().forks.unwrap_or(FORKS).get();
    Ok(plain)
}

/// What measures trials.
struct Bench {
    runner: Runner,
    plain: Planned,
    /// Of a trial.
    seconds: Seconds,
    /// Of each question.
    trials: u32,
    quiet: bool,
}

impl Bench {
    fn ask(
        &self,
        questions: &[Question],
        place: &Place,
        all: &mut Vec<Power>,
    ) -> Result<Exit, Failure> {
        for question in questions {
            let mut power = Power::new(*question, WORKLOAD);
            let end = self.trials(*question, place, &mut power);
            all.push(power);
            if end? == Exit::Interrupted {
                return Ok(Exit::Interrupted);
            }
        }
        Ok(Exit::Good)
    }

    fn trials(
        &self,
        question: Question,
        place: &Place,
        power: &mut Power,
    ) -> Result<Exit, Failure> {
        for number in 1..=self.trials {
            let run = format!("slower-{:.1}%-{number:04}", question.planted * 100.0);
            let place = Place { directory: place.directory.join(&run), run };
            let Some(slower) = self.slower(question.planted)? else {
                return Ok(Exit::Interrupted);
            };
            let Some(told) = self.trial(question, &slower, &place, power)? else {
                return Ok(Exit::Interrupted);
            };
            if !self.quiet {
                output::warn(&format!("[{number}/{}] {told}", self.trials));
            }
        }
        Ok(Exit::Good)
    }

    /// The case with as much planted as makes it slower by a share: tried out twice, because the
    /// first time says it of another amount. Nothing where the user interrupted.
    fn slower(&self, share: f64) -> Result<Option<Planned>, Failure> {
        let mut slower = self.plain.clone();
        let mut planted = PILOT;
        for _ in 0..2 {
            slower.method.planted = Some(planted);
            let came = self.runner.processes(&slower, 0..2, &mut |_| {});
            let measured = match came.map_err(Failure::internal)? {
                Came::Answered(pilot) => planted::share(pilot.measured()),
                Came::Interrupted => {
                    settings::warn_of_lost(&self.runner);
                    return Ok(None);
                }
                Came::Settled(Outcome::Skipped { need, cure }) => {
                    let why = anyhow::anyhow!("{WORKLOAD} needs {need}: {cure}");
                    return Err(Failure::host(why));
                }
                Came::Settled(Outcome::Failed { reason }) => {
                    return Err(host!("{WORKLOAD}: {reason}"));
                }
                Came::Settled(Outcome::Measured(_)) => None,
            };
            let nothing = || Failure::internal(anyhow::anyhow!("{WORKLOAD}: nothing was planted"));
            planted = planted.scaled(share, measured.ok_or_else(nothing)?);
        }
        slower.method.planted = Some(planted);
        Ok(Some(slower))
    }

    /// One trial; says in a line what it came to. Nothing where the user interrupted.
    fn trial(
        &self,
        question: Question,
        slower: &Planned,
        place: &Place,
        power: &mut Power,
    ) -> Result<Option<String>, Failure> {
        let start = monotonic_raw_ns();
        let arms = ARMS.map(|name| Arm { name: name.to_owned(), change: Change::Nothing });
        let cases = [&self.plain, slower, &self.plain, &self.plain].map(Clone::clone);
        let plan = Plan { cases: ab::of_arms(cases.into(), &arms), left_out: Vec::new() };
        let mut header = session::header(&place.run, "", &[], &plan);
        let ab = ab::asked(arms, &plan, Some(self.seconds.ns()), None);
        header.asked = Some(Asked::Ab(ab));
        let mut run = session::Run::start(place, header)?;
        let asked = question.asked(part::views());
        if ab::measure(&self.runner, &mut run, &plan, &asked, true)? == Exit::Interrupted {
            return Ok(None);
        }
        let seconds = (monotonic_raw_ns() - start) as f64 / 1e9;
        let records = crate::latest::latest(run.records.clone());
        let share = records.iter().filter_map(Record::measured).find_map(planted::share);
        let share = share.unwrap_or_default();
        let told = ab::compared(&run.header, records, &asked, |found| {
            power.add(found, Taken { planted: share, seconds })
        });
        let (verdict, processes) = told?;
        Ok(Some(format!(
            "{:.1} % planted, {:.2} % measured: {verdict} by {processes} processes of each side in \
             {seconds:.1} s",
            question.planted * 100.0,
            share * 100.0
        )))
    }
}
