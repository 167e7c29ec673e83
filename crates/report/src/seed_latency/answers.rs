//! The note's three follow-up questions: swap, mlock, userfaultfd.
//!
//! The one idea: each answer is a sentence made from cases of the same run as the zero-filled write
//! fault, and says the ratio to it with both intervals in it. A question whose cases were not
//! measured says what is missing instead of nothing.

use super::base;
use crate::{
    document::{Block, Cell, Column, Note, Table, Tone},
    entry::Entry,
    latency::{ARM, FAULT, WORKLOAD},
    numbers::elapsed,
    parameters,
    quantity::{Quantity, Unit},
};

/// The workload that answers the third question.
const USERFAULTFD: &str = "fault/userfaultfd";
/// The series of the call that populates or locks.
const CALL: &str = "call";
/// The series of touches that take no fault.
const TOUCH: &str = "touch";

/// The three questions, each with its answer and the numbers behind it.
pub(super) fn blocks(entries: &[Entry]) -> Vec<Block> {
    let latency: Vec<&Entry> = of(entries, WORKLOAD);
    let write = base(&latency, "write", elapsed(ARM, FAULT)).map(|(_, median)| median);
    let mut blocks = vec![Block::Text("The note's follow-up questions:".to_owned())];
    let userfaultfd = of(entries, USERFAULTFD);
    for (question, answer) in [
        ("What does a page cost that must be fetched from swap?", swap(&latency, write)),
        ("How does mlock() affect the latency distribution?", mlock(&latency, write)),
        ("Can userfaultfd intercept faults, at what overhead?", handled(&userfaultfd, write)),
    ] {
        let (tone, text, table) = match answer {
            Ok((text, table)) => (Tone::Good, text, Some(table)),
            Err(missing) => (Tone::Warn, format!("Not answered by this run: {missing}."), None),
        };
        let tag = if table.is_some() { "answered" } else { "open" };
        let text = format!("{question} {text}");
        blocks.push(Block::Note(Note { tone, tag, text, cure: String::new() }));
        blocks.extend(table.map(Block::Table));
    }
    blocks
}

/// A sentence and its table, or what is missing for it.
type Answer = Result<(String, Table), String>;

fn of<'a>(entries: &'a [Entry], workload: &str) -> Vec<&'a Entry> {
    let mine = |e: &&Entry| e.record.workload == workload && e.is_valid();
    entries.iter().filter(mine).collect()
}

/// `1.28 µs (1.27–1.29 µs)`.
fn told(quantity: Quantity) -> String {
    let interval = quantity.display_interval();
    if interval.is_empty() {
        quantity.display()
    } else {
        format!("{} ({interval})", quantity.display())
    }
}

/// `4.5 (4.4–4.6) times`.
fn times(ratio: Quantity) -> String {
    if ratio.display_spread().is_empty() {
        return format!("{:.2} times", ratio.value);
    }
    format!("{:.2} ({:.2}–{:.2}) times", ratio.value, ratio.low, ratio.high)
}

fn write_of(write: Option<Quantity>) -> Result<Quantity, String> {
    write.ok_or_else(|| "kind=write with page=4k has no number to compare with".to_owned())
}

fn swap(entries: &[&Entry], write: Option<Quantity>) -> Answer {
    let write = write_of(write)?;
    let mut rows = Vec::new();
    let mut sentences = Vec::new();
    for entry in entries.iter().filter(|entry| entry.parameter("kind") == "swap") {
        let of = |statistic| entry.numbers.get(elapsed(ARM, FAULT), statistic);
        let Some(median) = of("p50") else { continue };
        let Some(ratio) = median.over(write, Unit::Ratio) else { continue };
        let device = match (entry.parameter("swap"), entry.parameter("algorithm")) {
            (device, "" | "auto" | "default") => device.to_owned(),
            (device, algorithm) => format!("{device} {algorithm}"),
        };
        let content = entry.parameter("content");
        let mut row: Vec<Cell> = vec![
            device.clone().into(),
            content.into(),
            entry.parameter("order").into(),
            entry.parameter("page-cluster").into(),
        ];
        row.extend(
            ["p50", "p99", "p99.9", "max"].map(|s| Cell::maybe(of(s).map(Quantity::display))),
        );
        row.push(format!("{:.2}", ratio.value).into());
        rows.push(row);
        sentences.push(format!(
            "from {device} ({content} content, {} order) {}, {} the zero-filled write",
            entry.parameter("order"),
            told(median),
            times(ratio)
        ));
    }
    if sentences.is_empty() {
        return Err("it needs kind=swap, which needs root and swap devices".to_owned());
    }
    // The table holds all of them: the sentence says the first of each device.
    let text = format!(
        "The median swap-in takes {}; the write that is zero-filled instead takes {}.",
        first_of_each_device(&sentences).join("; "),
        told(write)
    );
    let columns = ["swap", "content", "order", "page-cluster"].map(Column::words).into_iter();
    let numbers = ["p50", "p99", "p99.9", "max", "÷ write"].map(Column::number);
    Ok((text, Table { columns: columns.chain(numbers).collect(), rows }))
}

