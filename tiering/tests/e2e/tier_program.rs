//! `pagelab tier promote -- PROGRAM`: what a library in the program and asynchronous write
//! protection find of pages that the program drew itself, on one node, where nothing can move. The
//! program does meanwhile what a watcher must not break, and says whether it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use pagelab_interpose::heat::PACKAGE;
use pagelab_sys::uffd::Ability;
use serde_json::Value;

use crate::{
    explain::compiled,
    support::{Beside, Ended, Lab, Live, build_library, skip, until},
};

const PAGE: u64 = 4096;
const SEED: &str = "4711";

/// The pages that each look saw, by address.
fn looks(log: &str) -> Vec<BTreeSet<u64>> {
    let (mut blocks, mut looks) = (BTreeMap::new(), Vec::new());
    for line in log.lines().skip(1) {
        let line: Value = serde_json::from_str(line).unwrap();
        let pairs = |of: &Value| -> Vec<(u64, u64)> {
            serde_json::from_value(of.clone()).unwrap_or_default()
        };
        blocks.extend(pairs(&line["blocks"]));
        if line["scan"].is_null() {
            continue;
        }
        let runs = pairs(&line["scan"]["pages"]);
        let pages = runs.into_iter().flat_map(|(first, count)| first..first + count);
        looks.push(pages.map(|page| blocks[&(page / 512)] + page % 512 * PAGE).collect());
    }
    looks
}

/// Looks that see a page that is hot. Others are used twice at most: by the stores that fill them,
/// and when the program checks them in the end.
const LOOKS: usize = 3;
/// Hot pages of the program: an eighth of 48 MiB.
const HOT: usize = (48 << 20) / 4096 / 8;

/// The pages that so many looks saw.
fn used(looks: &[BTreeSet<u64>]) -> BTreeSet<u64> {
    let mut times = BTreeMap::<u64, usize>::new();
    for page in looks.iter().flatten() {
        *times.entry(*page).or_default() += 1;
    }
    times.into_iter().filter(|(_, times)| *times >= LOOKS).map(|(page, _)| page).collect()
}

/// Whether these are all hot pages but one of 100.
fn is_nearly_all(hot: &BTreeSet<u64>, seen: &BTreeSet<u64>) -> bool {
    hot.len() == HOT && hot.intersection(seen).count() * 100 >= HOT * 99
}

/// The pages that the program has named as hot so far.
fn named(path: &str) -> BTreeSet<u64> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.map(|line| u64::from_str_radix(line, 16).unwrap()).collect()
}

/// Runs the program under a source until its hot pages were seen, or it ends; what it said, its hot
/// pages, and its log. The last two looks see them all, so that they are hot to the policy as well.
fn promoted(source: &str, what: &str) -> Option<(Lab, Ended, BTreeSet<u64>)> {
    let lab = Lab::new();
    build_library(PACKAGE);
    let program = compiled(&lab, "hot")?;
    let (pages, log) = (lab.path("pages"), lab.path("log"));
    let [program, pages, log] = [&program, &pages, &log].map(|path| path.to_str().unwrap());
    let words = ["tier", "promote", "--source", source, "--interval", "0.2", "--log", log];
    let rest = ["--format", "json", "--", program, "48", SEED, "300000", what, pages];
    let mut run = Live::start(&lab, &[&words[..], &rest].concat());
    let mut length = 0;
    until("looks at the program", || {
        if !run.is_running() {
            return Some(());
        }
        let whole = fs::read_to_string(log).unwrap_or_default();
        let whole = whole.rfind('\n').map_or("", |end| &whole[..end]);
        if whole.len() == std::mem::replace(&mut length, whole.len()) {
            return None;
        }
        let (looks, hot) = (looks(whole), named(pages));
        let [.., before, last] = &looks[..] else { return None };
        let seen = [&used(&looks), before, last];
        seen.iter().all(|seen| is_nearly_all(&hot, seen)).then_some(())
    });
    lab.file("pages.over", "");
    let ended = run.end();
    let hot = named(pages);
    Some((lab, ended, hot))
}

