//! What came of all processes that were promoted together, as text and as JSON.

use std::collections::BTreeMap;

use pagelab_live::{Engine, Pass, Reason, heat::HotRange};
use serde_json::json;

/// Ranges that are shown of a process.
const RANGES: usize = 8;
/// Processes that ended of which it is said why.
const ENDED: usize = 20;

/// What came of all processes together.
#[derive(Debug, Default)]
pub(in crate::commands) struct Sum {
    pub(super) passes: u64,
    pub(in crate::commands) promoted: u64,
    pub(in crate::commands) demoted: u64,
    calls: u64,
    split: u64,
    waited_ns: u64,
    moving_ns: u64,
    run_ns: u64,
    failed: BTreeMap<i32, u64>,
    last: BTreeMap<u32, Pass>,
    looks: BTreeMap<u32, u64>,
    hottest: BTreeMap<u32, (u64, Vec<HotRange>)>,
    pub(in crate::commands) reasons: Vec<Reason>,
    ended: Vec<String>,
    ended_more: u64,
}

impl Sum {
    pub(super) fn add(&mut self, pid: u32, pass: Pass, engine: &Engine) {
        self.promoted += pass.promoted;
        self.demoted += pass.demoted;
        *self.looks.entry(pid).or_default() += pass.looks;
        if pass.looks > 0 {
            self.reasons = engine.reasons(&pass);
            self.last.insert(pid, pass);
        }
    }

    /// What is left of an engine that ends.
    pub(super) fn take(&mut self, engine: &Engine) {
        let tally = engine.tally();
        self.calls += tally.calls;
        self.split += engine.split();
        self.waited_ns += tally.waited_ns;
        self.moving_ns += tally.moving_ns;
        self.run_ns += tally.run_ns;
        for (errno, pages) in &tally.failed {
            *self.failed.entry(*errno).or_default() += pages;
        }
        self.hottest.insert(engine.pid(), engine.hottest(RANGES));
    }

    /// Somebody is not followed any more.
    pub(super) fn end(&mut self, why: String) {
        if self.ended.len() < ENDED { self.ended.push(why) } else { self.ended_more += 1 }
    }

    /// Whether anything was looked at.
    pub(in crate::commands) fn has_looked(&self) -> bool {
        self.looks.values().any(|looks| *looks > 0)
    }

    pub(super) fn json(&self) -> serde_json::Value {
        let reasons: Vec<_> = self.reasons.iter().map(|why| json!(why)).collect();
        let last: BTreeMap<String, _> = self
            .last
            .iter()
            .map(|(pid, pass)| {
                let Pass { present, used, promoted, demoted, .. } = *pass;
                let looks = self.looks.get(pid).copied().unwrap_or(0);
                let pass = json!({ "present": present, "used": used, "promoted": promoted,
                    "demoted": demoted, "looks": looks });
                (pid.to_string(), pass)
            })
            .collect();
        let hottest: BTreeMap<String, _> = self
            .hottest
            .iter()
            .map(|(pid, (hot, ranges))| (pid.to_string(), json!({ "hot": hot, "ranges": ranges })))
            .collect();
        json!({ "passes": self.passes, "promoted": self.promoted, "demoted": self.demoted,
            "calls": self.calls, "split": self.split, "waited_ns": self.waited_ns,
            "moving_ns": self.moving_ns, "run_ns": self.run_ns, "failed": self.failed,
            "last": last, "hottest": hottest, "reasons": reasons, "ended": self.ended })
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{} pages promoted, {} demoted, in {} passes and {} calls\n",
            self.promoted, self.demoted, self.passes, self.calls
        );
        if self.run_ns > 0 {
            text.push_str(&format!(
                "{:.1} ms in the calls that move, {:.1} % of what moving took\n",
                self.moving_ns as f64 / 1e6,
                self.moving_ns as f64 / self.run_ns as f64 * 100.0
            ));
        }
        if self.split > 0 {
            text.push_str(&format!("{} large pages split\n", self.split));
        }
        for (errno, pages) in &self.failed {
            let why = match errno {
                0 => "for no reason that the kernel named".to_owned(),
                errno => std::io::Error::from_raw_os_error(*errno).to_string(),
            };
            text.push_str(&format!("{pages} pages stayed: {why}\n"));
        }
        for (pid, (hot, ranges)) in self.hottest.iter().filter(|(_, (hot, _))| *hot > 0) {
            let looks = self.looks.get(pid).copied().unwrap_or(0);
            text.push_str(&format!("process {pid}: {hot} pages hot after {looks} looks\n"));
            for HotRange { start, end, hot, pages } in ranges {
                text.push_str(&format!("  {start:x}-{end:x}  {hot} of {pages} pages\n"));
            }
        }
        for reason in &self.reasons {
            text.push_str(&format!("{reason}; {}\n", reason.cure()));
        }
        for why in &self.ended {
            text.push_str(&format!("ended: {why}\n"));
        }
        if self.ended_more > 0 {
            text.push_str(&format!("ended: {} more\n", self.ended_more));
        }
        text
    }
}
