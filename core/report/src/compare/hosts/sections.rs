//! A fleet as a document.
//!
//! The one idea: which hosts may stand beside each other comes first, then how each number lies
//! over them, then who lies apart and in what. Tables are bounded; JSON and CSV have every host.

use std::collections::BTreeSet;

use super::{
    Fleet,
    facts::{Apart, differing},
    left::Left,
    rule::{NUMBERS_MIN, SCORE_MAX, quantile},
};
use crate::{
    compare::sections::share,
    document::{Cell, Column, Document, Headline, Note, Section, Table, Tone},
    entry::Standing,
    grid::Grid,
    quantity::{Quantity, Unit},
};

/// Hosts, groups and facts that are named in a table or a sentence.
const NAMED_MAX: usize = 20;
/// Cells of a host that are named.
const CELLS_MAX: usize = 3;

/// The whole fleet.
pub(super) fn document(fleet: &Fleet) -> Document {
    let several = fleet.groups.len() > 1;
    let mut sections = Vec::new();
    sections.extend(several.then(|| groups(fleet)));
    sections.push(cells(fleet, several));
    sections.extend(outlying(fleet));
    sections.extend(left(fleet));
    Document {
        title: format!("{}, by host", fleet.title),
        facts: facts(fleet),
        alerts: alerts(fleet),
        headlines: headlines(fleet),
        sections,
    }
}

fn named<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    let told = names.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{told} and {more} more") } else { told }
}

fn facts(fleet: &Fleet) -> Vec<(String, String)> {
    let machine = |group: &super::Group| group.machine.clone();
    let mut facts: Vec<(String, String)> = match &fleet.groups[..] {
        [one] => vec![("machines".to_owned(), machine(one))],
        _ => Vec::new(),
    };
    facts.push(("a tie".to_owned(), format!("within {}", share(fleet.delta))));
    facts
}

fn headlines(fleet: &Fleet) -> Vec<Headline> {
    let headline = |value: usize, label: &str, detail: String, tone| Headline {
        value: value.to_string(),
        label: label.to_owned(),
        detail,
        tone,
    };
    let apart = fleet.outlying.len();
    let tone = if apart > 0 { Tone::Warn } else { Tone::Plain };
    let groups = format!("in {} group{}", fleet.groups.len(), s(fleet.groups.len()));
    vec![
        headline(fleet.names.len(), "hosts", groups, Tone::Plain),
        headline(apart, "lie apart", format!("in one of {} cells", fleet.cells.len()), tone),
    ]
}

