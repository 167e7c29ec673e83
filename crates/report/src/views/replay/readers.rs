//! How the bytes of a trace get to the decoder: cases that differ in reader and cache only.
//!
//! The one idea: what waits is a person, so elapsed time from opening the file to the digest leads,
//! and the same replay from memory stands beside it. Readers are cases, not arms: a ratio between
//! them is of medians of different processes, and its ends are the worst of both.

use super::{AGAINST, REPLAY, against, arms, conditions, notes, proof, usage};
use crate::{
    cases::titles,
    document::{Block, Cell, Column, Table},
    entry::Entry,
    numbers::{cpu, elapsed, tally},
    parameters,
    quantity::{Quantity, Unit},
};

/// The parameters that tell readers apart.
const READ: [&str; 2] = ["reader", "cache"];
/// The reader that reads nothing while the clock runs.
pub(crate) const MEMORY: &str = "memory";
/// Readers, in the order of the worklog.
const ORDER: [&str; 5] = [MEMORY, "buffered-8k", "buffered-4m", "mmap", "mmap-populate"];

/// Whether two cases replay the same with the same arms, however it is read.
fn is_same(one: &Entry, other: &Entry) -> bool {
    let rest = |entry: &Entry| {
        let mut case = entry.case().clone();
        case.0.retain(|name, _| !READ.contains(&name.as_str()));
        case
    };
    rest(one) == rest(other)
}

/// Whether a case is one of several that differ in how the trace is read.
pub(super) fn takes(entry: &Entry, all: &[&Entry]) -> bool {
    all.iter().filter(|other| is_same(entry, other)).count() > 1
}

/// A table for each set of readers.
pub(super) fn blocks(all: &[&Entry]) -> Vec<Block> {
    let mut groups: Vec<Vec<&Entry>> = Vec::new();
    for entry in all.iter().copied().filter(|entry| takes(entry, all)) {
        match groups.iter_mut().find(|group| is_same(group[0], entry)) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    let mut blocks = Vec::new();
    let firsts: Vec<&Entry> = groups.iter().map(|group| group[0]).collect();
    for (mut group, title) in groups.into_iter().zip(titles(&firsts, &READ)) {
        let place = |entry: &&Entry| ORDER.iter().position(|r| *r == entry.parameter("reader"));
        group.sort_by_key(|entry| (place(entry), entry.parameter("cache") == "cold"));
        blocks.push(Block::Heading(format!("{title}, by reader")));
        blocks.push(Block::Text(conditions(&group)));
        blocks.push(Block::Table(table(&group, all)));
        blocks.extend(group.iter().flat_map(|entry| notes(entry)));
    }
    blocks
}

fn table(group: &[&Entry], all: &[&Entry]) -> Table {
    let arms_of = |entry: &Entry| -> Vec<String> {
        let measured = entry.measured();
        let arms = measured.map(|measured| arms(entry.case(), measured)).unwrap_or_default();
        arms.into_iter().map(ToOwned::to_owned).collect()
    };
    let several = group.iter().any(|entry| arms_of(entry).len() > 1);
    let mut columns = vec![Column::words("reader"), Column::words("cache").rank(5)];
    if several {
        columns.push(Column::words("arm"));
    }
    columns.extend([
        Column::number("file to digest"),
        Column::number("elapsed").rank(1),
        Column::number("× memory"),
        Column::number("CPU"),
        Column::number("× noop"),
        Column::number("× base"),
        Column::number("user").rank(4),
        Column::number("system").rank(2),
        Column::number("reads").rank(3),
        Column::number("minor faults").rank(3),
        Column::number("major").rank(6),
        Column::number("faults/MiB").rank(5),
        Column::number("proc×rep").rank(7),
        Column::words("witness"),
    ]);
    let mut rows = Vec::new();
    for entry in group {
        for arm in arms_of(entry) {
            let mut row = vec![entry.parameter("reader").into(), entry.parameter("cache").into()];
            if several {
                row.push(arm.clone().into());
            }
            row.extend(cells(entry, &arm, from_memory(entry, &arm, all), several));
            rows.push(row);
        }
    }
    Table::of(columns, rows)
}

/// The elapsed time of the same arm over the same trace, from memory: of the group, or of another
/// case that differs in its arms.
fn from_memory(entry: &Entry, arm: &str, all: &[&Entry]) -> Option<Quantity> {
    let ignored = [&READ[..], &["rounds"]].concat();
    let rest = |entry: &Entry| parameters::without(entry.case(), &ignored);
    let like = |other: &&&Entry| {
        other.parameter("reader") == MEMORY && rest(other) == rest(entry) && other.is_valid()
    };
    let mut found = all.iter().filter(like).collect::<Vec<_>>();
    found.sort_by_key(|other| !is_same(other, entry));
    found.iter().find_map(|other| other.numbers.get(elapsed(arm, REPLAY), "ns_per_op"))
}

fn cells(entry: &Entry, arm: &str, memory: Option<Quantity>, several: bool) -> Vec<Cell> {
    let of = |at, statistic| entry.numbers.get(at, statistic);
    let whole = elapsed(arm, REPLAY);
    let each = of(whole, "ns_per_op");
    let ratio = each.zip(memory).and_then(|(each, memory)| each.over(memory, Unit::Ratio));
    let ratio = match entry.parameter("reader") {
        MEMORY => each.map(|_| Quantity::exact(1.0, Unit::Ratio)),
        _ => ratio,
    };
    let [user, system, reads, minor, major] = usage(entry, arm);
    let beside = |what| against(of(cpu(arm, REPLAY), what).filter(|_| several));
    let per_mib = of(tally(arm, "minor-faults"), "per_mib");
    vec![
        Cell::of(of(whole, "total")).strong(),
        Cell::spread(each),
        against(ratio),
        Cell::of(of(cpu(arm, REPLAY), "ns_per_op")),
        beside(AGAINST[0]),
        beside(AGAINST[1]),
        user,
        system,
        reads,
        minor,
        major,
        Cell::maybe(per_mib.map(|q| pagelab_record::units::display_number(q.value))),
        entry.counts(whole),
        proof(entry, arm),
    ]
}
