//! What a capture says of a program's pages, as tables of a record: after how many others each was
//! used again.
//!
//! The one idea: distances hold every TLB at once. A fully associative LRU TLB of `n` entries
//! misses where `n` other pages or more were used since, so what it would have missed, however
//! large it is, follows when a report is made.

use std::iter::once;

use crate::{
    Measured, Signed, Table,
    units::{format_bytes, parse_bytes},
    vocabulary::{
        counter::{CAPTURED_END, CAPTURED_OPS},
        table::{REUSE, TLBS, TLBS_COLUMNS},
    },
};

/// How a capture ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With the program, as that ended without it.
    Whole,
    /// At the bound that it had: the program went no further.
    Bound,
    /// The program became another one (`execve`).
    Became,
    /// The user did not wait for it.
    Interrupted,
    /// The program ended otherwise than without it: another exit code, or a signal.
    Otherwise,
}

impl End {
    const ALL: [Self; 5] =
        [Self::Whole, Self::Bound, Self::Became, Self::Interrupted, Self::Otherwise];

    fn of(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|end| *end as u64 == code)
    }
}

/// Uses of pages in one kind of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uses {
    /// All of them.
    pub all: u64,
    /// Those that lay where a page of 2 MiB could.
    pub whole: u64,
}

/// Uses of pages of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pages {
    /// Bytes of a page.
    pub bytes: u64,
    /// The first uses of pages, by the place of [`Captured::places`].
    pub first: Vec<Uses>,
    /// Distances, rising, and the uses that came after so many other pages or a few more.
    pub again: Vec<(u64, Vec<Uses>)>,
}

impl Pages {
    /// Uses of known pages that miss in a fully associative LRU TLB of so many entries.
    pub fn misses(&self, place: usize, entries: u64) -> Uses {
        let far = self.again.iter().filter(|(distance, _)| *distance >= entries);
        far.filter_map(|(_, uses)| uses.get(place)).fold(Uses::default(), |sum, uses| Uses {
            all: sum.all.saturating_add(uses.all),
            whole: sum.whole.saturating_add(uses.whole),
        })
    }
}

/// What a capture saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// How it ended.
    pub end: End,
    /// Operations: loads and stores of at most eight bytes, and instructions.
    pub ops: u64,
    /// The kinds of memory; the last is what was executed.
    pub places: Vec<String>,
    /// By page size, rising.
    pub sizes: Vec<Pages>,
}

/// The distance of a page that was used for the first time.
const NEVER: i64 = -1;
const DISTANCE: &str = "distance";
const WHOLE: &str = "_whole";

impl Captured {
    /// Adds it to the observations of a program.
    pub fn write(&self, measured: &mut Measured) {
        measured.counters.insert(CAPTURED_END.to_owned(), self.end as u64);
        measured.counters.insert(CAPTURED_OPS.to_owned(), self.ops);
        measured.tables.extend(self.sizes.iter().map(|pages| self.table(pages)));
    }

    fn table(&self, pages: &Pages) -> Table {
        let of_places = self.places.iter().flat_map(|place| {
            [place.clone(), format!("{place}{WHOLE}")].map(|name| (name, "count"))
        });
        let row = |distance: i64, uses: &[Uses]| {
            let cells = uses.iter().flat_map(|uses| [uses.all, uses.whole].map(Signed::signed));
            once(distance).chain(cells).collect::<Vec<_>>()
        };
        let again = pages.again.iter().map(|(distance, uses)| row(distance.signed(), uses));
        Table::new(
            format!("{REUSE}{}", format_bytes(pages.bytes)),
            once((DISTANCE.to_owned(), "pages")).chain(of_places),
            once(row(NEVER, &pages.first)).chain(again),
        )
    }

    /// From the observations of a program; `None` where nobody asked for a capture.
    pub fn of(measured: &Measured) -> Option<Self> {
        let end = End::of(*measured.counters.get(CAPTURED_END)?)?;
        let ops = measured.counter(CAPTURED_OPS).unwrap_or(0);
        let mut captured = Self { end, ops, places: Vec::new(), sizes: Vec::new() };
        for table in &measured.tables {
            let bytes = table.name.strip_prefix(REUSE).and_then(|page| parse_bytes(page).ok());
            let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else { continue };
            let names = table.columns.iter().filter_map(|c| c.name.strip_suffix(WHOLE));
            let places: Vec<String> = names.map(str::to_owned).collect();
            if captured.places.is_empty() {
                captured.places = places;
            } else if captured.places != places {
                continue;
            }
            captured.sizes.push(pages(bytes, table, &captured.places));
        }
        captured.sizes.sort_by_key(|pages| pages.bytes);
        Some(captured)
    }

    /// Of pages of one size, where the capture tells of them.
    pub fn pages(&self, bytes: u64) -> Option<&Pages> {
        self.sizes.iter().find(|pages| pages.bytes == bytes)
    }
}

