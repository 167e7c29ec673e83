//! What would help beside larger pages: memory that is populated, kept, or stored to first; files
//! that are asked for earlier.

use pagelab_record::{
    Measured, Table,
    advice::Setting,
    vocabulary::{knob, table},
};

use super::{
    super::{
        Group, cell,
        prices::{Prices, difference},
    },
    Advice, Knob, PLACES, density, first_writes,
};
use pagelab_report::{Quantity, Unit};

/// How memory is kept.
const KEEP: &str = "keep the memory that is given back, and use it again";
const KEEP_MALLOC: &str = "let malloc keep what is freed";
const KEPT: &str = "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=68719476736";

/// What populating would make of first stores to mappings of which nearly all is written.
pub(super) fn populate(measured: &Measured, groups: &[Group], prices: &Prices) -> Option<Knob> {
    let populate = prices.populate?;
    let table = measured.table("populate")?;
    let [told, pages, untouched] = ["faults", "pages", "untouched"].map(|of| cell(table, of));
    let first = || PLACES.iter().filter_map(|place| first_writes(groups, place));
    let all: f64 = first().map(|group| group.faults).sum();
    let faults = told?.min(all);
    let cost = first().filter_map(|group| group.cost).reduce(Quantity::plus)?;
    let now = cost.times(faults / all.max(1.0), Unit::Ns);
    let ways =
        [vec![Setting::call("madvise", "MADV_POPULATE_WRITE")], vec![Setting::call("mlock", None)]];
    let advice = Advice::of(knob::POPULATE, "populate before use", ways);
    let change = format!("{faults:.0} faults become pages of a call; no touch faults afterwards");
    let saved = difference(now, populate.times(pages.unwrap_or(faults).max(faults), Unit::Ns));
    let knob = Knob { bytes: untouched, ..Knob::new(knob::POPULATE, advice, change, saved) };
    (faults > 0.0).then_some(knob)
}

/// What keeping memory would save that is given back and touched again.
pub(super) fn keep(measured: &Measured, prices: &Prices) -> Option<Knob> {
    let again = density(measured, "again");
    let base = prices.get("write", "4k")?;
    let releases = measured.tables.iter().filter_map(|table| {
        Some((table.name.strip_prefix(table::RELEASE)?, cell(table, "pages")?))
    });
    let (most, _) = releases.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mine =
        |table: &&Table| ["density/heap", "density/anonymous/malloc"].contains(&&*table.name);
    let tables = measured.tables.iter().filter(mine);
    let of_malloc: f64 = tables.filter_map(|table| cell(table, "again")).sum();
    let is_malloc = of_malloc * 2.0 > again;
    let advice = if is_malloc {
        let kept = Setting::environment("GLIBC_TUNABLES", KEPT);
        Advice::of("malloc-keep", KEEP_MALLOC, [vec![kept]])
    } else {
        Advice::of(knob::KEEP, KEEP, [])
    };
    let change = format!("{again:.0} pages do not come again; most were given back by {most}");
    let saved = base.fault.times(again, Unit::Ns);
    let given_back = prices.release("4k").map(|each| each.times(again, Unit::Ns));
    let knob = Knob { given_back, ..Knob::new(knob::KEEP, advice, change, saved) };
    (again > 0.0).then_some(knob)
}

/// Memory that is read before it is written takes two faults a page, of either size.
pub(super) fn store_first(groups: &[Group], prices: &Prices) -> Option<Knob> {
    let mut saved: Option<Quantity> = None;
    let mut twice = 0.0;
    for page in ["4k", "2m"] {
        let mine = groups.iter().filter(|group| group.parts()[..2] == ["zero-write", page]);
        let faults: f64 = mine.clone().map(|group| group.faults).sum();
        let Some(cost) = mine.filter_map(|group| group.cost).reduce(Quantity::plus) else {
            continue;
        };
        let (write, read) = (prices.get("write", page)?, prices.get("read", page)?);
        let now = cost.plus(read.fault.times(faults, Unit::Ns));
        let part = difference(now, write.fault.times(faults, Unit::Ns));
        saved = Some(saved.map_or(part, |saved| saved.plus(part)));
        twice += faults;
    }
    (twice > 0.0).then_some(())?;
    let advice = Advice::of("store-first", "store before the first load of a page", []);
    let change = format!("{twice:.0} pages take one fault instead of two");
    Some(Knob { bytes: Some(0.0), ..Knob::new("store-first", advice, change, saved?) })
}

/// Faults of files: what they cost is the most that asking earlier can save.
pub(super) fn files(groups: &[Group]) -> Vec<Knob> {
    let of = |kinds: &'static [&'static str]| {
        groups.iter().filter(move |group| kinds.contains(&group.kind()))
    };
    let rows: [(&str, &str, [Setting; 2], &'static [&'static str]); 2] = [
        (
            "populate-file",
            "map files",
            [Setting::call("mmap", "MAP_POPULATE"), Setting::call("madvise", "MADV_POPULATE_READ")],
            &["file-minor", "shmem-minor"],
        ),
        (
            "read-ahead",
            "ask for files earlier",
            [Setting::call("madvise", "MADV_WILLNEED"), Setting::call("readahead", None)],
            &["file-major"],
        ),
    ];
    rows.into_iter()
        .filter_map(|(name, what, ways, kinds)| {
            let saved = of(kinds).filter_map(|group| group.cost).reduce(Quantity::plus)?;
            let faults: f64 = of(kinds).map(|group| group.faults).sum();
            let becomes = if faults > 1.0 { "faults become" } else { "fault becomes" };
            let advice = Advice::of(name, what, ways.map(|way| vec![way]));
            let change = format!("{faults:.0} {becomes} part of a call");
            Some(Knob { at_most: true, ..Knob::new(name, advice, change, saved) })
        })
        .collect()
}
