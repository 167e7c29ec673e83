//! What would change if the memory came in another way.
//!
//! The one idea: each knob is arithmetic on what was counted and what was measured. A larger page
//! takes as many faults as blocks of its size would have come at the moment of a touch, and brings
//! along what nobody touched in them; what lay in no such block then is not promised. Populating
//! takes no faults and costs a call for each page. What cannot be known from here is an upper
//! bound and says so.

use std::fmt::Write as _;

use pagelab_record::{
    Measured, Table,
    units::{display_bytes, format_bytes},
    vocabulary::knob,
};

use super::{
    Group,
    priced::LARGE,
    prices::{Prices, difference, not_below_0},
    translation::Translation,
    whole::{Whole, cell_of},
};
use crate::{Quantity, Unit};

/// One thing to change and what it would buy.
#[derive(Debug, Clone)]
pub(crate) struct Knob {
    /// What it is called in JSON and CSV.
    pub(crate) name: String,
    /// How to turn it.
    pub(crate) how: String,
    /// What would change.
    pub(crate) change: String,
    /// Time saved in faults; of an upper bound the value is the bound.
    pub(crate) saved: Quantity,
    /// Time saved in giving the pages back; `None` where that has no price, or nothing changes.
    pub(crate) given_back: Option<Quantity>,
    /// Time saved in translation; `None` where that was not seen, or nothing changes.
    pub(crate) translation: Option<Quantity>,
    /// Whether it is an upper bound.
    pub(crate) at_most: bool,
    /// Memory that would be taken and that nobody touched, in bytes; `None` where nobody knows.
    pub(crate) bytes: Option<f64>,
}

impl Knob {
    /// All savings together.
    pub(crate) fn in_all(&self) -> Quantity {
        let others = [self.given_back, self.translation];
        others.into_iter().flatten().fold(self.saved, Quantity::plus)
    }
}

/// Every knob that would save something, the one that saves most first.
pub(crate) fn knobs(measured: &Measured, groups: &[Group], prices: &Prices) -> Vec<Knob> {
    let knobs = all(measured, groups, prices).into_iter();
    let mut knobs: Vec<Knob> =
        knobs.map(|knob| Knob { saved: not_below_0(knob.saved), ..knob }).collect();
    knobs.retain(|knob| knob.in_all().value > 0.0);
    knobs.sort_by(|a, b| b.in_all().value.total_cmp(&a.in_all().value));
    knobs
}

/// Every knob of which anything can be said, also what would cost more than it saves.
pub(crate) fn all(measured: &Measured, groups: &[Group], prices: &Prices) -> Vec<Knob> {
    let mut knobs = larger_pages(measured, groups, prices);
    knobs.extend(malloc_thp(measured, groups, prices));
    knobs.extend(populate(groups, prices));
    knobs.extend(store_first(groups, prices));
    knobs.extend(files(groups));
    translated(&mut knobs, measured, prices);
    knobs
}

/// Adds what larger pages save of translation, also where they save no fault.
fn translated(knobs: &mut Vec<Knob>, measured: &Measured, prices: &Prices) {
    let translation = Translation::of(measured, &prices.walks);
    let Some(seen) = translation.as_ref().and_then(Translation::seen) else { return };
    let large = knob::page(LARGE);
    let whole = seen.saved(LARGE, [1.0; 2]);
    if !knobs.iter().any(|knob| knob.name == large) && whole.is_some() {
        knobs.push(Knob {
            name: large,
            how: THP.to_owned(),
            change: "no fault that has a price".to_owned(),
            saved: Quantity { coverage: 1.0, ..Quantity::exact(0.0, Unit::Ns) },
            given_back: None,
            translation: None,
            at_most: false,
            bytes: None,
        });
    }
    for knob in knobs {
        knob.translation = match &*knob.name {
            knob::MALLOC_THP => seen.saved(LARGE, mallocs(measured)),
            name => knob::bytes_of(name).and_then(|bytes| seen.saved(bytes, [1.0; 2])),
        };
    }
}

/// How pages of 2 MiB are had.
const THP: &str = "THP: MADV_HUGEPAGE, or enabled=always";

/// First stores to base pages of the heap and of anonymous mappings.
fn first_writes(groups: &[Group]) -> impl Iterator<Item = &Group> {
    groups.iter().filter(|group| {
        let [kind, page, place] = group.parts();
        kind == "write" && page == "4k" && ["heap", "anonymous"].contains(&place)
    })
}

