//! What `smaps` says of the pages that were walked to, by kind of memory.
//!
//! The one idea: `Referenced` adds up base pages and larger ones. A mapping with both has so many
//! base pages as leave whole larger ones over: of what fits, the least and the most are told.

use std::{collections::BTreeMap, ops::Range};

use pagelab_record::{units, walks::Walked};
use pagelab_sys::machine::proc;

use super::super::{kind::Place, places};

const BASE: u64 = 4096;
const LARGE: u64 = 2 << 20;

/// What mappings of a kind hold, in base pages that are mapped as such.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) resident: u64,
    pub(super) walked: Walked,
}

/// By kind of memory.
pub(super) fn seen(text: &str) -> Vec<(Place, Mapped)> {
    let mut all: BTreeMap<Place, Mapped> = BTreeMap::new();
    for mapping in proc::mappings(text) {
        let (mut resident, mut referenced, mut large) = (0, 0, 0_u64);
        for (name, bytes) in mapping.sizes() {
            match name {
                "Rss" => resident = bytes,
                "Referenced" => referenced = bytes,
                "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => {
                    large = large.saturating_add(bytes);
                }
                _ => (),
            }
        }
        let place = places::of(&mapping);
        let [least, most] = small(referenced, resident, large).map(|bytes| bytes / BASE);
        let may_be_large = matches!(place, Place::Heap | Place::Anonymous);
        let sum = all.entry(place).or_default();
        sum.resident += resident.saturating_sub(large) / BASE;
        sum.walked.least += least;
        sum.walked.most += most;
        if may_be_large && !mapping.has("VmFlags", "nh") {
            sum.walked.whole += units::whole(least as f64 * whole(&mapping.range));
        }
    }
    all.into_iter().collect()
}

/// The part of some addresses that lies in whole blocks of a larger page.
fn whole(range: &Range<u64>) -> f64 {
    let Some(first) = range.start.checked_next_multiple_of(LARGE) else { return 0.0 };
    let last = range.end / LARGE * LARGE;
    last.saturating_sub(first) as f64 / (range.end - range.start) as f64
}

/// Bytes in base pages of what was referenced, at least and at most, where so much was present and
/// so much of that in larger pages.
fn small(referenced: u64, resident: u64, large: u64) -> [u64; 2] {
    let room = resident.saturating_sub(large);
    if large == 0 {
        return [referenced; 2];
    }
    let (low, high) = (referenced.saturating_sub(large), referenced.min(room));
    // What is left of whole larger pages is base pages.
    let odd = referenced % LARGE;
    let least = low.saturating_sub(odd).next_multiple_of(LARGE).saturating_add(odd);
    if least > high {
        return [low.min(high), high.max(low)];
    }
    [least, high - (high - odd) % LARGE]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMAPS: &str = "\
00400000-00800000 rw-p 00000000 00:00 0                                  [heap]
Size:               4096 kB
Rss:                1024 kB
Referenced:          512 kB
AnonHugePages:         0 kB
VmFlags: rd wr mr
7f0000100000-7f0000900000 rw-p 00000000 00:00 0
Rss:                6144 kB
Referenced:         2052 kB
AnonHugePages:      4096 kB
VmFlags: rd wr mr
7f0001000000-7f0001400000 rw-p 00000000 00:00 0
Rss:                 400 kB
Referenced:          400 kB
VmFlags: rd wr nh
7f0002000000-7f0002400000 r-xp 00000000 fe:00 12                         /usr/bin/a name
Rss:                4000 kB
Referenced:           40 kB
";

    #[test]
    fn pages_are_told_by_kind_and_those_of_larger_pages_are_none() {
        let seen = seen(SMAPS);
        let of = |place| seen.iter().find(|(known, _)| *known == place).unwrap().1;
        let walked = |least, most, whole| Walked { least, most, whole };
        let heap = Mapped { resident: 256, walked: walked(128, 128, 128) };
        assert_eq!(of(Place::Heap), heap);
        // One base page and one of 2 MiB, or 513 base pages if so many were there: 512 are.
        // 7f00_0010_0000 is in the middle of a block: three of the four blocks are whole.
        let anonymous = of(Place::Anonymous);
        assert_eq!(anonymous.resident, 512 + 100);
        assert_eq!(anonymous.walked, walked(1 + 100, 1 + 100, 0));
        assert_eq!(of(Place::PrivateFile).walked, walked(10, 10, 0));
    }

    #[test]
    fn where_larger_pages_may_be_the_ones_both_ends_are_told() {
        assert_eq!(small(LARGE, 4 * LARGE, 2 * LARGE), [0, LARGE]);
        assert_eq!(small(3 * LARGE, 4 * LARGE, 2 * LARGE), [LARGE, 2 * LARGE]);
        assert_eq!(small(8192, 3 * LARGE, LARGE), [8192, 8192]);
        assert_eq!(small(8192, 8192, 0), [8192, 8192]);
    }

    proptest! {
        #[test]
        fn the_truth_lies_between_both_ends(
            base in 0_u64..3000,
            of_base in 0_u64..=100,
            large in 0_u64..20,
            of_large in 0_u64..20,
        ) {
            let touched = base * of_base / 100;
            let of_large = of_large.min(large);
            let referenced = touched * BASE + of_large * LARGE;
            let [least, most] = small(referenced, base * BASE + large * LARGE, large * LARGE);
            prop_assert!(least <= touched * BASE && touched * BASE <= most, "{least} {most}");
            prop_assert!(most <= referenced);
        }
    }
}
