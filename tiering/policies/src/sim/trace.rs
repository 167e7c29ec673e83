//! A recorded trace as work: which page each operation accesses, in their order.
//!
//! The one idea: four bytes an operation for the page and whether it is a store, and as much again
//! for where each page is accessed next. Pages are numbered by address, without the gaps, so that
//! neighbours stay neighbours. Addresses inside a page are not kept: caches are not simulated, and
//! each operation counts as one that misses them.

use std::{collections::BTreeMap, convert::Infallible};

use pagelab_trace::Visit;

/// Bits of an address inside a page.
const PAGE_BITS: u32 = 12;
/// The largest number of operations: their numbers are kept in 32 bits.
const OPS_MAX: usize = u32::MAX as usize;

/// Takes a trace's operations; [`TraceWork::finish`] when it has all.
#[derive(Debug, Clone, Default)]
pub struct TraceWork {
    /// Number of each page in order of first access, then in order of address.
    numbers: BTreeMap<u64, u32>,
    /// Page and store bit.
    ops: Vec<u32>,
    overflow: bool,
    /// Where each page's accesses start in `uses`, and one more.
    starts: Vec<u32>,
    /// Positions in `ops`, page by page.
    uses: Vec<u32>,
}

impl TraceWork {
    /// Numbers the pages by address and finds where each is accessed.
    ///
    /// # Errors
    /// When there is no access, or more than 2^32.
    pub fn finish(mut self) -> Result<Self, String> {
        if self.ops.is_empty() {
            return Err("the trace has no data accesses: there is nothing to place".into());
        }
        if self.overflow {
            return Err(format!("the trace has more than {OPS_MAX} operations or 2^31 pages"));
        }
        let mut sorted = vec![0; self.numbers.len()];
        for (place, &number) in (0..).zip(self.numbers.values()) {
            sorted[number as usize] = place;
        }
        let mut starts = vec![0_u32; sorted.len() + 1];
        for op in &mut self.ops {
            let page = sorted[(*op >> 1) as usize];
            *op = page << 1 | *op & 1;
            starts[page as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut uses = vec![0; self.ops.len()];
        let mut next = starts.clone();
        for (position, op) in (0..).zip(&self.ops) {
            let slot = &mut next[(op >> 1) as usize];
            uses[*slot as usize] = position;
            *slot += 1;
        }
        Ok(Self { starts, uses, ..self })
    }

    /// Pages that are accessed.
    pub fn pages(&self) -> u32 {
        u32::try_from(self.numbers.len()).unwrap_or(u32::MAX)
    }

    /// Operations.
    pub fn ops(&self) -> u64 {
        self.ops.len() as u64
    }

    /// Share of operations that are stores.
    pub fn stores(&self) -> f64 {
        let stores = self.ops.iter().filter(|op| *op & 1 == 1).count();
        stores as f64 / self.ops.len().max(1) as f64
    }

    /// Whether [`Self::finish`] was called and went well.
    pub(super) fn is_finished(&self) -> bool {
        !self.starts.is_empty()
    }

    /// The page of an operation, and whether it is a store; the trace repeats.
    #[inline]
    pub(super) fn op(&self, at: u64) -> (u32, bool) {
        let op = self.ops[usize::try_from(at % self.ops()).unwrap_or(0)];
        (op >> 1, op & 1 == 1)
    }

    /// Accesses to a page before operation `at`.
    fn before(&self, page: u32, at: u64) -> u64 {
        let uses = self.uses_of(page);
        let (lap, rest) = (at / self.ops(), at % self.ops());
        lap * uses.len() as u64 + uses.partition_point(|&used| u64::from(used) < rest) as u64
    }

    /// Accesses to a page in a range of operations.
    pub(super) fn count(&self, page: u32, from: u64, to: u64) -> u64 {
        self.before(page, to).saturating_sub(self.before(page, from))
    }

    /// The first operation at or after `at` that accesses a page.
    pub(super) fn next(&self, page: u32, at: u64) -> u64 {
        let uses = self.uses_of(page);
        let (lap, rest) = (at / self.ops(), at % self.ops());
        let found = uses.get(uses.partition_point(|&used| u64::from(used) < rest));
        let found = found.map(|&used| lap * self.ops() + u64::from(used));
        found.unwrap_or_else(|| (lap + 1) * self.ops() + u64::from(uses[0]))
    }

    fn uses_of(&self, page: u32) -> &[u32] {
        let page = page as usize;
        &self.uses[self.starts[page] as usize..self.starts[page + 1] as usize]
    }

    #[inline]
    fn push(&mut self, addr: u64, store: bool) {
        let fresh = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(addr >> PAGE_BITS).or_insert(fresh);
        if self.ops.len() >= OPS_MAX || number > u32::MAX >> 1 {
            self.overflow = true;
            return;
        }
        self.ops.push(number << 1 | u32::from(store));
    }
}

impl Visit for TraceWork {
    type Stop = Infallible;

    #[inline]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Infallible> {
        self.push(addr, false);
        Ok(())
    }

    #[inline]
    fn store<const N: usize>(&mut self, addr: u64, _: [u8; N]) -> Result<(), Infallible> {
        self.push(addr, true);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pagelab_trace::{Op, Width};

    use super::*;

    fn work() -> TraceWork {
        let mut work = TraceWork::default();
        for (addr, store) in [(0x9000, false), (0x1008, true), (0x9ff8, true), (0x5000, false)] {
            let op = if store { Op::store(addr, Width::W8, 1) } else { Op::load(addr, Width::W8) };
            let Ok(()) = op.visit(&mut work);
        }
        work.finish().unwrap()
    }

    #[test]
    fn pages_are_numbered_by_address_without_gaps() {
        let work = work();
        assert_eq!(work.pages(), 3);
        let ops: Vec<(u32, bool)> = (0..5).map(|at| work.op(at)).collect();
        assert_eq!(ops, [(2, false), (0, true), (2, true), (1, false), (2, false)]);
        assert_eq!(work.stores().to_bits(), 0.5_f64.to_bits());
    }

    #[test]
    fn counts_and_next_uses_agree_over_laps() {
        let work = work();
        for page in 0..3 {
            for from in 0..12 {
                let slow = |to: u64| (from..to).filter(|&at| work.op(at).0 == page).count() as u64;
                for to in from..12 {
                    assert_eq!(work.count(page, from, to), slow(to), "{page} {from} {to}");
                }
                let next = (from..from + 8).find(|&at| work.op(at).0 == page).unwrap();
                assert_eq!(work.next(page, from), next);
            }
        }
    }

    #[test]
    fn a_trace_without_accesses_is_refused() {
        let refusal = TraceWork::default().finish().unwrap_err();
        assert!(refusal.contains("no data accesses"), "{refusal}");
    }
}
