//! What faults were like lately, for those of which only the address was told.
//!
//! The one idea: what was allocated in a fault told in brief, and where the program was, is as in
//! those told in full in the same mapping: of a page that had been touched or had not, by an
//! exception of the same error code. It is taken for one of the last of them, each in its turn: so
//! what one in so many is, stays one in so many.

use std::{collections::HashMap, rc::Rc};

use super::{frame::Frame, kind::Allocated};

/// What is known of a fault that was told in full.
#[derive(Debug, Clone)]
pub(super) struct Like {
    /// The error code of its exception, where it was seen.
    pub error: Option<u64>,
    /// What was allocated for user memory.
    pub allocated: Allocated,
    /// Whether pages of page table were allocated.
    pub tables: bool,
    /// Where the program was.
    pub frames: Rc<[Frame]>,
}

impl Default for Like {
    /// Nothing is known.
    fn default() -> Self {
        Self { error: None, allocated: Allocated::Untold, tables: false, frames: Rc::default() }
    }
}

/// How a minor fault was told: the address, when, and whether in brief.
pub(super) type Told = (u64, u64, bool);
/// A process, the lineage of its mapping, whether the page had been touched, and the error code.
pub(super) type Where = (u32, u64, bool, Option<u64>);

/// So many are kept of each place.
const KEPT: usize = 512;
/// Places that are told apart; of more nothing is kept.
const PLACES_MAX: usize = 4096;

/// The last faults of one place, in a ring.
#[derive(Debug, Default)]
struct Ring {
    kept: Vec<Like>,
    /// Where the next one is put.
    put: usize,
    /// Which is taken next.
    take: usize,
}

/// A fault is told twice within so long: by two events of one call in the kernel, between which a
/// hypervisor may take the CPU away.
const TWICE_NS: u64 = 5_000_000;

/// The last faults that were told in full, and the last of each thread.
#[derive(Debug, Default)]
pub(super) struct Recent {
    places: HashMap<Where, Ring>,
    /// Of each thread.
    last: HashMap<u32, Told>,
}

impl Recent {
    /// Keeps one.
    pub(super) fn keep(&mut self, place: Where, like: Like) {
        if self.places.len() >= PLACES_MAX && !self.places.contains_key(&place) {
            return;
        }
        let ring = self.places.entry(place).or_default();
        if ring.kept.len() < KEPT {
            ring.kept.push(like);
        } else {
            ring.kept[ring.put] = like;
        }
        ring.put = (ring.put + 1) % KEPT;
    }

    /// The next that one is taken for; `None` where none was told in full there.
    pub(super) fn next(&mut self, place: Where) -> Option<Like> {
        let ring = self.places.get_mut(&place)?;
        let like = ring.kept.get(ring.take).cloned();
        ring.take = (ring.take + 1) % ring.kept.len().max(1);
        like
    }

    /// Forgets a process that ended, or became another program.
    pub(super) fn end(&mut self, pid: u32) {
        self.places.retain(|(of, ..), _| *of != pid);
    }

    /// Whether a fault of a thread was told the other way just before.
    pub(super) fn is_double(&mut self, tid: u32, told: Told) -> bool {
        let (address, at_ns, brief) = told;
        let before = self.last.insert(tid, told);
        let is_it = before.is_some_and(|(other, then_ns, how)| {
            other == address && how != brief && at_ns.saturating_sub(then_ns) < TWICE_NS
        });
        if is_it {
            // The two are one; the next at this address is another.
            self.last.remove(&tid);
        }
        is_it
    }

    /// Forgets a thread that ended.
    pub(super) fn exit(&mut self, tid: u32) {
        self.last.remove(&tid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(tables: bool) -> Like {
        Like { error: None, allocated: Allocated::Order(0), tables, frames: Rc::default() }
    }

    #[test]
    fn one_in_so_many_stays_one_in_so_many() {
        let mut recent = Recent::default();
        for nth in 0..2000 {
            recent.keep((1, 0x1000, false, Some(6)), like(nth % 8 == 0));
        }
        let tables = |recent: &mut Recent| recent.next((1, 0x1000, false, Some(6))).unwrap().tables;
        let found = (0..10_240).filter(|_| tables(&mut recent)).count();
        assert_eq!(found, 1280);
    }

    #[test]
    fn places_and_processes_are_told_apart_and_forgotten() {
        let mut recent = Recent::default();
        recent.keep((1, 0x1000, false, Some(6)), like(false));
        let other =
            [(1, 0x1000, true, Some(6)), (1, 0x2000, false, Some(6)), (1, 0x1000, false, None)];
        assert!(other.into_iter().all(|place| recent.next(place).is_none()));
        assert!(recent.next((1, 0x1000, false, Some(6))).is_some());
        recent.end(1);
        assert!(recent.next((1, 0x1000, false, Some(6))).is_none());
    }

    #[test]
    fn a_fault_that_is_told_both_ways_is_one() {
        let mut recent = Recent::default();
        let mut told = |tid, address, at, brief| recent.is_double(tid, (address, at, brief));
        assert!(!told(1, 0x1000, 100, false) && told(1, 0x1000, 150, true));
        assert!(!told(1, 0x1000, 200, false) && told(1, 0x1000, 250, true), "and so is the next");
        assert!(!told(1, 0x1000, 300, true) && !told(1, 0x1000, 350, true), "told one way only");
        assert!(!told(1, 0x2000, 400, false) && !told(2, 0x2000, 410, true));
        assert!(!told(1, 0x2000, 400 + TWICE_NS, true), "so late it is another");
    }
}
