//! Whose the anonymous mappings of a process are: malloc's own, or not.
//!
//! The one idea: glibc writes the head of a chunk before it hands it out, so the first bytes of
//! what malloc mapped say so: nothing lies before it, it is so long, and it is mapped (`prev_size`
//! 0 and `size | IS_MMAPPED`; `sysmalloc_mmap` in `malloc/malloc.c` of glibc 2.36). They are read
//! when their page has been touched and while it is there: to read one that is not would map it.
//!
//! What is shorter than a page of 2 MiB is nobody's: `madvise_thp` leaves it alone.

use std::{collections::BTreeMap, ops::Range};

use pagelab_sys::memory::peek;

/// What malloc advises is at least so long.
const HUGE: u64 = 2 << 20;
/// The bits of a chunk's length that are none, and that which says that it was mapped.
const BITS: u64 = 7;
const IS_MMAPPED: u64 = 2;

/// Whose memory it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// Nobody knows.
    #[default]
    Unknown,
    /// A chunk that malloc mapped, and that it advises where it is told to ask for huge pages.
    Malloc,
    /// Another's, or malloc's and too short to be advised.
    Other,
}

impl Owner {
    /// What tables call memory whose owner is known.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Unknown => None,
            Self::Malloc => Some("malloc"),
            Self::Other => Some("other"),
        }
    }
}

/// The owners of a process's memory, by range; `None` until the range is touched.
#[derive(Debug, Clone, Default)]
pub struct Owners(BTreeMap<u64, (u64, Option<Owner>)>);

impl Owners {
    /// Memory is new, but for what was mapped there before.
    pub fn told(&mut self, new: Range<u64>, before: impl Iterator<Item = Range<u64>>) {
        let mut at = new.start;
        for old in before {
            self.put(at..old.start.min(new.end), None);
            at = at.max(old.end);
        }
        self.put(at..new.end, None);
    }

    /// Memory is gone.
    pub fn gone(&mut self, range: Range<u64>) {
        let below = self.0.range(..range.start).next_back().map(|(start, _)| *start);
        let inside = self.0.range(range.start..range.end.max(range.start)).map(|(start, _)| *start);
        for start in below.into_iter().chain(inside).collect::<Vec<_>>() {
            let (end, owner) = self.0[&start];
            if end <= range.start {
                continue;
            }
            self.0.remove(&start);
            if start < range.start {
                self.0.insert(start, (range.start, owner));
            }
            if end > range.end {
                self.0.insert(range.end, (end, owner));
            }
        }
    }

    fn put(&mut self, range: Range<u64>, owner: Option<Owner>) {
        if range.start < range.end {
            self.gone(range.clone());
            self.0.insert(range.start, (range.end, owner));
        }
    }

    /// Whose a touched address is. `is_there` tells whether a page has been touched, `told` whether
    /// its mapping was seen from its beginning, and `head` reads the head of a chunk.
    pub fn of(
        &mut self,
        address: u64,
        told: bool,
        is_there: impl Fn(u64) -> bool,
        head: impl Fn(u64) -> Option<[u64; 2]>,
    ) -> Owner {
        let Some((&start, &(end, owner))) = self.0.range(..=address).next_back() else {
            return Owner::Unknown;
        };
        if address >= end {
            return Owner::Unknown;
        }
        if let Some(owner) = owner {
            return owner;
        }
        let room = end - start;
        let is_there = || address >> 12 == start >> 12 || is_there(start);
        let (length, owner) = if room < HUGE {
            (room, Owner::Other)
        } else if is_there() {
            match head(start).map(|head| chunk(head, room)) {
                Some(Some(length)) => (length, Owner::Malloc),
                Some(None) => (room, Owner::Other),
                // It is gone already.
                None => (room, Owner::Unknown),
            }
        } else {
            // Malloc would have been there first.
            (room, if told { Owner::Other } else { Owner::Unknown })
        };
        self.put(start..start + length, Some(owner));
        // Chunks that lie side by side are one mapping to whoever came later.
        if address < start + length { owner } else { Owner::Unknown }
    }
}

