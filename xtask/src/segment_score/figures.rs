//! What segments cost by themselves: figures of `segment/fault`, of the calls, and of the start.
//!
//! The one idea: a figure is a row, a ratio of one alternated run, read from the report and not
//! computed again here. What the library does to a program's calls and to its start is timed beside
//! the same program without it, in turns.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::median;
use crate::shell::{self, line, output, program, run};

/// A number of the report of `segment/fault`, and what it must be.
struct Figure {
    name: &'static str,
    arm: &'static str,
    series: &'static str,
    statistic: &'static str,
    must: f64,
    aim: f64,
}

const FIGURES: [Figure; 5] = [
    Figure {
        name: "2m, first pass, all of THP",
        arm: "segment-2m",
        series: "first-all",
        statistic: "of_thp",
        must: 1.03,
        aim: 0.95,
    },
    Figure {
        name: "2m, again, of plain",
        arm: "segment-2m",
        series: "process",
        statistic: "of_plain",
        must: 0.06,
        aim: 0.035,
    },
    Figure {
        name: "2m, again, all of THP",
        arm: "segment-2m",
        series: "all",
        statistic: "of_thp",
        must: 0.60,
        aim: 0.35,
    },
    Figure {
        name: "1g, again, of plain",
        arm: "segment-1g",
        series: "process",
        statistic: "of_plain",
        must: 0.06,
        aim: 0.035,
    },
    Figure {
        name: "1g, again, of clearing",
        arm: "segment-1g",
        series: "process",
        statistic: "of_clear",
        must: 1.25,
        aim: 1.05,
    },
];

/// Who clears in the steady state, as `segment/fault` takes it.
const ZEROING: [&str; 2] = ["release", "fault"];
/// Memory of a round, and its pages.
const SIZE: &str = "1g";
const PAGES: f64 = 262_144.0;
/// The program whose calls are timed.
const SOURCE: &str = "crates/pagelab/tests/explain/segments.c";
/// Pairs of runs of it, and of starts.
const PAIRS: usize = 20;
const MAP_MIB: &str = "64";

/// Prints all of them.
///
/// # Errors
/// When a run cannot be made or read.
pub(super) fn print(binary: &Path, dir: &Path) -> Result<()> {
    println!("figure                      zero      here                 must   aim");
    for zero in ZEROING {
        let report = faulted(binary, &dir.join(format!("fault-{zero}")), zero)?;
        for figure in &FIGURES {
            println!("{:<27} {zero:<9} {}", figure.name, figure.said(&report));
        }
        // The clearing of a round is a part of the process's CPU time, whoever did it.
        println!("{:<27} {zero:<9} {}", "2m, its clearing, of plain", cleared(&report));
        println!("{:<27} {zero:<9} {}", "mmap + munmap of 64 MiB", calls(binary, dir, zero)?);
    }
    println!("{:<27} {:<9} {}", "segment run -- true adds", "", starts(binary)?);
    Ok(())
}

impl Figure {
    fn said(&self, report: &Value) -> String {
        let here = match number(report, (self.arm, self.series, self.statistic)) {
            Some([value, low, high]) => format!("{value:.3} ({low:.3}-{high:.3})"),
            None => left_out(report, self.arm),
        };
        format!("{here:<20} {:<6} {}", self.must, self.aim)
    }
}

/// The report of a run of `segment/fault`.
fn faulted(binary: &Path, into: &Path, zero: &str) -> Result<Value> {
    let _ = std::fs::remove_dir_all(into);
    let into = into.to_string_lossy().into_owned();
    let arms = "plain,thp,segment-2m,segment-1g";
    let words = ["run", "segment/fault", "--quiet", "--wait", "--size", SIZE];
    let mut command = Command::new(binary);
    command.args(words).args(["--arms", arms, "--zero", zero, "--forks", "6", "-o", &into]);
    command.stdout(Stdio::null());
    let status = command.status().with_context(|| line(&command))?;
    // One that did not prove itself has no numbers, which the lines say.
    ensure!(matches!(status.code(), Some(0 | 6)), "{} ended with {status}", line(&command));
    let mut command = Command::new(binary);
    let text = output(command.args(["report", &into, "--format", "json"]))?;
    let report: Value = serde_json::from_str(&text)?;
    let case = report["cases"].as_array().into_iter().flatten();
    let mine = case.into_iter().find(|case| case["workload"] == "segment/fault");
    mine.cloned().context("the run has no segment/fault")
}

/// A number with its interval.
fn number(case: &Value, (arm, series, statistic): (&str, &str, &str)) -> Option<[f64; 3]> {
    let is_it = |number: &&Value| {
        let of = |key: &str| number[key].as_str();
        of("arm") == Some(arm)
            && of("series") == Some(series)
            && of("statistic") == Some(statistic)
            && of("time") == Some("cpu")
    };
    let number = case["numbers"].as_array()?.iter().find(is_it)?;
    let of = |key: &str| number[key].as_f64();
    Some([of("value")?, of("low")?, of("high")?])
}

