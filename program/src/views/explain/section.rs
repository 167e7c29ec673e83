//! The tables of `explain/program`.
//!
//! The one idea: first what it comes to, then by what (kinds), from where (call sites, mappings),
//! then what would help; what is not known stands where it matters.

use pagelab_record::{Measured, Table as Counts, units};

use super::{
    ALL, ARM, Group, WORKLOAD, cell, groups,
    knobs::{Knob, knobs},
    notes::{crowded, folios, held, larger, made_writable, unpriced, waited},
    prices::{Prices, not_below_0},
    total, walks,
};
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    At, Block, Cell, Entry, Grid, Key, Lanes, Quantity, Run, Section, Table, Time, Tone, Unit,
    chart::Row, elapsed, group_thousands, hue, numbers,
};

/// Call sites and mappings that a table shows.
const ROWS: usize = 12;

/// What was seen of the programs of a run, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let entries = &run.entries;
    let mine = run.any(WORKLOAD)?;
    let prices = Prices::of(entries);
    let mut section = Section::new("explain", "What faults cost this program");
    for entry in mine {
        section.blocks.push(Block::Heading(title(entry)));
        section.all(entry.notes());
        if let Some(measured) = entry.measured().filter(|_| entry.is_valid()) {
            section.all(blocks(entries, entry, measured, &prices));
        }
    }
    Some(section)
}

pub(super) fn title(entry: &Entry) -> String {
    match (entry.case().get(parameter::PROGRAM), entry.case().get(parameter::PID)) {
        (Some(program), _) => program.to_owned(),
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => entry.case().to_string(),
    }
}

fn blocks(entries: &[Entry], entry: &Entry, measured: &Measured, prices: &Prices) -> Vec<Block> {
    let groups = groups(measured, prices);
    let mut blocks = Vec::new();
    blocks.push(Block::Text(summary(entry, measured, &groups)));
    let knobs = knobs(measured, &groups, prices);
    let busy = entry.numbers.get(At { arm: ARM, series: "watched", time: Time::Cpu }, "p50");
    if groups.is_empty() {
        blocks.extend(walks::blocks(measured, prices));
        if !knobs.is_empty() {
            blocks.push(Block::Heading("What would help".to_owned()));
            blocks.push(Block::Table(knobs_table(&knobs, busy)));
        }
        blocks.extend(walks::not_asked(measured, prices));
        return blocks;
    }
    blocks.extend(drawings(measured, &groups, &knobs));
    blocks.push(Block::Table(kinds_table(&groups)));
    blocks.extend(unpriced(entries, &groups));
    blocks.extend(waited(&groups));
    blocks.extend(crowded(&groups));
    blocks.extend(folios(measured, &groups).map(Block::Text));
    blocks.extend(made_writable(measured).map(Block::Text));
    let several = measured.tables.iter().filter(|table| table.name.starts_with("thread/")).count()
        > 1
        || measured.counters.get("faulting_threads").is_some_and(|threads| *threads > 1);
    let mut kinds = vec![("site/", "Call sites", "call site"), ("mapping/", "Mappings", "mapping")];
    if several {
        kinds.push(("thread/", "Threads", "name"));
    }
    for (prefix, heading, what) in kinds {
        blocks.push(Block::Heading(heading.to_owned()));
        blocks.push(Block::Table(places_table(&places(measured, &groups, prefix), what)));
    }
    blocks.extend(walks::blocks(measured, prices));
    let larger = larger(entry, measured);
    if !knobs.is_empty() || !larger.is_empty() {
        blocks.push(Block::Heading("What would help".to_owned()));
    }
    if !knobs.is_empty() {
        blocks.push(Block::Table(knobs_table(&knobs, busy)));
    }
    blocks.extend(held(measured, &knobs));
    blocks.extend(larger.into_iter().map(Block::Text));
    blocks.push(Block::Text(
        "Each: the mean of measured faults that nothing interrupted, less the same touch of a \
         present page; first touches of pages that the host backs and that are not in a cache of \
         this CPU. A program that reuses what it just freed pays less, one whose memory the host \
         has taken back pays more. As watched: from the exception to its end, watching included. \
         Knobs do not add up: they are about the same faults. enabled: the file below \
         /sys/kernel/mm/transparent_hugepage, for mTHP below its folder hugepages-SIZE. Memory: \
         what would be taken and nobody touched."
            .to_owned(),
    ));
    blocks.extend(walks::not_asked(measured, prices));
    blocks
}

/// `SIGBUS` on x86, ARM and RISC-V.
const SIGBUS: u64 = 7;

/// A signal by the name that people know it by.
fn signal_name(signal: u64) -> String {
    let known = [(2, "SIGINT"), (4, "SIGILL"), (6, "SIGABRT"), (SIGBUS, "SIGBUS"), (8, "SIGFPE")];
    let more = [(9, "SIGKILL"), (11, "SIGSEGV"), (13, "SIGPIPE"), (15, "SIGTERM")];
    let found = known.into_iter().chain(more).find(|(number, _)| *number == signal);
    found.map_or_else(|| format!("Signal {signal}"), |(_, name)| name.to_owned())
}