/// How long a chunk is that malloc mapped and that may be advised; `None` where it is none.
fn chunk([before, size]: [u64; 2], room: u64) -> Option<u64> {
    let length = size & !BITS;
    let is_whole = length >= HUGE && length <= room && length.is_multiple_of(4096);
    (before == 0 && size & BITS == IS_MMAPPED && is_whole).then_some(length)
}

/// The head of a chunk of a process, which may be another's by now.
pub fn head(pid: u32, at: u64) -> Option<[u64; 2]> {
    let head: [u8; 16] = peek(pid, at)?;
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight of 16"));
    Some([word(0), word(8)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn told(range: Range<u64>) -> Owners {
        let mut owners = Owners::default();
        owners.told(range, std::iter::empty());
        owners
    }

    #[test]
    fn a_chunk_says_that_malloc_mapped_it() {
        let of = |head: Option<[u64; 2]>| told(0..4 * MIB).of(16, true, |_| false, |_| head);
        assert_eq!(of(Some([0, (4 * MIB) | 2])), Owner::Malloc);
        for (what, head) in [
            ("a flag of an arena", [0, (4 * MIB) | 4]),
            ("one in use before it", [0, (4 * MIB) | 3]),
            ("something before it", [8, (4 * MIB) | 2]),
            ("no whole pages", [0, (3 * MIB + 16) | 2]),
            ("longer than its mapping", [0, (8 * MIB) | 2]),
            ("too short", [0, MIB | 2]),
        ] {
            assert_eq!(of(Some(head)), Owner::Other, "{what}");
        }
        assert_eq!(of(None), Owner::Unknown);
    }

    #[test]
    fn what_was_touched_elsewhere_first_is_not_mallocs_and_is_not_read() {
        let unread = |_: u64| -> Option<[u64; 2]> { panic!("a page that is not there") };
        let touched =
            |told_from_its_start| told(0..4 * MIB).of(MIB, told_from_its_start, |_| false, unread);
        assert_eq!((touched(true), touched(false)), (Owner::Other, Owner::Unknown));
        assert_eq!(told(0..MIB).of(0, true, |_| true, |_| Some([0; 2])), Owner::Other);
        assert_eq!(told(0..MIB).of(MIB, true, |_| true, |_| Some([0; 2])), Owner::Unknown);
    }

    #[test]
    fn what_grows_by_another_mapping_has_an_owner_for_each() {
        let mut owners = told(8 * MIB..12 * MIB);
        let heads = |at: u64| Some([0, if at == 4 * MIB { (4 * MIB) | 2 } else { 1 }]);
        assert_eq!(owners.of(8 * MIB, true, |_| false, heads), Owner::Other);
        // The kernel tells of one mapping from then on.
        owners.told(4 * MIB..12 * MIB, std::iter::once(8 * MIB..12 * MIB));
        assert_eq!(owners.of(4 * MIB + 8, true, |_| false, heads), Owner::Malloc);
        let of = |owners: &mut Owners, at| owners.of(at, true, |_| false, |_| None);
        assert_eq!([5, 8, 11].map(|at| of(&mut owners, at * MIB)), {
            [Owner::Malloc, Owner::Other, Owner::Other]
        });
        owners.gone(5 * MIB..9 * MIB);
        assert_eq!([4, 5, 8, 9].map(|at| of(&mut owners, at * MIB)), {
            [Owner::Malloc, Owner::Unknown, Owner::Unknown, Owner::Other]
        });
    }

    proptest! {
        /// Against a model of one entry for each page.
        #[test]
        fn ranges_are_those_of_a_model(
            steps in prop::collection::vec((any::<bool>(), 0_u64..32, 1_u64..16), 1..20),
        ) {
            let mut owners = Owners::default();
            let mut model = [false; 64];
            for (is_new, start, length) in steps {
                let range = start << 12..(start + length) << 12;
                if is_new { owners.put(range, None) } else { owners.gone(range) }
                for page in start..start + length {
                    model[usize::try_from(page).unwrap()] = is_new;
                }
            }
            for (page, is_known) in (0_u64..).zip(model) {
                let found = owners.0.range(..=page << 12).next_back();
                prop_assert_eq!(found.is_some_and(|(_, (end, _))| page << 12 < *end), is_known);
            }
        }
    }
}
