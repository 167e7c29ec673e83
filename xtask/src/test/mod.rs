//! `cargo xtask test`: every test, and `pagelab check` on the newest real kernel.
//!
//! An emulated machine computes while tests wait and compile, so it boots beside the tests. The
//! [`Summary`] of both is printed last and left as JSON. Nothing that failed is tried
//! again. The whole lane of machines is `cargo xtask vm`.

mod junit;
mod runner;
pub(crate) mod soak;
pub(crate) mod summary;
pub(crate) mod user;

use std::{ffi::OsString, fs, sync::mpsc, thread};

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;

use self::summary::{Count, Skip, Summary, render};
use crate::{
    shell::{self, cargo, run},
    vm, workspace,
};

/// The summary, for programs.
const JSON: &str = "target/test.json";
/// Tells tests that the libraries which they preload are built.
const BUILT: &str = "PAGELAB_BUILT";
/// What cargo-nextest leaves of a run.
const JUNIT: &str = "target/nextest/default/junit.xml";
/// What failed where no test is named.
const NO_NAMES: &str = "what is printed above";

/// What the task takes.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// For cargo-nextest, for example `-p pagelab-record` or a test's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// The task.
pub(crate) fn test(asked: &Arguments) -> Result<()> {
    if asked.args.is_empty() {
        return all();
    }
    run("test", &mut runner::command(runner::nextest().as_deref(), &asked.args))
}

/// Everything, with a summary.
pub(crate) fn all() -> Result<()> {
    eprintln!(
        "[test] every test, and `pagelab check` on the newest Linux: five to eight minutes on two \
         processors.\n[test] {}",
        vm::needs()
    );
    let (outcome, took) = shell::timed(|| {
        thread::scope(|scope| {
            let (say, built) = mpsc::channel();
            // What they boot is fetched while cargo builds.
            let built = move || built.recv().context("nothing was built");
            let machines = scope.spawn(|| vm::check(built));
            let tests = run("test", &mut workspace::build()).map(|()| {
                // A lane that boots nothing has stopped listening.
                let _ = say.send(());
                tests()
            });
            drop(say);
            (tests, machines.join().unwrap_or_else(|_| Err(anyhow!("a panic"))))
        })
    });
    let ((tests, skips), machines) = (outcome.0?, outcome.1.context("the machines")?);
    let (boots, lack) = (machines.boots, machines.lack);
    let summary = Summary { tests, boots, lack, skips, seconds: took.as_secs() };
    let json = serde_json::to_string_pretty(&summary).context("writing the summary")?;
    fs::write(JSON, json + "\n").context(JSON)?;
    println!("\n{}", render(&summary));
    if summary.is_good() { Ok(()) } else { bail!("the boots' output is in {}", vm::LOGS) }
}

/// Runs all tests, then those in comments, which cargo alone builds.
fn tests() -> (Count, Vec<Skip>) {
    let nextest = runner::nextest();
    let jobs = runner::jobs();
    let more: &[&str] = if nextest.is_some() { &["--test-threads", &jobs] } else { &["--tests"] };
    let mut command = runner::command(nextest.as_deref(), more);
    command.env(BUILT, "1");
    let junit = nextest.is_some().then_some(JUNIT);
    let ((mut count, skips), took) = shell::timed(|| ran(junit, &mut command));
    count.seconds = took.as_secs();
    let mut doc = cargo("test");
    if let Err(error) = run("test", doc.args(["--workspace", "--doc", "--quiet"])) {
        count.failed.push(format!("doc: {error:#}"));
    }
    (count, skips)
}

/// Runs tests and reads what came of them; without cargo-nextest that is whether they failed.
fn ran(junit: Option<&str>, command: &mut std::process::Command) -> (Count, Vec<Skip>) {
    let _ = junit.map(fs::remove_file);
    let done = run("test", command);
    let read = |file: &str| junit::read(&fs::read_to_string(file).context(file.to_owned())?);
    let (mut count, skips) = match junit.map(read).transpose() {
        Ok(found) => found.unwrap_or_default(),
        Err(error) => {
            let failed = vec![format!("{error:#}")];
            (Count { failed, ..Count::default() }, Vec::new())
        }
    };
    if done.is_err() && count.failed.is_empty() {
        count.failed.push(NO_NAMES.to_owned());
    }
    (count, skips)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_leaves_no_file_has_failed() {
        let (count, _) = ran(Some("target/none.xml"), &mut shell::program("true", [""; 0]));
        assert_eq!(count.failed.len(), 1);
        let (count, _) = ran(None, &mut shell::program("false", [""; 0]));
        assert_eq!(count.failed, [NO_NAMES]);
        assert_eq!(ran(None, &mut shell::program("true", [""; 0])).0, Count::default());
    }
}
