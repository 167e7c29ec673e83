//! The recipes of `docs/ci.md`, as printed there: two builds of a program whose faults are known.
//!
//! A regression is four times the pages, so that its exit code is decided by counts. Of two builds
//! that are the same the time is not asked: chance may call it slower, seldom.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::support::{Lab, Machine, binary, let_in, skip};

const PAGE: &str = include_str!("../../../docs/ci.md");

/// A recipe of the page, by its number.
fn recipe(nth: usize) -> String {
    let rest = PAGE.split("```sh\n").nth(nth + 1).unwrap();
    rest.split("```").next().unwrap().to_owned()
}

/// A build that touches this many pages; none without a C compiler.
fn build(lab: &Lab, name: &str, pages: u32) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ci/pages.c");
    let program = lab.path(name);
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-fno-inline", &format!("-DPAGES={pages}"), "-o"]).arg(&program).arg(source);
    if cc.status().is_ok_and(|status| status.success()) {
        return Some(program);
    }
    skip("there is no C compiler", "apt-get install gcc");
    None
}

/// What a recipe comes to for two builds, and its summary.
fn follow(lab: &Lab, recipe: &str, [old, new]: [&Path; 2]) -> (Output, String) {
    let _machine = Machine::alone();
    let folder = lab.path(format!("of-{}", new.file_name().unwrap().display()));
    fs::create_dir(&folder).unwrap();
    let summary = folder.join("summary.md");
    let (name, path) = (binary(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", recipe]).current_dir(&folder);
    shell.env("PATH", format!("{}:{path}", name.parent().unwrap().display()));
    shell.env("OLD", old).env("NEW", new).env("SUMMARY", &summary).envs(let_in());
    (shell.output().unwrap(), fs::read_to_string(summary).unwrap_or_default())
}

/// An exit code, and what a summary has in it.
fn comes_to((ended, summary): &(Output, String), code: i32, shown: &[&str]) {
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(code), "{said}\n{summary}");
    for text in shown {
        assert!(summary.contains(text), "{text}\n{summary}");
    }
}

#[test]
fn faults_of_two_builds_decide_the_exit_code() {
    let lab = Lab::new();
    let Some(old) = build(&lab, "old-program", 4096) else { return };
    let Some(same) = build(&lab, "same-program", 4096) else { return };
    let Some(more) = build(&lab, "more-program", 16384) else { return };
    let recipe = recipe(0);
    let ended = follow(&lab, &recipe, [&old, &same]);
    if ended.0.status.code() == Some(5) {
        return skip("perf is not allowed here", "sysctl kernel.perf_event_paranoid=2");
    }
    comes_to(&ended, 0, &["page faults", "old-program", "same-program"]);
    let ended = follow(&lab, &recipe, [&old, &more]);
    // 12 288, and a second fault of each page that the kernel moved to make room elsewhere.
    comes_to(&ended, 1, &["## Page faults", "| touch", "more-program", "+12 2"]);
}

#[test]
fn builds_run_in_turns_and_a_limit_decides_the_exit_code() {
    let lab = Lab::new();
    let Some(old) = build(&lab, "old-program", 4096) else { return };
    let Some(same) = build(&lab, "same-program", 4096) else { return };
    let Some(more) = build(&lab, "more-program", 16384) else { return };
    let recipe = recipe(1);
    let ended = follow(&lab, &recipe, [&old, &more]);
    comes_to(&ended, 1, &["## Builds of", "more-program", "page faults (4 1"]);
    let said = String::from_utf8_lossy(&ended.0.stderr);
    assert!(said.contains("worse than --fail-on faults:1%: +12 2"), "{said}");
    let counts = recipe.replace("time:5%,", "");
    let ended = follow(&lab, &counts, [&old, &same]);
    comes_to(&ended, 0, &["## Builds of", "same-program", "page faults"]);
    // What fails where the program does not is worse.
    let ended = follow(&lab, &counts, [&old, Path::new("/bin/false")]);
    comes_to(&ended, 1, &["exited with 1; as set up it exited with 0"]);
}

#[test]
fn a_build_that_is_none_and_a_limit_without_one_are_refused() {
    let lab = Lab::new();
    for (words, said) in [
        (&["--build", "new=/no/such"][..], "--build new: /no/such"),
        (&["--build", "as-set-up=/bin/true"], "choose another"),
        (&["--build", "new"], "expected NAME=COMMAND"),
        (&["--build", "new=/bin/true", "--fail-on", "p50:3%"], "write time:3% or faults:1%"),
        (&["--build", "new=/bin/true", "--rung", "plain"], "cannot be used with"),
        (&["--fail-on", "time:3%"], "--build"),
    ] {
        lab.pagelab(&[&["try"][..], words, &["--", "true"]].concat()).exits(2).complains(&[said]);
    }
}