fn first_of_each_device(sentences: &[String]) -> Vec<&str> {
    let mut said: Vec<&str> = Vec::new();
    for sentence in sentences {
        let device = sentence.split('(').next();
        if !said.iter().any(|other| other.split('(').next() == device) {
            said.push(sentence);
        }
    }
    said
}

fn mlock(entries: &[&Entry], write: Option<Quantity>) -> Answer {
    let write = write_of(write)?;
    let is_populating = |entry: &&&Entry| {
        entry.parameter("kind") == "write"
            && entry.parameter("page") == "4k"
            && !entry.parameter("populate").is_empty()
    };
    let mut rows = Vec::new();
    let mut sentence = None;
    let plain = |entry: &Entry| parameters::without(entry.case(), &["populate", "size"]);
    let populating: Vec<&&Entry> = entries.iter().filter(is_populating).collect();
    let locked = populating.iter().find(|entry| entry.parameter("populate") == "mlock");
    for entry in &populating {
        if locked.is_some_and(|locked| plain(locked) != plain(entry)) {
            continue;
        }
        let series =
            if entry.numbers.get(elapsed(ARM, TOUCH), "p50").is_some() { TOUCH } else { FAULT };
        let of = |statistic| entry.numbers.get(elapsed(ARM, series), statistic);
        let call = entry.numbers.get(elapsed(ARM, CALL), "p50");
        let faults = if series == FAULT { "every touch" } else { "none" };
        let mut row: Vec<Cell> = vec![
            entry.parameter("populate").into(),
            Cell::maybe(call.map(Quantity::display)),
            faults.into(),
        ];
        row.extend(
            ["p50", "p99", "p99.9", "max"].map(|s| Cell::maybe(of(s).map(Quantity::display))),
        );
        rows.push(row);
        if entry.parameter("populate") == "mlock" && sentence.is_none() {
            let shown = |statistic| of(statistic).map_or_else(String::new, Quantity::display);
            let cost = call.and_then(|call| Some((call, call.over(write, Unit::Ratio)?)));
            let cost = cost.map_or_else(String::new, |(call, ratio)| {
                format!(
                    ": the cost is in the call, {} a page, {} that of a write fault",
                    told(call),
                    times(ratio)
                )
            });
            sentence = Some(format!(
                "It moves the faults out of it. After mlock() no touch faults: median {}, p99.9 \
                 {}, max {}, where a touch that faults takes {}{cost}.",
                shown("p50"),
                shown("p99.9"),
                shown("max"),
                told(write),
            ));
        }
    }
    let text = sentence.ok_or("it needs populate=mlock in fault/latency")?;
    let mut columns = vec![
        Column::words("populate"),
        Column::number("call, per page"),
        Column::words("faults afterwards"),
    ];
    columns.extend(["touch p50", "p99", "p99.9", "max"].map(Column::number));
    Ok((text, Table { columns, rows }))
}

fn handled(entries: &[&Entry], write: Option<Quantity>) -> Answer {
    let write = write_of(write)?;
    let mut rows = Vec::new();
    let mut found: Vec<(String, Quantity, Quantity)> = Vec::new();
    for entry in entries {
        let of = |statistic| entry.numbers.get(elapsed(ARM, FAULT), statistic);
        let Some(median) = of("p50") else { continue };
        let Some(ratio) = median.over(write, Unit::Ratio) else { continue };
        let (handler, op) = (entry.parameter("handler"), entry.parameter("op"));
        let mut row: Vec<Cell> = vec![handler.into(), op.into(), entry.parameter("page").into()];
        row.extend(
            ["p50", "p99", "p99.9", "max"].map(|s| Cell::maybe(of(s).map(Quantity::display))),
        );
        row.push(format!("{:.2}", ratio.value).into());
        rows.push(row);
        if entry.parameter("page") == "4k" && matches!(op, "copy" | "wp-async") {
            let resolver = match (handler, op) {
                (_, "wp-async") => "the kernel itself resolves a write-protect fault in",
                ("sigbus", _) => "a SIGBUS handler in the same thread in",
                ("same-cpu", _) => "a thread on the same CPU in",
                ("other-cpu", _) => "a thread on another CPU in",
                ("other-cpu-poll", _) => "a polling thread on another CPU in",
                _ => continue,
            };
            if !found.iter().any(|(other, ..)| other == resolver) {
                found.push((resolver.to_owned(), median, ratio));
            }
        }
    }
    if found.is_empty() {
        return Err(format!("it needs {USERFAULTFD} with op=copy"));
    }
    let said: Vec<String> = found
        .iter()
        .map(|(resolver, median, ratio)| {
            format!("{resolver} {}, {} the write fault", told(*median), times(*ratio))
        })
        .collect();
    let text = format!(
        "Yes. The same first touch, resolved in user space: {}. Without it the kernel takes {}.",
        said.join("; "),
        told(write)
    );
    let columns = ["handler", "op", "page"].map(Column::words).into_iter();
    let numbers = ["p50", "p99", "p99.9", "max", "÷ write"].map(Column::number);
    Ok((text, Table { columns: columns.chain(numbers).collect(), rows }))
}
