//! A comparison as a document.
//!
//! The one idea: the verdicts are counted first, then every cell has its row, the gravest workload
//! by workload; what was not compared and which facts differ follow, each with what to do about it.

use std::collections::BTreeMap;

use pagelab_record::{
    Record,
    units::display_bytes,
    verdict::{PROCESSES_MAX, Position, Ratio, Verdict},
};

use super::{
    Comparison, FLOOR_MAX, busy,
    counts::Heading,
    facts::{Class, Difference},
    headings::headings,
    judged::{Against, Cell as Compared},
    pairs::{self, Left},
    units,
};
use crate::{
    Views,
    document::{Cell, Column, Document, Headline, Note, Section, Tone},
    grid::Grid,
    quantity::{Quantity, Unit},
};

/// The whole comparison; a page also shows what always moves.
pub(super) fn document(comparison: &Comparison<'_>, for_page: bool) -> Document {
    let Comparison { base_name, against, .. } = comparison;
    let others: Vec<&str> = against.iter().map(|other| other.name.as_str()).collect();
    let mut sections = Vec::new();
    for (nth, other) in against.iter().enumerate() {
        let names = [base_name.as_str(), &other.name];
        let number = (against.len() > 1).then_some(nth + 1);
        let heading = Heading { names, number, for_page };
        let (id, title) = (|name: &str| heading.id(name), |text: &str| heading.title(text));
        sections.extend(other.counts.iter().flat_map(|(_, counts)| counts.sections(&heading)));
        if !other.cells.is_empty() || other.is_empty() {
            sections.push(cells(other, names, id("cells"), &title("Cells")));
        }
        sections.extend(left(other, &comparison.views, id("alone"), &title("Not compared")));
        let what = [&*id("facts"), &title("What differs")];
        sections.extend(differences(comparison, other, what, for_page));
    }
    Document {
        title: format!("{base_name} → {}", others.join(", ")),
        facts: facts(comparison),
        alerts: alerts(comparison),
        headlines: headlines(comparison),
        sections,
    }
}

/// The machine in one line: `AMD EPYC, 2 CPUs, 23.5 GiB, kvm, Linux 6.18.44`.
pub(super) fn machine(record: &Record) -> String {
    let fact = |name: &str| record.host.identity.get(name).filter(|value| !value.is_null());
    let text = |name: &str| Some(fact(name)?.as_str()?.to_owned());
    let bytes = fact("memory_bytes").and_then(serde_json::Value::as_f64).map(display_bytes);
    let cpus = fact("cpu_count").map(|count| format!("{count} CPUs"));
    let kernel = text("kernel_release").map(|release| format!("Linux {release}"));
    let parts = [text("cpu_model"), cpus, bytes, text("hypervisor"), kernel];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Records of both sides of the first pair.
pub(super) fn example<'c>(comparison: &'c Comparison<'_>) -> Option<[&'c Record; 2]> {
    let mut cells = comparison.cells().map(|cell| [cell.pair.a, cell.pair.b]);
    cells.next().or_else(|| comparison.counts().find_map(|(_, counts)| counts.example()))
}

fn facts(comparison: &Comparison<'_>) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    if let Some([a, b]) = example(comparison) {
        let [here, there] = [machine(a), machine(b)];
        if here == there {
            facts.push(("machine".to_owned(), here));
        } else {
            let names = [&comparison.base_name, &comparison.against[0].name];
            let told = names.into_iter().zip([here, there]).filter(|(_, told)| !told.is_empty());
            facts.extend(told.map(|(name, told)| (name.clone(), told)));
        }
    }
    if comparison.cells().next().is_some() {
        facts.push(("a tie".to_owned(), tie(comparison)));
    }
    let positions = comparison.against.iter().filter_map(|against| against.position.as_ref());
    facts.extend(positions.map(|told| ("the order".to_owned(), position(told))));
    facts
}

/// What coming second in a block did.
pub(super) fn position(position: &Position) -> String {
    let Position { value, p, blocks } = position;
    let more = if *value < 1.0 { "less" } else { "more" };
    let share = share((value - 1.0).abs());
    let said = if position.is_seen() { "it has an effect" } else { "no more than chance gives" };
    let p = chance(*p);
    let p = if p.starts_with('<') { format!("p {p}") } else { format!("p = {p}") };
    format!("who comes second in a block takes {share} {more}: {said} ({p}, {blocks} blocks)")
}

/// What counts as no difference, and why.
fn tie(comparison: &Comparison<'_>) -> String {
    let delta = share(comparison.delta);
    match comparison.floor {
        Some(floor) if floor >= comparison.delta => {
            format!("within {delta}: two runs of the same thing differ by as much here")
        }
        Some(floor) => {
            format!("within {delta}; two runs of the same thing differ by {} here", share(floor))
        }
        None => format!("within {delta}"),
    }
}

