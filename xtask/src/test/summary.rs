//! What a run of the tests comes to: a few lines for people, and the same as JSON.
//!
//! The one idea: [`render`] is a function of [`Summary`] alone, so that a page that shows a summary
//! shows what the program prints.

use serde::{Deserialize, Serialize};

use crate::vm::CheckedBoot;

/// Reasons of skips that are shown; all of them are in the JSON.
const SKIPS_SHOWN: usize = 3;

/// What `cargo xtask test` came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Summary {
    /// Tests of single crates.
    pub(crate) units: Count,
    /// Tests of the program.
    pub(crate) end_to_end: Count,
    /// `pagelab check` on real kernels, the oldest first.
    pub(crate) boots: Vec<CheckedBoot>,
    /// Why no kernel was booted, and what to do about it.
    pub(crate) lack: Option<String>,
    /// What this machine lacks for some tests.
    pub(crate) skips: Vec<Skip>,
    /// From start to end.
    pub(crate) seconds: u64,
}

/// What came of some tests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) passed: usize,
    pub(crate) skipped: usize,
    /// Names of those that failed, behind their binary's.
    pub(crate) failed: Vec<String>,
    /// The same of those that failed once, and held whenever they ran by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unsteady: Vec<String>,
    pub(crate) seconds: u64,
}

/// Tests that did nothing here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Skip {
    pub(crate) tests: usize,
    pub(crate) reason: String,
    pub(crate) cure: String,
}

impl Summary {
    /// Whether nothing failed.
    pub(crate) fn is_good(&self) -> bool {
        self.units.failed.is_empty()
            && self.end_to_end.failed.is_empty()
            && self.boots.iter().all(|boot| boot.is_good)
    }
}

/// The summary for people: at most twelve lines where nothing failed.
pub(crate) fn render(summary: &Summary) -> String {
    let mut text = String::new();
    let mut row = |what: &str, came: &str, seconds: u64| {
        text.push_str(&format!("{what:<16}{came:<50}{seconds:>5} s\n"));
    };
    for (what, count) in [("units", &summary.units), ("end to end", &summary.end_to_end)] {
        let mut came = format!("{} passed", count.passed);
        if count.skipped > 0 {
            came.push_str(&format!(", {} skipped", count.skipped));
        }
        if !count.failed.is_empty() {
            came.push_str(&format!(", {} FAILED", count.failed.len()));
        }
        if !count.unsteady.is_empty() {
            came.push_str(&format!(", {} UNSTEADY", count.unsteady.len()));
        }
        row(what, &came, count.seconds);
    }
    for boot in &summary.boots {
        let release = boot.release.split(['+', '-']).next().unwrap_or_default();
        let what = format!("Linux {}", if release.is_empty() { &boot.kernel } else { release });
        let CheckedBoot { cases, skipped, claims, .. } = boot;
        let word = match (boot.is_good, boot.is_unsteady) {
            (false, _) => "FAILED: ",
            (true, true) => "UNSTEADY: ",
            (true, false) => "",
        };
        let came = format!("{word}check: {cases} cases, {claims} claims hold, {skipped} skipped");
        row(&what, &came, boot.seconds);
    }
    for failed in summary.units.failed.iter().chain(&summary.end_to_end.failed) {
        text.push_str(&format!("FAILED {failed}\n"));
    }
    for name in summary.units.unsteady.iter().chain(&summary.end_to_end.unsteady) {
        text.push_str(&format!("UNSTEADY {name}: it failed, and held by itself\n"));
    }
    for Skip { tests, reason, cure } in summary.skips.iter().take(SKIPS_SHOWN) {
        let s = if *tests == 1 { "" } else { "s" };
        text.push_str(&format!("skipped {tests} test{s}: {reason}; to run it: {cure}\n"));
    }
    if summary.skips.len() > SKIPS_SHOWN {
        let more = summary.skips.len() - SKIPS_SHOWN;
        let reasons = if more == 1 { "reason" } else { "reasons" };
        text.push_str(&format!("skipped for {more} more {reasons}: target/test.json\n"));
    }
    if let Some(lack) = &summary.lack {
        text.push_str(&format!("NO KERNEL WAS BOOTED: {lack}\n"));
    }
    let word = if summary.is_good() { "all that ran passed" } else { "NOT ALL PASSED" };
    let (minutes, seconds) = (summary.seconds / 60, summary.seconds % 60);
    text.push_str(&format!("{word}, {minutes} min {seconds} s; the whole lane: cargo xtask vm\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Summary {
        let boot = |kernel: &str, release: &str| CheckedBoot {
            kernel: kernel.into(),
            release: release.into(),
            is_good: true,
            is_unsteady: false,
            cases: 118,
            skipped: 14,
            claims: 1204,
            seconds: 74,
        };
        let skip = |reason: &str| Skip { tests: 2, reason: reason.into(), cure: "do so".into() };
        Summary {
            units: Count { passed: 1834, seconds: 61, ..Count::default() },
            end_to_end: Count { passed: 279, skipped: 9, seconds: 143, ..Count::default() },
            boots: vec![boot("6.1", "6.1.0-41-amd64"), boot("newest", "6.17.128+deb13-amd64")],
            lack: None,
            skips: ["a", "b", "c", "d"].map(skip).to_vec(),
            seconds: 421,
        }
    }

    #[test]
    fn a_good_run_is_at_most_twelve_short_lines() {
        let text = render(&good());
        assert!(text.lines().count() <= 12, "{text}");
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        assert!(
            text.contains("279 passed, 9 skipped") && text.contains("Linux 6.17.128  check"),
            "{text}"
        );
        assert!(
            text.contains("for 1 more reason:") && text.ends_with("cargo xtask vm\n"),
            "{text}"
        );
    }

    #[test]
    fn whatever_failed_is_named() {
        let mut summary = good();
        summary.end_to_end.failed.push("e2e: knobs::a_fact".into());
        assert!(!summary.is_good() && render(&summary).contains("FAILED e2e: knobs::a_fact"));
        let mut summary = good();
        summary.units.unsteady.push("sys: knobs::a_fact".into());
        assert!(summary.is_good() && render(&summary).contains("UNSTEADY sys: knobs::a_fact: it"));
        let mut summary = good();
        summary.boots[1].is_unsteady = true;
        assert!(summary.is_good() && render(&summary).contains("UNSTEADY: check"));
        let mut summary = good();
        summary.boots[1].is_good = false;
        assert!(render(&summary).contains("NOT ALL PASSED"));
        let summary = Summary { lack: Some("no network".into()), ..Summary::default() };
        assert!(summary.is_good() && render(&summary).contains("NO KERNEL WAS BOOTED: no network"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let json = serde_json::to_string(&good()).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), good());
    }
}
