//! From rung to rung: what each needs of the machine is made, and put back after every run.
//!
//! The one idea: the first run is nobody's. It warms the caches and shows what kind of program it
//! is: how long it takes, how it ends, how much it holds, whether it forks or shares. What a rung
//! cannot do with such a program is said before it is tried.

mod chosen;
mod fitted;
mod one_run;
mod planner;
mod priority;
mod rounds;
mod watched;

use std::io;

use pagelab_cli::program::Program;
use pagelab_mappings::BrokenUp;
use pagelab_record::{Case, Outcome, Record, asked, verdict::Ratio, vocabulary::tried};
use pagelab_sys::{
    knobs::{KnobError, Knobs},
    machine::environment,
    process::minder::Minder,
    time::monotonic_raw_ns,
};

use self::planner::{ESSENTIAL, Planner};
use super::{
    attend::Stopped,
    course,
    facts::Facts,
    held,
    once::{Around, Once, Run, how},
    order, restored,
    rungs::{Offer, Start},
    streams::{Streams, last_words},
    tally::Tally,
};
use crate::settings::Settings;

/// One rung on its way.
#[derive(Debug)]
struct Rung {
    offer: Offer,
    streams: Streams,
    tally: Tally,
}

/// A program on its way up the ladder.
#[derive(Debug)]
pub struct Climb<'k> {
    program: Program,
    rungs: Vec<Rung>,
    knobs: Option<&'k Knobs>,
    /// Rungs that were asked for by name.
    named: Vec<String>,
    facts: Option<Facts>,
    around: Around,
    limit: Option<u64>,
    fragments: Vec<BrokenUp>,
    same_output: bool,
    exit: u64,
    minder: Minder,
    seed: u64,
    delta: f64,
    rounds: u32,
    least: u32,
    looks: u32,
    planner: Planner,
    /// The variants but for the bases, in the order in which they are worth a first run.
    ordered: Vec<usize>,
    /// The rungs that go on.
    active: Vec<usize>,
    /// When it began.
    began_ns: u64,
    /// The machine's settings before the first round.
    settings: Settings,
}

/// What is told of the way.
#[derive(Debug)]
pub enum Step<'s> {
    /// The discarded first run took this many nanoseconds.
    Probed(u64),
    /// What is expected to run.
    Planned(Estimate),
    /// A round, with what ran in it, nanoseconds.
    Round(u32, &'s [(&'s str, u64)]),
    /// This many rounds of the screen are over: the best relative to as-set-up, none decided.
    Screened(u32, &'s [(String, Ratio)]),
    /// Nothing more is run on a rung.
    Settled(&'s str, &'s Outcome),
    /// A run on a rung was ended after so many nanoseconds, and whether that is for all of it.
    Late(&'s str, u64, bool),
    /// A run on a rung does not count: what changed on the machine, and whether it is repeated.
    Disturbed(&'s str, &'s str, bool),
}

/// How long an experiment is expected to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Variants that could run.
    pub variants: usize,
    /// Variants that the first round has time for.
    pub first_round: usize,
    /// Nanoseconds of one run.
    pub run_ns: u64,
    /// Nanoseconds of both rounds of all variants.
    pub screen_ns: u64,
    /// Nanoseconds until the best are looked at for the first time.
    pub finals_ns: u64,
    /// Nanoseconds that are left of the budget, where there is one.
    pub left_ns: Option<u64>,
}

/// Why the way up ended early.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The user interrupted; what was seen stays.
    #[error("interrupted")]
    Interrupted,
    /// Free memory cannot be broken up.
    #[error("free memory cannot be broken up: {0}")]
    Memory(String),
    /// The program does not run as it is set up, or not alike each time.
    #[error("as it is set up, {0}")]
    Program(String),
    /// Settings can be changed no more; what was seen stays.
    #[error("{0}; no setting is changed without it")]
    Unguarded(KnobError),
}

impl Ended {
    /// The program does not end alike each time.
    fn varies(one: u64, other: u64) -> Self {
        let (one, other) = (how(one), how(other));
        Self::Program(format!(
            "the program varies: it {one} and it {other}, so no run can be compared with another"
        ))
    }
}

