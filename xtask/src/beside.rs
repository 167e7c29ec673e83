//! Whether another tool measures the same number: `hyperfine`, beside `pagelab try`.
//!
//! The one idea: the rung of malloc's tunable is an environment variable, so `hyperfine` can time
//! it with the same settings; ratios of the same two things have intervals that overlap. It goes
//! through its commands one after the other, and a machine drifts: so it is called several times
//! for a few runs of each, the other way round every second time.

use std::{fmt::Write as _, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Value, json};

use crate::{
    programs::{Program, kept},
    shell::{find, line},
};

/// The rung that is timed by another tool as well.
const RUNG: &str = "malloc-thp";
/// Half of an interval that is as narrow as that of the other tool has to be.
const NARROW: f64 = 0.05;

/// How often the other tool is called, and how often a program is timed on each side by a call.
const CALLS: usize = 10;
const RUNS: &str = "4";
/// The environment of the rung.
const TUNED: &str = "env GLIBC_TUNABLES=glibc.malloc.hugetlb=1 ";
/// Takes and touches more memory than any of the programs has.
const WARM: &str = "/usr/bin/python3 -c 'many = 1 << 30; bytes([1]) * many'";

/// The flag that asks for it.
pub(crate) fn argument() -> Arg {
    let help = "Time malloc's tunable by hyperfine as well";
    Arg::new("beside").long("beside").action(ArgAction::SetTrue).help(help)
}

/// Whether it was asked for.
///
/// # Errors
/// When it was, and the other tool is not here.
pub(crate) fn asked(matches: &ArgMatches) -> Result<bool> {
    let is_asked = matches.get_flag("beside");
    ensure!(!is_asked || find("hyperfine").is_some(), "hyperfine: apt install hyperfine");
    Ok(is_asked)
}

/// Times a program by the other tool, into a file of this name, and sets it beside what was said of
/// it; `None` of a server, and where the rung was not judged.
///
/// # Errors
/// When it cannot be timed.
pub(crate) fn timed(
    program: &Program,
    reports: &[&Value],
    work: &Path,
    file: &Path,
) -> Result<Option<Beside>> {
    let is_judged = reports.iter().any(|report| ratio(report, RUNG).is_some());
    if program.serves.is_some() || !is_judged {
        return Ok(None);
    }
    let timed = kept(file, || hyperfine(program, work))?;
    Ok(Beside::of(&program.name, reports, &timed))
}

/// What `hyperfine` measures of a program as it is set up and with malloc's tunable, as JSON in its
/// form.
fn hyperfine(program: &Program, work: &Path) -> Result<String> {
    let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
    let words: Vec<String> = program.words()?.iter().map(|word| quoted(word)).collect();
    let line_of = words.join(" ");
    let started = || match &program.input {
        // From a shell: releases before 1.16 cannot give a file.
        Some(input) => format!("sh -c {}", quoted(&format!("exec {line_of} < {}", quoted(input)))),
        None => line_of.clone(),
    };
    let sides = [format!("env {}", started()), format!("{TUNED}{}", started())];
    let mut times: [Vec<Value>; 2] = Default::default();
    for call in 0..CALLS {
        let order = if call % 2 == 0 { [0, 1] } else { [1, 0] };
        let mut command = Command::new("hyperfine");
        command.args(["--style", "none", "--runs", RUNS, "-N"]);
        // Nobody's first run counts, and the files of a program are read once.
        command.args(["--warmup", if call == 0 { "1" } else { "0" }]);
        // As `try` has it: output goes to a file, and memory that a host may have is touched ahead.
        command.args(["--output", "./hyperfine.out", "--prepare", &format!("{TUNED}{WARM}")]);
        command.args(["--export-json", "hyperfine.json"]).args(order.map(|side| &sides[side]));
        let status = command.current_dir(work).status().with_context(|| line(&command))?;
        if !status.success() {
            bail!("{} ended with {status}", line(&command));
        }
        let told: Value = serde_json::from_str(&fs::read_to_string(work.join("hyperfine.json"))?)?;
        for (nth, side) in order.into_iter().enumerate() {
            times[side]
                .extend(told["results"][nth]["times"].as_array().into_iter().flatten().cloned());
        }
    }
    let [now, with] = times.map(|times| json!({ "times": times }));
    Ok(json!({ "results": [now, with] }).to_string())
}

/// A rung of a report.
pub(crate) fn rung<'r>(report: &'r Value, name: &str) -> Option<&'r Value> {
    report["tried"]["rungs"].as_array()?.iter().find(|rung| rung["rung"] == name)
}

/// A rung beside what is set up: the ratio, and its interval.
pub(crate) fn ratio(report: &Value, name: &str) -> Option<[f64; 3]> {
    let ratio = &rung(report, name)?["beside_what_is_set_up"]["ratio"];
    Some([ratio["value"].as_f64()?, ratio["low"].as_f64()?, ratio["high"].as_f64()?])
}

