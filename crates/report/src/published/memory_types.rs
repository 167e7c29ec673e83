//! What data cannot say of memcachetest: sums in 64 bits, and prose beside the table it is about.
//!
//! The one idea: a sum is a pair of counters, and what it should be follows in closed form from
//! the original's source; a figure of the prose is a range, and whether it contradicts the author's
//! own table is computed, not asserted.

use pagelab_record::vocabulary::{series::TEST, workload::MEMTYPE_BANDWIDTH as BANDWIDTH};

use super::{
    figure::{Both, THEIRS},
    memory_log,
};
use crate::{Block, Cell, Column, Entry, Grid, Table, Tone, cases::test_of, elapsed};

const TYPES: [&str; 3] = ["wb", "uc", "wc"];
const MIB: f64 = 1_048_576.0;
/// The word of the UC page that the original's fence stores to.
const FENCE_WORD: u64 = 511;
/// Up to this part, a figure may be another run's of the same kind.
const CLOSE: f64 = 0.02;
/// How far a figure in thousands, of two digits, may be rounded.
const TWO_DIGITS: f64 = 0.05;

/// Its log, sums that were read, and the author's prose beside his own table.
pub(super) fn blocks(both: &Both) -> Vec<Block> {
    let lines = TYPES.iter().filter_map(|name| memory_log::frame(both, name)).map(Block::Frame);
    let mut blocks: Vec<Block> = lines.collect();
    if !blocks.is_empty() {
        blocks.insert(0, Block::Heading("As its program prints it".to_owned()));
    }
    blocks.extend([Block::Heading("Sums of the read test".to_owned()), Block::Table(sums(both))]);
    let prose = both.published.iter().filter(|entry| entry.parameter("part") == "analysis");
    let rows: Vec<Vec<Cell>> = prose.filter_map(|entry| figure(both, entry)).collect();
    let columns = ["Memory type", "test"].map(Column::words).into_iter();
    let columns = columns.chain(["prose", "its table", "apart"].map(Column::number));
    let columns = columns.chain([Column::words("verdict")]).collect();
    if !rows.is_empty() {
        blocks.push(Block::Heading("Its prose beside its own table".to_owned()));
        blocks.push(Block::Table(Table { columns, rows }));
        blocks.push(Block::Text(
            "The prose describes earlier runs than the table. \"The four ways to write UC differ \
             little\" and \"in WB ntwrite is close to write\" have no figure and contradict the \
             table, too: see 1 and 4. GB/s in the prose are the thousands of what the table calls \
             MB/s, which are MiB/s."
                .to_owned(),
        ));
    }
    blocks
}

/// The published record of a test.
fn log<'a>(both: &'a Both, memory_type: &str, test: &str) -> Option<&'a Entry> {
    both.published.iter().find(|entry| {
        ["part", "type", "test"].map(|name| entry.parameter(name)) == ["log", memory_type, test]
    })
}

fn sums(both: &Both) -> Table {
    let mut rows = Vec::new();
    for memory_type in TYPES {
        let reads = both.here.iter().filter(|entry| {
            entry.record.workload == BANDWIDTH
                && entry.parameter("type") == memory_type
                && test_of(entry.case()) == "read"
                && entry.measured().is_some()
        });
        rows.extend(reads.map(|entry| Sum { entry, memory_type, derived: None, theirs: false }));
        if let Some(entry) = log(both, memory_type, "read") {
            let derived = published_sum(entry, memory_type == "uc");
            rows.push(Sum { entry, memory_type, derived, theirs: true });
        }
    }
    let hex = |sum: Option<u64>| sum.map(|sum| format!("0x{sum:x}"));
    let overlap = |sum: &Sum<'_>| if sum.memory_type == "uc" { "overlap" } else { "own" };
    Grid::<Sum<'_>>::new()
        .words("type", 0, |sum| sum.memory_type.to_uppercase())
        .words("machine", 0, |sum| {
            if sum.theirs { Cell::toned("published", Tone::Quiet) } else { Cell::from("this one") }
        })
        .words("size", 2, |sum| sum.parameter("size", ""))
        .number("rounds", 2, |sum| sum.parameter("iterations", ""))
        .words("sum", 1, |sum| sum.parameter("sum", "accumulated"))
        .words("fence word", 1, move |sum| sum.parameter("fence-word", overlap(sum)))
        .number("observed", 0, move |sum| hex(sum.observed()))
        .number("expected", 0, move |sum| hex(sum.expected()))
        .words("as expected", 0, |sum| match sum.observed().zip(sum.expected()) {
            Some((observed, expected)) if observed == expected => Cell::toned("yes", Tone::Good),
            Some(_) => Cell::toned("NO", Tone::Bad),
            None => Cell::none(),
        })
        .table(rows)
}

