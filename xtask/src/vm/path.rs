//! `path/`: `fault/path` on the lane's kernels, by the binary that is under test.
//!
//! The one idea: these cases boot their machines themselves, so the lane only starts them on the
//! host, a run for each kernel, and reads what the run left. They are named as the lane's other
//! cases are, and filtered as they are.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{
    summary::Booted,
    table::Asked,
    verdict::{Finding, Judged, Outcome},
};
use crate::shell;

/// What stands for the machine in the list of expected skips: they make their own.
pub(super) const MACHINE: &str = "path";
/// The kernels.
const KERNELS: &[&str] = &["6.1", "6.12", "newest"];
/// The one that is asked what any kernel would say.
const ONE: &[&str] = &["6.12"];

/// A run of the lane.
struct Row {
    name: &'static str,
    kernels: &'static [&'static str],
    /// What is asked: kinds, pages, and the rest of the command.
    words: &'static [&'static str],
    wanted: Wanted,
}

/// What a run comes to when all is well.
enum Wanted {
    /// Every claim holds.
    Paths,
    /// A failure, in these words.
    Failure(&'static str),
    /// Between its two cases, which differ in this parameter, one of these functions does, and all
    /// that do add up to the whole.
    Difference(&'static str, &'static [&'static str]),
}

/// The runs.
const ROWS: &[Row] = &[
    Row {
        name: "path/4k",
        words: &[
            "--kind",
            "read,fork-cow,zap,protect,swap,userfaultfd-copy,shmem-minor",
            "--size",
            "2m",
        ],
        ..PATHS
    },
    // As long as a debugger finds it, step by step.
    Row { name: "path/stepped", words: &["--size", "2m", "--stepped", "on"], ..PATHS },
    Row { name: "path/file", words: &["--kind", "mkwrite,file-minor", "--size", "2m"], ..PATHS },
    Row { name: "path/nodes", words: &["--kind", "numa-hint,migrate", "--size", "1m"], ..PATHS },
    Row { name: "path/large", words: &["--page", "64k,2m,hugetlb-2m", "--size", "16m"], ..PATHS },
    Row {
        name: "path/planted",
        kernels: ONE,
        words: &["--size", "256k", "--parameters", "none,init_on_alloc=0"],
        wanted: Wanted::Difference("parameters", &["__rmqueue_pcplist"]),
    },
    Row {
        name: "path/charged",
        kernels: ONE,
        words: &["--size", "256k", "--group", "root,own"],
        wanted: Wanted::Difference("group", &["try_charge_memcg"]),
    },
    Row {
        name: "path/no-fault",
        kernels: ONE,
        words: &["--kind", "mprotect", "--size", "64k"],
        wanted: Wanted::Failure("takes no fault"),
    },
    // A machine that was saved takes the path of one that is booted.
    Row { name: "path/booted", kernels: ONE, words: &["--size", "2m", "--boots", "2"], ..PATHS },
    Row {
        name: "path/anywhere",
        kernels: ONE,
        words: &["--size", "64k", "--parameters", "kaslr"],
        wanted: Wanted::Paths,
    },
];

/// What most rows are.
const PATHS: Row = Row { name: "", kernels: KERNELS, words: &[], wanted: Wanted::Paths };

/// What of it was asked for: a kernel, and a place in [`ROWS`].
pub(super) fn selected(asked: &Asked) -> Vec<(&'static str, usize)> {
    let kernels = |row: usize| ROWS[row].kernels.iter().map(move |kernel| (*kernel, row));
    let all = (0..ROWS.len()).flat_map(kernels);
    all.filter(|(kernel, row)| asked.takes(ROWS[*row].name, kernel)).collect()
}

/// Names of all, for a list.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

/// Runs a row on a kernel.
pub(super) fn run(program: &Path, logs: &Path, kernel: &str, row: usize) -> Result<Booted> {
    let Row { name, words, wanted, .. } = &ROWS[row];
    let folder = logs.join(format!("{kernel}-{}", name.replace('/', "-")));
    let _ = fs::remove_dir_all(&folder);
    let mut command = shell::program(&program.to_string_lossy(), ["run", "fault/path", "--quiet"]);
    command.args(["--kernel", kernel]).args(*words).arg("--output").arg(&folder);
    let (ran, took) = shell::timed(|| command.output());
    let ran = ran.with_context(|| shell::line(&command))?;
    let journal = folder.join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap_or_default();
    let mut judged = Judged::default();
    for record in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if record["outcome"].is_null() {
            continue;
        }
        let part = ["kind", "page"].map(|name| record["case"][name].as_str().unwrap_or("?"));
        let part = Some(part.join(" "));
        let outcome = match (outcome(&record["outcome"]), wanted) {
            (Outcome::Fail(why), Wanted::Failure(words)) if why.contains(words) => Outcome::Ok(why),
            (Outcome::Ok(_), Wanted::Failure(words)) => Outcome::Fail(format!("not: {words}")),
            (outcome, _) => outcome,
        };
        judged.findings.push(Finding { case: (*name).to_owned(), part, outcome });
        if judged.release.is_empty() {
            judged.release = release(&record["outcome"]).unwrap_or_default();
        }
    }
    let mut failures = Vec::new();
    if judged.findings.is_empty() {
        failures.push(String::from_utf8_lossy(&ran.stderr).trim().to_owned());
    } else {
        let seen = format!("{} kinds", judged.findings.len());
        let whole = Finding { case: (*name).to_owned(), part: None, outcome: Outcome::Ok(seen) };
        judged.findings.insert(0, whole);
    }
    if let Wanted::Difference(by, functions) = wanted {
        failures.extend(not_found(program, &folder, by, functions)?);
    }
    let mut booted = Booted {
        judged,
        failures,
        kernel: kernel.to_owned(),
        seconds: took.as_secs(),
        ..Booted::default()
    };
    booted.text = booted.describe(&format!("{kernel} {name}"), took, &folder);
    for finding in &booted.judged.findings {
        if let (Outcome::Ok(seen), Some(part)) = (&finding.outcome, &finding.part) {
            booted.text.push_str(&format!("\n        {part}: {seen}"));
        }
    }
    Ok(booted)
}

/// What the comparison of a run's two cases does not show of what was planted.
fn not_found(
    program: &Path,
    folder: &Path,
    by: &str,
    functions: &[&str],
) -> Result<Option<String>> {
    let mut command = shell::program(&program.to_string_lossy(), ["compare"]);
    command.arg(folder).args(["--by", by, "--format", "json"]);
    let said = command.output().with_context(|| shell::line(&command))?;
    let said: Value =
        serde_json::from_slice(&said.stdout).with_context(|| shell::line(&command))?;
    let path = &said["paths"][0];
    let found = path["functions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let number = |of: &Value, name: &str| of[name].as_i64().unwrap_or(0);
    let sum: i64 = found.iter().map(|one| number(one, "b") - number(one, "a")).sum();
    let is_there = found.iter().any(|one| functions.iter().any(|name| one["function"] == *name));
    let is_whole = sum == number(path, "difference") && sum != 0;
    Ok((!(is_there && is_whole)).then(|| format!("{functions:?} is not what differs: {path}")))
}

/// What came of a record. A machine that cannot show a kind is a skip, which the lane lists.
fn outcome(outcome: &Value) -> Outcome {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(skipped) = outcome.get("skipped") {
        return Outcome::Skip { need: text(&skipped["need"]), cure: text(&skipped["cure"]) };
    }
    if let Some(failed) = outcome.get("failed") {
        return Outcome::Fail(text(&failed["reason"]));
    }
    let measured = &outcome["measured"];
    let claims = measured["witness"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(broken) = claims.iter().find(|claim| claim["holds"] != true) {
        let (expected, observed) = (&broken["expected"], &broken["observed"]);
        let claim = text(&broken["claim"]);
        return Outcome::Fail(format!("{claim}: expected {expected}, observed {observed}"));
    }
    let count = |name: &str| measured["counters"][name].as_u64().unwrap_or(0);
    let samples = count("samples").max(1) as f64;
    let share = |name: &str| count(name) as f64 * 100.0 / samples;
    Outcome::Ok(format!(
        "{} instructions, mode {:.1} %, named {:.1} %",
        count("mode_instructions"),
        share("samples_in_mode"),
        share("samples_named")
    ))
}

/// The kernel that ran, by the name of a table.
fn release(outcome: &Value) -> Option<String> {
    let tables = outcome["measured"]["tables"].as_array()?;
    let mut names = tables.iter().filter_map(|table| table["name"].as_str());
    names.find_map(|name| name.strip_prefix("kernel/")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_well_when_its_claims_hold() {
        let claim = json!({ "claim": "windows", "expected": 2, "observed": 3, "holds": false });
        let counters = json!({ "samples": 10, "samples_in_mode": 8, "samples_named": 10,
                               "mode_instructions": 2635 });
        let good = json!({ "measured": { "counters": counters, "witness": [] } });
        let said = Outcome::Ok("2635 instructions, mode 80.0 %, named 100.0 %".into());
        assert_eq!(outcome(&good), said);
        let bad = json!({ "measured": { "witness": [claim] } });
        assert_eq!(outcome(&bad), Outcome::Fail("windows: expected 2, observed 3".into()));
        let skipped = json!({ "skipped": { "need": "a", "cure": "b" } });
        assert_eq!(outcome(&skipped), Outcome::Skip { need: "a".into(), cure: "b".into() });
    }

    #[test]
    fn it_is_filtered_as_any_other_case() {
        let asked = |filter: &str, kernel: &str| Asked {
            filters: vec![filter.to_owned()],
            kernels: vec![kernel.to_owned()],
            ..Asked::default()
        };
        assert_eq!(selected(&asked("path/", "6.12")).len(), ROWS.len());
        assert_eq!(selected(&asked("path/stepped", "6.1")), [("6.1", 1)]);
        assert_eq!(selected(&asked("path/planted", "6.1")), []);
        assert!(selected(&asked("numa/", "6.12")).is_empty());
        assert!(names().all(|name| name.starts_with("path/")));
    }
}
