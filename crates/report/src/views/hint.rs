//! Cycles of a fault from what it executes: a hint, and named as such.
//!
//! The one idea: a count is no time. But where one kernel was counted in a machine and timed on a
//! processor, in one run, a fit of both says about what an instruction, a miss and a locked
//! operation cost there. How far it is off stands beside it, case by case, each foretold by a fit
//! of the others. It is no headline, and nothing follows from it.
//!
//! The cache whose misses these are is the simplest that there is: empty when a fault begins, and
//! large enough for all that the fault reaches. So a line of data or of code is one miss, and so is
//! each line that a string instruction stores.

use std::collections::{BTreeMap, BTreeSet};

use pagelab_record::{
    stats,
    units::display_number,
    vocabulary::{
        arm::OURS,
        counter::TSC_HZ,
        series::{CALL, FAULT},
        workload::{LATENCY, PATH},
    },
};

use super::path::profile;
use crate::{Block, Entry, Grid, Run, Section, elapsed, group_thousands};

/// What cycles are made of here.
const FACTORS: [&str; 3] = ["instructions", "misses", "locked operations"];
/// Cases at least: of as many as there are factors every fit is exact, whatever it says, and each
/// case is foretold by the others.
const CASES: usize = FACTORS.len() + 2;
/// Bytes of a line.
const LINE: u64 = 64;

type Counts = [f64; FACTORS.len()];

/// A case that was counted and timed.
struct Point<'e> {
    counted: &'e Entry,
    counts: Counts,
    cycles: f64,
}

/// The hints of a run that has both, for each kernel with its parameters; or why there is none.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let (counted, timed) = (run.any(PATH)?, run.valid(LATENCY));
    timed.first()?;
    let mut groups: BTreeMap<(String, &str), Vec<Point<'_>>> = BTreeMap::new();
    let mut kernels = BTreeSet::new();
    for entry in counted {
        let Some(path) = profile(entry) else { continue };
        let count = |what| path.count(what).unwrap_or(0);
        let lines: i64 = path.lines.iter().map(|(_, lines)| lines).sum();
        let misses = lines.unsigned_abs() + count("bytes").div_ceil(LINE);
        let counts = [count("instructions") + count("user"), misses, count("locked")];
        let counts = counts.map(|count| count as f64);
        let key = (path.kernel.clone(), entry.parameter("parameters"));
        if let Some(cycles) = cycles(entry, &path.kernel, &timed) {
            groups.entry(key).or_default().push(Point { counted: entry, counts, cycles });
        }
        kernels.insert(path.kernel);
    }
    kernels.first()?;
    let mut section = Section::new("path-hint", "A hint of cycles");
    if groups.is_empty() {
        let counted: Vec<&str> = kernels.iter().map(String::as_str).collect();
        let timed: BTreeSet<&str> = timed.into_iter().filter_map(kernel).collect();
        section.blocks.push(Block::Text(format!(
            "None: a fit needs a kernel whose faults were counted and timed. Counted: {}; timed: \
             {}. Count the kernel that runs (--kernel with the path of its image, --parameters \
             with its words), or time on the one that was counted.",
            counted.join(", "),
            timed.into_iter().collect::<Vec<_>>().join(", "),
        )));
    }
    for ((kernel, parameters), points) in groups {
        section.blocks.extend(hint(&format!("Linux {kernel}, parameters={parameters}"), &points));
    }
    Some(section)
}

/// The kernel that a record was taken on.
fn kernel(entry: &Entry) -> Option<&str> {
    entry.record.host.identity.get("kernel_release")?.as_str()
}

/// What the same fault takes on a processor that runs the same kernel, in cycles of the time stamp
/// counter; of several cases, that which differs least from what is asked by itself.
fn cycles(counted: &Entry, release: &str, timed: &[&Entry]) -> Option<f64> {
    let is_same = |name| move |one: &&&Entry| one.parameter(name) == counted.parameter(name);
    let same = timed.iter().filter(|one| kernel(one) == Some(release));
    let same = same.filter(is_same("kind")).filter(is_same("page"));
    let one = same.min_by_key(|one| one.set.len())?;
    let p50 = |series| one.numbers.get(elapsed(OURS, series), "p50");
    let ns = p50(FAULT).or_else(|| p50(CALL))?.value;
    Some(ns * one.counter(TSC_HZ)? as f64 / 1e9)
}

