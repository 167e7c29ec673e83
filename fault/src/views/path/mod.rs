//! `fault/path`: what a kernel executes for one fault.
//!
//! The one idea: a row is a case, and its number is that of the path that most samples took, which
//! is the same in every boot. Below stand the functions that it consists of, and what other samples
//! did beside it. There is no time here, and so no interval.

mod compared;
mod profile;

use std::collections::BTreeSet;

use pagelab_record::{Signed, vocabulary::path::counter::USER};

use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    Block, Cell, Entry, Grid, Headline, Run, Section, Tone, all_rows, columns, distinct,
    group_thousands, grouped, parameters,
};

pub(crate) use self::compared::COUNTING;
use self::profile::{Class, Profile};

/// The workload that this file reads.
pub(crate) use crate::path::NAME as WORKLOAD;

/// Functions of each case that are shown, and of each of many cases.
const FUNCTIONS: usize = 10;
const FUNCTIONS_OF_MANY: usize = 3;
const MANY: usize = 6;
/// What cases differ in that stand side by side.
const SIDES: [&str; 2] = ["kernel", "group"];
/// What is longer is no heading of a column: the path of an image.
const HEADING: usize = 16;

/// A case with its path; of an invalid record there is none.
type Row<'e> = (&'e Entry, Option<Profile>);

/// The paths, where there are any.
pub(crate) fn sections(run: &Run) -> Vec<Section> {
    let Some(mine) = run.any(WORKLOAD) else { return Vec::new() };
    let shown = columns(&mine, &["kind", "page"]);
    let rows: Vec<Row<'_>> = mine.iter().map(|entry| (*entry, profile(entry))).collect();
    let mut section =
        Section::new("path", "Paths of a fault").with(cases(&rows, &shown)).with(format!(
            "{}Counts of an emulated machine: they hold, and nothing is a time. Instructions of \
             the kernel from the exception to its return, on the path that most samples took; mode \
             is the share that did, named what is on it or in a class with a name, of those \
             that nothing else took part in (disturbed). What an interrupt did is cut out of \
             those that it came into (interrupted), and so is what other tasks did. A repeated \
             string instruction is one instruction; what it stored is under bytes.",
            all_rows(&mine, &shown)
        ));
    section.all(mine.iter().flat_map(|entry| entry.notes()));
    let mut sections = vec![section];
    if rows.iter().any(|(_, profile)| profile.is_some()) {
        let mut functions = Section::new("path-functions", "Functions of a path");
        functions.blocks.extend(functions_of(&rows, &shown));
        sections.push(functions);
    }
    let classes = classes_of(&rows);
    if !classes.is_empty() {
        let table = Grid::<(&Entry, &Profile, &Class)>::new()
            .case(&shown, |(entry, _, _)| entry)
            .words("class", 0, |(_, _, class)| class.name.clone())
            .number("share", 0, |(_, profile, class)| share(class.samples, profile.samples()[0]))
            .number("instructions more", 0, |(_, _, class)| format!("{:+}", class.more))
            .number("every", 0, |(_, _, class)| {
                (class.period > 0).then(|| class.period.to_string())
            })
            .table(classes);
        let section = Section::new("path-classes", "Beside the path");
        sections.push(section.with(table).with(
            "What the other samples did, by the functions that tell it; the middle of each class. \
             Every: samples from one to the next.",
        ));
    }
    sections
}

/// How long the path of a write fault is.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let told = |entry: &&Entry| {
        let profile = profile(entry)?;
        let (kind, page) = (entry.value(parameter::KIND), entry.value(parameter::PAGE));
        let [all, in_mode, _] = profile.samples();
        Some(Headline {
            value: count(profile.instructions()),
            label: format!("instructions of a {kind} fault of {page}, Linux {}", profile.kernel),
            detail: format!("emulated, exact: {} of samples", share(in_mode.signed(), all)),
            tone: Tone::Strong,
        })
    };
    run.rows(WORKLOAD).iter().filter_map(told).take(3).collect()
}

/// What a record says by function, where its numbers may be quoted.
fn profile(entry: &Entry) -> Option<Profile> {
    let measured = entry.measured().filter(|measured| measured.is_valid())?;
    Profile::of(measured)
}

