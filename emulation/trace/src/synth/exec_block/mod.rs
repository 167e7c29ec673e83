//! `exec-block`: a trace like the published one of fast-mem, in which a RISC-V interpreter executes
//! an Ethereum block.
//!
//! The idea: a static [`Program`] has functions, and each of them is a fixed list of slots: a run
//! of 16-bit instruction fetches, then one data access. What is random is who calls whom, how
//! often, and which page of the heap a call works on. A function is drawn by its weight and runs as
//! often as is due by then, so that shares come out right after some million operations and stay.
//! Two functions take turns; keccak comes in passes of its own, with short calls in between.
//!
//! # What is fitted, and what is not
//! To the statistics that fast-mem's author published for 4,160,787,522 operations: shares of
//! reads and widths, of pages, run lengths, page transitions, reuse distances, hit rates of
//! direct-mapped caches of 4 to 32 pages, absent reads, numbers of pages, and the 88 % of present
//! operations that fall on the page of the present operation before (the hits of fast-mem's
//! one-page cache). That last one says that keccak has a stack page for itself and that other code
//! stays on a page of data for about four accesses, which is what makes the hit rates right.
//!
//! | % | published | 20 M operations | 200 M |
//! |---|---|---|---|
//! | reads; absent reads | 92.53; 83.28 | 92.49; 83.29 | 92.53; 83.29 |
//! | reads of 1, 2, 8 bytes | 1.69 89.56 8.73 | 1.65 89.64 8.69 | 1.66 89.62 8.71 |
//! | writes of 1, 4, 8 bytes | 7.22 0.19 92.45 | 7.13 0.26 92.46 | 7.18 0.26 92.42 |
//! | transitions | 34.68 | 34.59 | 34.58 |
//! | runs of 1, 2-3, 4-7 | 58.86 18.73 16.64 | 58.86 18.92 16.61 | 58.86 18.90 16.62 |
//! | runs of 8-15, 16-31 | 4.06 1.00 | 4.16 0.81 | 4.17 0.81 |
//! | reuse after 1, 2-3, 4-7 | 65.32 23.34 6.16 | 65.41 23.19 6.24 | 65.42 23.19 6.25 |
//! | reuse after 8-15, 16-31 | 3.25 0.99 | 3.30 0.98 | 3.31 0.98 |
//! | hits of 4, 8 pages | 90.11 93.68 | 90.29 93.92 | 90.28 93.92 |
//! | hits of 16, 32 pages | 98.22 99.51 | 98.19 99.50 | 98.17 99.53 |
//! | pages; absent ones | 14,487; 236 | 14,487; 236 | 14,487; 236 |
//!
//! What is fitted less well is rare: distances of 64 to 4,095 come out up to two fifths too seldom,
//! those beyond 65,536 (0.02 % of all) three times too often, runs of 16 to 31 a fifth too seldom.
//! Values are invented: random for keccak, small for others. Traces of less than 20 million
//! operations have fewer pages, and shares that are less exact.
#![expect(
    clippy::cast_possible_truncation,
    reason = "pages and functions are below 2^16; parts are less"
)]

mod budget;
mod program;

use program::{
    COLD_WEIGHT, CONSTANTS, Function, HEAP, HEAP_PAGES, OBJECT, PAGE_SHIFT, Program, STACK,
    STORE_8, Slot,
};

use super::random::Random;
use crate::op::{Op, Visit, Width};

