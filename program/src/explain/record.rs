//! What was seen of a program, as a record.
//!
//! The one idea: a record holds counts; what they cost and what would change follow from it and
//! from the prices of the same run when a report is made. Tables are named after what they are
//! about: `fault/KIND/PAGE/PLACE`, `site/NAME`, `mapping/NAME`, `thread/NAME`, `density/PLACE`,
//! `release/CALL by NAME`, `populate`, and where whole stacks were asked for
//! `stack/OUTERMOST;…;FUNCTION`; `walks` has the pages walked to.
//! What makes it true, and what to know about it, is in [`super::proof`].

use std::{cmp::Reverse, collections::BTreeMap};

use pagelab_record::{
    Case, Clock, Measured, Outcome, Record, Series, Table, Unit, units::display_bytes,
    vocabulary::table, walks::Looks,
};

use pagelab_sys::machine::Tree;

use super::{
    blocks::{Density, SIZES, Whole},
    counts::{Part, Seen},
    kind::{Kind, Place},
    parts::{SHOWN, part_tables, row},
    proof, sites,
    symbols::Symbols,
    watch::Watched,
};
use crate::made;

/// A mapping of which so much is written is worth populating.
const DENSE: (u64, u64) = (7, 8);

/// The record of a watched program.
pub fn record(run: &str, case: Case, watched: &Watched) -> Record {
    made::record(run, super::WORKLOAD, case, Outcome::Measured(measured(watched)))
}

/// The record's observations.
pub fn measured(watched: &Watched) -> Measured {
    let mut measured = Measured::default();
    let seen = &watched.seen;
    let mut symbols = Symbols::with(&seen.map_files);
    measured.series = vec![
        series("watched", Clock::Wall, watched.elapsed_ns),
        series("watched", Clock::Cpu, watched.cpu_ns.0 + watched.cpu_ns.1),
    ];
    let faults = seen.groups.iter();
    measured
        .tables
        .extend(faults.map(|(group, count)| row(format!("fault/{group}"), &count.cells())));
    measured.tables.extend(sites::tables(seen, &mut symbols));
    measured.tables.extend(mapping_tables(seen));
    measured.tables.extend(thread_tables(seen));
    measured.tables.extend(density_tables(seen));
    measured.tables.extend(release_tables(seen, &mut symbols));
    measured.tables.push(populate_table(seen));
    measured.tables.extend(folio_tables(seen));
    measured.tables.extend(watched.walks.iter().flatten().map(Looks::table));
    counters(watched, &mut measured);
    proof::claims(watched, &mut measured);
    proof::warnings(watched, &mut measured);
    measured
}

fn series(name: &str, clock: Clock, ns: u64) -> Series {
    Series::new(name, "program", clock, Unit::Ns, vec![ns])
}

fn mapping_tables(seen: &Seen) -> Vec<Table> {
    let mut by_name: BTreeMap<String, Part> = BTreeMap::new();
    for ((place, name, ..), mapped) in &seen.mappings {
        by_name.entry(mapping_name(*place, name, mapped.size)).or_default().add(mapped);
    }
    part_tables(("mapping", SHOWN), by_name, ("others", Part::default()), Some(("length", "bytes")))
}

/// The file, or what kind of memory and how much of it.
fn mapping_name(place: Place, name: &str, length: u64) -> String {
    match name {
        "" | "//anon" => format!("{} {}", place.name(), display_bytes(length as f64)),
        name => name.to_owned(),
    }
}

/// Call sites that gave touched pages back, those of most pages first.
fn release_tables(seen: &Seen, symbols: &mut Symbols) -> Vec<Table> {
    let mut sites: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for ((call, frames), (calls, pages)) in &seen.releases {
        let name = format!("{call} by {}", sites::name(frames, symbols));
        let site = sites.entry(name).or_default();
        *site = (site.0 + calls, site.1 + pages);
    }
    let mut sites: Vec<_> = sites.into_iter().collect();
    sites.sort_by_key(|(_, (_, pages))| Reverse(*pages));
    let one = |(name, (calls, pages)): (String, (u64, u64))| {
        row(
            format!("{}{name}", table::RELEASE),
            &[("calls", "count", calls), ("pages", "count", pages)],
        )
    };
    sites.into_iter().take(SHOWN).map(one).collect()
}

/// Mappings of which nearly everything was written: those that are worth populating. Of a
/// reservation or a stack most would never be used.
fn populate_table(seen: &Seen) -> Table {
    let (mut faults, mut pages, mut untouched) = (0, 0, 0);
    for ((place, ..), Part { size, groups }) in &seen.mappings {
        let writes = groups.iter().filter(|(group, _)| group.kind == Kind::Write);
        let base = writes.clone().filter(|(group, _)| group.page == 4096);
        let bytes: u64 = writes.map(|(group, count)| group.page * count.faults).sum();
        let base: u64 = base.map(|(_, count)| count.faults).sum();
        if matches!(place, Place::Heap | Place::Anonymous)
            && bytes.saturating_mul(DENSE.1) >= size.saturating_mul(DENSE.0)
        {
            (faults, pages) = (faults + base, pages + size / 4096);
            untouched += size.saturating_sub(bytes);
        }
    }
    let cells =
        [("faults", "count", faults), ("pages", "count", pages), ("untouched", "bytes", untouched)];
    row("populate".to_owned(), &cells)
}