impl<'k> Climb<'k> {
    /// A way up from what was offered; each rung has streams of its own.
    ///
    /// # Errors
    /// When there can be nobody who ends the program should we be killed.
    pub fn new(
        program: Program,
        offers: Vec<(Offer, Streams)>,
        knobs: Option<&'k Knobs>,
        asked: &asked::Try,
        around: Around,
    ) -> io::Result<Self> {
        let rung = |(offer, streams)| Rung { offer, streams, tally: Tally::default() };
        let mut rungs: Vec<Rung> = offers.into_iter().map(rung).collect();
        for Rung { offer, tally, .. } in &mut rungs {
            let lacks = &offer.rung.lacks;
            if !lacks.is_empty() {
                let joined = |of: fn(&asked::Lack) -> &String| {
                    lacks.iter().map(|lack| of(lack).as_str()).collect::<Vec<_>>().join("; ")
                };
                let (need, cure) = (joined(|lack| &lack.need), joined(|lack| &lack.cure));
                tally.settled = Some(Outcome::Skipped { need, cure });
            }
        }
        let active = (0..rungs.len()).collect();
        let asked::Around { limit, fragmented, same_output, exit, .. } = asked.around;
        let minder = Minder::start()?;
        let planner = Planner::new(asked.budget_ns, rungs.len());
        Ok(Self {
            program,
            rungs,
            knobs,
            named: asked.named.clone(),
            facts: None,
            around,
            limit,
            fragments: if fragmented { held::fragments() } else { Vec::new() },
            same_output,
            exit: exit.into(),
            minder,
            seed: asked.seed,
            delta: f64::from(asked.delta_ppm) / 1e6,
            rounds: asked.rounds,
            least: asked.min_rounds,
            looks: 0,
            planner,
            ordered: Vec::new(),
            active,
            began_ns: monotonic_raw_ns(),
            settings: Settings::default(),
        })
    }

    /// Takes over what records of the same run hold, the last of each rung; `None` where one of
    /// them is of another boot, which no rung of this one is to be set beside.
    #[must_use]
    pub fn restored(mut self, records: &[Record]) -> Option<Self> {
        let boot = environment::boot_id();
        for Rung { offer, tally, .. } in &mut self.rungs {
            let is_mine = |record: &&Record| record.case.get("rung") == Some(&offer.rung.name);
            let Some(record) = records.iter().rfind(is_mine) else { continue };
            if record.boot != boot {
                return None;
            }
            let (restored, looks) = restored::tally(record);
            *tally = restored;
            self.looks = self.looks.max(looks);
        }
        let of = |rung: &Rung| rung.tally.elapsed().len();
        let most = self.rungs.iter().map(of).max().unwrap_or(0);
        if most > course::SCREEN as usize {
            // The last round may have been cut short.
            self.active.retain(|at| of(&self.rungs[*at]) + 1 >= most);
        }
        Some(self)
    }

    /// Rounds that were begun.
    fn begun(&self) -> u32 {
        let rounds = self.rungs.iter().flat_map(|rung| rung.tally.elapsed());
        rounds.map(|(round, _)| round + 1).max().unwrap_or(0)
    }

    /// What each rung has come to, in the order of the table.
    pub fn records(&self, run: &str) -> Vec<Record> {
        let record = |(at, Rung { offer, tally, .. }): (usize, &Rung)| {
            let case = case(&self.program, &offer.rung.name);
            let mut record = tally.record(run, case, self.looks);
            if let (Outcome::Measured(measured), []) = (&mut record.outcome, tally.elapsed())
                && !tally.is_over()
            {
                let expected = self.planner.expected_ns(at);
                measured.counters.insert(asked::Rung::UNTRIED_NS.to_owned(), expected);
            }
            record
        };
        self.rungs.iter().enumerate().map(record).collect()
    }

    /// Nanoseconds since it began.
    fn spent_ns(&self) -> u64 {
        monotonic_raw_ns() - self.began_ns
    }

    /// Whether something of this length is expected to end within the budget.
    pub fn has_time(&self, ns: u64) -> bool {
        self.planner.fits(self.spent_ns(), ns)
    }