/// The sum of one read test.
struct Sum<'a> {
    entry: &'a Entry,
    memory_type: &'static str,
    derived: Option<u64>,
    theirs: bool,
}

impl Sum<'_> {
    fn observed(&self) -> Option<u64> {
        self.entry.sum_of("sum")
    }

    fn expected(&self) -> Option<u64> {
        self.derived.or_else(|| self.entry.sum_of("expected_sum"))
    }

    fn parameter(&self, name: &str, published: &str) -> Cell {
        let value = self.entry.parameter(name);
        Cell::toned(if value.is_empty() && self.theirs { published } else { value }, Tone::Quiet)
    }
}

/// The sum that the original must print: the last verification's, then one for each round of
/// reading. Where the fence word lies inside the region, the verification leaves it out, and every
/// round of reading finds in it what the last fence stored: the number of the round.
fn published_sum(entry: &Entry, overlaps: bool) -> Option<u64> {
    let bytes = pagelab_record::units::parse_bytes(entry.parameter("size")).ok()?;
    let rounds: u64 = entry.parameter("iterations").parse().ok().filter(|rounds| *rounds > 0)?;
    let (words, last) = (bytes / 8, rounds - 1);
    // Half of n(n-1), by dividing the one of the two that is even.
    let (half, whole) = if words.is_multiple_of(2) {
        (words / 2, words.wrapping_sub(1))
    } else {
        (words / 2, words)
    };
    let all = half.wrapping_mul(whole).wrapping_add(last.wrapping_mul(words));
    if !overlaps {
        return Some(all.wrapping_mul(rounds.wrapping_add(1)));
    }
    let without = all.wrapping_sub(FENCE_WORD.wrapping_add(last));
    let read = without.wrapping_add(last).wrapping_mul(rounds);
    Some(without.wrapping_add(read))
}

/// A figure of the prose with what the table has in its place.
fn figure(both: &Both, entry: &Entry) -> Option<Vec<Cell>> {
    let (memory_type, test) = (entry.parameter("type"), entry.parameter("test"));
    let table =
        log(both, memory_type, test)?.numbers.get(elapsed(THEIRS, TEST), "bandwidth")?.value;
    let counters = &entry.measured()?.counters;
    let counter = |name: &str| counters.get(name).copied().unwrap_or_default();
    let ends = ["min", "max"].map(|end| counter(&format!("prose_bytes_per_second_{end}")) as f64);
    let is_gb = counter("prose_in_gb") == 1;
    let (scale, unit, digits) = if is_gb { (1e9, "GB/s", 1) } else { (MIB, "MiB/s", 2) };
    let [low, high] = ends.map(|end| format!("{:.0}", end / scale));
    let range = if low == high { low } else { format!("{low}–{high}") };
    let apart = |scale: f64| {
        let [low, high] = ends.map(|end| end * scale);
        table.clamp(low.min(high), high.max(low)) / table - 1.0
    };
    let verdict = match apart(1.0) {
        _ if counter("prose_is_order") == 1 => Cell::toned("an order of magnitude", Tone::Quiet),
        0.0 => Cell::toned("holds", Tone::Good),
        _ if is_gb && apart(MIB / 1e6).abs() < TWO_DIGITS => {
            Cell::toned("holds for thousands of MiB/s", Tone::Quiet)
        }
        by if by.abs() < CLOSE => Cell::toned("contradicts: another run's", Tone::Warn),
        _ => Cell::toned("contradicts", Tone::Warn),
    };
    Some(vec![
        memory_type.to_uppercase().into(),
        test.into(),
        format!("{range} {unit}").into(),
        format!("{:.digits$} {unit}", table / scale).into(),
        format!("{:+.1} %", apart(1.0) * 100.0).into(),
        verdict,
    ])
}
