//! `pagelab run --ab A B`: two arms of one run, block by block.
//!
//! The one idea: a block is a process of each arm, in an order that was drawn from a seed in the
//! header, so that a run that is resumed goes on with it. All cells are screened; within `--budget`
//! those that the verdict leaves open then get as many blocks as they need.

mod arms;

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

pub(super) use arms::{arm, named_again, of_arms, plan};
use pagelab_bench::{
    asked::{Forks, ppm},
    blocks,
    partial::Partial,
    plan::Plan,
    runner::{Came, Runner},
};
use pagelab_record::{Ab, Arm, Outcome, Record, RunHeader, Turns};
use pagelab_report::{Asked, Comparison, Forms, Side};
use pagelab_sys::{process::catch_interrupts, time::monotonic_raw_ns};

use crate::{
    exit::{Exit, Failure},
    output, part,
    progress::{self, Progress},
    session::Run,
    settings,
};

/// Blocks of every cell where nobody says: all to one side, they decide each of 20 cells together.
pub(super) const FORKS: Forks = Forks::of(12);

/// The screen takes at most so large a part of the budget for each arm.
pub(super) const SCREEN_SHARE: f64 = 0.25;

/// A runner for a run of two arms, both of which this machine takes.
pub(super) fn runner(
    run: &str,
    plan: &Plan,
    ab: &Ab,
    patience: Duration,
) -> Result<Runner, Failure> {
    let mut runner = settings::runner(run, &plan.cases, patience)?;
    for arm in &ab.arms {
        let refused = |why| host!("--ab {}: {why}", arm.name);
        runner.try_out(arm, &plan.cases).map_err(refused)?;
    }
    Ok(runner)
}

/// What the header keeps of it.
pub(super) fn asked(arms: [Arm; 2], plan: &Plan, budget_ns: Option<u64>, delta: Option<f64>) -> Ab {
    // JSON readers hold numbers of 53 bits.
    let seed = RandomState::new().hash_one(0_u8) >> 11;
    let screen = plan.cases.first().map_or(FORKS.get(), |planned| planned.method.forks);
    Ab { arms, seed, screen, budget_ns, delta_ppm: delta.map(ppm) }
}

/// An arm of a cell, as far as it has come.
#[derive(Debug, Default)]
struct Half {
    partial: Partial,
    settled: Option<Outcome>,
    first: Vec<u32>,
}

/// A cell, as far as it has come.
#[derive(Debug, Default)]
struct Cell {
    halves: [Half; 2],
    blocks: u32,
    /// How often they were looked at.
    looks: u32,
    took_ns: u64,
    measured: u32,
    /// Whether no more of it is measured.
    closed: bool,
}

impl Cell {
    /// Blocks that both arms have.
    fn pairs(&self) -> u32 {
        let of = |half: &Half| u32::try_from(half.partial.processes()).unwrap_or(u32::MAX);
        of(&self.halves[0]).min(of(&self.halves[1]))
    }
}

/// The cells as the records of a run left them.
fn cells(run: &Run, ab: &Ab, count: usize) -> Vec<Cell> {
    let boot = pagelab_sys::machine::environment::boot_id();
    let mut cells: Vec<Cell> = (0..count).map(|_| Cell::default()).collect();
    for (one, other) in run.records.iter().zip(run.records.iter().skip(1)) {
        let (Some(here), Some(there)) = (&one.ab, &other.ab) else { continue };
        let Some(cell) = cells.get_mut(here.cell as usize) else { continue };
        // An arm without the other, where the run was killed between the two, is no block: it is
        // measured again.
        if (here.cell, here.blocks) != (there.cell, there.blocks) || here.arm == there.arm {
            continue;
        }
        cell.blocks = here.blocks;
        cell.looks = here.looks.unwrap_or(1);
        for (record, turns) in [(one, here), (other, there)] {
            let Some(index) = ab.index(&turns.arm) else { continue };
            // What a boot brings is in its blocks: no other boot adds to them.
            cell.closed |= record.boot != boot;
            let half = &mut cell.halves[index];
            half.first.clone_from(&turns.first);
            match &record.outcome {
                Outcome::Measured(measured) => half.partial = Partial::of(measured.clone()),
                outcome => half.settled = Some(outcome.clone()),
            }
        }
    }
    for cell in &mut cells {
        cell.closed |= cell.halves.iter().any(|half| half.settled.is_some());
    }
    cells
}

/// Measures what is left of a run of two arms, and prints what it comes to.
pub(super) fn execute(
    runner: Runner,
    mut run: Run,
    plan: &Plan,
    quiet: bool,
) -> Result<Exit, Failure> {
    let asked = Asked::of(part::views());
    let end = measure(&runner, &mut run, plan, &asked, quiet)?;
    // Puts the knobs back before anything slow is drawn.
    drop(runner);
    let (header, records) = (run.header.clone(), run.records.clone());
    let done = run.conclude(end)?;
    let drawn = compared(&header, records, &asked, |found| found.terminal(output::style()));
    output::drawn(&drawn?)?;
    done.tell();
    Ok(done.exit)
}

