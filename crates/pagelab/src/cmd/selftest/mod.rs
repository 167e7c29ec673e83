//! `pagelab selftest --aa`: the same thing twice, to see what this host calls different. Whether it
//! finds what does differ is asked in [`power`].
//!
//! The processes of a case take turns, one for run A and one for run B, in an order that is drawn
//! and balanced; so whatever else happens on the machine happens to both, and chance alone is left.
//! `--apart` measures whole cases in turn, as two runs would be that follow each other: what
//! differs then is the floor of such runs. The two are compared as any two runs are.

mod power;

use std::{
    hash::{BuildHasher, RandomState},
    ops::Range,
};

use clap::Args;
use pagelab_bench::{
    asked::Forks,
    partial::Partial,
    plan::{self, Overrides, Plan},
    runner::{Came, Runner},
    suite::Suite,
};
use pagelab_record::Record;
use pagelab_report::{Asked, Comparison, Side, Twice};
use pagelab_sys::process::catch_interrupts;

use super::run::load;
use crate::{
    args::{Conduct, Format, Method, Output, Run},
    exit::{Exit, Failure},
    output,
    progress::{self, Progress},
    session::{self, Place},
};

/// Processes of each case where nobody says: so many can decide something.
const FORKS: Forks = Forks::of(8);

/// Measure the same thing twice, or something that was made slower: what does a comparison see?
#[derive(Debug, Args)]
pub(super) struct Selftest {
    #[command(flatten)]
    method: Method,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    conduct: Conduct,
    /// Two alternating runs of one suite: what is called different, and the floor of this host.
    #[arg(long, required_unless_present = "power")]
    aa: bool,
    /// The suite to run twice.
    #[arg(long, default_value = "quick", conflicts_with = "power")]
    suite: String,
    /// Take turns by case and not by process: how far do runs differ that follow each other?
    #[arg(long, conflicts_with = "power")]
    apart: bool,
    /// So many pairs of runs, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "power")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pairs: u32,
    #[command(flatten)]
    power: power::Flags,
    #[command(flatten)]
    format: Format,
}

impl Run for Selftest {
    fn run(self) -> Result<Exit, Failure> {
        if self.power.power { power::run(&self) } else { self.twice() }
    }
}

impl Selftest {
    /// Runs a suite twice, alternating, as often as asked, and prints what comparing them says.
    fn twice(&self) -> Result<Exit, Failure> {
        let suite = load(&self.suite)?;
        let over = self.method.overrides();
        let over = Overrides { forks: over.forks.or(Some(FORKS)), ..over };
        let plan = plan::of_suite(&suite, self.conduct.clock.choice(), over)
            .map_err(Failure::usage_text)?;
        let whole = self.output.place();
        let runner = session::runner(&whole.run, &plan.cases, self.conduct.wait.patience())?;
        let mut twice = Twice::default();
        let mut exit = Exit::Good;
        let mut last = String::new();
        for number in 1..=self.pairs {
            let place = if self.pairs == 1 {
                Place { run: whole.run.clone(), directory: whole.directory.clone() }
            } else {
                let run = format!("pair-{number:04}");
                Place { directory: whole.directory.join(&run), run }
            };
            let (sides, end) = self.pair(&suite, &plan, &runner, &place)?;
            let [a, b] = sides.each_ref().map(|side| Side {
                name: &side.header.run,
                header: &side.header,
                records: &side.records,
                damage: None,
            });
            if let Some(comparison) = Comparison::of(&[a, b], &Asked::default()) {
                twice.add(&place.run, &comparison);
                last = comparison.terminal(output::style());
            }
            let both: Vec<Record> = sides.into_iter().flat_map(|run| run.records).collect();
            exit = exit.min(end).min(session::verdict(&both));
            if end == Exit::Interrupted {
                break;
            }
        }
        drop(runner);
        output::drawn(&if self.format.is_json() {
            twice.json()
        } else {
            let cells = if self.pairs == 1 { last + "\n" } else { String::new() };
            cells + &twice.terminal(output::style())
        })?;
        output::warn(&format!("\nall runs: {}", whole.directory.display()));
        Ok(exit)
    }

