//! `tier/micro`: what random accesses take while a mode promotes, and the published micro-benchmark
//! beside its model and this run.
//!
//! The one idea: a published time is of another machine, another size and other accesses, and a
//! simulated one of none; so what stands side by side is each column's time against its own of no
//! migration, and its promotions against its pages.

use pagelab_record::{
    Nature,
    vocabulary::{counter, parameter},
};

use super::simulation::WORKLOAD as SIMULATION;
use pagelab_record::vocabulary::{
    arm::NONE,
    series::{RUN, SCORE},
};
use pagelab_report::{
    Cell, Entry, Grid, Headline, Quantity, Run, Section, all_rows, columns, elapsed,
    group_thousands, headline, parameters,
};

/// The workload that this view reads.
pub(crate) const WORKLOAD: &str = "tier/micro";

/// The published scenario that it is of.
const SCENARIO: &str = "pghot-v7/scan-1s";
/// The series of published times.
const TIME: &str = "time";
/// Published sources, in their order, what no migration is called beside each, and our mode.
const SOURCES: [(&str, &str, &str); 4] = [
    ("NUMAB0", "NUMAB0", NONE),
    ("NUMAB2", "NUMAB0", "numab2"),
    ("NUMAB2-pghot", "NUMAB0-pghot", "pghot"),
    ("HWHINTS", "NUMAB0-pghot", "pghot-hwhints"),
];

fn score(entry: &Entry) -> Option<Quantity> {
    entry.numbers.get(elapsed(entry.value(parameter::MODE), SCORE), "p50")
}

fn micros(quantity: Option<Quantity>) -> Cell {
    Cell::maybe(quantity.map(|time| format!("{} µs", group_thousands(time.value / 1e3))))
}

pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.any(WORKLOAD)?;
    let shown = columns(&mine, &["mode"]);
    let count = |entry: &&Entry, name| entry.counter(name).map(|n| group_thousands(n as f64));
    let table = Grid::<&Entry>::new()
        .case(&shown, |entry| entry)
        .number("score", 0, |entry| micros(score(entry)).strong())
        .number("interval", 2, |entry| Cell::spread(score(entry)))
        .number("pages", 2, move |entry| count(entry, counter::PAGES))
        .number("found on the fast node", 0, move |entry| count(entry, counter::FOUND_ON_FAST))
        .number("promoted", 1, move |entry| count(entry, counter::PAGES_PROMOTED))
        .number("demoted", 1, move |entry| count(entry, counter::PAGES_DEMOTED))
        .number("hint faults", 3, move |entry| count(entry, "numa_hint_faults"))
        .number("proc×rep", 4, |entry| entry.counts(elapsed(entry.value(parameter::MODE), SCORE)))
        .words("witness", 0, |entry| entry.proof())
        .told(mine.iter().copied());
    let mut section = Section::new("micro", "Random accesses to the slow node").with(table);
    section.add(format!(
        "{}Score: from the first thread's start to the last one's end. Pages: of one repetition; \
         the counts after it are of all repetitions, promoted and demoted by the kernel, for the \
         whole machine.{}",
        all_rows(&mine, &shown),
        caveat(&mine)
    ));
    section.all(mine.iter().flat_map(|entry| entry.notes()));
    Some(section)
}

/// Promotion was measured on no machine yet.
fn caveat(mine: &[&Entry]) -> &'static str {
    let is_real = |entry: &&&Entry| {
        entry.record.nature == Nature::Measured && entry.value(parameter::MODE) != NONE
    };
    if mine.iter().any(|entry| is_real(&entry) && entry.is_valid()) {
        ""
    } else {
        " Promotion by a mode is not yet seen on hardware."
    }
}

/// A row of what stands side by side: the source, and its time and that of no migration in each
/// column.
struct Row {
    source: &'static str,
    times: [[Option<Quantity>; 2]; 3],
    promoted: [Option<f64>; 3],
}

/// Published, simulated, measured.
pub(crate) fn beside(run: &Run) -> Option<Section> {
    let published = |arm: &str| {
        let of = |entry: &&Entry| entry.numbers.get(elapsed(arm, TIME), "p50").is_some();
        let mut mine = run.published.iter().filter(|e| e.value(parameter::SCENARIO) == SCENARIO);
        mine.find(of)
    };
    published(SOURCES[0].0)?;
    let model = run.rows(SIMULATION).into_iter().find(|entry| {
        let is_as_published = |name| matches!(entry.value(name), "auto" | "");
        entry.value(parameter::SCENARIO) == SCENARIO
            && ["period", "policy", "threshold"].into_iter().all(is_as_published)
    });
    let micro = run.rows(WORKLOAD);
    let ours =
        |mode: &str| micro.iter().copied().find(|entry| entry.value(parameter::MODE) == mode);
    let row = |(source, still, mode): (&'static str, &str, &str)| {
        let printed = |arm: &str| published(arm)?.numbers.get(elapsed(arm, TIME), "p50");
        let simulated = |arm: &str| model?.numbers.get(elapsed(arm, RUN), "p50");
        let here = |mode: &str| score(ours(mode)?);
        let number = |entry: Option<&Entry>, name: &str| Some(entry?.counter(name)? as f64);
        let success = format!("pgpromote_success/{source}");
        Row {
            source,
            times: [
                [printed(source), printed(still)],
                [simulated(source), simulated(still)],
                [here(mode), here(NONE)],
            ],
            promoted: [
                number(published(source), "pgpromote_success"),
                number(model, &success),
                number(ours(mode), counter::PAGES_PROMOTED),
            ],
        }
    };
    let mut grid = Grid::<Row>::new().words("source", 0, |row| row.source);
    for (nth, name) in ["published", "simulated", "measured here"].into_iter().enumerate() {
        grid = grid
            .number(name, 0, move |row| micros(row.times[nth][0]))
            .number("of no migration", 0, move |row| {
                let [time, still] = row.times[nth];
                let share = time.zip(still).map(|(time, still)| time.value / still.value);
                Cell::maybe(share.map(|share| format!("{share:.3}")))
            })
            .number("promoted", 1, move |row| row.promoted[nth].map(group_thousands));
    }
    let table = grid.table(SOURCES.into_iter().map(row));
    Some(
        Section::new(
            "micro-beside",
            "The published micro-benchmark: published, simulated, measured",
        )
        .with(table)
        .with(format!(
            "Published: 64 threads, 8 GiB, on an AMD machine with a CXL node. Simulated: the \
                 scenario {SCENARIO}. Measured here: tier/micro, of the size that its table says; \
                 a mode that this machine lacks is a dash. Each against its own time of no \
                 migration: the times themselves are of different work.{}",
            caveat(&micro)
        )),
    )
}

/// What a mode saves, where one was measured beside none.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let valid = run.valid(WORKLOAD);
    let rest = |entry: &Entry| parameters::without(entry.case(), &[parameter::MODE, "scan"]);
    let told = |entry: &&Entry| {
        let is_control =
            |other: &&&Entry| other.value(parameter::MODE) == NONE && rest(other) == rest(entry);
        let still = score(valid.iter().find(is_control)?)?;
        let mode = entry.value(parameter::MODE);
        let ratio =
            score(entry)?.over(still, pagelab_report::Unit::Ratio).filter(|_| mode != NONE)?;
        let label = format!("of the time without migration, random accesses with {mode}");
        Some(headline(ratio, label, &[]))
    };
    valid.iter().filter_map(told).take(2).collect()
}