fn larger_pages(measured: &Measured, groups: &[Group], prices: &Prices) -> Vec<Knob> {
    let Some(base) = prices.get("write", "4k") else { return Vec::new() };
    let mut knobs = Vec::new();
    for shift in 14..=21_u32 {
        let size = 1_u64 << shift;
        let page = format_bytes(size);
        let Some(price) = prices.get("write", &page) else { continue };
        let mut all = Whole::default();
        let mut tables = 0.0;
        for group in first_writes(groups) {
            let Some(table) = touched(measured, group.parts()[2]) else { continue };
            let Some(whole) = Whole::of(table, size) else { continue };
            let scale = whole.scale(group);
            if whole.all > 0.0 && shift == 21 {
                tables += group.tables * whole.faults / whole.all;
            }
            all.add(&whole, scale);
        }
        let now = all.now(base, prices);
        let now = base.table.map_or(now, |table| now.plus(table.times(tables, Unit::Ns)));
        let mut saved = difference(now, price.fault.times(all.waves, Unit::Ns));
        // What may have been among them, or not, bounds the saving.
        saved.high += base.fault.high * all.unknown;
        let bytes = all.blocks * size as f64 - all.pages * 4096.0;
        let room = measured.counters.get("cgroup_room_bytes").map(|room| *room as f64);
        let short = room.filter(|room| *room < bytes);
        let at_most = all.faults <= 0.0 || short.is_some();
        if at_most {
            saved = Quantity { value: saved.high, low: 0.0, ..saved };
        }
        let how = if shift == 21 {
            THP.to_owned()
        } else {
            format!("mTHP {page}: enabled=madvise, then MADV_HUGEPAGE")
        };
        let mut change = format!("{:.0} faults become {:.0} of {page}", all.taken(), all.waves);
        if all.unknown > 0.0 {
            change.push_str(&format!("; of {:.0} more nobody knows", all.unknown));
        }
        if let Some(room) = short {
            let room = display_bytes(room);
            change.push_str(&format!("; the memory cgroup had room for {room} more"));
        }
        let mut given_back = given_back(prices, &all, &page);
        if at_most {
            given_back = given_back.map(|most| Quantity { value: most.high, low: 0.0, ..most });
        }
        let bytes = Some(bytes);
        knobs.push(Knob {
            name: knob::page(size),
            how,
            change,
            saved,
            given_back,
            translation: None,
            at_most,
            bytes,
        });
    }
    knobs
}

/// What is saved in giving back pages that came as larger ones: as many as there were faults.
fn given_back(prices: &Prices, whole: &Whole, page: &str) -> Option<Quantity> {
    let (base, large) = (prices.release("4k")?, prices.release(page)?);
    let now = base.times(whole.faults + whole.rewrites, Unit::Ns);
    let mut saved = difference(now, large.times(whole.waves, Unit::Ns));
    saved.high += base.high * whole.unknown;
    Some(saved)
}

/// How densely memory of a place was touched.
fn touched<'m>(measured: &'m Measured, place: &str) -> Option<&'m Table> {
    let name = format!("density/{place}");
    measured.tables.iter().find(|table| table.name == name)
}

/// What glibc's malloc makes of it where it asks for huge pages: the heap grows by whole ones, so
/// that what came page by page comes whole, and what it maps for itself is advised. Of mappings
/// whose owner nobody knows, at least nothing is saved.
fn malloc_thp(measured: &Measured, groups: &[Group], prices: &Prices) -> Option<Knob> {
    let (base, huge) = (prices.get("write", "4k")?, prices.get("write", "2m")?);
    let (mut sum, mut sure) = (Whole::default(), Whole::default());
    let mut saved = None;
    for group in first_writes(groups) {
        let place = group.parts()[2];
        let Some(table) = touched(measured, place) else { continue };
        let mut whole = Whole::of(table, LARGE)?;
        let [pages, blocks] =
            [cell_of(table, LARGE, "late")?, cell_of(table, LARGE, "late_blocks")?];
        let scale = whole.scale(group);
        let part = |whole: &Whole| {
            let now = whole.now(base, prices).times(scale, Unit::Ns);
            let tables = group.tables * whole.faults / whole.all.max(1.0);
            let now = base.table.map_or(now, |table| now.plus(table.times(tables, Unit::Ns)));
            let mut part = difference(now, huge.fault.times(whole.waves * scale, Unit::Ns));
            part.high += base.fault.high * whole.unknown * scale;
            part
        };
        let part = if place == "heap" {
            whole.faults += pages;
            whole.pages += pages;
            whole.blocks += blocks;
            whole.waves += blocks;
            sure.add(&whole, scale);
            part(&whole)
        } else {
            let of = |owner: &str| {
                let table = touched(measured, &format!("{place}/{owner}"));
                let found = table.and_then(|table| Whole::of(table, LARGE));
                Whole { all: whole.all, ..found.unwrap_or_default() }
            };
            let (mallocs, others) = (of("malloc"), of("other"));
            whole.add(&others, -1.0);
            sure.add(&mallocs, scale);
            let [at_least, part] = [&mallocs, &whole].map(part);
            Quantity { low: at_least.low.min(part.low), ..part }
        };
        saved = saved.map_or(Some(part), |saved: Quantity| Some(saved.plus(part)));
        sum.add(&whole, scale);
    }
    let mut change = format!("{:.0} faults become {:.0} of 2m", sum.taken(), sum.waves);
    let unsure = sum.taken() - sure.taken();
    if unsure > 0.5 {
        let _ = write!(change, "; {unsure:.0} of them if malloc made their mappings");
    }
    let page = format_bytes(LARGE);
    let given_back = given_back(prices, &sum, &page).map(|all| {
        let at_least = given_back(prices, &sure, &page).map_or(0.0, |saved| saved.low);
        Quantity { low: at_least.min(all.low), ..all }
    });
    Some(Knob {
        name: knob::MALLOC_THP.to_owned(),
        how: "malloc with THP (glibc 2.35): GLIBC_TUNABLES=glibc.malloc.hugetlb=1".to_owned(),
        change,
        saved: saved?,
        given_back,
        translation: None,
        at_most: false,
        bytes: Some(sum.blocks * LARGE as f64 - sum.pages * 4096.0),
    })
}

