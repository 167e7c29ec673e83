//! The summary of a test run: a few lines for people, and the same as JSON.
//!
//! [`render`] is a function of [`Summary`] alone, so that a page that shows a summary shows what
//! the program prints.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::vm::CheckedBoot;

/// Reasons of skips that are shown; all of them are in the JSON.
const SKIPS_SHOWN: usize = 3;

/// What `cargo xtask test` found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Summary {
    pub(crate) tests: Count,
    /// `pagelab check` on real kernels, the oldest first.
    pub(crate) boots: Vec<CheckedBoot>,
    /// Why no kernel was booted, and what to do about it.
    pub(crate) lack: Option<String>,
    /// What this machine lacks for some tests.
    pub(crate) skips: Vec<Skip>,
    /// From start to end.
    pub(crate) seconds: u64,
}

/// Counts of tests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) passed: usize,
    /// Of those that passed, the ones that run the program.
    pub(crate) end_to_end: usize,
    pub(crate) skipped: usize,
    /// Binaries and names.
    pub(crate) failed: Vec<String>,
    pub(crate) seconds: u64,
}

/// Tests that did nothing here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Skip {
    pub(crate) tests: usize,
    pub(crate) reason: String,
    pub(crate) fix: String,
}

impl Summary {
    /// Whether nothing failed.
    pub(crate) fn is_good(&self) -> bool {
        self.tests.failed.is_empty() && self.boots.iter().all(|boot| boot.is_good)
    }
}

/// The summary for people: at most twelve lines where nothing failed.
pub(crate) fn render(summary: &Summary) -> String {
    let mut text = String::new();
    let mut row = |what: &str, came: &str, seconds: u64| {
        let _ = writeln!(text, "{what:<16}{came:<50}{seconds:>5} s");
    };
    let Count { passed, end_to_end, skipped, failed, seconds } = &summary.tests;
    let bad = if failed.is_empty() { String::new() } else { format!(", {} FAILED", failed.len()) };
    let counts = format!("{passed} passed ({end_to_end} end to end), {skipped} skipped{bad}");
    row("tests", &counts, *seconds);
    for boot in &summary.boots {
        let release = boot.release.split(['+', '-']).next().unwrap_or_default();
        let what = format!("Linux {}", if release.is_empty() { &boot.kernel } else { release });
        let CheckedBoot { cases, skipped, claims, .. } = boot;
        let word = if boot.is_good { "" } else { "FAILED: " };
        let came = format!("{word}check: {cases} cases, {claims} claims hold, {skipped} skipped");
        row(&what, &came, boot.seconds);
    }
    for failed in failed {
        let _ = writeln!(text, "FAILED {failed}");
    }
    for Skip { tests, reason, fix } in summary.skips.iter().take(SKIPS_SHOWN) {
        let s = if *tests == 1 { "" } else { "s" };
        let _ = writeln!(text, "skipped {tests} test{s}: {reason}; to run it: {fix}");
    }
    if let more @ 1.. = summary.skips.len().saturating_sub(SKIPS_SHOWN) {
        let reasons = if more == 1 { "reason" } else { "reasons" };
        let _ = writeln!(text, "skipped for {more} more {reasons}: target/test.json");
    }
    if let Some(lack) = &summary.lack {
        let _ = writeln!(text, "NO KERNEL WAS BOOTED: {lack}");
    }
    let word = if summary.is_good() { "all that ran passed" } else { "NOT ALL PASSED" };
    let (minutes, seconds) = (summary.seconds / 60, summary.seconds % 60);
    let _ = writeln!(text, "{word}, {minutes} min {seconds} s; the whole lane: cargo xtask vm");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_run_is_at_most_twelve_short_lines_and_every_failure_is_named() {
        let release = "6.17.128+deb13-amd64".into();
        let boot = CheckedBoot { release, is_good: true, cases: 118, ..CheckedBoot::default() };
        let skip = |reason: &str| Skip { tests: 2, reason: reason.into(), fix: "do so".into() };
        let mut summary = Summary {
            tests: Count { passed: 1834, end_to_end: 279, skipped: 9, ..Count::default() },
            boots: vec![boot; 3],
            skips: ["a", "b", "c", "d"].map(skip).to_vec(),
            ..Summary::default()
        };
        let text = render(&summary);
        assert!(text.lines().count() <= 12 && text.lines().all(|line| line.len() <= 100), "{text}");
        let parts =
            ["1834 passed (279 end to end), 9 skipped", "Linux 6.17.128  check", "1 more reason:"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        let json = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), summary);
        summary.boots[1].is_good = false;
        assert!(render(&summary).contains("NOT ALL PASSED"));
        summary.boots.clear();
        summary.lack = Some("no network".into());
        assert!(summary.is_good() && render(&summary).contains("NO KERNEL WAS BOOTED: no network"));
        summary.tests.failed.push("pagelab::e2e knobs::a_fact".into());
        assert!(!summary.is_good() && render(&summary).contains("FAILED pagelab::e2e knobs"));
    }
}
