//! The test binaries: built once by cargo, run by us, and read.
//!
//! The one idea: what a test says is captured by its harness, so a skip is a line that begins with
//! [`SKIPPED`], shown with `--show-output`. A binary is run once; whoever wants some of its tests
//! again names them.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::summary::Skip;
use crate::{shell, workspace};

/// How a test says that it did nothing here.
const SKIPPED: &str = "skipped: ";
/// What failed where no test says that it did.
const WITHOUT_A_RESULT: &str = "it ended without a result";
/// What comes before the cure.
const CURE: &str = "; to run it: ";
/// How often a test that failed runs again by itself: it must hold each time. A machine that is
/// full of other tests does at times what no test foresaw; `cargo xtask flake`, which tries nothing
/// twice, is where that is looked for.
const AGAIN: u32 = 2;
/// Lines of a failure that are shown; all of them are in its log.
const LINES_SHOWN: usize = 80;

/// A binary that cargo has built of some tests.
#[derive(Debug, Clone)]
pub(crate) struct Binary {
    /// The package's name, and the target's where that is another.
    pub(crate) name: String,
    executable: PathBuf,
    /// The package's folder, where cargo runs tests.
    folder: PathBuf,
}

/// What came of the tests of a binary.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) passed: usize,
    pub(crate) failed: Vec<String>,
    pub(crate) skips: Vec<Skip>,
    pub(crate) took: Duration,
    /// What a person wants to see of a failure.
    pub(crate) failure: String,
}

/// Builds the workspace, and with it every test.
pub(crate) fn build() -> Result<Vec<Binary>> {
    let mut command = workspace::build();
    command.args(["--message-format", "json-render-diagnostics"]);
    eprintln!("\n[test] {}", shell::line(&command));
    let messages = shell::output(&mut command)?;
    let binaries: Vec<_> = messages.lines().filter_map(binary).collect();
    ensure!(!binaries.is_empty(), "cargo has built no tests");
    Ok(binaries)
}

/// The binary that a message of cargo tells of.
fn binary(line: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let executable = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let package = folder.file_name()?.to_str()?;
    let target = message["target"]["name"].as_str()?;
    let is_lib = message["target"]["kind"] == "lib" || target.ends_with(package);
    let name = if is_lib { package.to_owned() } else { format!("{package}/{target}") };
    Some(Binary { name, executable, folder })
}

impl Binary {
    /// Whether these are tests of the program, not of a crate.
    pub(crate) fn is_end_to_end(&self) -> bool {
        self.name == "pagelab/e2e"
    }

    /// Runs its tests; all that it says goes to `log`. Its cache is `cache`, where that is said: in
    /// an empty one there is nothing to boot a machine with.
    pub(crate) fn run(&self, log: &Path, cache: Option<&Path>) -> Result<Ran> {
        self.run_some(&[], log, cache)
    }

