//! Arms that are two builds of pagelab.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use pagelab_record::ab::Change;

use super::{WORDS, arms, run};
use crate::support::{Lab, Live, Machine, binary, failure, until};

fn bin(path: &Path) -> String {
    format!("bin:{}", path.display())
}

/// Another build, as far as its bytes go: what stands behind an executable is not run.
fn other(lab: &Lab, name: &str) -> PathBuf {
    let source = lab.file(&format!("{name}.source"), "");
    fs::copy(binary(), &source).unwrap();
    fs::OpenOptions::new().append(true).open(&source).unwrap().write_all(name.as_bytes()).unwrap();
    let program = lab.program(&source, name);
    fs::remove_file(source).unwrap();
    program
}

/// A program that answers whatever it is asked with this text.
fn answering(lab: &Lab, name: &str, answer: &str) -> String {
    let text = format!("#!/bin/sh\ncat > /dev/null\nprintf '%s' '{answer}' >&3\n");
    bin(&lab.program(lab.file(&format!("{name}.sh"), text), name))
}

#[test]
fn each_arm_is_measured_by_its_program_and_its_record_says_which() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let (a, b) = (bin(&binary()), bin(&other(&lab, "other")));
    run(&lab, &["--ab", &a, &b, "--forks", "4", "-o", "ab"]).exits(0).shows(&["4+4", "sha256"]);
    let programs = arms(&lab, "ab").into_iter().map(|record| record.ab.unwrap().arm.change);
    let told = programs.map(|change| match change {
        Change::Program { path, digest, version } => (path, digest, version),
        other => panic!("{other:?}"),
    });
    let told: Vec<_> = told.collect();
    assert!(told[1].0.ends_with("other") && told[0].1 != told[1].1, "{told:?}");
    assert!(told.iter().all(|(_, digest, _)| digest.len() == 64), "{told:?}");
    assert!(told.iter().all(|(_, _, version)| version == env!("CARGO_PKG_VERSION")), "{told:?}");
    // What a journal names is not run unless it is named again, and is still the same.
    let text = fs::read_to_string(lab.path("ab/journal.jsonl")).unwrap();
    lab.file("ab/journal.jsonl", text.split_inclusive('\n').take(1).collect::<String>());
    lab.pagelab(&["resume", "ab"]).exits(2).complains(&["a journal alone", "bin:"]);
    lab.pagelab(&["resume", "ab", "--ab", &a, &b]).exits(0).shows(&["4+4"]);
    lab.file("ab/journal.jsonl", text.split_inclusive('\n').take(1).collect::<String>());
    fs::rename(other(&lab, "newer"), lab.path("other")).unwrap();
    let ended = lab.pagelab(&["resume", "ab", "--ab", &a, &b]);
    ended.exits(3).complains(&["other is another program than this run began with", "sha256"]);
}

#[test]
fn a_program_that_changes_while_it_is_measured_ends_its_cell() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    // It waits in its first case, behind the questions that both programs are asked.
    let text = format!(
        "#!/bin/sh\ncd {}\nif test -f ab/journal.jsonl; then\n\ttouch begun\n\t\
         until test -f newer.is.there; do sleep 0.01; done\nfi\nexec {} \"$@\"\n",
        lab.path(".").display(),
        binary().display()
    );
    let waiting = lab.program(lab.file("waiting.sh", text), "other");
    let (a, b) = (bin(&binary()), bin(&waiting));
    let newer = other(&lab, "newer");
    let words = ["--ab", &a, &b, "--forks", "4", "-o", "ab"];
    let mut live = Live::start(&lab, &[&WORDS[..], &words].concat());
    until("a case of the program", || {
        assert!(live.is_running(), "{}", live.said());
        lab.path("begun").exists().then_some(())
    });
    fs::rename(newer, waiting).unwrap();
    lab.file("newer.is.there", "");
    live.end().exits(1);
    let records = arms(&lab, "ab");
    let ended = records.iter().find(|record| record.ab.as_ref().unwrap().arm.name == b);
    assert!(failure(ended.unwrap()).contains("other has changed since the run began"));
}

#[test]
fn what_cannot_be_an_arm_is_refused_by_name() {
    let lab = Lab::new();
    let ours = bin(&binary());
    let same = bin(&lab.program(binary(), "same"));
    let text = bin(&lab.file("text", "no program"));
    let hello = |protocol: u32, refuses: &str| {
        format!(
            "{{\"version\":\"9.9\",\"protocol\":{protocol},\"schema\":\"pagelab.record/9\",\
             \"refuses\":{refuses}}}"
        )
    };
    let odd = answering(&lab, "odd", "[]");
    let later = answering(&lab, "later", &hello(99, "null"));
    for (arm, says) in [
        (same.as_str(), "both files hold the same program"),
        ("bin:nosuch", "nosuch: No such file"),
        ("bin:", "No such file"),
        ("bin:/tmp", "is no program"),
        (&text, "is no program: chmod +x"),
        ("bin:/bin/true", "is no pagelab"),
        ("bin:/bin/false", "is no pagelab"),
        (&odd, "is no pagelab: its answer is none"),
        (&later, "pagelab 9.9, which speaks protocol 99 and pagelab.record/9"),
        ("page=4k", "differ in one thing"),
    ] {
        let ended = run(&lab, &["--ab", &ours, arm, "-o", "ab"]);
        ended.exits(2).complains(&[says]);
        assert!(!lab.path("ab").exists());
    }
}