    /// Runs the program as it is set up, which counts for nothing, and says which rungs are not for
    /// such a one.
    ///
    /// # Errors
    /// When it does not run, or the user interrupts.
    pub fn probe(&mut self, tell: &mut dyn FnMut(Step<'_>)) -> Result<(), Ended> {
        let since = monotonic_raw_ns();
        let Some(once) = self.first_run()? else { return Ok(()) };
        self.planner.usual(monotonic_raw_ns() - since);
        tell(Step::Probed(once.elapsed_ns));
        let facts = Facts::of(&once);
        for Rung { offer, tally, .. } in &mut self.rungs {
            let is_named = self.named.contains(&offer.rung.name);
            if let Some(skipped) = facts.forbids(offer, is_named) {
                tally.settled.get_or_insert(skipped);
            }
        }
        self.facts = Some(facts);
        self.settings = Settings::of_faults();
        for Rung { offer, tally, .. } in &self.rungs {
            tally.settled.iter().for_each(|outcome| tell(Step::Settled(&offer.rung.name, outcome)));
        }
        self.rank(&[]);
        if self.begun() == 0 {
            tell(Step::Planned(self.estimate()));
        }
        Ok(())
    }

    /// A run as set up that counts for nothing. One that fails is repeated, to tell a program that
    /// fails from one that varies.
    fn first_run(&mut self) -> Result<Option<Once>, Ended> {
        let at = self.rungs.iter().position(|rung| rung.offer.rung.name == tried::AS_SET_UP);
        let Some(rung) = at.and_then(|at| self.rungs.get_mut(at)) else { return Ok(None) };
        // Without a limit: what it holds where it may hold all is what a pool is made for.
        let run = Run {
            program: &self.program,
            start: &Start::default(),
            usual_ns: None,
            limit_ns: None,
            exit: None,
            around: &self.around,
            group: None,
            mark: self.minder.mark(),
            is_watched: false,
        };
        let mut once = || {
            run.once(&mut rung.streams).map_err(|stopped| match stopped {
                Stopped::Interrupted => Ended::Interrupted,
                other => Ended::Program(other.to_string()),
            })
        };
        let first = once()?;
        if first.exit() == self.exit || self.around.load.is_some() {
            return Ok(Some(first));
        }
        let (exit, again) = (first.exit(), once()?.exit());
        if exit != again {
            return Err(Ended::varies(exit, again));
        }
        let code = if exit < 256 {
            format!("; if it ends so when all is well: --exit {exit}")
        } else {
            String::new()
        };
        let words = last_words(&mut rung.streams.complaints);
        Err(Ended::Program(format!("the program {} both times{words}{code}", how(exit))))
    }

    fn round(&mut self, round: u32, tell: &mut dyn FnMut(Step<'_>)) -> Result<(), Ended> {
        self.active.retain(|at| !self.rungs[*at].tally.is_over());
        let active = self.active.clone();
        let mut essential = if round == 0 { self.in_question() } else { Vec::new() };
        essential.truncate(ESSENTIAL);
        for nth in order::of(self.seed, round, active.len()) {
            let at = active[nth];
            if essential.contains(&at) || self.has_time(self.planner.expected_ns(at)) {
                let is_essential = essential.contains(&at);
                let Some(ns) = self.once(at, (round, is_essential), tell)? else { continue };
                self.planner.ran(at, ns);
                if self.rungs[at].offer.rung.name == tried::AS_SET_UP {
                    self.planner.usual(ns);
                }
            }
        }
        let ran = active.iter().filter_map(|at| {
            let Rung { offer, tally, .. } = self.rungs.get(*at)?;
            let (_, ns) = tally.elapsed().last().filter(|(last, _)| *last == round)?;
            Some((offer.rung.name.as_str(), *ns))
        });
        tell(Step::Round(round, &ran.collect::<Vec<_>>()));
        Ok(())
    }
}

/// The case of a program on a rung.
pub fn case(program: &Program, rung: &str) -> Case {
    Case::default().with("program", &program.line()).with("rung", rung)
}