/// Of the faults that pages of 2 MiB would have brought in anonymous mappings, the shares that
/// surely and that perhaps were in malloc's.
fn mallocs(measured: &Measured) -> [f64; 2] {
    let faults = |of: &str| {
        let table = touched(measured, of).and_then(|table| Whole::of(table, LARGE));
        table.map_or(0.0, |whole| whole.faults)
    };
    let [all, sure, other] = ["", "/malloc", "/other"].map(|of| faults(&format!("anonymous{of}")));
    if all > 0.0 { [sure / all, 1.0 - other / all] } else { [0.0, 1.0] }
}

/// Sums of a column over the rows of every place whose pages a knob decides.
pub(crate) fn density(measured: &Measured, column: &str) -> f64 {
    let mine = |table: &&Table| ["density/heap", "density/anonymous"].contains(&&*table.name);
    let of = |table: &Table| -> f64 {
        let Some(index) = table.columns.iter().position(|c| c.name == column) else { return 0.0 };
        table.rows.iter().filter_map(|row| row.get(index)).map(|n| *n as f64).sum()
    };
    measured.tables.iter().filter(mine).map(of).fold(0.0, |sum, n| sum + n)
}

fn populate(groups: &[Group], prices: &Prices) -> Option<Knob> {
    let populate = prices.populate?;
    let cost = first_writes(groups).filter_map(|group| group.cost).reduce(Quantity::plus)?;
    let faults: f64 = first_writes(groups).map(|group| group.faults).sum();
    Some(Knob {
        name: knob::POPULATE.to_owned(),
        how: "populate before use: MADV_POPULATE_WRITE or mlock".to_owned(),
        change: format!("{faults:.0} faults become pages of a call; no touch faults afterwards"),
        saved: difference(cost, populate.times(faults, Unit::Ns)),
        given_back: None,
        translation: None,
        at_most: false,
        bytes: Some(0.0),
    })
}

/// Memory that is read before it is written takes two faults a page.
fn store_first(groups: &[Group], prices: &Prices) -> Option<Knob> {
    let of = |kind: &'static str| groups.iter().filter(move |group| group.parts()[0] == kind);
    let twice: f64 = of("zero-write").map(|group| group.faults).sum();
    let (write, read) = (prices.get("write", "4k")?, prices.get("read", "4k")?);
    let now = of("zero-write").filter_map(|group| group.cost).reduce(Quantity::plus)?;
    let now = now.plus(read.fault.times(twice, Unit::Ns));
    (twice > 0.0).then(|| Knob {
        name: "store-first".to_owned(),
        how: "store before the first load of a page".to_owned(),
        change: format!("{twice:.0} pages take one fault instead of two"),
        saved: difference(now, write.fault.times(twice, Unit::Ns)),
        given_back: None,
        translation: None,
        at_most: false,
        bytes: Some(0.0),
    })
}

/// Faults of files: what they cost is the most that asking earlier can save.
fn files(groups: &[Group]) -> Vec<Knob> {
    let of = |kinds: &'static [&'static str]| {
        groups.iter().filter(move |group| kinds.contains(&group.parts()[0]))
    };
    let rows: [(&str, &str, &'static [&'static str]); 2] = [
        (
            "populate-file",
            "map files with MAP_POPULATE, or MADV_POPULATE_READ",
            &["file-minor", "shmem-minor"],
        ),
        ("read-ahead", "ask for files earlier: MADV_WILLNEED, readahead", &["file-major"]),
    ];
    rows.into_iter()
        .filter_map(|(name, how, kinds)| {
            let saved = of(kinds).filter_map(|group| group.cost).reduce(Quantity::plus)?;
            let faults: f64 = of(kinds).map(|group| group.faults).sum();
            let becomes = if faults > 1.0 { "faults become" } else { "fault becomes" };
            Some(Knob {
                name: name.to_owned(),
                how: how.to_owned(),
                change: format!("{faults:.0} {becomes} part of a call"),
                saved,
                given_back: None,
                translation: None,
                at_most: true,
                bytes: None,
            })
        })
        .collect()
}