/// Thousands of fetches in the published trace: the sum of all weights.
const FETCHES_WEIGHT: u64 = 3_448_064;
/// Keccak's place among the functions.
const KECCAK: usize = 0;
/// Calls between two passes of keccak: the code that feeds it.
const GLUE_CALLS: u64 = 4;
/// The functions of those calls: on the pages behind keccak's.
const GLUE: std::ops::Range<u64> = 19..23;
/// Cold functions that are in use at a time.
const COLD_SET: usize = 8;
/// How often, in millionths, a call of a cold function exchanges one of them.
const COLD_CHANGE: u64 = 30_000;
/// Most passes of a cold function at a time.
const COLD_PASSES_MAX: u64 = 16;
/// Fetches of the cold functions, on average, when one of them is called.
const COLD_DUE: u64 = 1700;
/// Most passes of a function before something else is drawn.
const PASSES_MAX: u64 = 400;
/// Most passes of one of two functions for one pass of the other.
const RATIO_MAX: u64 = 6;
/// Pages of the heap that exist from the start.
const HEAP_FIRST: u64 = 64;
/// Where in the list of recent pages the object of a call is: share, first place, places. What is
/// left of [`RECENT_SHARES`] goes to any page.
const RECENT: [(u64, u64, u64); 5] =
    [(500, 0, 1), (250, 1, 3), (150, 4, 12), (70, 16, 48), (8, 64, 300)];
const RECENT_SHARES: u64 = 979;
/// How often, in millionths, an object is placed where it shares no slot of a small cache.
const APART: u64 = 400_000;

/// Code and constants: first page, and the one after the last.
pub(super) const TEXT: [(u64, u64); 2] = program::TEXT;

/// Some passes of one function, one after the other.
#[derive(Debug, Clone, Copy)]
struct Call {
    function: usize,
    passes: u64,
    /// Address of the page of its object.
    object: u64,
}

/// The state of a run of the program.
#[derive(Debug)]
pub(super) struct ExecBlock {
    program: Program,
    random: Random,
    /// Operations of the whole run, and those so far.
    ops: u64,
    done: u64,
    /// Fetches so far.
    fetches: u64,
    /// Fetches that each function has had; cold functions share the last entry.
    spent: Vec<i64>,
    /// Running sums of the weights by which functions are drawn; the last is for all cold ones.
    tickets: Vec<u64>,
    /// What is called next, the first of them last.
    calls: Vec<Call>,
    /// Pages of the heap, the most recently used one first; new ones go to the end.
    recent: Vec<u32>,
    /// Pages of the heap that were written.
    heap: u64,
    cold: [usize; COLD_SET],
    /// Cold functions that were called so far.
    cold_started: usize,
    /// What was stored last.
    value: u64,
}

impl ExecBlock {
    pub(super) fn new(ops: u64, seed: u64) -> Self {
        let program = Program::new();
        let mut random = Random::new(seed);
        let (mut tickets, mut spent, mut sum) = (Vec::new(), Vec::new(), 0);
        for function in &program.functions[..program.hot] {
            let due = function.fetches * function.passes;
            sum += (function.weight << 16) / due;
            tickets.push(sum);
            // Where each of them stands at the start is random.
            spent.push(-signed(random.below(due)));
        }
        tickets.push(sum + (COLD_WEIGHT << 16) / COLD_DUE);
        spent.push(0);
        Self {
            cold: std::array::from_fn(|index| program.hot + index),
            program,
            random,
            ops: ops.max(1),
            done: 0,
            fetches: 0,
            spent,
            tickets,
            calls: Vec::new(),
            recent: (0..HEAP_FIRST as u32).collect(),
            heap: 0,
            cold_started: 0,
            value: seed,
        }
    }

    /// The operations of one call.
    ///
    /// # Errors
    /// What the visitor says.
    pub(super) fn step<V: Visit>(&mut self, sink: &mut V) -> Result<(), V::Stop> {
        if self.heap < HEAP_FIRST {
            return self.start(sink);
        }
        if self.calls.is_empty() {
            self.plan();
        }
        match self.calls.pop() {
            Some(call) => self.run(call, sink),
            None => Ok(()),
        }
    }

    /// Writes the pages of the stack and the first ones of the heap: they are never absent.
    fn start<V: Visit>(&mut self, sink: &mut V) -> Result<(), V::Stop> {
        for page in STACK.into_iter().chain(HEAP..HEAP + HEAP_FIRST) {
            sink.store(page << PAGE_SHIFT, [0; 8])?;
            self.done += 1;
        }
        self.heap = HEAP_FIRST;
        Ok(())
    }