/// Why an arm has no number.
fn left_out(case: &Value, arm: &str) -> String {
    let all = case["left_out"].as_array().into_iter().flatten();
    let mine = all.into_iter().find(|one| one["arm"] == arm);
    let standing = case["standing"].as_str().unwrap_or("unknown");
    mine.and_then(|one| one["need"].as_str())
        .map_or_else(|| format!("none ({standing})"), |need| format!("left out: {need}"))
}

/// What clearing takes of a round of base pages.
fn cleared(case: &Value) -> String {
    let median = |arm, series| number(case, (arm, series, "p50")).map(|[median, ..]| median);
    let both = median("segment-2m", "zero").zip(median("plain", "process"));
    // A sum of a round is told for each of its pages.
    both.map_or_else(|| "-".to_owned(), |(zero, plain)| format!("{:.3}", zero / (plain * PAGES)))
}

/// mmap and munmap inside a segment of the library, by those of the kernel; and the CPU time of a
/// round, in which all is written to, with that of a helper.
fn calls(binary: &Path, dir: &Path, zero: &str) -> Result<String> {
    let compiled = dir.join("segments");
    let mut cc = program("cc", ["-O1", "-pthread", "-o"]);
    run("score", cc.arg(&compiled).arg(SOURCE))?;
    let words = ["calls", MAP_MIB, "20"];
    let mut ratios = Vec::new();
    for _ in 0..PAIRS {
        let plain = nanoseconds(Command::new(&compiled).args(words))?;
        let mut segmented = Command::new(binary);
        segmented.args(["segment", "run", "--quiet", "--mmap", "1g", "--zero", zero, "--"]);
        let segmented = nanoseconds(segmented.arg(&compiled).args(words))?;
        ratios.push([segmented[0] / plain[0], segmented[1] / plain[1]]);
    }
    let sorted = |nth: usize| {
        let mut one: Vec<f64> = ratios.iter().map(|ratio| ratio[nth]).collect();
        one.sort_by(f64::total_cmp);
        super::said(&one)
    };
    Ok(format!("{}, must 0.5, aim 0.2; CPU time of a round {}", sorted(0), sorted(1)))
}

/// What the program says: nanoseconds of both calls, and of the process's CPU time.
fn nanoseconds(command: &mut Command) -> Result<[f64; 2]> {
    let text = output(command.stderr(Stdio::null()))?;
    let mut numbers = text.split_whitespace().map(str::parse);
    match [numbers.next(), numbers.next()] {
        [Some(Ok(calls)), Some(Ok(cpu))] => Ok([calls, cpu]),
        _ => bail!("{}: {text}", line(command)),
    }
}

/// What a start takes longer, in milliseconds.
fn starts(binary: &Path) -> Result<String> {
    let mut more = Vec::new();
    let timed = |command: &mut Command| -> Result<f64> {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let (status, took) = shell::timed(|| command.status());
        let status = status.with_context(|| line(command))?;
        ensure!(status.success(), "{} ended with {status}", line(command));
        Ok(took.as_secs_f64() * 1e3)
    };
    for _ in 0..PAIRS {
        let plain = timed(&mut Command::new("true"))?;
        let mut segmented = Command::new(binary);
        more.push(timed(segmented.args(["segment", "run", "--", "true"]))? - plain);
    }
    more.sort_by(f64::total_cmp);
    let more = median(&more).context("there are pairs")?;
    Ok(format!("{more:.1} ms (must 10, aim 3)"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_figure_is_read_from_the_report_and_one_that_is_missing_says_why() {
        let case = json!({
            "standing": "valid",
            "numbers": [
                { "arm": "segment-2m", "series": "process", "time": "cpu", "statistic": "of_plain",
                  "value": 0.05, "low": 0.04, "high": 0.06 },
                { "arm": "segment-2m", "series": "zero", "time": "cpu", "statistic": "p50",
                  "value": 12e6, "low": 12e6, "high": 12e6 },
                { "arm": "plain", "series": "process", "time": "cpu", "statistic": "p50",
                  "value": 1500.0, "low": 1500.0, "high": 1500.0 },
            ],
            "left_out": [{ "arm": "segment-1g", "need": "a page of 1g", "cure": "get one" }],
        });
        assert_eq!(FIGURES[1].said(&case), "0.050 (0.040-0.060)  0.06   0.035");
        assert!(FIGURES[3].said(&case).starts_with("left out: a page of 1g"));
        assert!(FIGURES[0].said(&case).starts_with("none (valid)"));
        assert_eq!(cleared(&case), "0.031");
    }
}
