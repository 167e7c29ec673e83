//! Reuse by class: against caches that are kept as lists.

use pagelab_trace::{
    Op, Width,
    op::FETCHED,
    stats::{REUSE_SHIFTS, Reused, Uses},
};
use proptest::prelude::*;

const CLASSES: usize = 3;

fn class_of(addr: u64) -> usize {
    (addr >> 12) as usize % CLASSES
}

fn reused(ops: &[Op]) -> Vec<Reused> {
    let mut uses = Uses::new(CLASSES, class_of);
    for op in ops {
        let Ok(()) = op.visit(&mut uses);
    }
    uses.finish()
}

/// Misses by class of a list of so many pages, the last used first, and first uses.
fn listed(ops: &[Op], shift: u32, entries: usize) -> [[u64; CLASSES + 1]; 2] {
    let mut lists: [Vec<u64>; 2] = Default::default();
    let mut seen: [std::collections::BTreeSet<u64>; 2] = Default::default();
    let (mut misses, mut first) = ([0; CLASSES + 1], [0; CLASSES + 1]);
    for op in ops {
        let is_fetch = op.addr & FETCHED != 0;
        let class = if is_fetch { CLASSES } else { class_of(op.addr) };
        let (list, seen) = (&mut lists[usize::from(is_fetch)], &mut seen[usize::from(is_fetch)]);
        let page = op.addr >> shift;
        let at = list.iter().position(|known| *known == page);
        if let Some(at) = at {
            list.remove(at);
        } else if seen.insert(page) {
            first[class] += 1;
        } else {
            misses[class] += 1;
        }
        list.insert(0, page);
        list.truncate(entries);
    }
    [misses, first]
}

/// Data and fetches over a few pages of each size.
fn some() -> impl Strategy<Value = Vec<Op>> {
    let op = (0_u64..40, 0_u64..3, 0_u64..3, any::<bool>(), any::<bool>());
    let op = op.prop_map(|(page, part, block, stores, fetches)| {
        let addr = (block << 21) | (part << 16) | ((page % 16) << 12) | page;
        match (fetches, stores) {
            (true, _) => Op::load(addr | FETCHED, Width::W1),
            (false, true) => Op::store(addr, Width::W8, page),
            (false, false) => Op::load(addr, Width::W4),
        }
    });
    proptest::collection::vec(op, 0..600)
}

proptest! {
    #[test]
    fn every_size_misses_what_a_list_of_so_many_pages_does(ops in some()) {
        let reused = reused(&ops);
        prop_assert_eq!(reused.len(), REUSE_SHIFTS.len());
        for (pages, shift) in reused.iter().zip(REUSE_SHIFTS) {
            prop_assert_eq!(pages.page_shift, shift);
            // Each of these begins a bucket.
            for entries in [1, 2, 3, 7, 12, 16, 18, 24, 32, 64] {
                let [misses, first] = listed(&ops, shift, entries);
                prop_assert_eq!(&pages.first, &first);
                for (class, misses) in misses.into_iter().enumerate() {
                    let far = pages.again.iter().filter(|(d, _)| *d >= entries as u64);
                    let found: u64 = far.map(|(_, counts)| counts[class]).sum();
                    prop_assert_eq!(found, misses, "class {} in {} of {}", class, entries, shift);
                }
            }
            let all: u64 = pages.again.iter().flat_map(|(_, c)| c).chain(&pages.first).sum();
            prop_assert_eq!(all, ops.len() as u64, "every use is counted once");
        }
    }
}

#[test]
fn a_class_is_asked_for_once_a_page_and_one_that_is_none_is_the_last() {
    let mut asked = Vec::new();
    let mut uses = Uses::new(2, |addr| {
        asked.push(addr);
        99
    });
    for addr in [0x1000, 0x1008, 0x2000, 0x1010, 0x9000 | FETCHED] {
        let Ok(()) = Op::load(addr, Width::W8).visit(&mut uses);
    }
    let reused = uses.finish();
    assert_eq!(asked, [0x1000, 0x2000]);
    assert_eq!(reused[0].first, [0, 2, 1]);
    assert_eq!(reused[0].again, [(0, vec![0, 1, 0]), (1, vec![0, 1, 0])]);
}

#[test]
fn nothing_was_used() {
    let reused = reused(&[]);
    assert!(reused.iter().all(|pages| pages.again.is_empty() && pages.first == [0; 4]));
}
