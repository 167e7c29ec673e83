//! `pagelab advise`: which way of getting fresh memory is the fastest here, and what it costs.
//!
//! The strategies are ordinary cases of `fault/throughput`, measured by the ordinary runner into an
//! ordinary run; what is special is their order ([`Course`]): rounds over those that may still be
//! the fastest, until the time that was asked for is spent. The answer is the report's.

use crate::{
    advise::{Course, Policy, Question, Refused, Turn, out_of_time},
    views::advise,
};
use clap::{Args, value_parser};
use pagelab_bench::{
    asked::Seconds,
    plan::{Plan, Planned},
    runner::{Came, Runner},
};
use pagelab_record::{
    Asked,
    units::{parse_bytes, whole},
};
use pagelab_sys::{
    process::{catch_interrupts, interrupted},
    time::monotonic_raw_ns,
};

use pagelab_cli::{
    args::{Conduct, Format, Output, Run},
    exit::{Exit, Failure},
    output,
    progress::{self, Work},
    session, settings,
};

/// Kept back for writing records and the page, nanoseconds.
const WRITING_NS: u64 = 300_000_000;
/// The part of the budget that is kept for the clear limit is one in so many.
const CLEAR_SHARE: u64 = 10;
/// The least that a process is given before it counts as hung.
const LIMIT_MIN_NS: u64 = 300_000_000;

/// Which way of getting fresh memory is the fastest here, and what it costs.
///
/// Measures every strategy over a part of the memory, at most a quarter of it: touching,
/// populating, locking, transparent and hugetlb pages, in one thread and in several. As root,
/// settings that a strategy needs are changed for it and put back.
#[derive(Debug, Args)]
pub(crate) struct Advise {
    /// How much memory, such as 4g.
    #[arg(long, value_parser = parse_bytes)]
    size: u64,
    /// Threads that may be used for it.
    #[arg(long, value_parser = value_parser!(u32).range(1..=4096), default_value = "1")]
    threads: u32,
    /// What may be named: any; keep (no setting is changed); base (pages of 4k); transparent (no
    /// hugetlb pool); locked (memory that stays).
    #[arg(long, value_parser = Policy::ALL.map(Policy::name), default_value = Policy::Any.name())]
    policy: String,
    /// Seconds that the answer may take.
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    budget: Seconds,
    #[arg(long, help = "Run measured threads under SCHED_FIFO")]
    fifo: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    conduct: Conduct,
    #[command(flatten)]
    format: Format,
}

impl Advise {
    fn question(&self) -> Question {
        Question {
            size: self.size,
            threads: self.threads,
            policy: Policy::of(&self.policy),
            budget_s: self.budget.get(),
            fifo: self.fifo,
        }
    }
}

impl Run for Advise {
    /// Measures and answers.
    fn run(self) -> Result<Exit, Failure> {
        let start = monotonic_raw_ns();
        let question = self.question();
        let survey = question.survey().map_err(refused)?;
        let (clear, strategies) = survey.plan(self.conduct.clock.choice());
        let cases: Vec<Planned> = clear.iter().chain(&strategies).cloned().collect();
        let place = self.output.place();
        let runner = settings::runner(&place.run, &cases, self.conduct.wait.patience())?;
        let plan = Plan { cases, left_out: Vec::new() };
        let mut header = session::header(&place.run, "", &[], &plan);
        header.asked = Some(Asked::Advise(survey.asked.clone()));
        let mut run = session::Run::start(&place, header)?;
        catch_interrupts();
        let mut end = Exit::Good;
        let budget_ns = whole(question.budget_s * 1e9).saturating_sub(WRITING_NS);
        let passed = || monotonic_raw_ns() - start;
        let for_clear = if clear.is_some() { budget_ns / CLEAR_SHARE } else { 0 };
        let begun = passed();
        let mut course = Course::new(strategies, budget_ns.saturating_sub(begun + for_clear));
        let progress = Work::start("", self.conduct.quiet.quiet);
        while let Some(turn) = course.next(passed() - begun).filter(|_| end == Exit::Good) {
            let name = progress::brief(course.planned(turn));
            progress.so_far(passed(), budget_ns, &name);
            if interrupted() || !take(&runner, &mut course, turn)? {
                end = Exit::Interrupted;
            }
        }
        progress.finish();
        // Last: an answer without a share of the limit is one, a limit without an answer is none.
        if let Some(mut clear) = clear.filter(|_| end == Exit::Good) {
            clear.method.limit_ns = budget_ns.saturating_sub(passed()).max(LIMIT_MIN_NS);
            match runner.processes(&clear, 0..1, &mut |_| ()).map_err(Failure::internal)? {
                Came::Answered(partial) => run.keep(runner.conclude(&clear, *partial))?,
                Came::Settled(_) => run.keep(runner.record(&clear, out_of_time()))?,
                Came::Interrupted => end = Exit::Interrupted,
            }
        }
        if end == Exit::Interrupted {
            settings::warn_of_lost(&runner);
        }
        for (planned, came) in course.finish() {
            // What an interrupt left without a measurement has no record: `resume` measures it.
            match came {
                Ok(partial) => run.keep(runner.conclude(&planned, partial))?,
                Err(_) if end == Exit::Interrupted => (),
                Err(outcome) => run.keep(runner.record(&planned, outcome))?,
            }
        }
        // Puts the knobs back before anything is drawn.
        drop(runner);
        let done = run.conclude(end)?;
        let answer = if self.format.is_json() {
            advise::json(done.report.run())
        } else {
            done.report.only(&["advise", "intervals"], output::style())
        };
        output::drawn(&answer.unwrap_or_default())?;
        done.tell();
        Ok(done.exit)
    }
}

fn refused(why: Refused) -> Failure {
    match why {
        Refused::Host(why) => host!(why),
        Refused::Question(why) => Failure::from(why),
    }
}

/// Gives a strategy its turn; `false` when the user interrupted.
fn take(runner: &Runner, course: &mut Course, turn: Turn) -> Result<bool, Failure> {
    let mut planned = course.planned(turn).clone();
    planned.method.limit_ns = turn.left_ns.max(LIMIT_MIN_NS);
    let before = monotonic_raw_ns();
    let numbers = turn.round..turn.round + 1;
    let came = runner.processes(&planned, numbers, &mut |_| ()).map_err(Failure::internal)?;
    let took_ns = monotonic_raw_ns() - before;
    match came {
        Came::Answered(partial) => course.measured(turn, *partial, took_ns),
        // It was ended because the answer is due, not because it hung.
        Came::Settled(_) if took_ns >= planned.method.limit_ns => {
            course.settled(turn, out_of_time());
        }
        Came::Settled(outcome) => course.settled(turn, outcome),
        Came::Interrupted => return Ok(false),
    }
    Ok(true)
}
