//! The last line of the lane: how many boots and cases, and what came of them.

use std::{fmt, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    CHECK, skips,
    table::KERNELS,
    verdict::{Judged, Outcome},
};

/// `pagelab check` in one virtual machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckedBoot {
    /// What the lane calls the kernel.
    pub(crate) kernel: String,
    /// What the kernel calls itself.
    pub(crate) release: String,
    pub(crate) is_good: bool,
    /// Cases whose claims all hold.
    pub(crate) cases: usize,
    /// Cases that this machine cannot run, as was expected.
    pub(crate) skipped: usize,
    pub(crate) claims: usize,
    pub(crate) seconds: u64,
}

/// What came of a boot.
#[derive(Debug, Default)]
pub(super) struct Booted {
    /// All that it said.
    pub(super) judged: Judged,
    /// What is wrong with it, besides failed cases.
    pub(super) failures: Vec<String>,
    /// All of it, for a person.
    pub(super) text: String,
    /// Name of the kernel.
    pub(super) kernel: String,
    /// From start to end.
    pub(super) seconds: u64,
}

impl Booted {
    /// Whether nothing is wrong.
    pub(super) fn is_good(&self) -> bool {
        self.failures.is_empty() && !self.judged.findings.iter().any(|one| one.outcome.is_fail())
    }

    /// What came of it: a line for each case when it is good, all there is to know otherwise.
    pub(super) fn describe(&self, name: &str, took: Duration, base: &Path) -> String {
        let word = if self.is_good() { "ok" } else { "FAILED" };
        let release = &self.judged.release;
        let mut text = format!("\n[vm] {word}: {name}, {release} ({:.1} s)", took.as_secs_f64());
        let took = |case: &String| {
            let seconds = self.judged.seconds.get(case).filter(|seconds| **seconds >= 1.0);
            seconds.map(|seconds| format!(" ({seconds:.0} s)")).unwrap_or_default()
        };
        for finding in &self.judged.findings {
            let name = skips::name(finding);
            text.push_str(&match &finding.outcome {
                // The parts of a case that is well are in the log.
                Outcome::Ok(_) if finding.part.is_some() => String::new(),
                Outcome::Ok(seen) => format!("\n  ok    {name}: {seen}{}", took(&finding.case)),
                Outcome::Skip { need, .. } => format!("\n  skip  {name}: needs {need}"),
                Outcome::Fail(why) => format!("\n  FAIL  {name}: {why}"),
            });
        }
        if !self.is_good() {
            for line in self.judged.notes.iter().chain(&self.failures) {
                text.push_str(&format!("\n        {line}"));
            }
            text.push_str(&format!("\n        logs: {}.{{console,results}}", base.display()));
        }
        text
    }
}

/// Sums over boots.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    boots: usize,
    boots_bad: usize,
    ok: usize,
    skipped: usize,
    failed: usize,
    parts: usize,
    checked: Vec<CheckedBoot>,
}

impl Summary {
    /// Adds a boot.
    pub(super) fn add(&mut self, booted: &Booted) {
        self.boots += 1;
        self.boots_bad += usize::from(!booted.is_good());
        self.checked.push(checked(booted));
        for finding in &booted.judged.findings {
            let count = match &finding.outcome {
                Outcome::Skip { .. } => &mut self.skipped,
                Outcome::Fail(_) => &mut self.failed,
                Outcome::Ok(_) if finding.part.is_some() => &mut self.parts,
                Outcome::Ok(_) => &mut self.ok,
            };
            *count += 1;
        }
    }

    /// What each boot checked, the oldest kernel first.
    pub(super) fn checked(mut self) -> Vec<CheckedBoot> {
        let age = |boot: &CheckedBoot| KERNELS.iter().position(|name| *name == boot.kernel);
        self.checked.sort_by_key(age);
        self.checked
    }

    /// Whether every boot is good.
    pub(super) fn is_good(&self) -> bool {
        self.boots_bad == 0
    }
}

/// What `pagelab check` found in a boot.
fn checked(booted: &Booted) -> CheckedBoot {
    let mut boot = CheckedBoot {
        kernel: booted.kernel.clone(),
        release: booted.judged.release.clone(),
        is_good: booted.is_good(),
        seconds: booted.seconds,
        ..CheckedBoot::default()
    };
    let parts = booted.judged.findings.iter().filter(|finding| finding.part.is_some());
    for finding in parts.filter(|finding| finding.case == CHECK) {
        match &finding.outcome {
            Outcome::Ok(note) => {
                boot.cases += 1;
                let claims = note.split_once(" claims hold").map(|(count, _)| count.parse());
                boot.claims += claims.and_then(Result::<usize, _>::ok).unwrap_or_default();
            }
            Outcome::Skip { .. } => boot.skipped += 1,
            Outcome::Fail(_) => (),
        }
    }
    boot
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { boots, boots_bad, ok, skipped, failed, parts, .. } = self;
        write!(f, "{boots} boots, {boots_bad} of them bad; ")?;
        write!(f, "cases: {ok} ok (and {parts} parts), {skipped} skipped, {failed} failed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::verdict::{Finding, Judged};

    #[test]
    fn a_boot_without_failed_cases_can_be_bad() {
        let ok = Outcome::Ok("7 claims hold".into());
        let finding = Finding { case: CHECK.into(), part: None, outcome: ok };
        let part = Finding { part: Some("x".into()), ..finding.clone() };
        let judged = Judged { findings: vec![finding, part], ..Judged::default() };
        let mut summary = Summary::default();
        let failures = vec!["console: WARNING".into()];
        summary.add(&Booted { judged, failures, ..Booted::default() });
        assert!(!summary.is_good());
        let [boot] = &summary.checked[..] else { panic!("one boot") };
        assert_eq!((boot.is_good, boot.cases, boot.claims), (false, 1, 7));
        let text = summary.to_string();
        assert_eq!(text, "1 boots, 1 of them bad; cases: 1 ok (and 1 parts), 0 skipped, 0 failed");
    }
}
