//! The worklog of fast-mem beside this run, and its open questions answered from this run.
//!
//! The one idea: his machine is another one and his traces are larger, so what is compared is what
//! a backend takes over decoding alone, never a time. Each answer is computed from records, says
//! what the numbers say, also where they say otherwise than he found, and is left out with a reason
//! where a case is missing.

mod answers;
mod both;
mod reading;

use pagelab_record::units;

use self::both::{Both, TRACES};
use crate::{
    document::{Block, Cell, Column, Note, Section, Table, Tone},
    entry::Entry,
    limits::Limits,
    numbers::cpu,
    quantity::Quantity,
    replay::{NOOP, REPLAY, WORKLOAD, arms},
};

/// The suite whose report this is.
pub(crate) const SUITE: &str = "fast-memory";
/// The worklog's steps that timed backends, and what a reader may call them.
const STEPS: [(&str, &str); 7] = [
    ("buffering", "8 KiB reads"),
    ("hashers", "hash functions"),
    ("cache-last", "last page kept"),
    ("cache-last-created", "and absent pages made"),
    ("fixed-width", "fixed widths"),
    ("negative-cache", "absent pages kept"),
    ("negative-cache-sizes", "sizes of that"),
];

/// The comparison and the answers, where a replay ran.
pub(crate) fn section(entries: &[Entry], published: &[Entry], limits: &Limits) -> Option<Section> {
    entries.iter().find(|entry| entry.record.workload == WORKLOAD && entry.has_row())?;
    let both = Both { entries, published, limits };
    let mut section = Section::new("fast-memory", "fast-mem: the worklog, repeated");
    section.blocks.push(Block::Text(
        "What each step of the worklog takes over decoding alone (noop), there and here. \
         Published: single replays of 1.2 and 44 GB on another machine, reading included. Here: \
         CPU time, backends read from memory, over generated traces that are like the two. Compare \
         ratios, not times. Where a step timed no noop of its own, its times are set against that \
         of the hash functions."
            .to_owned(),
    ));
    section.blocks.push(Block::Table(steps(&both)));
    section.blocks.extend(readers(&both).map(Block::Table));
    section.blocks.extend(noise(&both).map(Block::Text));
    section.blocks.push(Block::Heading("His open questions, from this run".to_owned()));
    for (tag, answer) in [
        ("buffering", reading::buffering(&both)),
        ("mmap", reading::mapping(&both)),
        ("nohash", answers::nohash(&both)),
        ("last page", answers::last_page(&both)),
        ("page caches", answers::page_caches(&both)),
        ("hashing", answers::hashing(&both)),
        ("decoding", answers::decoding(&both)),
    ] {
        let (tone, text) = match answer {
            Ok(text) => (Tone::Plain, text),
            Err(missing) => (Tone::Quiet, format!("not answered: {missing}")),
        };
        section.blocks.push(Block::Note(Note { tone, tag, text, cure: String::new() }));
    }
    Some(section)
}

/// Every published step and backend, as ratios to noop, beside ours.
fn steps(both: &Both<'_>) -> Table {
    let mut columns = vec![Column::words("step"), Column::words("backend")];
    for trace in TRACES {
        columns.push(Column::number(&format!("{trace}, published")).rank(1));
        columns.push(Column::number("× noop"));
        columns.push(Column::number("here × noop"));
        columns.push(Column::number("here").rank(2));
    }
    let mut rows = Vec::new();
    for (step, words) in STEPS {
        let mut backends: Vec<&str> = Vec::new();
        for entry in TRACES.iter().filter_map(|trace| both.step(step, trace, None)) {
            let Some(measured) = entry.measured() else { continue };
            for arm in arms(entry.case(), measured) {
                if !backends.contains(&arm) {
                    backends.push(arm);
                }
            }
        }
        for backend in backends {
            let mut row = vec![Cell::toned(words, Tone::Quiet), backend.into()];
            row.extend(TRACES.iter().flat_map(|trace| compared(both, step, trace, backend)));
            rows.push(row);
        }
    }
    Table { columns, rows }
}

/// A published time, its ratio to noop, our ratio, and our time.
fn compared(both: &Both<'_>, step: &str, trace: &str, backend: &str) -> [Cell; 4] {
    let theirs = both.published_total(step, trace, backend);
    let noop = both.published_total(step, trace, NOOP).or_else(|| {
        // The steps after the mapping were all timed against the same floor.
        both.published_total("hashers", trace, NOOP)
    });
    let ratio = theirs.zip(noop).map(|(one, noop)| format!("{:.2}", one / noop));
    let entry = both.arms_case(trace, &[backend]);
    let of = |statistic| entry?.numbers.get(cpu(backend, REPLAY), statistic);
    let here = of("ratio_to_noop").map(|ratio| format!("{:.2}", ratio.value));
    let quiet = |text| Cell { tone: Tone::Quiet, ..Cell::maybe(text) };
    [
        quiet(theirs.map(units::display_ns)),
        Cell::maybe(ratio),
        Cell { tone: Tone::Strong, ..Cell::maybe(here) },
        quiet(of("ns_per_op").map(Quantity::display)),
    ]
}

/// How far his times can be trusted, where a memory came out faster than none.
fn noise(both: &Both<'_>) -> Option<String> {
    let below = |trace: &str| {
        both.published_ratio("hashers", trace, ["paged-fx", NOOP]).filter(|ratio| *ratio < 1.0)
    };
    let (trace, ratio) = TRACES.iter().find_map(|trace| Some((trace, below(trace)?)))?;
    Some(format!(
        "On {trace} the published FxHash takes {ratio:.2} of the time of no memory at all: single \
         replays are that noisy, and that trace ranks no backends."
    ))
}

/// The readers that he timed, as ratios to the mapped file.
fn readers(both: &Both<'_>) -> Option<Table> {
    const MAPPED: &str = "mmap";
    let mut columns = vec![Column::words("noop, read by")];
    for trace in TRACES {
        columns.push(Column::number(&format!("{trace}, published")).rank(1));
        columns.push(Column::number("× mmap"));
        columns.push(Column::number("here × mmap"));
        columns.push(Column::number("here").rank(2));
    }
    let mut rows = Vec::new();
    for (step, reader) in [("buffering", "buffered-8k"), ("mmap", MAPPED)] {
        let mut row = vec![Cell::from(reader)];
        for trace in TRACES {
            let theirs = both.published_total(step, trace, NOOP);
            let mapped = both.published_total("mmap", trace, NOOP);
            let ratio = theirs.zip(mapped).map(|(one, mapped)| format!("{:.2}", one / mapped));
            let each = |reader| {
                let entry = both.reader_case(trace, reader)?;
                entry.numbers.get(cpu(NOOP, REPLAY), "ns_per_op")
            };
            let here = each(reader).zip(each(MAPPED)).map(|(one, mapped)| one.value / mapped.value);
            let quiet = |text| Cell { tone: Tone::Quiet, ..Cell::maybe(text) };
            row.extend([
                quiet(theirs.map(units::display_ns)),
                Cell::maybe(ratio),
                Cell { tone: Tone::Strong, ..Cell::maybe(here.map(|r| format!("{r:.2}"))) },
                quiet(each(reader).map(Quantity::display)),
            ]);
        }
        rows.push(row);
    }
    let ours = TRACES.iter().any(|trace| both.reader_case(trace, MAPPED).is_some());
    ours.then_some(Table { columns, rows })
}