/// A ratio by both tools.
#[derive(Debug)]
pub(crate) struct Beside {
    program: String,
    ours: [f64; 3],
    other: [f64; 3],
}

impl Beside {
    /// Of the run whose interval is narrower, beside what `hyperfine` measured; `None` where the
    /// rung was not judged.
    fn of(program: &str, reports: &[&Value], measured: &Value) -> Option<Self> {
        let ours = reports.iter().filter_map(|report| ratio(report, RUNG));
        let ours = ours.min_by(|one, other| (one[2] - one[1]).total_cmp(&(other[2] - other[1])))?;
        let [now, with] = [0, 1].map(|nth| {
            let seconds = measured["results"][nth]["times"].as_array();
            seconds.into_iter().flatten().filter_map(Value::as_f64).collect::<Vec<f64>>()
        });
        let other = of_medians(&with, &now)?;
        Some(Self { program: program.to_owned(), ours, other })
    }

    fn is_narrow(&self) -> bool {
        [self.ours, self.other]
            .iter()
            .all(|[value, low, high]| (high - low) / value <= 2.0 * NARROW)
    }

    fn overlaps(&self) -> bool {
        self.ours[1] <= self.other[2] && self.other[1] <= self.ours[2]
    }

    /// A line of the table.
    pub(crate) fn line(&self) -> String {
        let [ours, other] =
            [self.ours, self.other].map(|[v, low, high]| format!("{v:.3} ({low:.3} to {high:.3})"));
        let so = match (self.overlaps(), self.is_narrow()) {
            (true, true) => "overlap",
            (false, true) => "DO NOT OVERLAP",
            (true, false) => "overlap, but wider than 5 %",
            (false, false) => "do not overlap, wider than 5 %",
        };
        format!("{:<12}{ours:<26}{other:<26}{so}", self.program)
    }
}

/// The ratio of two medians, with an interval that is as wide as both of theirs together.
fn of_medians(above: &[f64], below: &[f64]) -> Option<[f64; 3]> {
    let ((above, one), (below, other)) = (median(above)?, median(below)?);
    let (value, give) = (above / below, one.hypot(other));
    Some([value, value * (1.0 - give), value * (1.0 + give)])
}

/// A median, and half of its 95 % interval, of order statistics, as a share of it.
fn median(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let many = sorted.len();
    // By so many ranks beside the middle one, as a binomial distribution has it (0.98 of the root).
    let ranks = many.isqrt() + 1;
    let (low, high) = ((many / 2).checked_sub(ranks)?, many.div_ceil(2) + ranks - 1);
    let middle = (sorted.get((many.max(1) - 1) / 2)? + sorted.get(many / 2)?) / 2.0;
    Some((middle, (sorted.get(high)? - sorted[low]) / 2.0 / middle))
}

/// The table; nothing where there is no line.
pub(crate) fn table(beside: &[Beside]) -> String {
    let mut text = String::new();
    if beside.is_empty() {
        return text;
    }
    let _ = writeln!(
        text,
        "\n{:<12}{:<26}{:<26}so ({RUNG} beside what is set up)",
        "program", "try", "hyperfine"
    );
    for one in beside {
        let _ = writeln!(text, "{}", one.line());
    }
    let narrow = beside.iter().filter(|one| one.is_narrow()).count();
    let overlap = beside.iter().filter(|one| one.is_narrow() && one.overlaps()).count();
    let _ = writeln!(text, "\n{overlap} of {narrow} overlap, where both are as narrow as 5 %.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tools_overlap_or_do_not_and_a_wide_one_says_nothing() {
        let ends = json!({"value": 0.8, "low": 0.79, "high": 0.81});
        let rung = json!({"rung": RUNG, "beside_what_is_set_up": {"ratio": ends}});
        let ours = json!({"tried": {"rungs": [rung]}});
        let timed = |now: f64, with: f64| {
            let times = |middle: f64| {
                let times: Vec<f64> =
                    (0..16).map(|nth| middle * (1.0 + f64::from(nth % 5 - 2) / 200.0)).collect();
                json!({"times": times})
            };
            json!({"results": [times(now), times(with)]})
        };
        let beside = |timed: &Value| Beside::of("x", &[&ours, &ours], timed).unwrap();
        let same = beside(&timed(1.0, 0.8));
        assert!(same.overlaps() && same.is_narrow());
        assert!(!beside(&timed(1.0, 0.9)).overlaps());
        let text = table(&[same]);
        assert!(
            text.contains("0.800 (0.790 to 0.810)") && text.contains("1 of 1 overlap"),
            "{text}"
        );
        assert!(Beside::of("x", &[&json!({})], &timed(1.0, 1.0)).is_none());
        assert!(of_medians(&[1.0; 3], &[1.0; 9]).is_none(), "too few for an interval");
        let (middle, half) = median(&[vec![1.0; 20], vec![9.0; 4]].concat()).unwrap();
        assert!((middle - 1.0).abs() < 1e-9 && half < 1e-9, "those far off do not count");
    }
}