/// The sentences that it comes to.
fn summary(entry: &Entry, measured: &Measured, groups: &[Group]) -> String {
    let counter = |name: &str| measured.counter(name);
    let of = |time, series| entry.numbers.get(At { arm: ARM, series, time }, "p50");
    let shown = |time| of(time, "watched").map(Quantity::display).unwrap_or_default();
    let mut text =
        format!("Watched for {}, {} of it on the CPU.", shown(Time::Elapsed), shown(Time::Cpu));
    match (counter("exit_code"), counter("exit_signal")) {
        (Some(code), _) if code != 0 => text.push_str(&format!(" It exited with {code}.")),
        (_, Some(signal)) => text.push_str(&format!(" {} ended it.", signal_name(signal))),
        _ => (),
    }
    if counter("exit_signal") == Some(SIGBUS) && counter("exit_fault_in_hugetlb").is_some() {
        text.push_str(&format!(
            " It touched memory of the hugetlb pool when the pool had no page for it ({} of {} \
             pages free now): set more aside (vm.nr_hugepages), or map without MAP_NORESERVE to \
             be refused earlier.",
            counter("hugetlb_free").unwrap_or(0),
            counter("hugetlb_pages").unwrap_or(0)
        ));
    }
    let count = |n: f64| group_thousands(n);
    if counter("sees_perf") != Some(1) {
        let (minor, major) = (counter("minflt").unwrap_or(0), counter("majflt").unwrap_or(0));
        text.push_str(&format!(
            " It took {} minor and {} major faults; nothing more is known of them, so they have \
             no price.",
            count(minor as f64),
            count(major as f64)
        ));
        return text;
    }
    let faults: f64 = groups.iter().map(|group| group.faults).sum();
    text.push_str(&format!(" {} faults", count(faults)));
    if let Some(cost) = total(groups) {
        text.push_str(&format!(" took {} of its time", cost.display_with_spread()));
        if let Some(share) = entry.numbers.get(elapsed(ARM, ALL), "share_of_cpu") {
            text.push_str(&format!(", {} of its CPU time while watched", share.display()));
        }
    }
    text.push('.');
    let known =
        numbers::total(["perf_minor", "minflt_before_exec"].into_iter().filter_map(counter));
    if let Some(inside) = counter("minflt").and_then(|all| all.checked_sub(known))
        && inside > 0
        && counter("processes") == Some(1)
    {
        text.push_str(&format!(
            " {} more pages were brought in inside calls (execve, populating calls), without a \
             fault of their own.",
            count(inside as f64)
        ));
    }
    text
}

fn kinds_table(groups: &[Group]) -> Table {
    let all = total(groups).filter(|all| all.value > 0.0);
    let share = |part: f64, whole: f64| Quantity::exact(part / whole, Unit::Share).display();
    let crowded = groups.iter().any(|group| group.crowded > 0.0);
    Grid::<&Group>::new()
        .words("kind", 0, |group| group.parts()[0].to_owned())
        .words("page", 0, |group| group.parts()[1].to_owned())
        .words("place", 0, |group| group.parts()[2].to_owned())
        .number("faults", 0, |group| group_thousands(group.faults))
        .number("each", 0, |group| group.each())
        .number("time in faults", 0, |group| Cell::spread(group.cost).strong())
        .number("share", 1, |group| {
            group.cost.zip(all).map(|(cost, all)| share(cost.value, all.value))
        })
        .number("as watched", 3, |group| group.seen.map(units::display_ns))
        .only_if(crowded, |grid| {
            grid.number("at once", 2, |group| {
                (group.crowded > 0.0).then(|| share(group.crowded, group.faults))
            })
        })
        .table(groups)
}

/// Faults of a call site, a mapping, a thread or a stack, and what they cost.
pub(super) struct Place {
    pub(super) name: String,
    faults: f64,
    pub(super) cost: Option<Quantity>,
    pub(super) seen: f64,
    mostly: String,
}

/// The dearest places of a kind first, as many as a table shows.
fn places(measured: &Measured, groups: &[Group], prefix: &str) -> Vec<Place> {
    let mut places = all_places(measured, groups, prefix);
    places.truncate(ROWS);
    places
}

