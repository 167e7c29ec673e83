//! What is counted while a simulation runs: moves, waste, ping-pongs, and the series.
//!
//! The one idea: a promotion has earned the accesses that its page had since, times what one of
//! them saves on average between everything slow and everything fast; if that is less than what the
//! move took from the program, it was wasted. Rows of the series are taken after equal times; when
//! there are too many, every second one goes and the time doubles.

use std::cmp::Ordering;

use super::{
    machine::Machine,
    outcome::{Outcome, Row},
    sampler::Stretch,
    stamps::Stamps,
};
use crate::{
    MILLISECOND,
    policy::{Counts, Move, Policy},
    whole,
};

/// Time between rows at the start.
const ROW_NS: u64 = 10 * MILLISECOND;

/// The counts so far.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) outcome: Outcome,
    pub(super) stall_ns: f64,
    pub(super) next_ns: u64,
    step_ns: u64,
    rows: usize,
    /// Accesses that went to the top tier.
    top: f64,
    /// Accesses that a promoted page must have for its move to pay.
    pays: f64,
    /// When a page was promoted, where it was.
    since: Stamps,
    /// When a page was demoted, and one; empty until the first one.
    demoted: Vec<u64>,
}

impl Tally {
    pub(super) fn new(machine: &Machine<'_>, pages: u32) -> Self {
        let outcome = Outcome { pages: u64::from(pages), ..Outcome::default() };
        Self {
            outcome,
            stall_ns: 0.0,
            next_ns: 0,
            step_ns: ROW_NS,
            rows: machine.scenario.rows.max(2),
            top: 0.0,
            pays: machine.pays(),
            since: Stamps::new(pages),
            demoted: Vec::new(),
        }
    }

    /// The program did a stretch of accesses.
    pub(super) fn ran(&mut self, share: f64, machine: &Machine<'_>, stretch: Stretch) {
        let mut top = share * (stretch.to - stretch.from);
        let mut counted = 0.0;
        let exact = machine.pattern.window(stretch.from, stretch.to, |page, accesses| {
            if machine.places.is_top(page) {
                counted += accesses;
            }
        });
        if exact {
            top = counted;
        }
        self.top += top;
    }

    /// Brings near what is known of pages that are about to move, all at once. Only a hint.
    pub(super) fn warm(&self, batch: &[Move], place: &[u8]) {
        let known =
            |order: &Move| self.since.number(order.page) ^ u32::from(place[order.page as usize]);
        std::hint::black_box(batch.iter().map(known).fold(0, |sum, word| sum ^ word));
    }

    /// A page is about to move.
    pub(super) fn moves(&mut self, page: u32, to: u8, machine: &Machine<'_>) {
        let (old, new) = (machine.places.tier(page), machine.places.nodes[usize::from(to)].tier);
        let at = page as usize;
        match new.cmp(&old) {
            Ordering::Equal => self.outcome.exchanged += 1,
            Ordering::Less => {
                self.outcome.promoted += 1;
                if let Some(&demoted) = self.demoted.get(at) {
                    let window = machine.scenario.mover.ping_pong_ns;
                    let soon = demoted > 0 && machine.now.saturating_sub(demoted - 1) < window;
                    self.outcome.ping_pongs += u64::from(soon);
                }
                self.since.replace(page, machine.done);
            }
            Ordering::Greater => {
                self.outcome.demoted += 1;
                if self.demoted.is_empty() {
                    self.demoted = vec![0; machine.pattern.pages() as usize];
                }
                self.demoted[at] = machine.now + 1;
                self.judge(page, machine);
            }
        }
    }

    /// A page leaves the top tier, or the program ends: whether its promotion has paid.
    fn judge(&mut self, page: u32, machine: &Machine<'_>) {
        if let Some(since) = self.since.take(page) {
            let earned = machine.pattern.expected(page, since, machine.done);
            self.outcome.wasted += u64::from(earned < self.pays);
        }
    }

    /// Adds a row to the series.
    pub(super) fn row(&mut self, machine: &Machine<'_>, policy: &dyn Policy) {
        let row = self.now(machine, policy);
        self.outcome.series.push(row);
        if self.outcome.series.len() >= self.rows {
            let mut index = 0;
            self.outcome.series.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.step_ns *= 2;
        }
        self.next_ns = (machine.now / self.step_ns + 1) * self.step_ns;
    }

    fn now(&self, machine: &Machine<'_>, policy: &dyn Policy) -> Row {
        let shares = machine.places.shares();
        Row {
            at_ns: machine.now,
            accesses: whole(machine.done),
            placed: machine.places.placed(),
            top_share: (shares[0] + shares[shares.len() - 1]).clamp(0.0, 1.0),
            promoted: self.outcome.promoted,
            demoted: self.outcome.demoted,
            wasted: self.outcome.wasted,
            hint_faults: self.outcome.hint_faults,
            recorded: policy.counts().recorded,
        }
    }

    /// The program is done.
    pub(super) fn close(&mut self, machine: &Machine<'_>, policy: &dyn Policy) {
        for page in 0..machine.pattern.pages() {
            self.judge(page, machine);
        }
        let row = self.now(machine, policy);
        self.outcome.series.push(row);
        self.outcome.accesses = whole(machine.done);
        self.outcome.top_share = self.top / machine.done.max(1.0);
        let Counts { recorded, duplicates, hot, .. } = policy.counts();
        (self.outcome.recorded, self.outcome.duplicates) = (recorded, duplicates);
        self.outcome.hot = hot;
        self.outcome.placed = machine.places.placed();
    }
}