/// Those that have a profile.
fn known<'r>(rows: &'r [Row<'_>]) -> impl Iterator<Item = (&'r Entry, &'r Profile)> {
    rows.iter().filter_map(|(entry, profile)| Some((*entry, profile.as_ref()?)))
}

fn cases(rows: &[Row<'_>], shown: &[String]) -> pagelab_report::Table {
    let of = |says: fn(&Profile) -> String| move |row: &&Row<'_>| row.1.as_ref().map(says);
    let counted = |what: &'static str| {
        move |row: &&Row<'_>| row.1.as_ref().and_then(|p| p.count(what)).map(|n| count(n.signed()))
    };
    Grid::<&Row<'_>>::new()
        .case(shown, |row| row.0)
        .words("Linux", 1, of(|profile| profile.kernel.clone()))
        .number("instructions", 0, move |row| {
            Cell::maybe(of(|profile| count(profile.instructions()))(row)).strong()
        })
        .number("mode", 0, of(|profile| sampled(profile, 1)))
        .number("named", 2, of(|profile| sampled(profile, 2)))
        .number("loads", 0, counted("loads"))
        .number("stores", 0, counted("stores"))
        .number("locked", 0, counted("locked"))
        .number("bytes", 0, counted("bytes"))
        .number("data lines", 3, of(|profile| count(lines(profile, false))))
        .number("text lines", 3, of(|profile| count(lines(profile, true))))
        .number("user", 5, counted(USER))
        .number("interrupted", 4, of(|profile| count(profile.interrupted().signed())))
        .number("disturbed", 4, of(|profile| count(profile.disturbed().signed())))
        .words("witness", 0, |row| match (row.1.is_some(), row.0.claims().len()) {
            (true, claims) => Cell::toned(format!("{claims}/{claims}"), Tone::Good),
            (false, _) => row.0.proof(),
        })
        .table(rows)
}

/// The share of the samples that are of a kind.
fn sampled(profile: &Profile, which: usize) -> String {
    let samples = profile.samples();
    share(samples[which].signed(), samples[0])
}

/// Distinct lines of the kernel's code, or of its data.
fn lines(profile: &Profile, text: bool) -> i64 {
    let mine = profile.lines.iter().filter(|(name, _)| (name == "kernel-text") == text);
    mine.filter(|(name, _)| name != "user").map(|(_, lines)| lines).sum()
}