fn finds_what_is_hot(source: &str, what: &str) {
    let Some((lab, ended, hot)) = promoted(source, what) else { return };
    assert_eq!(ended.exits(0).stdout, "correct\n", "{}", ended.stderr);
    let looks = looks(&fs::read_to_string(lab.path("log")).unwrap());
    assert!(looks.len() >= LOOKS, "{} looks: {}", looks.len(), ended.stderr);
    let found = used(&looks);
    let both = hot.intersection(&found).count();
    assert!(is_nearly_all(&hot, &found), "{both} of {} in {} looks", hot.len(), looks.len());
    let (first, last) = (hot.first().unwrap(), hot.last().unwrap());
    let others = found.range(first..last).filter(|page| !hot.contains(page)).count() as u64;
    assert!(others * 100 <= (last - first) / PAGE - hot.len() as u64, "{others} others");
    lab.pagelab(&["tier", "replay", lab.path("log").to_str().unwrap()]).exits(0);
    // The ranges that are shown are of hot pages.
    let json = ended.stderr.lines().find(|line| line.starts_with('{')).unwrap();
    let json: Value = serde_json::from_str(json).unwrap();
    let process = json["hottest"].as_object().unwrap().values().next().unwrap();
    assert!(process["hot"].as_u64().unwrap() > 0, "{json}");
    assert!(process["ranges"][0]["hot"].as_u64().unwrap() > 0, "{json}");
    let one_node =
        json["reasons"].as_array().unwrap().iter().any(|why| why["reason"] == "one-node");
    let nodes = fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_default();
    assert_eq!(one_node, nodes.trim() == "0", "{json}");
}

#[test]
fn loads_are_seen_where_memory_is_closed_for_moments_and_the_program_is_as_it_was() {
    finds_what_is_hot("prot-none", "load");
}

#[test]
fn stores_are_seen_by_write_protection_that_the_kernel_takes_away() {
    if !Ability::WriteProtectAsync.is_here() {
        return skip("the kernel has no asynchronous write protection", "Linux 6.7");
    }
    finds_what_is_hot("write-protect", "store");
}

#[test]
fn a_program_keeps_its_exit_code_its_output_and_its_faults() {
    let lab = Lab::new();
    build_library(PACKAGE);
    let promote = |source: &str, script: &str| {
        let words = ["tier", "promote", "--source", source, "--", "sh", "-c", script];
        lab.pagelab(&words)
    };
    for source in ["prot-none", "write-protect"] {
        if source == "write-protect" && !Ability::WriteProtectAsync.is_here() {
            continue;
        }
        let ended = promote(source, "echo told; exit 7");
        assert_eq!((ended.exits(7).stdout.as_str()), "told\n");
    }
    let none = lab.pagelab(&["tier", "promote", "--", "/no/such/program"]);
    assert!(none.exits(2).stderr.contains("/no/such/program"), "{}", none.stderr);
    lab.pagelab(&["tier", "promote", "--pid", "1", "--", "true"]).exits(2);
}

#[test]
fn calls_about_memory_that_is_registered_for_faults_come_out_as_they_do_alone() {
    if !Ability::WriteProtectAsync.is_here() {
        return skip("the kernel has no asynchronous write protection", "Linux 6.7");
    }
    let lab = Lab::new();
    build_library(PACKAGE);
    let Some(program) = compiled(&lab, "remap") else { return };
    let alone = lab.ended(assert_cmd::Command::new(&program).arg("plain"));
    assert!(alone.exits(0).stdout.contains("a mapping that grew: done, 2048"), "{}", alone.stdout);
    let program = program.to_str().unwrap();
    for source in ["write-protect", "prot-none"] {
        let mode = if source == "write-protect" { "watched" } else { "plain" };
        let words = ["tier", "promote", "--source", source, "--interval", "0.05", "--"];
        let ended = lab.pagelab(&[&words[..], &[program, mode]].concat());
        assert_eq!(ended.exits(0).stdout, alone.stdout, "{source}: {}", ended.stderr);
    }
}

#[test]
fn a_policy_is_predicted_before_it_is_tried_and_the_error_is_printed() {
    let lab = Lab::new();
    build_library(PACKAGE);
    let Some(program) = compiled(&lab, "hot") else { return };
    let (program, pages) = (program.to_str().unwrap(), lab.path("pages"));
    let words = ["tier", "explain", "--source", "prot-none", "--interval", "0.2"];
    let pages = pages.to_str().unwrap();
    let rest = ["--", program, "48", SEED, "800", "load", pages];
    let nodes = fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_default();
    if nodes.trim() != "0" {
        // What slow memory costs has to be said there.
        let ended = lab.pagelab(&[&words[..], &rest].concat());
        assert!(ended.exits(3).stderr.contains("--curve"), "{}", ended.stderr);
        return;
    }
    let shown = lab.pagelab(&[&words[..], &["--runs", "2"], &rest].concat());
    // Watched, then under each of the two policies and with nobody beside, and again the other way
    // round.
    assert_eq!(shown.exits(0).stdout, "correct\n".repeat(7), "{}", shown.stderr);
    assert!(shown.stderr.contains("watched by prot-none it is slower by"), "{}", shown.stderr);
    let at =
        |text: &str| shown.stderr.find(text).unwrap_or_else(|| panic!("{text}: {}", shown.stderr));
    assert!(at("nothing can be promoted: one node") < at("history: predicted"));
    assert!(at("history: predicted") < at("none: took") && at("none: took") < at("history: took"));
    assert!(at("of 2 runs, which hold the median by 50 %") > 0);
    assert!(shown.stderr.contains("not yet seen on hardware"), "{}", shown.stderr);
    let more = ["--policy", "history", "--runs", "1", "--format", "json"];
    let rest = ["--", program, "48", SEED, "600000", "load", pages];
    let mut live = Live::start(&lab, &[&words[..], &more, &rest].concat());
    until("a look at the program", || {
        let is_seen = promoting(&lab, live.pid()).iter().any(|one| one["looks"].as_u64() > Some(0));
        (is_seen || !live.is_running()).then_some(())
    });
    // It ends, and ends soon under each policy.
    lab.file("pages.over", "");
    let ended = live.end();
    let told = ended.exits(0).stderr.lines().find(|line| line.starts_with('{')).unwrap();
    let json: Value = serde_json::from_str(told).unwrap();
    let history = &json["policies"][0];
    let (predicted, took) = (&history["predicted"], &history["took"][0]);
    assert_eq!(predicted["ns"], json["watched_ns"], "nothing moves on one node: {json}");
    assert!(predicted["looks"].as_u64().unwrap() > 0, "{json}");
    let error = predicted["ns"].as_f64().unwrap() / took["ns"].as_f64().unwrap() - 1.0;
    assert!((history["error"]["median"].as_f64().unwrap() - error).abs() < 1e-9, "{json}");
    assert_eq!(json["nothing_moves"]["why"]["reason"], "one-node", "{json}");
}

