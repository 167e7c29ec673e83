//! `pagelab tier promote` and `tier replay`: what is said of arguments, processes and logs that are
//! wrong. What they do needs two tiers of memory: cases `tier/` of the lane.

use std::process::{Command, Stdio};

use crate::support::{Beside, Lab, binary, skip, state, until};

#[test]
fn what_makes_no_sense_is_a_mistake_of_the_command_line() {
    let lab = Lab::new();
    let own = std::process::id().to_string();
    for (words, says) in [
        (&["--limit", "0"][..], "would move nothing"),
        (&["--policy", "hottest"], "no policy is called `hottest`"),
        (&["--policy", "history:hot=9"], "outside 1 to 8"),
        (&["--source", "guess"], "no source is called `guess`"),
        (&["--to", "4000"], "no memory node 4000"),
        (&["--from", "4000"], "no memory node 4000"),
    ] {
        let ended = lab.pagelab(&[&["tier", "promote", "--pid", &own], words].concat());
        assert!(ended.exits(2).stderr.contains(says), "{words:?}: {}", ended.stderr);
    }
    lab.pagelab(&["tier", "promote"]).exits(2);
    lab.pagelab(&["tier", "promote", "--pid", "1", "--cgroup", "/"]).exits(2);
}

#[test]
fn a_process_that_cannot_be_the_target_is_refused_by_name() {
    let lab = Lab::new();
    // Of a process that has ended, whose number no other one gets before it is waited for; and a
    // number that no process has.
    let child = Beside::start(Command::new("true").stdout(Stdio::null()));
    until("its end", || (state(child.pid()) == Some('Z')).then_some(()));
    let ended = child.pid().to_string();
    lab.pagelab(&["tier", "promote", "--pid", &ended]).exits(2).complains(&[&ended]);
    lab.pagelab(&["tier", "promote", "--pid", "4194305"])
        .exits(2)
        .complains(&["no process 4194305"]);
    let kernel = std::fs::read_to_string("/proc/2/comm");
    if kernel.is_ok_and(|name| name.trim() == "kthreadd") {
        let ended = lab.pagelab(&["tier", "promote", "--pid", "2"]);
        assert!(ended.exits(2).stderr.contains("a thread of the kernel"), "{}", ended.stderr);
    }
}

#[test]
fn one_node_has_nowhere_to_move_to_and_says_so() {
    let nodes = std::fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_default();
    if nodes.trim() != "0" {
        return skip("there are two nodes", "a machine with one");
    }
    let lab = Lab::new();
    let own = std::process::id().to_string();
    let ended = lab.pagelab(&["tier", "promote", "--pid", &own]);
    assert!(ended.exits(3).stderr.contains("one node has all memory"), "{}", ended.stderr);
}

#[test]
fn a_log_that_is_none_is_refused_by_its_line() {
    let lab = Lab::new();
    let head = r#"{"schema":"pagelab.tier-log/2","pid":1,"source":"soft-dirty","nodes":[0,1]}"#;
    for (text, says) in [
        (String::new(), "line 1"),
        ("nonsense\n".to_owned(), "line 1"),
        (head.replace("log/2", "log/9") + "\n", "pagelab.tier-log/9"),
        (format!("{head}\n{{\"decided\":[]}}\n"), "line 2: nothing has started yet"),
        (format!("{head}\n{{\"unheard\":1}}\n"), "line 2"),
    ] {
        let log = lab.file("log", &text);
        let ended = lab.pagelab(&["tier", "replay", &log.to_string_lossy()]);
        assert!(ended.exits(2).stderr.contains(says), "{text}: {}", ended.stderr);
    }
    lab.pagelab(&["tier", "replay", "/nowhere"]).exits(2);
}

#[test]
fn every_source_says_what_it_sees_and_what_is_missing() {
    let lab = Lab::new();
    let ended = lab.pagelab(&["tier", "sources", "--format", "json"]);
    let sources: serde_json::Value = serde_json::from_str(&ended.exits(0).stdout).unwrap();
    let sources = sources.as_array().unwrap();
    assert!(sources.len() >= 8, "{sources:?}");
    for source in sources {
        for key in ["name", "summary", "sees", "of", "granularity", "privilege", "cost"] {
            assert!(!source[key].as_str().unwrap().is_empty(), "{key} of {source}");
        }
        assert_eq!(source["lack"].is_string(), source["cure"].is_string(), "{source}");
    }
    let shown = lab.pagelab(&["tier", "sources"]);
    assert!(shown.exits(0).stdout.contains("damon: regions of a monitor"), "{}", shown.stdout);
    // Regions are no pages, whoever asks for them.
    let words = ["tier", "promote", "--source", "damon", "--", "true"];
    let refused = lab.pagelab(&words);
    assert!(refused.exits(3).stderr.contains("it names regions"), "{}", refused.stderr);
}

#[test]
fn status_ends_by_itself_where_nobody_is_shown_it_on_a_terminal() {
    let lab = Lab::new();
    let shown = lab.pagelab(&["tier", "status"]);
    let nodes = shown.exits(0).stdout.lines().filter(|line| line.starts_with("node 0 "));
    assert_eq!(nodes.count(), 1, "{}", shown.stdout);
    let shown = lab.pagelab(&["tier", "status", "--json"]);
    assert_eq!(shown.exits(0).stdout.lines().count(), 1);
    let mut shell = assert_cmd::Command::new("sh");
    let script = format!("{{ {} tier status; echo $? >&2; }} | true", binary().display());
    assert_eq!(lab.ended(shell.args(["-c", &script])).exits(0).stderr, "0\n");
}

#[test]
fn status_names_the_nodes_and_why_nothing_moves() {
    let lab = Lab::new();
    let ended = lab.pagelab(&["tier", "status", "--once", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&ended.exits(0).stdout).unwrap();
    let nodes = status["nodes"].as_array().unwrap();
    assert!(!nodes.is_empty());
    let reasons = status["reasons"].as_array().unwrap();
    assert_eq!(nodes.len() == 1, reasons.iter().any(|why| why["reason"] == "one-node"), "{status}");
    for why in reasons {
        assert!(!why["says"].as_str().unwrap().is_empty() && why["cure"].is_string(), "{why}");
    }
    let shown = lab.pagelab(&["tier", "status", "--once"]);
    assert!(shown.exits(0).stdout.contains("node 0"), "{}", shown.stdout);
}