/// What is told of the two arms of a run, compared as asked.
pub(super) fn compared<T>(
    header: &RunHeader,
    records: Vec<Record>,
    asked: &Asked,
    tell: impl FnOnce(&Comparison<'_>) -> T,
) -> Result<T, String> {
    let records = crate::latest::latest(records);
    let side = Side { name: &header.run, header, records: &records, damage: None };
    Comparison::of_arms(&side, asked).map(|found| tell(&found))
}

/// Measures what is left of a run of two arms, which are compared as asked: first the screen, then
/// what that leaves open, as long as the budget lasts.
pub(super) fn measure(
    runner: &Runner,
    run: &mut Run,
    plan: &Plan,
    asked: &Asked,
    quiet: bool,
) -> Result<Exit, Failure> {
    catch_interrupts();
    let Some(pagelab_record::Asked::Ab(ab)) = &run.header.asked.clone() else {
        return Err(Failure::internal(anyhow::anyhow!("a run without arms")));
    };
    let started = monotonic_raw_ns();
    let mut cells = cells(run, ab, plan.cases.len() / 2);
    let screen = |(at, cell): (usize, &Cell)| {
        let more = ab.screen.saturating_sub(cell.pairs());
        (more > 0 && !cell.closed).then_some((at, more))
    };
    let mut round: Vec<(usize, u32)> = cells.iter().enumerate().filter_map(screen).collect();
    let mut end = Exit::Good;
    while !round.is_empty() && end == Exit::Good {
        let mut course = Course { runner, plan, ab, run };
        end = course.round(&mut cells, &round, quiet)?;
        let Some(budget_ns) = ab.budget_ns else { break };
        let tell = |found: &Comparison<'_>| found.open_cells();
        let open = compared(&run.header, run.records.clone(), asked, tell).unwrap_or_default();
        let state = |(at, cell): (usize, &Cell)| blocks::Cell {
            blocks: cell.pairs(),
            block_ns: cell.took_ns / u64::from(cell.measured.max(1)),
            // How long a cell takes that was measured before the run was resumed nobody knows.
            needs: u32::try_from(at)
                .ok()
                .and_then(|at| open.get(&at).copied().flatten())
                .filter(|_| !cell.closed && cell.measured > 0),
        };
        let states: Vec<blocks::Cell> = cells.iter().enumerate().map(state).collect();
        round = blocks::round(&states, budget_ns.saturating_sub(monotonic_raw_ns() - started));
    }
    Ok(end)
}

/// A run on its way.
struct Course<'c> {
    runner: &'c Runner,
    plan: &'c Plan,
    ab: &'c Ab,
    run: &'c mut Run,
}

impl Course<'_> {
    /// Gives some cells so many more blocks each, and keeps what they have then.
    fn round(
        &mut self,
        cells: &mut [Cell],
        round: &[(usize, u32)],
        quiet: bool,
    ) -> Result<Exit, Failure> {
        let mine = round.iter().flat_map(|(at, _)| &self.plan.cases[2 * at..2 * at + 2]);
        let shown = Plan { cases: mine.cloned().collect(), left_out: Vec::new() };
        let mut progress = Progress::start(&shown, quiet);
        for (nth, &(at, more)) in round.iter().enumerate() {
            let cell = &mut cells[at];
            if !self.blocks(cell, at, more, &mut progress)? {
                progress.finish();
                settings::warn_of_lost(self.runner);
                return Ok(Exit::Interrupted);
            }
            cell.looks += 1;
            self.runner.keep_supplies(|_| false);
            for (index, planned) in self.plan.cases[2 * at..2 * at + 2].iter().enumerate() {
                let half = &cell.halves[index];
                let mut record = match &half.settled {
                    Some(outcome) => self.runner.record(planned, outcome.clone()),
                    None => self.runner.conclude(planned, half.partial.clone()),
                };
                record.ab = Some(Turns {
                    arm: self.ab.arms[index].clone(),
                    cell: u32::try_from(at).unwrap_or(u32::MAX),
                    blocks: cell.blocks,
                    looks: self.ab.budget_ns.map(|_| cell.looks),
                    first: half.first.clone(),
                });
                let told = progress::outcome(&record);
                self.run.keep(record)?;
                progress.case(2 * nth + index, planned, &told);
            }
        }
        progress.finish();
        Ok(Exit::Good)
    }

    /// Measures so many more blocks of a cell; false where the user interrupted.
    fn blocks(
        &self,
        cell: &mut Cell,
        at: usize,
        more: u32,
        progress: &mut Progress,
    ) -> Result<bool, Failure> {
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        for _ in 0..more {
            let (block, begun) = (cell.blocks, monotonic_raw_ns());
            let first = blocks::first(self.ab.seed, number, block);
            for (turn, index) in [first, 1 - first].into_iter().enumerate() {
                let planned = &self.plan.cases[2 * at + index];
                let half = &mut cell.halves[index];
                let mut told = |step| progress.step(planned, step);
                let came =
                    self.runner.processes(planned, block..block.saturating_add(1), &mut told);
                match came.map_err(Failure::internal)? {
                    Came::Answered(partial) => {
                        half.partial.join(*partial);
                        half.first.extend((turn == 0).then_some(block));
                    }
                    // What blocks before this one said stays said.
                    Came::Settled(outcome) if half.partial.processes() > 0 => {
                        let why = match outcome {
                            Outcome::Skipped { need, cure } => format!("it needs {need}: {cure}"),
                            Outcome::Failed { reason } => reason,
                            Outcome::Measured(_) => continue,
                        };
                        half.partial.warn(&[format!("block {block} was not measured: {why}")]);
                        cell.closed = true;
                    }
                    Came::Settled(outcome) => {
                        half.settled = Some(outcome);
                        cell.closed = true;
                    }
                    Came::Interrupted => return Ok(false),
                }
            }
            cell.blocks = cell.blocks.saturating_add(1);
            cell.measured += 1;
            cell.took_ns += monotonic_raw_ns() - begun;
            if cell.closed {
                break;
            }
        }
        Ok(true)
    }
}