    /// Decides what is called next.
    fn plan(&mut self) {
        let first = self.draw(0);
        if first == KECCAK {
            return self.plan_keccak();
        }
        let second = self.draw(self.tickets[KECCAK]);
        let ratio = 1 + self.random.below(RATIO_MAX);
        let (a, b) = (self.passes(first), self.passes(second));
        let (a, b) = (a.min(ratio * b), b.min(ratio * a));
        let objects = (self.object(first), self.object(second));
        let turns = a.min(b);
        for turn in (0..turns).rev() {
            let part = |all: u64| all * (turn + 1) / turns - all * turn / turns;
            self.push(second, part(b), objects.1);
            self.push(first, part(a), objects.0);
        }
    }

    /// As many passes of keccak as are due.
    fn plan_keccak(&mut self) {
        for _ in 0..self.passes(KECCAK) {
            for _ in 0..GLUE_CALLS {
                let function = (GLUE.start + self.random.below(GLUE.end - GLUE.start)) as usize;
                let object = self.object(function);
                self.push(function, 1, object);
            }
            self.push(KECCAK, 1, 0);
        }
    }

    fn push(&mut self, function: usize, passes: u64, object: u64) {
        let fetches = passes * self.program.functions[function].fetches;
        self.spent[function.min(self.program.hot)] += signed(fetches);
        self.calls.push(Call { function, passes, object });
    }

    /// Weight of an entry of [`Self::spent`].
    fn weight(&self, entry: usize) -> u64 {
        if entry == self.program.hot {
            return COLD_WEIGHT;
        }
        self.program.functions[entry].weight
    }

    /// Fetches that are due for an entry by now, and that it has not had.
    fn due(&self, entry: usize) -> i64 {
        let due = u128::from(self.weight(entry)) * u128::from(self.fetches);
        signed((due / u128::from(FETCHES_WEIGHT)) as u64) - self.spent[entry]
    }

    /// A function by weight, of two the later one; `from` leaves out the tickets below it.
    fn draw(&mut self, from: u64) -> usize {
        let total = self.tickets[self.program.hot];
        let [one, other] = std::array::from_fn(|_| {
            let ticket = from + self.random.below(total - from);
            self.tickets.partition_point(|&sum| sum <= ticket)
        });
        let late = |a, b| i128::from(self.due(a)) * i128::from(self.weight(b));
        let entry = if late(other, one) > late(one, other) { other } else { one };
        if entry == self.program.hot { self.draw_cold() } else { entry }
    }

    /// One of the few cold functions that are in use; every one is, some time before the end.
    fn draw_cold(&mut self) -> usize {
        let all = self.program.functions.len() - self.program.hot;
        let wanted = self.progress(all as u64 + 2) as usize;
        let place = self.random.below(COLD_SET as u64) as usize;
        if self.cold_started < wanted.min(all) {
            self.cold[place] = self.program.hot + self.cold_started;
            self.cold_started += 1;
        } else if self.random.chance(COLD_CHANGE) {
            let any = self.random.below(self.cold_started.max(1) as u64) as usize;
            self.cold[place] = self.program.hot + any;
        }
        self.cold[place]
    }

    /// How many of `all` things should have happened by now.
    fn progress(&self, all: u64) -> u64 {
        (u128::from(self.done) * u128::from(all) / u128::from(self.ops)) as u64
    }

    /// Passes of a function that are due, at least one.
    fn passes(&mut self, function: usize) -> u64 {
        if function >= self.program.hot {
            return 1 + self.random.below(COLD_PASSES_MAX);
        }
        let due = self.due(function).max(1).unsigned_abs();
        due.div_ceil(self.program.functions[function].fetches).min(PASSES_MAX)
    }