fn pages(bytes: u64, table: &Table, places: &[String]) -> Pages {
    let index = |name: &str| table.index(name);
    let distance = index(DISTANCE);
    let at: Vec<[Option<usize>; 2]> =
        places.iter().map(|place| [index(place), index(&format!("{place}{WHOLE}"))]).collect();
    let mut pages = Pages { bytes, first: vec![Uses::default(); places.len()], again: Vec::new() };
    for row in &table.rows {
        let cell = |at: Option<usize>| at.and_then(|at| u64::try_from(*row.get(at)?).ok());
        let uses: Vec<Uses> = at
            .iter()
            .map(|at| at.map(|at| cell(at).unwrap_or(0)))
            .map(|[all, whole]| Uses { all, whole: whole.min(all) })
            .collect();
        match cell(distance) {
            Some(distance) => pages.again.push((distance, uses)),
            None => pages.first = uses,
        }
    }
    pages.again.sort_by_key(|(distance, _)| *distance);
    pages
}

/// Entries of the TLBs for pages of so many bytes, the nearest to the processor first; empty where
/// the processor names none.
pub fn tlb_levels(tables: &[Table], bytes: u64) -> Vec<u64> {
    let Some(table) = tables.iter().find(|table| table.name == TLBS) else { return Vec::new() };
    let index = |name: &str| table.index(name);
    let at = TLBS_COLUMNS.map(index);
    let mut levels: Vec<[u64; 3]> = table
        .rows
        .iter()
        .map(|row| at.map(|at| at.and_then(|at| u64::try_from(*row.get(at)?).ok()).unwrap_or(0)))
        .filter(|[page, _, entries]| *page == bytes && *entries > 0)
        .collect();
    levels.sort_by_key(|[_, level, entries]| (*level, std::cmp::Reverse(*entries)));
    // Of two that a level has for other kinds of access, the larger.
    levels.dedup_by_key(|[_, level, _]| *level);
    levels.into_iter().map(|[_, _, entries]| entries).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn uses(all: u64) -> Uses {
        Uses { all, whole: all / 2 }
    }

    fn captured(rows: &[(u64, u64)]) -> Captured {
        let again = rows.iter().map(|(distance, all)| (*distance, vec![uses(*all), uses(7)]));
        let pages =
            |bytes| Pages { bytes, first: vec![uses(12), uses(3)], again: again.clone().collect() };
        Captured {
            end: End::Bound,
            ops: 1_000_000,
            places: vec!["anonymous".to_owned(), "instructions".to_owned()],
            sizes: vec![pages(4096), pages(2 << 20)],
        }
    }

    #[test]
    fn a_record_tells_what_was_captured_and_nothing_where_nobody_asked() {
        let captured = captured(&[(0, 100), (16, 5), (3072, 9)]);
        let mut measured = Measured::default();
        assert_eq!(Captured::of(&measured), None);
        captured.write(&mut measured);
        assert_eq!(Captured::of(&measured), Some(captured));
        measured.counters.insert(CAPTURED_END.to_owned(), 99);
        assert_eq!(Captured::of(&measured), None, "an end that nobody knows");
    }

    #[test]
    fn what_comes_after_as_many_pages_as_there_are_entries_misses() {
        let captured = captured(&[(0, 100), (16, 5), (3072, 9)]);
        let pages = captured.pages(4096).unwrap();
        let misses = |entries| pages.misses(0, entries).all;
        assert_eq!([0, 1, 16, 17, 3072, 3073].map(misses), [114, 14, 14, 9, 9, 0]);
        assert_eq!(pages.misses(9, 0), Uses::default(), "there is no such place");
        assert_eq!(captured.pages(65536), None);
    }

    #[test]
    fn levels_are_those_of_the_page_size_and_of_two_in_one_the_larger() {
        let rows = [[4096_i64, 2, 3072], [4096, 1, 64], [4096, 1, 72], [2 << 20, 1, 32]];
        let table = Table::new(TLBS, TLBS_COLUMNS.map(|name| (name, "")), rows);
        assert_eq!(tlb_levels(std::slice::from_ref(&table), 4096), [72, 3072]);
        assert_eq!(tlb_levels(std::slice::from_ref(&table), 2 << 20), [32]);
        assert!(tlb_levels(&[table], 65536).is_empty() && tlb_levels(&[], 4096).is_empty());
    }

    proptest! {
        #[test]
        fn a_larger_tlb_never_misses_more(
            mut rows in proptest::collection::vec((0_u64..1 << 40, 0_u64..1 << 40), 0..30),
            entries in proptest::collection::vec(0_u64..1 << 41, 2),
        ) {
            rows.sort_unstable();
            let captured = captured(&rows);
            let [less, more] = [entries[0].min(entries[1]), entries[0].max(entries[1])];
            let of = |entries| captured.sizes[0].misses(0, entries);
            prop_assert!(of(more).all <= of(less).all && of(less).whole <= of(less).all);
            let mut measured = Measured::default();
            captured.write(&mut measured);
            prop_assert_eq!(Captured::of(&measured), Some(captured));
        }
    }
}