pub(super) fn share(value: f64) -> String {
    format!("{:.1} %", value * 100.0)
}

fn alerts(comparison: &Comparison<'_>) -> Vec<Note> {
    let mut alerts = Vec::new();
    for (name, damage) in &comparison.notes {
        let text = format!(
            "line {} of {name} cannot be read ({}); it ends there",
            damage.line, damage.why
        );
        alerts.push(Note::warn("damaged", text, ""));
    }
    if let Some(floor) = comparison.floor.filter(|floor| *floor > FLOOR_MAX) {
        let text = format!(
            "two runs of the same thing differ by {} on this host, which is more than {}: what is \
             smaller cannot be seen here",
            share(floor),
            share(FLOOR_MAX)
        );
        alerts.push(Note::warn("noisy", text, "measure on a quiet machine, with more --forks"));
    }
    for against in &comparison.against {
        let blocking = blocking(comparison, against);
        if !blocking.is_empty() {
            let text = format!(
                "{} differs from {} in {}: nothing is said of cells that this concerns",
                against.name,
                comparison.base_name,
                blocking.join(", ")
            );
            let cure = format!("--allow {}", blocking.join(","));
            alerts.push(Note::bad("NOT COMPARABLE", text, &cure));
        }
        if against.is_empty() {
            let why = if against.all_skipped {
                "every case that both have was skipped"
            } else {
                "no case was measured in both"
            };
            let text = format!("{} and {}: {why}", comparison.base_name, against.name);
            alerts.push(Note::warn("nothing", text, ""));
        }
        alerts.extend(units::alerts(against));
        if against.position.as_ref().is_some_and(Position::is_seen) {
            let text = "who comes second in a block is not as fast as who comes first: the order \
                        is balanced, so that no ratio has it, but a process leaves something";
            alerts.push(Note::warn("the order", text.to_owned(), ""));
        }
        let open = against.cells.iter().filter(|cell| cell.pair.cell.is_some() && cell.is_open());
        let open = open.count();
        if open > 0 {
            let text = format!("{open} of {} cells stay undecided", against.cells.len());
            alerts.push(Note::warn(
                "undecided",
                text,
                "more blocks: a larger --budget, or --forks",
            ));
        }
    }
    alerts
}

/// The facts that forbid a comparison.
fn blocking(comparison: &Comparison<'_>, against: &Against<'_>) -> Vec<String> {
    let blocking =
        against.differences.iter().filter(|difference| !difference.is_allowed(&comparison.allow));
    let mut keys: Vec<String> = blocking.map(|difference| difference.key.clone()).collect();
    keys.dedup();
    keys
}

fn headlines(comparison: &Comparison<'_>) -> Vec<Headline> {
    let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
    for cell in comparison.against.iter().flat_map(|against| &against.cells) {
        *counts.entry(cell.verdict).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    let headline = |(verdict, count): (Verdict, usize)| Headline {
        value: count.to_string(),
        label: verdict.name().to_owned(),
        detail: format!("of {all} cells"),
        tone: tone(verdict),
    };
    let counted = comparison.counts().flat_map(|(_, counts)| counts.headlines());
    counted.chain(counts.into_iter().map(headline)).collect()
}

pub(super) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Invalid | Verdict::NotComparable | Verdict::Slower => Tone::Bad,
        Verdict::Faster => Tone::Good,
        Verdict::Inconclusive => Tone::Warn,
        Verdict::Same => Tone::Plain,
    }
}

/// `+5.1 %`; what is no small change is a factor already.
fn change(ratio: f64) -> Option<String> {
    (0.5..2.0).contains(&ratio).then(|| format!("{:+.1} %", (ratio - 1.0) * 100.0))
}

/// `1.042–1.060`; in parentheses where it is no 95 % interval.
fn interval(ratio: &Ratio) -> String {
    let span = format!("{:.3}–{:.3}", ratio.low, ratio.high);
    match ratio.interval() {
        Some(_) => span,
        None if ratio.coverage > 0.0 => format!("({span})"),
        None => String::new(),
    }
}

