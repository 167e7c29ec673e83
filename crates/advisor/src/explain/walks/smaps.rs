//! What `smaps` says of the pages that were walked to, by kind of memory.
//!
//! The one idea: `Referenced` adds up base pages and larger ones. A mapping with both has so many
//! base pages as leave whole larger ones over: of what fits, the least and the most are told.

use std::collections::BTreeMap;

use pagelab_record::walks::Walked;

use super::super::{kind::Place, places};

const BASE: u64 = 4096;
const LARGE: u64 = 2 << 20;

/// What mappings of a kind hold, in base pages that are mapped as such.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) resident: u64,
    pub(super) walked: Walked,
}

/// One mapping as it is read, in bytes.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    place: Place,
    start: u64,
    end: u64,
    resident: u64,
    referenced: u64,
    large: u64,
    may_be_large: bool,
}

/// By kind of memory.
pub(super) fn seen(text: &[u8]) -> Vec<(Place, Mapped)> {
    let mut all: BTreeMap<Place, Mapped> = BTreeMap::new();
    let mut current: Option<Mapping> = None;
    let mut done = |mapping: Option<Mapping>| {
        let Some(mapping) = mapping else { return };
        let sum = all.entry(mapping.place).or_default();
        let walked = mapping.walked();
        sum.resident += mapping.resident.saturating_sub(mapping.large) / BASE;
        sum.walked.least += walked.least;
        sum.walked.most += walked.most;
        sum.walked.whole += walked.whole;
    };
    for line in text.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if let Some((name, bytes)) = field(&line) {
            let Some(mapping) = &mut current else { continue };
            match name {
                "Rss" => mapping.resident = bytes,
                "Referenced" => mapping.referenced = bytes,
                "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => {
                    mapping.large = mapping.large.saturating_add(bytes);
                }
                _ => (),
            }
        } else if let Some(flags) = line.strip_prefix("VmFlags:") {
            let Some(mapping) = &mut current else { continue };
            mapping.may_be_large &= flags.split_whitespace().all(|flag| flag != "nh");
        } else if let Some((place, range)) = places::of_line(&line) {
            done(current.take());
            let may_be_large = matches!(place, Place::Heap | Place::Anonymous);
            current = Some(Mapping {
                place,
                start: range.start,
                end: range.end,
                resident: 0,
                referenced: 0,
                large: 0,
                may_be_large,
            });
        }
    }
    done(current);
    all.into_iter().collect()
}

/// A line with a number of KiB.
fn field(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.split_once(':')?;
    let kib: u64 = rest.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some((name, kib.checked_mul(1024)?))
}

impl Mapping {
    fn walked(&self) -> Walked {
        let [least, most] = small(self.referenced, self.resident, self.large);
        let (least, most) = (least / BASE, most / BASE);
        let whole = if self.may_be_large { self.whole() } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of it")]
        let whole = (least as f64 * whole) as u64;
        Walked { least, most, whole }
    }

    /// The part of its addresses that lies in whole blocks of a larger page.
    fn whole(&self) -> f64 {
        let Some(first) = self.start.checked_next_multiple_of(LARGE) else { return 0.0 };
        let last = self.end / LARGE * LARGE;
        let length = self.end.saturating_sub(self.start).max(1);
        last.saturating_sub(first) as f64 / length as f64
    }
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
        let seen = seen(SMAPS.as_bytes());
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

        #[test]
        fn whatever_is_in_the_text_nothing_breaks(
            lines in proptest::collection::vec(
                "([0-9a-f]{1,17}-[0-9a-f]{1,17} rw-p 0 00:00 0|\
                 (Rss|Referenced|AnonHugePages): [0-9]{1,22} kB|VmFlags: nh|.{0,20})",
                0..30,
            ),
        ) {
            let _ = seen(lines.join("\n").as_bytes());
        }
    }
}
