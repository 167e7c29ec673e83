//! Page walks of programs: sampled from outside, told with their ends, and left out with a reason.

use std::process::{Command, Stdio};

use pagelab_record::{Measured, Record, walks::Looks};

use super::compiled;
use crate::support::{Beside, Lab, Live, measured, signal, until};

/// How often the accessed bits of a program are cleared before the program or the test goes on.
const LOOKS: usize = 20;

/// The looks at a program; none where this kernel shows no accessed bits.
fn looks(lab: &Lab, run: &str) -> Option<Looks> {
    let records: Vec<Record> = lab.records(run);
    let measured: &Measured = measured(&records[0]);
    assert!(measured.is_valid(), "{:?}", measured.witness);
    if measured.counters.get("sees_walks") == Some(&0) {
        let said = measured.warnings.iter().any(|text| text.contains("was not sampled"));
        assert!(said, "{:?}", measured.warnings);
        return None;
    }
    Some(Looks::of(&measured.tables).unwrap())
}

/// The most pages of anonymous memory that were walked to in one window.
fn most(looks: &Looks) -> u64 {
    let Some(at) = looks.places.iter().position(|place| place == "anonymous") else { return 0 };
    looks.looks.iter().map(|look| look.walked[at].most).max().unwrap_or(0)
}

#[test]
fn random_loads_over_much_memory_are_walks_and_the_output_is_the_programs() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "loads") else { return };
    let program = program.to_str().unwrap();
    let words = ["explain", "--translation", "--costs", "none", "-o", "run", "--", program];
    // It ends by itself where nothing clears the bits.
    let ended = lab.pagelab(&[&words[..], &["128", "60000", &LOOKS.to_string()]].concat());
    ended.exits(0);
    assert_eq!(ended.stdout, "done\n");
    let Some(looks) = looks(&lab, "run") else { return };
    assert!(looks.looks.len() >= LOOKS / 2, "{looks:?}");
    // 32,768 pages: more than any TLB holds, in windows that go over all of them twice.
    assert!(most(&looks) > 4096, "{looks:?}");
    assert!(looks.looks.iter().all(|look| look.window_ns > 0));
    ended.complains(&["Translation", "walks", "anonymous", "What they cost was not measured"]);
    let told = lab.pagelab(&["report", "run", "--format", "json"]);
    told.exits(0).shows(&["\"translation\"", "\"walks\""]);
}

#[test]
fn a_program_that_runs_is_looked_at_and_goes_on() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "loads") else { return };
    let (looks_begun, seen) = (LOOKS.to_string(), lab.path("seen"));
    let mut child = Command::new(program);
    child.args(["64", "600000", &looks_begun]).arg(&seen).stdout(Stdio::null());
    let mut child = Beside::start(&mut child);
    let pid = child.pid().to_string();
    let words = ["explain", "--translation", "--costs", "none", "--duration", "600", "-o", "run"];
    let mut run = Live::start(&lab, &[&words[..], &["--pid", &pid]].concat());
    until("looks at the program", || (seen.exists() || !run.is_running()).then_some(()));
    if run.is_running() {
        signal("INT", run.pid());
    }
    let ended = run.end();
    let is_there = child.is_running();
    drop(child);
    if ended.code == Some(3) {
        // Perf is not for this user.
        return;
    }
    ended.exits(0).shows(&["Translation"]);
    assert!(is_there, "it had ended");
    if let Some(looks) = looks(&lab, "run") {
        assert!(looks.looks.len() >= LOOKS / 2, "{looks:?}");
    }
}

#[test]
fn who_is_too_short_is_said_to_be_and_who_asks_nothing_is_told_how() {
    let lab = Lab::new();
    let words = ["explain", "--costs", "none", "-o", "short", "--translation", "--", "true"];
    let ended = lab.pagelab(&words);
    ended.exits(0);
    if let Some(looks) = looks(&lab, "short") {
        // One that waits for a processor may be looked at often enough.
        let is_short = looks.looks.len() < 3;
        ended.complains(if is_short { &["Not sampled", "too short"] } else { &["Looked"] });
    }
    let asked = lab.pagelab(&["explain", "--costs", "none", "-o", "plain", "--", "true"]);
    asked.exits(0).complains(&["--translation does"]);
}