fn s(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn alerts(fleet: &Fleet) -> Vec<Note> {
    let mut alerts = Vec::new();
    let name = |host: &usize| fleet.names[*host].as_str();
    let alone = fleet.alone();
    if !alone.is_empty() {
        let keys = separating(fleet);
        let text = format!(
            "{} {} like no other host: they differ in {}, and nothing is said of {}",
            named(alone.iter().map(name)),
            if alone.len() == 1 { "is" } else { "are" },
            keys.join(", "),
            if alone.len() == 1 { "it" } else { "them" },
        );
        let cure = format!("--allow {}", keys.join(","));
        alerts.push(Note::bad("NOT COMPARABLE", text, &cure));
    }
    for ((case, standing), left) in &fleet.left {
        if *standing == Standing::Invalid {
            let hosts = named(left.hosts.iter().map(name));
            let text = format!("{} on {hosts}: {}", fleet.shorts[*case], left.why);
            alerts.push(Note::bad("INVALID", text, ""));
        }
    }
    if fleet.groups.iter().all(|group| group.hosts.len() < NUMBERS_MIN) {
        let text = format!("no group has {NUMBERS_MIN} hosts: nobody is said to lie apart");
        alerts.push(Note::warn("few", text, ""));
    }
    alerts
}

/// The facts of identity in which groups differ from the largest.
fn separating(fleet: &Fleet) -> Vec<String> {
    let (first, others) = fleet.groups.split_first().map_or((None, &[][..]), |(f, o)| (Some(f), o));
    let differ = |other: &super::Group| {
        first.map_or_else(Vec::new, |first| differing(&first.identity, &other.identity))
    };
    let keys: BTreeSet<String> = others.iter().flat_map(differ).map(|(key, _)| key).collect();
    keys.into_iter().collect()
}

fn groups(fleet: &Fleet) -> Section {
    let first = &fleet.groups[0];
    let explains = |name: &str, rank| Column::words(name).rank(rank).explains();
    let table = Grid::<(usize, &super::Group)>::new()
        .number("group", 0, |(nth, _)| (nth + 1).to_string())
        .number("hosts", 0, |(_, group)| group.hosts.len().to_string())
        .with(explains("machine", 2), |(_, group)| group.machine.clone())
        .with(explains("which", 1), |(_, group)| {
            named(group.hosts.iter().map(|host| fleet.names[*host].as_str()))
        })
        .with(explains("what makes it one", 0), |(nth, group)| {
            let differs = differing(&first.identity, &group.identity).into_iter();
            let differs: Vec<String> =
                differs.map(|(key, [there, here])| format!("{key}: {here} (1: {there})")).collect();
            if *nth == 0 { "the largest".to_owned() } else { differs.join("; ") }
        })
        .table(fleet.groups.iter().enumerate().take(NAMED_MAX));
    let section = Section::new("groups", "Machines that may be compared").with(table);
    let more = fleet.groups.len().saturating_sub(NAMED_MAX);
    let text = "Hosts of two groups are not the same machine: nothing of one is set against the \
                other unless the facts in which they differ are allowed (--allow).";
    let more =
        if more > 0 { format!(" {more} more groups are in the JSON.") } else { String::new() };
    section.with(format!("{text}{more}"))
}

fn cells(fleet: &Fleet, several: bool) -> Section {
    let at =
        |cell: &super::Cell, q: f64| Some(Quantity::exact(quantile(&cell.numbers(), q), cell.unit));
    let grid = Grid::new()
        .only_if(several, |grid| {
            grid.number("group", 0, |cell: &&super::Cell| (cell.group + 1).to_string())
        })
        .words("case", 0, |cell| fleet.shorts[cell.case].clone())
        .words("metric", 0, |cell| cell.metric.clone())
        .number("hosts", 1, |cell| cell.values.len().to_string())
        .number("min", 5, move |cell| at(cell, 0.0))
        .number("p5", 4, move |cell| at(cell, 0.05))
        .number("p25", 2, move |cell| at(cell, 0.25))
        .number("median", 0, move |cell| Cell::of(at(cell, 0.5)).strong())
        .number("p75", 2, move |cell| at(cell, 0.75))
        .number("p95", 3, move |cell| at(cell, 0.95))
        .number("max", 5, move |cell| at(cell, 1.0))
        .number("spread", 0, |cell| {
            (cell.values.len() > 1).then(|| share(cell.spread.deviation.exp_m1()))
        })
        .number("apart", 0, |cell| {
            let apart = cell.values.iter().filter(|value| value.is_outlier).count();
            (apart > 0).then(|| apart.to_string())
        });
    let section = Section::new("cells", "Over the hosts");
    if fleet.cells.is_empty() {
        return section.with("Nothing was measured.");
    }
    section.with(grid.told(&fleet.cells)).with(format!(
        "A host is one number, the median of its processes; percentiles are of hosts. Spread: the \
         median distance of the logarithms from their median, scaled to a standard deviation. \
         Apart: hosts whose modified z-score (Iglewicz and Hoaglin 1993) of the logarithm is \
         beyond {SCORE_MAX} and that are off by more than a tie, {}. Of hosts that differ by \
         chance alone, normally, one number in 2,150 has such a score.",
        share(fleet.delta)
    ))
}

fn outlying(fleet: &Fleet) -> Option<Section> {
    if fleet.outlying.is_empty() {
        return None;
    }
    let (mut places, mut facts) = (Vec::new(), Vec::new());
    for one in fleet.outlying.iter().take(NAMED_MAX) {
        let name: Cell = fleet.names[one.host].clone().into();
        for (at, value) in one.cells.iter().take(CELLS_MAX) {
            let cell = &fleet.cells[*at];
            let (number, ratio) = (Quantity::exact(value.number, cell.unit), value.ratio);
            places.push(vec![
                name.clone(),
                format!("{} {}", fleet.shorts[cell.case], cell.metric).into(),
                Cell::of(Some(number)),
                Cell::of(Some(Quantity::exact(ratio, Unit::Ratio))).strong(),
            ]);
        }
        let more = one.cells.len().saturating_sub(CELLS_MAX);
        if more > 0 {
            let told = Cell::from(format!("{more} more cell{}", s(more))).quiet();
            places.push(vec![name.clone(), told, Cell::none(), Cell::none()]);
        }
        facts.extend(one.apart.iter().map(|fact| told(name.clone(), fact)));
        if one.apart.is_empty() {
            let nothing = Cell::from("nothing that is recorded").quiet();
            facts.push(vec![name, nothing, Cell::default(), Cell::default()]);
        }
    }
    let columns = ["here", "of the median"].map(Column::number);
    let columns =
        [Column::words("host"), Column::words("where").explains()].into_iter().chain(columns);
    let table = Table { columns: columns.collect(), rows: places };
    let mut section = Section::new("apart", "Hosts that lie apart").with(table);
    let wide = ["here", "most others"].map(|name| Column::words(name).explains());
    let columns = ["host", "fact"].map(Column::words).into_iter().chain(wide).collect();
    section.add(Table { columns, rows: facts });
    let more = fleet.outlying.len().saturating_sub(NAMED_MAX);
    let more =
        if more > 0 { format!(" {more} more hosts are in the JSON.") } else { String::new() };
    Some(section.with(format!(
        "What is different about them is not proven to be the cause: change it on one host, and \
         measure again. Facts that always move are those of the cell in which the host lies \
         farthest off.{more}"
    )))
}

/// `always`, beside `madvise (97 hosts; here on 2 of them)`.
fn told(host: Cell, fact: &Apart) -> Vec<Cell> {
    let some = |text: &str| if text.is_empty() { "nothing".to_owned() } else { text.to_owned() };
    let usual = some(&fact.usual);
    let usual = match fact.others {
        Some([most, 0]) => format!("{usual} ({most} hosts)"),
        Some([most, alike]) => format!("{usual} ({most} hosts; {alike} as here)"),
        None => format!("{usual} (median)"),
    };
    vec![host, fact.key.clone().into(), Cell::toned(some(&fact.here), Tone::Warn), usual.into()]
}

fn left(fleet: &Fleet) -> Option<Section> {
    if fleet.left.is_empty() {
        return None;
    }
    let table = Grid::<(&(usize, Standing), &Left)>::new()
        .words("case", 0, |((case, _), _)| fleet.shorts[*case].clone())
        .words("standing", 0, |((_, standing), _)| {
            let tone = if *standing == Standing::Skipped { Tone::Quiet } else { Tone::Bad };
            Cell::toned(standing.name(), tone)
        })
        .number("hosts", 0, |(_, left)| left.hosts.len().to_string())
        .with(Column::words("which").rank(1).explains(), |(_, left)| {
            named(left.hosts.iter().map(|host| fleet.names[*host].as_str()))
        })
        .with(Column::words("why, by the first of them").explains(), |(_, left)| left.why.clone())
        .table(&fleet.left);
    Some(Section::new("alone", "Not compared").with(table))
}
