//! Which variants are likely to gain most: a rank by the faults of the watched run.
//!
//! A budget may leave time for some variants only. Each larger page takes one fault in place of
//! many and clears all of its memory; how many it would take is in the `density/…` tables of the
//! watched run. This ranks variants, it predicts nothing: prices of this machine come later.

use pagelab_record::{Measured, asked::Rung, vocabulary::knob};

const HUGE: u64 = 2 << 20;
/// The share of a base fault's cost that every fault has, whatever its page.
const ENTRY: f64 = 0.7;
/// The share that clearing each 4 KiB adds.
const CLEAR: f64 = 0.3;

/// Base faults' worth of time that a variant may save; `None` ranks by the variant alone.
pub(super) fn gain(rung: &Rung, watched: Option<&Measured>) -> f64 {
    let of = |place: &str, page: u64| saved(watched, place, page);
    let mine = |page: u64| ["anonymous", "heap", "stack"].map(|place| of(place, page)).iter().sum();
    let mapped = |page: u64| of("anonymous/other", page);
    // What has no known owner may be malloc's.
    let mallocs = |page: u64| of("anonymous", page) - mapped(page) + of("heap", page);
    match rung.name.as_str() {
        "malloc-thp" | "malloc-hugetlb" | "segment" => mallocs(HUGE),
        "mimalloc" | "jemalloc" | "tcmalloc" => mallocs(HUGE) * 0.9,
        "malloc-keep" => again(watched),
        "maps-thp" => mapped(HUGE),
        // The faults come all the same, in one call.
        "populate" => mapped(HUGE) * 0.5,
        "shmem-thp" | "shmem-hugetlb" => of("shmem", HUGE),
        // The faults came before: translation alone gains.
        "collapse" => mine(HUGE) * 0.25,
        // Of what comes page by page the faults came before, too.
        knob::KHUGEPAGED => late(watched).unwrap_or(0.0) * 0.25,
        "code" => 0.0,
        _ => match rung.knob.as_deref().and_then(knob::bytes_of) {
            Some(page) => mine(page),
            // A command of the user's own is what the user wants to know about.
            None => f64::INFINITY,
        },
    }
}

/// What pages of a size save of the first touches of a place.
fn saved(watched: Option<&Measured>, place: &str, page: u64) -> f64 {
    let [faults, waves] = match watched {
        Some(watched) => ["faults", "waves"].map(|column| cell(watched, place, page, column)),
        // Nobody looked: every place is touched alike, and wholly.
        None => [512.0, (HUGE / page) as f64],
    };
    faults - waves * (ENTRY + CLEAR * page as f64 / 4096.0)
}

/// Pages that came one by one where only khugepaged can join them; `None` where nobody looked.
pub(super) fn late(watched: Option<&Measured>) -> Option<f64> {
    let of = |place| Some(cell(watched?, place, HUGE, "late"));
    ["anonymous", "heap", "stack"].into_iter().map(of).sum()
}

/// Touches of pages that were given back before.
fn again(watched: Option<&Measured>) -> f64 {
    let of = |place| watched.map_or(64.0, |watched| cell(watched, place, 4096, "again"));
    of("anonymous") + of("heap")
}

/// A cell of a density table, by the page size of its row; 0 where there is none.
fn cell(watched: &Measured, place: &str, page: u64, column: &str) -> f64 {
    let table = watched.table(&format!("density/{place}"));
    table.and_then(|table| table.cell_of(page.cast_signed(), column)).unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    use pagelab_record::Table;

    use super::*;

    fn rung(name: &str, knob: Option<u64>) -> Rung {
        Rung { name: name.to_owned(), knob: knob.map(knob::page), ..Rung::default() }
    }

    /// What was seen of a program: faults in places, all of which huge pages would spare.
    fn seen(places: &[(&str, i64)]) -> Measured {
        let table = |(place, faults): &(&str, i64)| {
            let rows = [
                [4096, *faults, *faults, faults / 2],
                [64 << 10, *faults, faults / 16, 0],
                [2 << 20, *faults, faults / 512, 0],
            ];
            let columns = ["block", "faults", "waves", "again"].map(|name| (name, ""));
            Table::new(format!("density/{place}"), columns, rows)
        };
        Measured { tables: places.iter().map(table).collect(), ..Measured::default() }
    }

    #[test]
    fn variants_rank_by_the_memory_that_they_reach() {
        let names = ["malloc-thp", "maps-thp", "mimalloc", "code", "shmem-thp", "collapse"];
        let ranked = |watched: Option<&Measured>| {
            let mut all: Vec<Rung> = names.map(|name| rung(name, None)).to_vec();
            all.extend([rung("thp-always", Some(HUGE)), rung("mthp-64k", Some(64 << 10))]);
            all.sort_by(|one, other| gain(other, watched).total_cmp(&gain(one, watched)));
            all.into_iter().map(|rung| rung.name).collect::<Vec<_>>()
        };
        let mallocs = seen(&[("anonymous", 51_200), ("anonymous/malloc", 51_200)]);
        let order = ranked(Some(&mallocs));
        assert_eq!(order[..3], ["malloc-thp", "thp-always", "mthp-64k"]);
        let maps = seen(&[("anonymous", 51_200), ("anonymous/other", 51_200)]);
        assert_eq!(ranked(Some(&maps))[..2], ["maps-thp", "thp-always"]);
        assert_eq!(ranked(Some(&seen(&[("shmem", 512)])))[0], "shmem-thp");
        assert_eq!(ranked(None)[0], "thp-always");
        assert!(gain(&rung("mine", None), None).is_infinite(), "a setting of the user's own");
        assert!(gain(&rung("malloc-keep", None), Some(&mallocs)) > 0.0);
        let joined = |watched| gain(&rung("khugepaged", None), watched).to_string();
        let mut grown = seen(&[("heap", 512)]);
        grown.tables[0].columns[3].name = "late".to_owned();
        grown.tables[0].rows[2][3] = 400;
        assert_eq!([Some(&grown), Some(&mallocs), None].map(joined), ["100", "0", "0"]);
        assert_eq!(late(None), None);
    }
}