    /// Address of the page of an object, most often a recent one.
    fn object(&mut self, function: usize) -> u64 {
        let mut share = self.random.below(RECENT_SHARES);
        let all = self.recent.len() as u64;
        let mut place = None;
        for (shares, first, places) in RECENT {
            if share < shares {
                place = Some(first + self.random.below(places));
                break;
            }
            share -= shares;
        }
        let place = place.unwrap_or_else(|| self.random.below(all)).min(all - 1) as usize;
        let object = self.recent[place];
        self.recent.copy_within(0..place, 1);
        self.recent[0] = object;
        self.apart(HEAP + u64::from(object), function) << PAGE_SHIFT
    }

    /// The page, or one beside it that does not share a slot with the function's code and frame.
    ///
    /// The published trace has few conflicts in a cache of 4 pages that are none in one of 8.
    fn apart(&mut self, page: u64, function: usize) -> u64 {
        let always = self.random.chance(APART);
        let Function { pc, frame, .. } = self.program.functions[function];
        let shares = |page: u64, other: u64| {
            let common = page ^ other >> PAGE_SHIFT;
            common & 7 == 4 || (always && common.is_multiple_of(4))
        };
        let fine =
            |&near: &u64| !shares(near, pc) && !shares(near, frame) && near < HEAP + self.heap;
        (0..4).map(|bits| page ^ bits).find(fine).unwrap_or(page)
    }

    fn run<V: Visit>(&mut self, call: Call, sink: &mut V) -> Result<(), V::Stop> {
        let Function { pc, ref slots, ops, fetches, frame, .. } =
            self.program.functions[call.function];
        let slots = &self.program.slots[slots.clone()];
        let operands = [frame, call.object, CONSTANTS << PAGE_SHIFT];
        // The state of keccak is random; what others store is small numbers.
        let shift = if call.function == KECCAK { 0 } else { 48 };
        for pass in 0..call.passes {
            self.done += ops;
            self.fetches += fetches;
            let mut pc = pc;
            // Somewhat faster than the trace, so that the last pages are not late.
            let pages = self.progress(HEAP_PAGES + HEAP_PAGES / 32).min(HEAP_PAGES);
            let mut fresh = self.heap < pages;
            for &slot in slots {
                for _ in 0..slot.fetches {
                    sink.load::<2>(pc)?;
                    pc += 2;
                }
                let Slot { operand, mut kind, offset, .. } = slot;
                let mut addr = operands[usize::from(operand)] + u64::from(offset);
                if operand == OBJECT {
                    let offset = (u64::from(offset) + 8 * pass) & 0xff8;
                    addr = call.object + offset;
                    if fresh {
                        // Every pass may use a page that nobody used before, and writes it.
                        fresh = false;
                        kind = STORE_8;
                        addr = (HEAP + self.heap) << PAGE_SHIFT | offset;
                        self.recent.push(self.heap as u32);
                        self.heap += 1;
                    }
                }
                self.value = self.value.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                access(kind, addr, self.value >> shift, sink)?;
            }
        }
        Ok(())
    }
}

/// The data access of a slot, by its kind.
#[inline]
fn access<V: Visit>(kind: u8, addr: u64, value: u64, sink: &mut V) -> Result<(), V::Stop> {
    let width = Width::ALL[usize::from(kind & 3)];
    match kind {
        0..=3 => Op::load(addr, width).visit(sink),
        4..=7 => Op::store(addr, width, value).visit(sink),
        _ => Ok(()),
    }
}

/// Counts of fetches are far below 2^63.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_between_passes_of_keccak_is_what_the_table_has_there() {
        let program = Program::new();
        let range = GLUE.start as usize..GLUE.end as usize;
        let pages: Vec<u64> =
            program.functions[range].iter().map(|function| function.pc >> PAGE_SHIFT).collect();
        assert_eq!(pages, [0xd7, 0xd7, 0xd8, 0xd8]);
        assert_eq!(program.functions[KECCAK].pc >> PAGE_SHIFT, 0xd1);
    }

    #[test]
    fn shares_of_recent_pages_leave_some_for_the_others() {
        let named: u64 = RECENT.iter().map(|&(share, ..)| share).sum();
        assert!(named < RECENT_SHARES);
    }
}