/// The largest functions, and what is said of them; those of several kernels side by side.
fn functions_of(rows: &[Row<'_>], shown: &[String]) -> [Block; 2] {
    if let Some(table) = side_by_side(rows, shown) {
        let text = format!(
            "Instructions of the function itself: the {FUNCTIONS} largest of each side, and what \
             they take on the other."
        );
        return [Block::Table(table), Block::Text(text)];
    }
    let text = "Own: instructions of the function itself; they add up to the path. With callees: \
                with those of what it called.";
    [Block::Table(listed(rows, shown)), Block::Text(text.to_owned())]
}

fn listed(rows: &[Row<'_>], shown: &[String]) -> pagelab_report::Table {
    let most = if rows.len() > MANY { FUNCTIONS_OF_MANY } else { FUNCTIONS };
    let told = known(rows).flat_map(|(entry, profile)| {
        let largest = profile.largest().into_iter().take(most);
        largest.map(move |(name, function)| (entry, profile, name, function))
    });
    Grid::<(&Entry, &Profile, &str, profile::Function)>::new()
        .case(shown, |(entry, ..)| entry)
        .words("function", 0, |(_, _, name, _)| (*name).to_owned())
        .number("own", 0, |(_, _, _, function)| count(function.own))
        .number("share", 1, |(_, profile, _, function)| {
            share(function.own, profile.instructions().unsigned_abs())
        })
        .number("with callees", 0, |(_, _, _, function)| count(function.all))
        .table(told)
}

/// Own instructions of the largest functions, a column for each kernel.
fn side_by_side(rows: &[Row<'_>], shown: &[String]) -> Option<pagelab_report::Table> {
    let by = *SIDES.iter().find(|by| shown.iter().any(|name| name == *by))?;
    let others: Vec<String> = shown.iter().filter(|name| *name != by).cloned().collect();
    let groups = grouped(known(rows).map(|row| (parameters::without(row.0.case(), &[by]), row)));
    let sides = distinct(known(rows).map(|(entry, _)| entry.value(by)));
    if sides.iter().any(|side| side.len() > HEADING) {
        return None;
    }
    let mut grid = Grid::<(&Entry, &str, Vec<Option<i64>>)>::new()
        .case(&others, |(entry, ..)| entry)
        .words("function", 0, |(_, name, _)| (*name).to_owned());
    for (nth, side) in sides.iter().enumerate() {
        grid = grid.number(side, 0, move |(_, _, own)| own[nth].map(count));
    }
    Some(grid.table(groups.iter().flat_map(|(_, group)| lines_of(group, by, &sides))))
}

/// The largest functions of each side of a group, with what they take on all.
fn lines_of<'e>(
    group: &[(&'e Entry, &'e Profile)],
    by: &str,
    sides: &[&str],
) -> Vec<(&'e Entry, &'e str, Vec<Option<i64>>)> {
    let largest =
        group.iter().flat_map(|(_, profile)| profile.largest().into_iter().take(FUNCTIONS));
    let names: BTreeSet<&str> = largest.map(|(name, _)| name).collect();
    let own = |side: &str, name: &str| {
        let (_, profile) = group.iter().find(|(entry, _)| entry.value(by) == side)?;
        profile.functions.get(name).map(|function| function.own).filter(|own| *own > 0)
    };
    let line = |name| (group[0].0, name, sides.iter().map(|side| own(side, name)).collect());
    let mut lines: Vec<(_, _, Vec<Option<i64>>)> = names.into_iter().map(line).collect();
    lines.sort_by_key(|(_, _, own)| std::cmp::Reverse(own.iter().flatten().max().copied()));
    lines
}

fn classes_of<'r>(rows: &'r [Row<'_>]) -> Vec<(&'r Entry, &'r Profile, &'r Class)> {
    let classes = |(entry, profile): (&'r Entry, &'r Profile)| {
        profile.classes.iter().map(move |class| (entry, profile, class))
    };
    known(rows).flat_map(classes).collect()
}

fn share(part: i64, whole: u64) -> String {
    if whole == 0 {
        "–".to_owned()
    } else {
        format!("{:.1} %", part as f64 * 100.0 / whole as f64)
    }
}

fn count(count: i64) -> String {
    group_thousands(count as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(kernel: &str, stacks: &[(&str, i64)]) -> Entry {
        let record = json!({
            "schema": "pagelab.record/1", "run": "r", "boot": "b", "workload": WORKLOAD,
            "nature": "emulated", "host": { "identity": {} },
            "case": { "kernel": kernel, "kind": "write", "page": "4k" },
            "outcome": { "measured": profile::tests::measured(stacks) },
        });
        Entry::of(&serde_json::from_value(record).unwrap())
    }

    fn rows(sections: &[Section]) -> Vec<String> {
        let section = sections.iter().find(|section| section.id == "path-functions").unwrap();
        let Block::Table(table) = &section.blocks[0] else { panic!("{section:?}") };
        let line = |row: &Vec<Cell>| {
            row.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join("|")
        };
        table.rows.iter().map(line).collect()
    }

    #[test]
    fn functions_of_two_kernels_stand_side_by_side_and_of_images_below_each_other() {
        let of = |kernels: [&str; 2]| {
            let entries = [
                entry(kernels[0], &[("a", 1500), ("a;b", 2)]),
                entry(kernels[1], &[("a", 3), ("a;c", 40)]),
            ];
            let mut run = Run::default();
            run.entries.extend(entries);
            rows(&sections(&run))
        };
        let side_by_side = of(["6.1", "6.12"]);
        let wanted = ["write|4k|a|1 500|3", "write|4k|c|–|40", "write|4k|b|2|–"];
        assert_eq!(side_by_side, wanted);
        assert_eq!(of(["/some/folder/a/bzImage", "/some/folder/b/bzImage"]).len(), 4);
    }
}
