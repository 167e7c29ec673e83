//! Who moves pages: looks at the policy, moves in batches, keeps to a budget.
//!
//! The one idea: a pass has three parts as the kernel's daemon has: walk over records, move what
//! the policy asked for batch by batch, and sleep if there was nothing to walk over. Pages are at
//! their new place when their batch is done, not when it was decided.

use std::ops::Range;

use super::scenario::Mover;
use crate::{
    PAGE_BYTES, SECOND,
    policy::{Bucket, Move},
    random::Random,
};

/// The state of the daemon.
#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) mover: Mover,
    /// What the policy asked for last.
    pub(super) moves: Vec<Move>,
    /// Those that are done at `next_ns`, behind which the others wait; empty while it walks or
    /// sleeps.
    batch: Range<usize>,
    pub(super) next_ns: u64,
    /// What the next pass waits for when the queue is empty: the rest of a walk, or a sleep.
    walk_ns: u64,
    wake_ns: u64,
    pub(super) budget: Option<Bucket>,
    pub(super) random: Random,
    pub(super) busy_ns: u64,
}

/// What is to be done at `next_ns`.
#[derive(Debug)]
pub(super) enum Due {
    /// Ask the policy.
    Decide,
    /// These of its moves are done now.
    Batch(Range<usize>),
}

impl Daemon {
    pub(super) fn new(mover: &Mover, seed: u64) -> Self {
        let bucket = |limit| Bucket::new(limit, limit.max(PAGE_BYTES));
        Self {
            mover: mover.clone(),
            moves: Vec::new(),
            batch: 0..0,
            next_ns: 0,
            walk_ns: 0,
            wake_ns: 0,
            budget: mover.limit.map(bucket),
            random: Random::stream(seed, 3),
            busy_ns: 0,
        }
    }

    /// What has to be done now.
    pub(super) fn due(&self) -> Due {
        if self.batch.is_empty() { Due::Decide } else { Due::Batch(self.batch.clone()) }
    }

    /// The policy has decided on other moves, the last ones being done: moves, then walks on, or
    /// sleeps if there was nothing to walk over.
    ///
    /// The walk and the moves take turns in the kernel; what a record waits for is the same when
    /// the walk is behind the moves, for it is consumed when the walk comes to it.
    pub(super) fn decided(&mut self, now: u64, walked: u64) {
        self.walk_ns = walked * self.mover.walk_ps / 1000;
        self.wake_ns = if walked > 0 { now } else { now + self.mover.sleep_ns };
        self.busy_ns += self.walk_ns;
        self.batch = 0..0;
        self.start(now);
        self.next_ns = self.next_ns.max(now + 1);
    }

    /// Starts the next batch, or waits for the next pass.
    pub(super) fn start(&mut self, now: u64) {
        let first = self.batch.end;
        let most = (self.moves.len() - first).min(self.mover.batch.max(1) as usize);
        if most == 0 {
            self.batch = first..first;
            self.next_ns = self.wake_ns.max(now + std::mem::take(&mut self.walk_ns));
            return;
        }
        let mut pages = most;
        let mut at = now;
        if let Some(budget) = &mut self.budget {
            let affordable = usize::try_from(budget.burst() / PAGE_BYTES).unwrap_or(usize::MAX);
            pages = most.min(affordable.max(1));
            at = budget.take_when(now, pages as u64 * PAGE_BYTES);
        }
        self.batch = first..first + pages;
        let move_ns = pages as u64 * self.mover.move_ns;
        self.busy_ns += move_ns;
        self.next_ns = at + move_ns;
    }

    /// Whether a fault may move one page now.
    pub(super) fn allows(&mut self, now: u64) -> bool {
        self.budget.as_mut().is_none_or(|budget| budget.take(now, PAGE_BYTES))
    }

    /// Whether one move fails.
    pub(super) fn fails(&mut self) -> bool {
        self.random.chance(self.mover.failure)
    }
}

/// The longest time between two looks at the state where nothing else happens.
pub(super) const FOREVER: u64 = 3600 * SECOND;