    /// Whether a test that failed holds by itself, [`AGAIN`] times. What it says then is beside the
    /// binary's `log`.
    pub(crate) fn holds(&self, test: &str, log: &Path) -> Result<bool> {
        if test == WITHOUT_A_RESULT {
            return Ok(false);
        }
        let log = log.with_extension("again.log");
        for _ in 0..AGAIN {
            let ran = self.run_some(&["--exact", test], &log, None)?;
            let is_good = ran.failed.is_empty() && ran.passed == 1;
            let word = if is_good { "holds" } else { "FAILED again" };
            eprintln!("[test] {}: {test} {word} by itself", self.name);
            if !is_good {
                println!("{}\n(all of it: {})", ran.failure, log.display());
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn run_some(&self, which: &[&str], log: &Path, cache: Option<&Path>) -> Result<Ran> {
        if let Some(folder) = log.parent() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let file = File::create(log).with_context(|| log.display().to_string())?;
        let mut command = with_default_signals(&self.executable);
        command
            .arg("--show-output")
            .args(which)
            .args(self.is_end_to_end().then(threads).flatten())
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            // For tests that would build it themselves, of other features.
            .env("PAGELAB_BUILT", "1")
            .envs(cache.map(|cache| ("XDG_CACHE_HOME", cache)))
            .stdin(Stdio::null())
            .stderr(file.try_clone().context("a second descriptor")?)
            .stdout(file);
        let (status, took) = shell::timed(|| command.status());
        let status = status.with_context(|| format!("starting {}", self.executable.display()))?;
        let text = fs::read(log).with_context(|| log.display().to_string())?;
        Ok(read(&String::from_utf8_lossy(&text), status.success(), took))
    }
}

/// A program that ignores no signal. What runs in the background, or under perf, does, and so
/// would every process below: one that a test ends by INT would stay.
fn with_default_signals(executable: &Path) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT,QUIT,USR1,USR2").arg(executable);
    command
}

/// A test of the program waits more than it computes: for its turn at the settings of the machine,
/// for a process. So there are more of them at once than processors.
fn threads() -> Option<String> {
    let processors = thread::available_parallelism().ok()?;
    Some(format!("--test-threads={}", 3 * processors.get()))
}

/// Reads what a harness said.
fn read(text: &str, is_good: bool, took: Duration) -> Ran {
    let mut ran = Ran { took, ..Ran::default() };
    let mut results = 0;
    for line in text.lines() {
        if let Some(counts) = line.strip_prefix("test result: ") {
            results += 1;
            let passed = counts.split("; ").next().and_then(|text| text.split(' ').nth_back(1));
            ran.passed += passed.and_then(|count| count.parse::<usize>().ok()).unwrap_or_default();
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"))
        {
            ran.failed.push(name.to_owned());
        } else if let Some(said) = line.strip_prefix(SKIPPED) {
            let (reason, cure) = said.split_once(CURE).unwrap_or((said, "it does not say"));
            add(&mut ran.skips, &Skip { tests: 1, reason: reason.into(), cure: cure.into() });
        }
    }
    // A binary without a harness is one test.
    if results == 0 && is_good {
        ran.passed += 1;
    }
    if !is_good && ran.failed.is_empty() {
        ran.failed.push(WITHOUT_A_RESULT.to_owned());
    }
    if !is_good {
        let from = text.find("\nfailures:\n").unwrap_or_default();
        let lines: Vec<_> = text[from..].lines().filter(|line| !is_of_a_backtrace(line)).collect();
        ran.failure = lines[..lines.len().min(LINES_SHOWN)].join("\n");
    }
    ran.passed = ran.passed.saturating_sub(ran.skips.iter().map(|skip| skip.tests).sum());
    ran
}

fn is_of_a_backtrace(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("at ") || line.split_once(": ").is_some_and(|(n, _)| n.parse::<u32>().is_ok())
}

/// Adds skips to others of the same reason.
pub(crate) fn add(skips: &mut Vec<Skip>, more: &Skip) {
    match skips.iter_mut().find(|skip| skip.reason == more.reason) {
        Some(skip) => skip.tests += more.tests,
        None => skips.push(more.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_failures_and_skips_are_read_from_what_a_harness_says() {
        let text = "running 3 tests\ntest a ... ok\ntest b::c ... FAILED\n\nsuccesses:\n\n\
            ---- a stdout ----\nskipped: no zram here; to run it: sudo modprobe zram\n\n\
            failures:\n\n---- b::c stdout ----\nassertion failed\n   0: rust_begin_unwind\n\n\
            test result: FAILED. 2 passed; 1 failed; 0 ignored\n";
        let ran = read(text, false, Duration::ZERO);
        let cure = "sudo modprobe zram".to_owned();
        let skip = Skip { tests: 1, reason: "no zram here".into(), cure };
        assert_eq!(
            (ran.passed, &ran.failed[..], &ran.skips[..]),
            (1, &["b::c".into()][..], &[skip][..])
        );
        assert!(ran.failure.contains("assertion failed") && !ran.failure.contains("unwind"));
    }

    #[test]
    fn a_binary_without_a_harness_is_one_test_and_a_crash_is_a_failure() {
        assert_eq!(read("fine", true, Duration::ZERO).passed, 1);
        let ran = read("running 9 tests\n", false, Duration::ZERO);
        assert_eq!(ran.failed, [WITHOUT_A_RESULT]);
    }

    #[test]
    fn a_test_holds_that_runs_by_itself_and_passes() {
        let folder = std::env::temp_dir().join(format!("xtask-holds-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (log, executable) = (folder.join("a.log"), std::env::current_exe().unwrap());
        let binary = Binary { name: "xtask".into(), executable, folder: folder.clone() };
        let only = "test::binaries::tests::only_tests_that_were_built_are_binaries";
        for (test, holds) in [(only, true), ("nothing", false), (WITHOUT_A_RESULT, false)] {
            assert_eq!(binary.holds(test, &log).unwrap(), holds, "{test}");
        }
        assert!(folder.join("a.again.log").exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn only_tests_that_were_built_are_binaries() {
        let line = |test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/sys/Cargo.toml",
                "target":{{"kind":["test"],"name":"knobs"}},"profile":{{"test":{test}}},
                "executable":"/w/target/debug/deps/knobs-1"}}"#
            )
        };
        assert_eq!(binary(&line(true)).unwrap().name, "sys/knobs");
        assert!(binary(&line(false)).is_none() && binary("{}").is_none());
    }

    #[test]
    fn what_a_script_ignores_is_not_ignored_by_the_tests_that_it_starts() {
        let ignored = |command: &Command| {
            let script = "trap '' HUP INT QUIT USR1 USR2; exec \"$@\"";
            let out = Command::new("sh")
                .args(["-c", script, "sh"])
                .arg(command.get_program())
                .args(command.get_args())
                .args(["SigIgn", "/proc/self/status"])
                .output()
                .unwrap();
            let text = String::from_utf8(out.stdout).unwrap();
            let mask = text.trim_start_matches("SigIgn:").trim();
            u64::from_str_radix(mask, 16).unwrap()
        };
        let sent = [1, 2, 3, 10, 12].map(|signal| 1_u64 << (signal - 1)).iter().sum::<u64>();
        assert_eq!(ignored(&Command::new("grep")) & sent, sent, "the script ignores them");
        assert_eq!(ignored(&with_default_signals(Path::new("grep"))) & sent, 0);
    }
}
