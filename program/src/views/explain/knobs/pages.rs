//! What larger pages would make of memory: transparent ones, malloc's, and shared memory's.
//!
//! The one idea: a size takes as many faults as blocks of it would have come when they were first
//! touched, each at the price of that size; what lay in no such block is not promised.

use std::fmt::Write as _;

use pagelab_record::{
    Measured, Table,
    advice::Setting,
    units::{display_bytes, format_bytes},
    vocabulary::knob,
};

use super::{
    super::{
        Group,
        priced::LARGE,
        prices::{Prices, difference},
        whole::{Whole, cell_of},
    },
    Advice, Knob, PLACES, first_writes, madvise, thp, thp_file,
};
use pagelab_report::{Quantity, Unit};

/// Memory that malloc hands out.
const MALLOCS: [&str; 2] = ["heap", "anonymous"];

/// What pages of other sizes would make of what came as base pages.
pub(super) fn larger_pages(measured: &Measured, groups: &[Group], prices: &Prices) -> Vec<Knob> {
    let Some(base) = prices.get("write", "4k") else { return Vec::new() };
    let mut knobs = Vec::new();
    for shift in 14..=21_u32 {
        let size = 1_u64 << shift;
        let page = format_bytes(size);
        let Some(price) = prices.get("write", &page) else { continue };
        let mut all = Whole::default();
        let mut tables = 0.0;
        for place in PLACES {
            let Some(table) = touched(measured, place) else { continue };
            let Some(whole) = Whole::of(table, size) else { continue };
            let group = first_writes(groups, place);
            if let Some(group) = group.filter(|_| whole.all > 0.0 && shift == 21) {
                tables += group.tables * whole.faults / whole.all;
            }
            all.add(&whole, group.map_or(1.0, |group| whole.scale(group)));
        }
        if all.waves <= 0.0 && all.unknown <= 0.0 {
            continue;
        }
        let now = all.now(base, prices);
        let now = base.table.map_or(now, |table| now.plus(table.times(tables, Unit::Ns)));
        let mut saved = difference(now, price.fault.times(all.waves, Unit::Ns));
        // What may have been among them, or not, bounds the saving.
        saved.high += base.fault.high * all.unknown;
        let bytes = all.blocks * size as f64 - all.pages * 4096.0;
        let room = measured.counters.get("cgroup_room_bytes").map(|room| *room as f64);
        let short = room.filter(|room| *room < bytes);
        let at_most = all.taken() <= 0.0 || short.is_some();
        if at_most {
            saved = Quantity { value: saved.high, low: 0.0, ..saved };
        }
        let advice = if shift == 21 { thp() } else { mthp(size, &page) };
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
        let knob = Knob::new(knob::page(size), advice, change, saved);
        knobs.push(Knob { given_back, at_most, bytes: Some(bytes), ..knob });
    }
    knobs
}

/// How folios of a size between the base page and 2 MiB are had.
fn mthp(size: u64, page: &str) -> Advice {
    let kib = size >> 10;
    let enabled = thp_file(&format!("hugepages-{kib}kB/enabled"), "madvise");
    Advice::of(&format!("mthp-{kib}k"), &format!("mTHP {page}"), [vec![enabled, madvise()]])
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
    measured.table(&format!("density/{place}"))
}

/// What pages of 2 MiB would make of shared memory.
pub(super) fn shared(measured: &Measured, groups: &[Group], prices: &Prices) -> Option<Knob> {
    let base = prices.get("shmem-write", "4k")?;
    // Where it was not measured, what clearing as much costs is the most that is known.
    let measured_2m = prices.get("shmem-write", "2m");
    let large = measured_2m.or(prices.get("write", "2m"))?;
    let group = groups.iter().find(|group| group.parts() == ["shmem-write", "4k", "shmem"])?;
    let whole = Whole::of(touched(measured, "shmem")?, LARGE)?;
    let mut all = Whole::default();
    all.add(&whole, whole.scale(group));
    let now = base.fault.times(all.faults, Unit::Ns);
    let mut saved = difference(now, large.fault.times(all.waves, Unit::Ns));
    saved.high += base.fault.high * all.unknown;
    let at_most = measured_2m.is_none();
    if at_most {
        saved = Quantity { value: saved.high, low: 0.0, ..saved };
    }
    let file = |value| thp_file("shmem_enabled", value);
    let ways = [vec![file("always")], vec![file("advise"), madvise()]];
    let advice = Advice::of(knob::SHMEM_THP, "THP for shared memory", ways);
    let change = format!("{:.0} faults become {:.0} of 2m", all.faults, all.waves);
    let bytes = Some(all.blocks * LARGE as f64 - all.pages * 4096.0);
    let knob = Knob { at_most, bytes, ..Knob::new(knob::SHMEM_THP, advice, change, saved) };
    (all.faults > 0.0).then_some(knob)
}

/// What glibc's malloc makes of it where it asks for huge pages: the heap grows by whole ones, so
/// that what came page by page comes whole, and what it maps for itself is advised. Of mappings
/// whose owner nobody knows, at least nothing is saved.
pub(super) fn malloc_thp(measured: &Measured, groups: &[Group], prices: &Prices) -> Option<Knob> {
    let (base, huge) = (prices.get("write", "4k")?, prices.get("write", "2m")?);
    let (mut sum, mut sure) = (Whole::default(), Whole::default());
    let mut saved = None;
    for (place, group) in
        MALLOCS.iter().filter_map(|place| Some((*place, first_writes(groups, place)?)))
    {
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
    let way = vec![Setting::environment("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")];
    let advice = Advice::of(knob::MALLOC_THP, "malloc with THP (glibc 2.35)", [way]);
    let bytes = Some(sum.blocks * LARGE as f64 - sum.pages * 4096.0);
    Some(Knob { given_back, bytes, ..Knob::new(knob::MALLOC_THP, advice, change, saved?) })
}

/// Of the faults that pages of 2 MiB would have brought in anonymous mappings, the shares that
/// surely and that perhaps were in malloc's.
pub(super) fn mallocs(measured: &Measured) -> [f64; 2] {
    let faults = |of: &str| {
        let table = touched(measured, of).and_then(|table| Whole::of(table, LARGE));
        table.map_or(0.0, |whole| whole.faults)
    };
    let [all, sure, other] = ["", "/malloc", "/other"].map(|of| faults(&format!("anonymous{of}")));
    if all > 0.0 { [sure / all, 1.0 - other / all] } else { [0.0, 1.0] }
}