/// What a running `pagelab` of this number has found, by `tier status`.
fn promoting(lab: &Lab, by: u32) -> Vec<Value> {
    let ended = lab.pagelab(&["tier", "status", "--once", "--json"]);
    let status: Value = serde_json::from_str(&ended.exits(0).stdout).unwrap();
    let all = status["promoting"].as_array().unwrap().iter();
    all.filter(|one| one["by"] == u64::from(by)).cloned().collect()
}

#[test]
fn status_shows_what_a_running_promote_has_found_until_it_is_killed() {
    let lab = Lab::new();
    build_library(PACKAGE);
    let Some(program) = compiled(&lab, "hot") else { return };
    let (program, pages) = (program.to_str().unwrap(), lab.path("pages"));
    let words = ["tier", "promote", "--source", "prot-none", "--interval", "0.1", "--", program];
    let rest = ["48", SEED, "600000", "load", pages.to_str().unwrap()];
    let live = Live::start(&lab, &[&words[..], &rest].concat());
    let by = live.pid();
    let found = || promoting(&lab, by);
    let hot = until("a look that found something", || {
        found().into_iter().find(|one| one["hot"].as_u64() > Some(0))
    });
    assert_eq!((&hot["policy"], &hot["source"]), (&"history".into(), &"prot-none".into()));
    assert!(hot["ranges"][0]["hot"].as_u64().unwrap() > 0, "{hot}");
    let shown = lab.pagelab(&["tier", "status", "--once"]);
    let says = format!("promoted by pagelab {by}, history by prot-none");
    assert!(shown.exits(0).stdout.contains(&says), "{}", shown.stdout);
    live.kill_group();
    live.end();
    assert_eq!(found(), Vec::<Value>::new());
}

#[test]
fn what_cannot_be_explained_is_refused_before_the_program_runs() {
    let lab = Lab::new();
    let curve = lab.file("curve.toml", "nonsense\n");
    let curve = curve.to_str().unwrap();
    for (words, says) in [
        (&["--policy", "oracle"][..], "knows the future"),
        (&["--policy", "nonsense"], "nonsense"),
        (&["--limit", "0"], "--limit 0"),
        (&["--runs", "0"], "--runs"),
        (&["--large", "half"], "whole or split"),
        (&["--source", "nonsense"], "no source"),
        (&["--curve", "plain"], "no measured `points`"),
        (&["--curve", curve], "curve.toml"),
    ] {
        let words = [&["tier", "explain"], words, &["--", "sh", "-c", "echo ran"]].concat();
        let ended = lab.pagelab(&words);
        assert!(ended.exits(2).stderr.contains(says), "{says}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
    lab.pagelab(&["tier", "explain"]).exits(2);
}

#[test]
fn a_source_inside_programs_is_refused_for_a_process_that_runs() {
    let lab = Lab::new();
    let child = Beside::start(std::process::Command::new("sleep").arg("1000"));
    let pid = child.pid().to_string();
    let ended = lab.pagelab(&["tier", "promote", "--pid", &pid, "--source", "prot-none"]);
    drop(child);
    let nodes = fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_default();
    let says = if nodes.trim() == "0" { "one node" } else { "tier promote -- PROGRAM" };
    assert!(ended.exits(3).stderr.contains(says), "{}", ended.stderr);
}
