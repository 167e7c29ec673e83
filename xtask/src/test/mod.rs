//! `cargo xtask test`: units, the program end to end, and `pagelab check` on three real kernels.
//!
//! The one idea: an emulated machine computes while tests wait and compile, so the machines boot
//! beside the tests. What came of both is one [`Summary`], printed last and left as JSON. A test
//! that failed runs again by itself ([`Binary::holds`]); what holds then is unsteady, and is named.
//!
//! It is not the whole lane of machines: that is `cargo xtask vm`.

pub(crate) mod binaries;
pub(crate) mod summary;

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};

use self::{
    binaries::Binary,
    summary::{Summary, render},
};
use crate::{
    shell::{self, cargo, run},
    vm,
};

/// What each binary said.
const LOGS: &str = "target/test";
/// More tests than these are not chance.
const UNSTEADY_MAX: usize = 3;
/// The summary, for programs.
const JSON: &str = "target/test.json";

/// What the task takes.
pub(crate) fn arguments(command: Command) -> Command {
    command.arg(
        Arg::new("args")
            .value_parser(clap::value_parser!(OsString))
            .action(ArgAction::Append)
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .help("For `cargo test`, for example `-p pagelab-record` or a test's name"),
    )
}

/// The task.
pub(crate) fn test(_: &ArgMatches) -> Result<()> {
    let passed_on = passed_on(env::args_os());
    // Whoever narrows it asks for less than everything.
    if passed_on.is_empty() { all() } else { run("test", &mut test_command(&passed_on)) }
}

/// Everything, with a summary.
pub(crate) fn all() -> Result<()> {
    eprintln!(
        "[test] units, the program end to end, `pagelab check` on Linux 6.1, 6.12 and the newest: \
         six to twelve minutes on two processors, by their speed.\n[test] {}",
        vm::needs()
    );
    let (outcome, took) = shell::timed(|| {
        thread::scope(|scope| {
            let (say, built) = mpsc::channel();
            // What they boot is fetched while cargo builds.
            let built = move || built.recv().context("nothing was built");
            let machines = scope.spawn(|| vm::check(built));
            let tests = binaries::build().and_then(|binaries| {
                // Whoever boots nothing has stopped listening.
                let _ = say.send(());
                tests(&binaries)
            });
            drop(say);
            (tests, machines.join().unwrap_or_else(|_| Err(anyhow!("a panic"))))
        })
    });
    let (tests, machines) = outcome;
    let (mut summary, machines) = (tests?, machines.context("the machines")?);
    (summary.boots, summary.lack) = (machines.boots, machines.lack);
    summary.seconds = took.as_secs();
    let json = serde_json::to_string_pretty(&summary).context("writing the summary")?;
    fs::write(JSON, json + "\n").context(JSON)?;
    println!("\n{}", render(&summary));
    if summary.is_good() { Ok(()) } else { bail!("what was said is in {LOGS} and {}", vm::LOGS) }
}

/// Runs one binary after the other.
fn tests(binaries: &[Binary]) -> Result<Summary> {
    let mut summary = Summary::default();
    let mut chances = UNSTEADY_MAX;
    for binary in binaries {
        let log = log(Path::new(LOGS), &binary.name);
        let ran = binary.run(&log, None)?;
        eprintln!(
            "[test] {:<24} {:>4} passed {:>8.1} s",
            binary.name,
            ran.passed,
            ran.took.as_secs_f64()
        );
        if !ran.failed.is_empty() {
            println!("{}\n(all of it: {})", ran.failure, log.display());
        }
        let count =
            if binary.is_end_to_end() { &mut summary.end_to_end } else { &mut summary.units };
        count.passed += ran.passed;
        count.seconds += ran.took.as_secs();
        count.skipped += ran.skips.iter().map(|skip| skip.tests).sum::<usize>();
        for test in &ran.failed {
            let name = format!("{}: {test}", binary.name);
            let is_chance = chances > 0 && binary.holds(test, &log)?;
            chances -= usize::from(is_chance);
            if is_chance { &mut count.unsteady } else { &mut count.failed }.push(name);
        }
        ran.skips.iter().for_each(|skip| binaries::add(&mut summary.skips, skip));
    }
    // Cargo alone knows how to build what stands in comments.
    let (done, took) =
        shell::timed(|| run("test", cargo("test").args(["--workspace", "--doc", "-q"])));
    summary.units.seconds += took.as_secs();
    if let Err(error) = done {
        summary.units.failed.push(format!("doc: {error:#}"));
    }
    summary.skips.sort_by(|a, b| b.tests.cmp(&a.tests).then_with(|| a.reason.cmp(&b.reason)));
    Ok(summary)
}

/// The log of a binary.
pub(crate) fn log(folder: &Path, binary: &str) -> PathBuf {
    folder.join(format!("{}.log", binary.replace('/', "-")))
}

/// What follows the task's name, word for word: clap would drop a `--` that is the first of it.
fn passed_on(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    words.skip_while(|word| word != "test").skip(1).collect()
}

/// Narrowing to packages replaces `--workspace`, which would override it.
fn test_command(passed_on: &[OsString]) -> std::process::Command {
    let mut command = cargo("test");
    let narrowed = |argument: &OsString| {
        let text = argument.to_string_lossy();
        text.starts_with("-p") || text.starts_with("--package")
    };
    if !passed_on.iter().take_while(|argument| *argument != "--").any(narrowed) {
        command.arg("--workspace");
    }
    command.arg("--no-fail-fast").args(passed_on);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments_of(command: &std::process::Command) -> Vec<String> {
        command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn whatever_follows_test_is_passed_on_word_for_word() {
        let line = ["xtask", "test", "-p", "xtask", "--", "--nocapture"];
        let arguments = arguments_of(&test_command(&passed_on(line.map(Into::into).into_iter())));
        assert!(arguments.ends_with(&["-p", "xtask", "--", "--nocapture"].map(String::from)));
        assert!(!arguments.contains(&"--workspace".to_owned()));
        let line = ["xtask", "test", "--", "test"].map(Into::into);
        assert_eq!(passed_on(line.into_iter()), ["--", "test"]);
    }

    #[test]
    fn a_name_alone_is_looked_for_in_the_whole_workspace() {
        assert!(arguments_of(&test_command(&["name".into()])).contains(&"--workspace".to_owned()));
        let filter = [OsString::from("--"), OsString::from("-p")];
        assert!(arguments_of(&test_command(&filter)).contains(&"--workspace".to_owned()));
    }
}
