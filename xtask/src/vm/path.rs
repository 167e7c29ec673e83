//! `path/`: `fault/path` on the lane's kernels, by the binary that is under test.
//!
//! These cases boot their machines themselves, so the lane only starts pagelab on the host, once
//! for each kernel, with the rows as a suite, and reads the run. They are named as the lane's other
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
/// The one that shows what holds for all.
const ONE: &[&str] = &["6.12"];

/// Cases of the lane.
struct Row {
    name: &'static str,
    kernels: &'static [&'static str],
    /// Parameters of the cases, and their values; all others are their defaults.
    case: &'static [(&'static str, &'static [&'static str])],
    wanted: Wanted,
}

/// What records come to when all is well.
enum Wanted {
    /// Every check passes.
    Paths,
    /// A failure, in these words.
    Failure(&'static str),
    /// Between two cases, which differ in this parameter, one of these functions differs, and all
    /// that do add up to the whole.
    Difference(&'static str, &'static [&'static str]),
}

/// The rows. No two have a case in common.
const ROWS: &[Row] = &[
    Row {
        name: "path/4k",
        case: &[
            (
                "kind",
                &["read", "fork-cow", "zap", "protect", "swap", "userfaultfd-copy", "shmem-minor"],
            ),
            ("size", &["256k"]),
        ],
        ..PATHS
    },
    // As long as a debugger finds it, step by step. Each window before those it steps through costs
    // a breakpoint, and with it all that was translated.
    Row { name: "path/stepped", case: &[("size", &["128k"]), ("stepped", &["on"])], ..PATHS },
    Row {
        name: "path/file",
        case: &[("kind", &["mkwrite", "file-minor"]), ("size", &["256k"])],
        ..PATHS
    },
    Row {
        name: "path/nodes",
        case: &[("kind", &["numa-hint", "migrate"]), ("size", &["256k"])],
        ..PATHS
    },
    Row {
        name: "path/large",
        case: &[("page", &["64k", "2m", "hugetlb-2m"]), ("size", &["4m"])],
        ..PATHS
    },
    Row {
        name: "path/planted",
        kernels: ONE,
        case: &[("size", &["256k"]), ("parameters", &["none", "init_on_alloc=0"])],
        wanted: Wanted::Difference("parameters", &["__rmqueue_pcplist"]),
    },
    Row {
        name: "path/charged",
        kernels: ONE,
        case: &[("size", &["512k"]), ("group", &["root", "own"])],
        wanted: Wanted::Difference("group", &["try_charge_memcg"]),
    },
    Row {
        name: "path/no-fault",
        kernels: ONE,
        case: &[("kind", &["mprotect"]), ("size", &["64k"])],
        wanted: Wanted::Failure("takes no fault"),
    },
    // A machine that was saved takes the path of one that is booted.
    Row {
        name: "path/booted",
        kernels: ONE,
        case: &[("size", &["512k"]), ("boots", &["2"])],
        ..PATHS
    },
    Row {
        name: "path/anywhere",
        kernels: ONE,
        case: &[("size", &["64k"]), ("parameters", &["kaslr"])],
        ..PATHS
    },
];

/// Most rows.
const PATHS: Row = Row { name: "", kernels: KERNELS, case: &[], wanted: Wanted::Paths };

/// The kernels on which something was asked for, and the places of that in [`ROWS`].
pub(super) fn selected(asked: &Asked) -> Vec<(&'static str, Vec<usize>)> {
    let rows = |kernel: &&'static str| {
        let is_asked = |row: &Row| row.kernels.contains(kernel) && asked.takes(row.name, kernel);
        (0..ROWS.len()).filter(|row| is_asked(&ROWS[*row])).collect::<Vec<_>>()
    };
    let all = KERNELS.iter().map(|kernel| (*kernel, rows(kernel)));
    all.filter(|(_, rows)| !rows.is_empty()).collect()
}

/// Names of all, for a list.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

/// The rows on a kernel, as a suite.
fn suite(kernel: &str, rows: &[usize]) -> String {
    let mut text = "name = \"paths\"\nsummary = \"cases of the lane\"\n".to_owned();
    for row in rows {
        text.push_str(&format!("[[case]]\nworkload = \"fault/path\"\nkernel = \"{kernel}\"\n"));
        for (name, values) in ROWS[*row].case {
            text.push_str(&format!("{name} = {values:?}\n"));
        }
    }
    text
}

impl Row {
    /// Whether a record is of this row.
    fn has(&self, record: &Value) -> bool {
        let is = |name: &str| record["case"][name].as_str().unwrap_or_default().to_owned();
        let named = |name: &str| self.case.iter().any(|(known, _)| *known == name);
        let rest = [("kind", "write"), ("page", "4k"), ("stepped", "off"), ("boots", "1")];
        self.case.iter().all(|(name, values)| values.contains(&&*is(name)))
            && rest.iter().all(|(name, value)| named(name) || is(name) == *value)
    }

    /// What came of a record, and of this row.
    fn outcome(&self, record: &Value) -> Outcome {
        match (outcome(&record["outcome"]), &self.wanted) {
            (Outcome::Fail(why), Wanted::Failure(words)) if why.contains(words) => Outcome::Ok(why),
            (Outcome::Ok(_), Wanted::Failure(words)) => Outcome::Fail(format!("not: {words}")),
            (outcome, _) => outcome,
        }
    }
}

/// Runs rows on a kernel.
pub(super) fn run(program: &Path, logs: &Path, kernel: &str, rows: &[usize]) -> Result<Booted> {
    let folder = logs.join(format!("{kernel}-paths"));
    let file = logs.join(format!("{kernel}-paths.toml"));
    let _ = fs::remove_dir_all(&folder);
    fs::write(&file, suite(kernel, rows)).with_context(|| file.display().to_string())?;
    let mut command = shell::program(&program.to_string_lossy(), ["run", "--quiet", "--suite"]);
    command.arg(Path::new(".").join(&file)).arg("--output").arg(&folder);
    let (ran, took) = shell::timed(|| command.output());
    let ran = ran.with_context(|| shell::line(&command))?;
    let text = fs::read_to_string(folder.join("journal.jsonl")).unwrap_or_default();
    let lines: Vec<(&str, Value)> =
        text.lines().filter_map(|line| Some((line, serde_json::from_str(line).ok()?))).collect();
    let (mut judged, mut failures) = (Judged::default(), Vec::new());
    for row in rows.iter().map(|row| &ROWS[*row]) {
        let name = row.name.to_owned();
        let mine: Vec<_> = lines.iter().filter(|(_, record)| row.has(record)).collect();
        let seen = Outcome::Ok(format!("{} kinds", mine.len()));
        judged.findings.push(Finding { case: name.clone(), part: None, outcome: seen });
        for (_, record) in &mine {
            let part = ["kind", "page"].map(|name| record["case"][name].as_str().unwrap_or("?"));
            let (part, outcome) = (Some(part.join(" ")), row.outcome(record));
            judged.findings.push(Finding { case: name.clone(), part, outcome });
        }
        let cases: usize = row.case.iter().map(|(_, values)| values.len()).product();
        if mine.len() != cases {
            failures.push(format!("{name}: {} records of {cases}", mine.len()));
        }
        if let Wanted::Difference(by, functions) = row.wanted {
            let run = logs.join(format!("{kernel}-{}", name.replace('/', "-")));
            fs::create_dir_all(&run).with_context(|| run.display().to_string())?;
            let header = lines.first().map(|(line, _)| *line);
            let part: Vec<_> =
                header.into_iter().chain(mine.iter().map(|(line, _)| *line)).collect();
            fs::write(run.join("journal.jsonl"), part.join("\n") + "\n")
                .context("a part of a run")?;
            failures.extend(not_found(program, &run, by, functions)?);
        }
    }
    judged.release =
        lines.iter().find_map(|(_, record)| release(&record["outcome"])).unwrap_or_default();
    if !failures.is_empty() {
        failures.push(String::from_utf8_lossy(&ran.stderr).trim().to_owned());
    }
    let seconds = took.as_secs();
    let mut booted =
        Booted { judged, failures, kernel: kernel.to_owned(), seconds, ..Booted::default() };
    booted.text = booted.describe(&format!("{kernel} fault/path"), took, &folder);
    for finding in &booted.judged.findings {
        if let (Outcome::Ok(seen), Some(part)) = (&finding.outcome, &finding.part) {
            booted.text.push_str(&format!("\n        {} {part}: {seen}", finding.case));
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
        assert_eq!(selected(&asked("path/", "6.12")), [("6.12", (0..ROWS.len()).collect())]);
        assert_eq!(selected(&asked("path/stepped", "6.1")), [("6.1", vec![1])]);
        assert_eq!(selected(&asked("path/planted", "6.1")), []);
        assert!(selected(&asked("numa/", "6.12")).is_empty());
        assert!(names().all(|name| name.starts_with("path/")));
    }

    #[test]
    fn a_record_is_of_one_row() {
        let case = |more: Value| {
            let mut case = json!({ "kind": "write", "page": "4k", "parameters": "mitigations=off",
                                   "group": "root", "size": "512k", "boots": "1",
                                   "stepped": "off" });
            case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let record = json!({ "case": case });
            let rows = ROWS.iter().filter(|row| row.has(&record)).map(|row| row.name);
            rows.collect::<Vec<_>>()
        };
        assert_eq!(case(json!({ "stepped": "on", "size": "128k" })), ["path/stepped"]);
        assert_eq!(case(json!({ "boots": "2" })), ["path/booted"]);
        assert_eq!(case(json!({ "kind": "zap", "size": "256k" })), ["path/4k"]);
        assert_eq!(case(json!({ "size": "256k", "parameters": "none" })), ["path/planted"]);
        assert_eq!(case(json!({ "group": "own" })), ["path/charged"]);
        assert!(case(json!({ "size": "2m" })).is_empty());
        let suite: toml::Table = suite("6.1", &[0, 1]).parse().unwrap();
        assert_eq!(suite["case"].as_array().unwrap().len(), 2);
    }
}
