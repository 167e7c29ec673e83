//! How the bytes of a trace get to the decoder: cases that differ in reader and cache only.
//!
//! The one idea: what waits is a person, so elapsed time from opening the file to the digest leads,
//! and the same replay from memory stands beside it. Readers are cases, not arms: a ratio between
//! them is of medians of different processes, and its ends are the worst of both.

use pagelab_record::{Case, units::display_number, vocabulary::series};

use super::{AGAINST, REPLAY, SPLIT, against, arms, conditions, count, notes, proof};
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    Cell, Entry, Grid, Quantity, Section, Table, Unit, cpu, elapsed, grouped, parameters, tally,
    titles,
};

/// The parameters that tell readers apart.
const READ: [&str; 2] = ["reader", "cache"];
/// The reader that reads nothing while the clock runs.
pub(crate) const MEMORY: &str = "memory";
/// Readers, in the order of the worklog.
const ORDER: [&str; 5] = [MEMORY, "buffered-8k", "buffered-4m", "mmap", "mmap-populate"];

/// What a case is apart from how its trace is read.
fn rest(entry: &Entry) -> Case {
    let mut case = entry.case().clone();
    case.0.retain(|name, _| !READ.contains(&name.as_str()));
    case
}

/// Whether an entry is one of several that differ in the reader.
pub(super) fn takes(entry: &Entry, all: &[&Entry]) -> bool {
    all.iter().filter(|other| rest(entry) == rest(other)).count() > 1
}

/// Adds a table for each trace that was read in several ways.
pub(super) fn add(section: &mut Section, all: &[&Entry]) {
    let mine = all.iter().copied().filter(|entry| takes(entry, all));
    let groups = grouped(mine.map(|entry| (rest(entry), entry)));
    let firsts: Vec<&Entry> = groups.iter().map(|(_, group)| group[0]).collect();
    for ((_, mut group), title) in groups.into_iter().zip(titles(&firsts, &READ)) {
        let place =
            |entry: &&Entry| ORDER.iter().position(|r| *r == entry.value(parameter::READER));
        group.sort_by_key(|entry| (place(entry), entry.value(parameter::CACHE) == "cold"));
        section.head(format!("{title}, by reader"));
        section.add(conditions(&group));
        section.add(table(&group, all));
        section.all(group.iter().flat_map(|entry| notes(entry)));
    }
}

fn table(group: &[&Entry], all: &[&Entry]) -> Table {
    let arms = |entry: &'_ Entry| -> Vec<String> {
        let arms = entry.measured().map(|measured| arms(entry.case(), measured));
        arms.unwrap_or_default().into_iter().map(ToOwned::to_owned).collect()
    };
    let several = group.iter().any(|entry| arms(entry).len() > 1);
    let each = |(entry, arm): &Row<'_>| entry.numbers.get(elapsed(arm, REPLAY), "ns_per_op");
    let beside = |(entry, arm): &Row<'_>, what| {
        against(entry.numbers.get(cpu(arm, REPLAY), what).filter(|_| several))
    };
    let time = |(entry, arm): &Row<'_>, what| entry.numbers.get(cpu(arm, what), "p50");
    let counted = |(entry, arm): &Row<'_>, what| count(entry, arm, what);
    let rows = group.iter().flat_map(|entry| arms(entry).into_iter().map(|arm| (*entry, arm)));
    Grid::<Row<'_>>::new()
        .words("reader", 0, |(entry, _)| entry.value(parameter::READER).to_owned())
        .words("cache", 5, |(entry, _)| entry.value(parameter::CACHE).to_owned())
        .only_if(several, |grid| grid.words("arm", 0, |(_, arm)| arm.clone()))
        .number("file to digest", 0, |(entry, arm)| {
            Cell::of(entry.numbers.get(elapsed(arm, REPLAY), "total")).strong()
        })
        .number("elapsed", 1, move |row| Cell::spread(each(row)))
        .number("× memory", 0, move |row| against(over_memory(row, each(row), all)))
        .number("CPU", 0, |(entry, arm)| entry.numbers.get(cpu(arm, REPLAY), "ns_per_op"))
        .number("× noop", 0, move |row| beside(row, AGAINST[0]))
        .number("× base", 0, move |row| beside(row, AGAINST[1]))
        .number("user", 4, move |row| time(row, SPLIT[0]))
        .number("system", 2, move |row| time(row, SPLIT[1]))
        .number("reads", 3, move |row| counted(row, series::READ_CALLS))
        .number("minor faults", 3, move |row| counted(row, series::MINOR_FAULTS))
        .number("major", 6, move |row| counted(row, series::MAJOR_FAULTS))
        .number("faults/MiB", 5, |(entry, arm)| {
            let per_mib = entry.numbers.get(tally(arm, series::MINOR_FAULTS), "per_mib");
            per_mib.map(|q| display_number(q.value))
        })
        .number("proc×rep", 7, |(entry, arm)| entry.counts(elapsed(arm, REPLAY)))
        .words("witness", 0, |(entry, arm)| proof(entry, arm))
        .told(rows)
}

/// A case, and one of its arms.
type Row<'a> = (&'a Entry, String);

/// The elapsed time of the same arm over the same trace, from memory: of the group, or of another
/// case that differs in its arms.
fn from_memory(entry: &Entry, arm: &str, all: &[&Entry]) -> Option<Quantity> {
    let ignored = [&READ[..], &["rounds"]].concat();
    let rest = |entry: &Entry| parameters::without(entry.case(), &ignored);
    let like = |other: &&&Entry| {
        other.value(parameter::READER) == MEMORY && rest(other) == rest(entry) && other.is_valid()
    };
    let mut found = all.iter().filter(like).collect::<Vec<_>>();
    found.sort_by_key(|other| self::rest(other) != self::rest(entry));
    found.iter().find_map(|other| other.numbers.get(elapsed(arm, REPLAY), "ns_per_op"))
}

fn over_memory((entry, arm): &Row<'_>, each: Option<Quantity>, all: &[&Entry]) -> Option<Quantity> {
    match entry.value(parameter::READER) {
        MEMORY => each.map(|_| Quantity::exact(1.0, Unit::Ratio)),
        _ => each?.over(from_memory(entry, arm, all)?, Unit::Ratio),
    }
}