fn chance(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

fn cells(against: &Against<'_>, names: [&str; 2], id: String, title: &str) -> Section {
    let [a, b] = headings(names);
    // A reason is no number, but where nobody has one there is no column either.
    let because = Column { words: false, ..Column::words("because") }.explains();
    let counts = |cell: &&Compared<'_>| {
        let [a, b] = cell.counts();
        (a + b > 0).then(|| format!("{a}+{b}"))
    };
    let grid = Grid::new()
        .words("case", 0, |cell: &&Compared<'_>| cell.short.clone())
        .words("metric", 0, |cell| cell.metric())
        .number(&a, 2, |cell| side(cell, 0))
        .number(&b, 2, |cell| side(cell, 1))
        .number("ratio", 0, |cell| {
            let ratio = cell.ratio.as_ref();
            Cell::of(ratio.map(|ratio| Quantity::exact(ratio.value, Unit::Ratio))).strong()
        })
        .number("change", 4, |cell| cell.ratio.as_ref().and_then(|ratio| change(ratio.value)))
        .number("95 %", 0, |cell| {
            cell.ratio.as_ref().map(interval).filter(|interval| !interval.is_empty())
        })
        .number("p", 3, |cell| Cell::maybe(cell.ratio.map(|_| chance(cell.p))).quiet())
        .number("n", 1, move |cell| Cell::maybe(counts(cell)).quiet())
        .words("verdict", 0, |cell| Cell::toned(cell.verdict.name(), tone(cell.verdict)))
        .number("to decide", 0, |cell| to_decide(cell))
        .with(because, |cell| Cell::toned(cell.why.clone(), Tone::Quiet));
    let mut section = Section::new(id, title);
    if against.cells.is_empty() {
        return section.with("There is none.");
    }
    section.add(grid.told(&against.cells));
    let in_blocks = against.cells.iter().any(|cell| cell.pair.cell.is_some());
    let (quotients, family) = if in_blocks {
        let family = "for all cells of the run and all looks at them together";
        ("the median of the quotients of the two processes of each block", family)
    } else {
        let quotients =
            "the median of all quotients of a process of the one and a process of the other";
        (quotients, "for the cells of a workload together")
    };
    let is_busy = |cell: &Compared<'_>| cell.ratio.is_some() && !cell.why.is_empty();
    if against.cells.iter().any(is_busy) {
        section.add(busy::NOTE.to_owned());
    }
    section.with(format!(
        "Ratio: {quotients}, with its 95 % interval (in parentheses what was seen, where there are \
         too few processes for one). p: how often chance alone gives as much, {family} (Holm). n: \
         processes of each side. SAME: the whole interval is a tie. FASTER, SLOWER: it lies beyond \
         1, is not all a tie, and p is below 0.01. To decide: processes of each side, as far as \
         can be told."
    ))
}

/// Processes of each side that would decide what is not decided.
fn to_decide(cell: &Compared<'_>) -> Option<String> {
    cell.is_open()
        .then(|| cell.needs.map_or_else(|| format!(">{PROCESSES_MAX}"), |needs| needs.to_string()))
}

/// The middle of what the processes of a side say.
fn side(cell: &Compared<'_>, index: usize) -> Option<Quantity> {
    let found = cell.sides[index].as_ref();
    found.map(|found| Quantity::exact(found.middle(), found.unit))
}

fn left(against: &Against<'_>, views: &Views, id: String, title: &str) -> Option<Section> {
    let told: Vec<_> =
        against.left.iter().map(|left| (left.workload.as_str(), &left.case)).collect();
    let names = pairs::short_names(&told, views).into_iter();
    let table = Grid::<(String, &Left)>::new()
        .words("case", 0, |(name, _)| name.clone())
        .with(Column::words("why").explains(), |(_, left)| left.why.clone())
        .table(names.zip(&against.left));
    (!against.left.is_empty()).then(|| Section::new(id, title).with(table))
}

fn differences(
    comparison: &Comparison<'_>,
    against: &Against<'_>,
    [id, title]: [&str; 2],
    for_page: bool,
) -> Option<Section> {
    let [a, b] = headings([&comparison.base_name, &against.name]);
    let of = |is_volatile: bool| -> Vec<&Difference> {
        let told = against.differences.iter();
        told.filter(|d| (d.class == Class::Volatile) == is_volatile).collect()
    };
    let table = |rows: Vec<&Difference>| {
        Grid::<&Difference>::new()
            .words("fact", 0, |difference| difference.key.clone())
            .words("class", 0, |difference| difference.class.name())
            .with(Column::words(&a).explains(), |difference| difference.values[0].clone())
            .with(Column::words(&b).explains(), |difference| difference.values[1].clone())
            .words("comparison", 0, |difference| {
                match (difference.class, difference.is_allowed(&comparison.allow)) {
                    (Class::Volatile, _) => Cell::toned("always moves", Tone::Quiet),
                    (_, true) => Cell::toned("allowed", Tone::Warn),
                    (_, false) => Cell::toned("forbidden", Tone::Bad),
                }
            })
            .table(rows)
    };
    let [lasting, moving] = [of(false), of(true)];
    if lasting.is_empty() && (moving.is_empty() || !for_page) {
        return None;
    }
    let mut section = Section::new(id.to_owned(), title);
    // What always moves is for the page: a terminal shows what matters.
    section.page_only = lasting.is_empty();
    for rows in [lasting, moving].into_iter().take(if for_page { 2 } else { 1 }) {
        if !rows.is_empty() {
            section.add(table(rows));
        }
    }
    Some(section)
}