fn folio_tables(seen: &Seen) -> impl Iterator<Item = Table> {
    let columns = [("block", "bytes"), ("faults", "count")];
    seen.folios.iter().map(move |(kind, sizes)| {
        let rows = sizes.iter().map(|(bytes, faults)| [*bytes, *faults]);
        Table::new(format!("{}{}", table::FOLIOS, kind.name()), columns, rows)
    })
}

fn thread_tables(seen: &Seen) -> Vec<Table> {
    let crews = seen.crews.iter().map(|(name, crew)| (&**name, crew.clone()));
    part_tables(("thread", SHOWN), crews, ("others", Part::default()), Some(("threads", "count")))
}

fn density_tables(seen: &Seen) -> Vec<Table> {
    let columns = [
        ("block", "bytes"),
        ("blocks", "count"),
        ("faults", "count"),
        ("pages", "count"),
        ("waves", "count"),
        ("unknown", "count"),
        ("denied", "count"),
        ("late", "count"),
        ("late_blocks", "count"),
        ("reads", "count"),
        ("rewrites", "count"),
        ("again", "count"),
    ];
    let table = |name: String, density: &Density| {
        let Density { faults, pages, denied, again, late, late_blocks, .. } = *density;
        let base = [4096, pages, faults, pages, faults, 0, denied, 0, 0, 0, 0, again];
        let mut rows = vec![base];
        rows.extend(SIZES.iter().zip(&density.by_size).map(|(size, whole)| {
            let Whole { blocks, faults, pages, waves, unknown, reads, rewrites } = *whole;
            // What khugepaged could join is of its one size.
            let [late, around] = if size << 12 == 2 << 20 { [late, late_blocks] } else { [0; 2] };
            [size << 12, blocks, faults, pages, waves, unknown, 0, late, around, reads, rewrites, 0]
        }));
        Table::new(name, columns, rows)
    };
    let (mut places, mut parts) = (BTreeMap::<&str, Density>::new(), Vec::new());
    for ((place, owner), density) in &seen.density {
        *places.entry(place.name()).or_default() += density;
        if let Some(owner) = owner.name() {
            parts.push(table(format!("density/{}/{owner}", place.name()), density));
        }
    }
    let whole = places.iter().map(|(place, density)| table(format!("density/{place}"), density));
    whole.chain(parts).collect()
}

fn counters(watched: &Watched, measured: &mut Measured) {
    let Watched { seen, sight, .. } = watched;
    let mut set = |name: &str, value: u64| {
        measured.counters.insert(name.to_owned(), value);
    };
    set("user_ns", watched.cpu_ns.0);
    set("system_ns", watched.cpu_ns.1);
    set("minflt", watched.counted.0);
    set("majflt", watched.counted.1);
    set("minflt_before_exec", watched.before_exec);
    set("sees_perf", u64::from(watched.told.is_ok()));
    set("sees_kernel", u64::from(sight.kernel));
    set("sees_exceptions", u64::from(sight.exceptions));
    set("sees_allocations", u64::from(sight.allocations));
    set("sees_calls", u64::from(sight.calls));
    set("sees_stacks", u64::from(sight.stacks));
    set("cut_short", u64::from(watched.cut_short));
    if let Some(walks) = &watched.walks {
        set("sees_walks", u64::from(walks.is_ok()));
    }
    if let Some(room) = watched.room {
        set("cgroup_room_bytes", room);
    }
    if let Ok([minor, major, _]) = &watched.told {
        for (name, told) in [("minor", minor), ("major", major)] {
            let doubled = if name == "minor" { seen.doubled } else { 0 };
            set(&format!("perf_{name}"), told.counted.saturating_sub(doubled));
            set(&format!("perf_{name}_lost"), told.counted.saturating_sub(told.samples));
        }
        if seen.stretches > 0 {
            set("stretches", seen.stretches);
        }
        set("unhandled_exceptions", seen.unhandled);
        set("processes", seen.processes);
        set("faulting_threads", seen.threads);
    }
    if let Some(ended) = watched.ended {
        match (ended.status.code(), ended.signal()) {
            (Some(code), _) => set("exit_code", u64::from(code.unsigned_abs())),
            (None, Some(signal)) => {
                set("exit_signal", u64::from(signal.unsigned_abs()));
                if let Some(place) = seen.ended_in {
                    set(&format!("exit_fault_in_{}", place.name()), 1);
                    let pool = |name| Tree::machine().field_number("proc/meminfo", name);
                    set("hugetlb_pages", pool("HugePages_Total").unwrap_or(0));
                    set("hugetlb_free", pool("HugePages_Free").unwrap_or(0));
                }
            }
            (None, None) => (),
        }
    }
}
