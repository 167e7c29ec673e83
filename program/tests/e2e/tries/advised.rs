//! What a variant sets, and advice as data.

use std::{fs, path::Path};

use pagelab_record::advice::{KHUGEPAGED, THP};
use serde_json::{Value, json};

use super::ALONE;
use crate::support::{Lab, Machine, Saved, skip};

#[test]
fn khugepaged_is_set_while_the_program_runs_and_put_back() {
    let Some(_machine) = Machine::as_root() else { return };
    let path = |file: &str| format!("{THP}/khugepaged/{file}");
    if !Path::new(&path("scan_sleep_millisecs")).exists() {
        return skip("this kernel has no khugepaged", "CONFIG_TRANSPARENT_HUGEPAGE=y");
    }
    let files = KHUGEPAGED.map(|(file, _)| path(file));
    let saved = files.each_ref().map(|path| Saved::of(Path::new(path)));
    let policy = Saved::of(Path::new(&format!("{THP}/enabled")));
    let lab = Lab::new();
    let flags = ["try", "-q", ALONE, "-o", "run", "--rounds", "1", "--format", "json"];
    let words = ["--rung", "khugepaged", "--", "cat"];
    let paths: Vec<&str> = files.iter().map(String::as_str).collect();
    let ended = lab.pagelab(&[&flags[..], &words[..], &paths[..]].concat());
    ended.exits(0);
    let read = fs::read_to_string(lab.path("run/khugepaged.stdout")).unwrap();
    let values = KHUGEPAGED.map(|(_, value)| value);
    assert_eq!(read.lines().collect::<Vec<_>>(), values);
    saved.iter().for_each(Saved::is_back);
    policy.is_back();
    // What it set, and what undoes it, last first.
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let told = report["tried"]["rungs"].as_array().unwrap();
    let mine = told.iter().find(|rung| rung["id"] == "khugepaged").unwrap();
    let setting = mine["setting"].as_array().unwrap();
    assert_eq!(setting[setting.len() - 1], json!({"file": files[3], "value": values[3]}));
    assert_eq!(mine["undo"][0], json!({"file": files[3], "value": saved[3].found()}));
}