    /// One pair of runs.
    fn pair(
        &self,
        suite: &Suite,
        plan: &Plan,
        runner: &Runner,
        place: &Place,
    ) -> Result<([session::Run; 2], Exit), Failure> {
        let start = |side: &str| {
            let place = Place {
                run: format!("{}-{side}", place.run),
                directory: place.directory.join(side),
            };
            let header = session::header(&place.run, &suite.name, &suite.published, plan);
            session::Run::start(&place, header)
        };
        let mut sides = [start("a")?, start("b")?];
        let end = if self.apart {
            let cases = plan.cases.iter().flat_map(|planned| [planned.clone(), planned.clone()]);
            let twice = Plan { cases: cases.collect(), left_out: Vec::new() };
            let mut count = 0;
            session::measure(runner, &twice, self.conduct.quiet.quiet, &mut |record| {
                // A B, then B A: neither side is always the first.
                let side = [0, 1, 1, 0][count % 4];
                count += 1;
                sides[side].keep(record)
            })?
        } else {
            self.in_turns(plan, runner, &mut sides)?
        };
        Ok((sides, end))
    }

    /// Measures every case for both sides, process by process.
    fn in_turns(
        &self,
        plan: &Plan,
        runner: &Runner,
        sides: &mut [session::Run; 2],
    ) -> Result<Exit, Failure> {
        catch_interrupts();
        let mut progress = Progress::start(plan, self.conduct.quiet.quiet);
        for (index, planned) in plan.cases.iter().enumerate() {
            let mut came = [(); 2].map(|()| Ok(Partial::default()));
            for (process, order) in orders(0..planned.method.forks, 2) {
                for side in order {
                    // What cannot be measured once is not tried again.
                    let Ok(partial) = &mut came[side] else { continue };
                    let mut told = |step| progress.step(planned, step);
                    let one = runner.processes(planned, process..process + 1, &mut told);
                    match one.map_err(Failure::internal)? {
                        Came::Answered(more) => partial.join(*more),
                        Came::Settled(outcome) => came[side] = Err(outcome),
                        Came::Interrupted => {
                            progress.finish();
                            return Ok(Exit::Interrupted);
                        }
                    }
                }
            }
            runner.keep_supplies(|_| false);
            let mut told = String::new();
            for (side, came) in sides.iter_mut().zip(came) {
                let record = match came {
                    Ok(partial) => runner.conclude(planned, partial),
                    Err(outcome) => runner.record(planned, outcome),
                };
                told = progress::outcome(&record);
                side.keep(record)?;
            }
            progress.case(index, planned, &told);
        }
        progress.finish();
        Ok(Exit::Good)
    }
}

/// In which order the sides come with each process of a case: drawn for every two processes, and
/// the other way around for the second of the two, so that a drift hits all sides alike.
fn orders(processes: Range<u32>, sides: usize) -> impl Iterator<Item = (u32, Vec<usize>)> {
    let mut drawn: Vec<usize> = Vec::new();
    processes.map(move |process| {
        if process.is_multiple_of(2) || drawn.is_empty() {
            let chance = RandomState::new();
            drawn = (0..sides).collect();
            drawn.sort_by_cached_key(|side| chance.hash_one(side));
        } else {
            drawn.reverse();
        }
        (process, drawn.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_is_the_first_as_often_and_none_is_always_the_same() {
        let firsts = |forks| orders(0..forks, 2).map(|(_, order)| order[0]).collect::<Vec<_>>();
        assert_eq!(firsts(64).iter().sum::<usize>(), 32);
        // One in 2^32 draws all alike.
        assert!(firsts(64).windows(2).any(|two| two[0] == two[1]));
        assert_eq!(orders(3..6, 2).map(|(process, _)| process).collect::<Vec<_>>(), [3, 4, 5]);
    }

    #[test]
    fn of_three_sides_each_comes_once_with_every_process() {
        let all: Vec<Vec<usize>> = orders(0..64, 3).map(|(_, order)| order).collect();
        let sorted = |order: &Vec<usize>| {
            let mut order = order.clone();
            order.sort_unstable();
            order
        };
        assert!(all.iter().all(|order| sorted(order) == [0, 1, 2]));
        let place = |order: &Vec<usize>| order.iter().position(|side| *side == 1).unwrap();
        // Early as often as late.
        assert_eq!(all.iter().map(place).sum::<usize>(), 64);
    }
}