/// Every place of a kind, the dearest first.
pub(super) fn all_places(measured: &Measured, groups: &[Group], prefix: &str) -> Vec<Place> {
    let of = |table: &'_ Counts| -> Option<(f64, Option<Quantity>, String)> {
        let mine: Vec<(&Group, f64)> =
            groups.iter().filter_map(|group| Some((group, cell(table, &group.name)?))).collect();
        let cost = |(group, faults): &(&Group, f64)| Some(group.each()?.times(*faults, Unit::Ns));
        let most = mine.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let [kind, page, _] = most.0.parts();
        let faults = mine.iter().map(|(_, faults)| faults).sum();
        let cost = mine.iter().filter_map(cost).reduce(Quantity::plus);
        Some((faults, cost, format!("{kind} {page}")))
    };
    let mut places: Vec<Place> = measured
        .tables
        .iter()
        .filter_map(|table| {
            let name = table.name.strip_prefix(prefix)?;
            let (faults, cost, mostly) = of(table)?;
            let seen = cell(table, "seen_ns").unwrap_or(0.0);
            let name = match cell(table, "threads") {
                Some(threads) if threads > 1.0 => format!("{name} ×{threads:.0}"),
                _ => name.to_owned(),
            };
            Some(Place { name, faults, cost, seen, mostly })
        })
        .collect();
    let rank = |place: &Place| place.cost.map_or(0.0, |cost| cost.value);
    places.sort_by(|a, b| {
        rank(b).total_cmp(&rank(a)).then(b.seen.total_cmp(&a.seen)).then(a.name.cmp(&b.name))
    });
    places
}

fn places_table(places: &[Place], what: &str) -> Table {
    Grid::<&Place>::new()
        .words(what, 0, |place| place.name.clone())
        .words("mostly", 1, |place| place.mostly.clone())
        .number("faults", 0, |place| group_thousands(place.faults))
        .number("time in faults", 0, |place| Cell::of(place.cost).strong())
        .number("as watched", 2, |place| (place.seen > 0.0).then(|| units::display_ns(place.seen)))
        .table(places)
}

/// Where the time in faults goes, and what each change would save of it.
fn drawings(measured: &Measured, groups: &[Group], knobs: &[Knob]) -> Vec<Block> {
    let bars = |title: &str, caption: &str, rows: Vec<Row>| {
        let keys = vec![
            Key::new("estimate", Some(hue(0))),
            Key::new("upper bound", Some(hue(0))).hollow(true),
        ];
        let bound = total(groups).map(|all| (all, "all faults"));
        Lanes::bars([title, caption], keys, rows, bound).shown().map(Block::Lanes)
    };
    let kind = |group: &Group| Some((group.parts().join(" "), vec![(0, group.cost?)]));
    let place = |place: Place| Some((place.name, vec![(0, place.cost?)]));
    let knob = |knob: &Knob| {
        // Of faults alone: all of them are the bound.
        let saved = not_below_0(knob.saved);
        (saved.value > 0.0).then(|| (knob.advice.how(), vec![(usize::from(knob.at_most), saved)]))
    };
    let mappings = places(measured, groups, "mapping/").into_iter().filter_map(place);
    let whiskers = "Whiskers are intervals.";
    let drawn = [
        bars(
            "Time in faults, by kind",
            whiskers,
            groups.iter().filter_map(kind).take(ROWS).collect(),
        ),
        bars("Time in faults, by mapping", whiskers, mappings.collect()),
        bars(
            "What each change would save of faults",
            "They are about the same faults and do not add up.",
            knobs.iter().filter_map(knob).collect(),
        ),
    ];
    drawn.into_iter().flatten().collect()
}

fn knobs_table(knobs: &[Knob], busy: Option<Quantity>) -> Table {
    let bound = |knob: &Knob| if knob.at_most { "at most " } else { "" };
    let given_back = knobs.iter().any(|knob| knob.given_back.is_some());
    let translated = knobs.iter().any(|knob| knob.translation.is_some());
    let several = given_back || translated;
    let told = |interval: String| Some(interval).filter(|text| !text.is_empty());
    Grid::<&Knob>::new()
        .words("knob", 0, |knob| knob.advice.how())
        .words("what changes", 1, |knob| knob.change.clone())
        .words("outcome", 0, |knob| knob.outcome().name().to_owned())
        .number(if several { "saves of faults" } else { "saves" }, 0, |knob| {
            Cell::toned(format!("{}{}", bound(knob), knob.saved.display()), Tone::Strong)
        })
        .only_if(given_back, |grid| {
            grid.number("of giving back", 1, |knob| {
                Cell::maybe(knob.given_back.map(Quantity::display_with_spread)).strong()
            })
        })
        .only_if(translated, |grid| {
            grid.number("of translation", 0, |knob| {
                Cell::maybe(knob.translation.map(Quantity::display_with_spread)).strong()
            })
        })
        .only_if(several, |grid| {
            grid.number("in all", 0, |knob| {
                Cell::toned(format!("{}{}", bound(knob), knob.in_all().display()), Tone::Strong)
            })
        })
        .number("of its CPU", 3, |knob| {
            let share = knob.in_all().over(busy?, Unit::Share)?;
            Some(format!("{}{}", bound(knob), share.display()))
        })
        .number("interval", 2, |knob| told(knob.in_all().told_interval()))
        .number("memory", 0, |knob| {
            knob.bytes.map(|bytes| format!("+{}", units::display_bytes(bytes)))
        })
        .table(knobs)
}