/// A fit, and how far each case is from what the others foretell.
fn hint(whose: &str, points: &[Point<'_>]) -> Vec<Block> {
    let rows: Vec<(Counts, f64)> = points.iter().map(|one| (one.counts, one.cycles)).collect();
    let foretold: Option<Vec<f64>> = (0..rows.len())
        .map(|left_out| {
            let mut others = rows.clone();
            let (counts, _) = others.remove(left_out);
            Some(sum(&stats::fit_factors(&others)?, &counts))
        })
        .collect();
    let fitted = stats::fit_factors(&rows).zip(foretold).filter(|_| rows.len() >= CASES);
    let Some((factors, foretold)) = fitted else {
        return vec![Block::Text(format!(
            "None for {whose}: {} of its cases were counted and timed, and tell {} factors apart \
             only where {CASES} of them or more differ in what they are made of. Ask for more \
             --kind and --page of both.",
            points.len(),
            FACTORS.len()
        ))];
    };
    let off = |told: f64, cycles: f64| (told / cycles - 1.0) * 100.0;
    let all: Vec<f64> =
        foretold.iter().zip(points).map(|(told, one)| off(*told, one.cycles).abs()).collect();
    let factors: Vec<String> = factors
        .iter()
        .zip(FACTORS)
        .map(|(factor, name)| format!("{} · {name}", display_number(*factor)))
        .collect();
    let text = format!(
        "A hint, no measurement. {whose}: cycles ≈ {}, off by {:.0} % in the middle and {:.0} % at \
         most: by the others is what a fit without the case says of it. Cycles are those of the \
         time stamp counter, the p50 of fault/latency. Misses are those of a cache that is empty \
         when a fault begins and holds all that it reaches: its lines of data and code, and one \
         for each {LINE} bytes that string instructions store. A factor below zero says that these \
         cases do not tell it from another.",
        factors.join(" + "),
        stats::median(all.iter().copied()),
        all.iter().copied().fold(0.0, f64::max),
    );
    let told: Vec<(&Point<'_>, f64)> = points.iter().zip(foretold).collect();
    let table = Grid::<(&Point<'_>, f64)>::new()
        .words("kind", 0, |(one, _)| one.counted.parameter("kind").to_owned())
        .words("page", 0, |(one, _)| one.counted.parameter("page").to_owned())
        .number("instructions", 1, |(one, _)| group_thousands(one.counts[0]))
        .number("misses", 1, |(one, _)| group_thousands(one.counts[1]))
        .number("locked", 1, |(one, _)| group_thousands(one.counts[2]))
        .number("cycles", 0, |(one, _)| group_thousands(one.cycles.round()))
        .number("by the others", 0, |(_, told)| group_thousands(told.round()))
        .number("off", 0, |(one, told)| format!("{:+.1} %", off(*told, one.cycles)))
        .table(told);
    vec![Block::Table(table), Block::Text(text)]
}

fn sum(factors: &Counts, counts: &Counts) -> f64 {
    factors.iter().zip(counts).map(|(factor, count)| factor * count).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const RELEASE: &str = "6.12.1";

    fn entry(workload: &str, nature: &str, kind: &str, measured: &Value) -> Entry {
        let record = json!({
            "schema": "pagelab.record/1", "run": "r", "boot": "b", "workload": workload,
            "nature": nature, "case": { "kind": kind, "page": "4k", "parameters": "none" },
            "host": { "identity": { "kernel_release": RELEASE } },
            "outcome": { "measured": measured },
        });
        Entry::of(&serde_json::from_value(record).unwrap())
    }

    fn counted(release: &str, kind: &str, [instructions, misses, locked]: [u64; 3]) -> Entry {
        let table = |name: String, columns: &[&str], row: Value| {
            let columns: Vec<Value> =
                columns.iter().map(|name| json!({ "name": name, "unit": "count" })).collect();
            json!({ "name": name, "columns": columns, "rows": row })
        };
        let tables = [
            table("stack/entry".to_owned(), &["instructions"], json!([[instructions]])),
            table("places".to_owned(), &["other", "kernel-text"], json!([[misses - 64, 0]])),
            table(format!("kernel/{release}"), &[], json!([])),
        ];
        let counters = json!({ "mode_instructions": instructions, "mode_locked": locked,
                               "mode_bytes": 64 * 64 });
        let measured = json!({ "tables": tables, "counters": counters });
        entry(PATH, "emulated", kind, &measured)
    }

    fn timed(kind: &str, ns: u64) -> Entry {
        let series = json!({ "name": "fault", "arm": "pagelab", "clock": "tsc", "unit": "ns",
                             "ops": 1, "bytes": 4096, "values": [ns, ns, ns] });
        let counters = json!({ "tsc_hz": 2_000_000_000_u64 });
        let measured = json!({ "series": [series], "counters": counters });
        entry(LATENCY, "measured", kind, &measured)
    }

    const CASES_OF: [(&str, [u64; 3]); 6] = [
        ("write", [2600, 200, 8]),
        ("read", [1500, 110, 3]),
        ("fork-cow", [3100, 330, 14]),
        ("swap", [18_000, 400, 40]),
        ("zap", [3400, 90, 60]),
        ("protect", [2800, 120, 2]),
    ];

    fn shown(entries: Vec<Entry>) -> String {
        let run = Run { entries, ..Run::default() };
        let blocks = section(&run).map_or_else(Vec::new, |section| section.blocks);
        let said = |block: &Block| match block {
            Block::Text(text) => text.clone(),
            Block::Table(table) => {
                let cells: Vec<&str> =
                    table.rows.iter().flatten().map(|cell| cell.text.as_str()).collect();
                cells.join(" ")
            }
            _ => String::new(),
        };
        blocks.iter().map(said).collect()
    }

    /// At 2 GHz half a cycle for an instruction, ten for a miss, 20 for a locked operation.
    fn ns([instructions, misses, locked]: [u64; 3]) -> u64 {
        (instructions + 20 * misses + 40 * locked) / 4
    }

    #[test]
    fn factors_that_times_are_made_of_are_found_again_and_foretell_each_case() {
        let all = CASES_OF
            .iter()
            .flat_map(|(kind, counts)| [counted(RELEASE, kind, *counts), timed(kind, ns(*counts))]);
        let shown = shown(all.collect());
        let wanted = "cycles ≈ 0.50 · instructions + 10.0 · misses + 20.0 · locked operations, off \
                      by 0 % in the middle and 0 % at most";
        assert!(shown.contains(wanted) && shown.starts_with("write 4k"), "{shown}");
    }

    #[test]
    fn what_is_not_made_of_them_is_off_and_says_how_far() {
        let all = CASES_OF.iter().enumerate().flat_map(|(nth, (kind, counts))| {
            let odd = if nth % 2 == 0 { 3 } else { 1 };
            [counted(RELEASE, kind, *counts), timed(kind, odd * ns(*counts))]
        });
        let shown = shown(all.collect());
        assert!(shown.contains("A hint") && !shown.contains("off by 0 %"), "{shown}");
    }

    #[test]
    fn another_kernel_or_too_few_cases_are_no_hint_and_say_why() {
        let both = |release: &str, number: usize| {
            let some = CASES_OF.iter().take(number);
            some.flat_map(|(kind, counts)| {
                [counted(release, kind, *counts), timed(kind, ns(*counts))]
            })
            .collect()
        };
        let other = shown(both("7.3.4", 6));
        assert!(other.contains("Counted: 7.3.4; timed: 6.12.1"), "{other}");
        let few = shown(both(RELEASE, 4));
        assert!(few.contains("4 of its cases") && !few.contains('≈'), "{few}");
        let alike = (0..6).flat_map(|nth| {
            let (kind, counts) = (CASES_OF[nth].0, [1000, 100, 10]);
            [counted(RELEASE, kind, counts), timed(kind, 700)]
        });
        assert!(shown(alike.collect()).contains("None for"));
        assert_eq!(shown(vec![timed("write", 500)]), "");
        assert_eq!(shown(vec![counted(RELEASE, "write", [2000, 100, 8])]), "");
    }
}
