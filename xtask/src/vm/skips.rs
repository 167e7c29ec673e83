//! Which skips are expected, kernel by kernel: `vm/expected-skips.toml`.
//!
//! The one idea: a skip is a test that did not run. One that nobody expected is a failure, and one
//! that was expected and did not happen is too, so that the list cannot go out of date.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::verdict::{Finding, Outcome};

/// The committed list.
pub(super) const FILE: &str = "vm/expected-skips.toml";

/// A row of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    /// Name of the kernel.
    kernel: String,
    /// Name of the machine.
    machine: String,
    /// Name of the case.
    case: String,
    /// A part of the case; a `*` at its end stands for any rest. Without it the whole case.
    part: Option<String>,
    /// Why this kernel on this machine cannot.
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    skip: Vec<Expected>,
}

/// Reads the list.
pub(super) fn read(text: &str) -> Result<Vec<Expected>> {
    let file: File = toml::from_str(text).context(FILE)?;
    Ok(file.skip)
}

impl Expected {
    fn is_of(&self, kernel: &str, machine: &str) -> bool {
        self.kernel == kernel && self.machine == machine
    }

    fn meets(&self, finding: &Finding) -> bool {
        let part = match (&self.part, &finding.part) {
            (None, None) => true,
            (Some(pattern), Some(part)) => match pattern.strip_suffix('*') {
                Some(beginning) => part.starts_with(beginning),
                None => pattern == part,
            },
            _ => false,
        };
        part && self.case == finding.case
    }
}

/// What is wrong with the skips of a boot: those that nobody expected, and those that are missing.
pub(super) fn wrong(
    list: &[Expected],
    (kernel, machine): (&str, &str),
    findings: &[Finding],
) -> Vec<String> {
    let here: Vec<_> = list.iter().filter(|row| row.is_of(kernel, machine)).collect();
    let mut wrong = Vec::new();
    for finding in findings {
        let Outcome::Skip { need, cure } = &finding.outcome else { continue };
        if !here.iter().any(|row| row.meets(finding)) {
            let name = name(finding);
            wrong.push(format!("{name} was skipped, which {FILE} does not say: {need}; {cure}"));
        }
    }
    for row in here {
        let skipped = |one: &&Finding| matches!(one.outcome, Outcome::Skip { .. });
        let mut of_case = findings.iter().filter(|one| one.case == row.case).peekable();
        // One that failed may not have come to it.
        let ran = of_case.peek().is_some() && !of_case.any(|one| one.outcome.is_fail());
        if ran && !findings.iter().filter(skipped).any(|one| row.meets(one)) {
            let part = row.part.as_deref().unwrap_or("the whole case");
            wrong.push(format!("{} ({part}) was not skipped, which {FILE} says", row.case));
        }
    }
    wrong
}

/// A finding's name for a person.
pub(super) fn name(finding: &Finding) -> String {
    match &finding.part {
        Some(part) => format!("{}: {part}", finding.case),
        None => finding.case.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        [[skip]]
        kernel = "6.1"
        machine = "base"
        case = "check/everything"
        part = "fault/throughput page=*"
        reason = "no sizes below PMD"
        [[skip]]
        kernel = "6.1"
        machine = "base"
        case = "numa/far"
        reason = "one node"
    "#;

    fn skip(case: &str, part: Option<&str>) -> Finding {
        let outcome = Outcome::Skip { need: "n".into(), cure: "c".into() };
        Finding { case: case.into(), part: part.map(str::to_owned), outcome }
    }

    #[test]
    fn a_skip_is_expected_for_its_kernel_and_machine_only() {
        let list = read(LIST).unwrap();
        let all =
            [skip("check/everything", Some("fault/throughput page=64k")), skip("numa/far", None)];
        assert_eq!(wrong(&list, ("6.1", "base"), &all), [""; 0]);
        assert_eq!(wrong(&list, ("6.12", "base"), &all).len(), 2);
        assert_eq!(wrong(&list, ("6.1", "cxl"), &all).len(), 2);
    }

    #[test]
    fn a_skip_that_did_not_happen_is_wrong_where_the_case_ran() {
        let list = read(LIST).unwrap();
        let ok = Finding { outcome: Outcome::Ok(String::new()), ..skip("numa/far", None) };
        let wrong_here = wrong(&list, ("6.1", "base"), &[ok]);
        assert_eq!(wrong_here.len(), 1);
        assert!(wrong_here[0].contains("numa/far (the whole case) was not skipped"));
        assert_eq!(wrong(&list, ("6.1", "base"), &[]), [""; 0]);
        let failed = Finding { outcome: Outcome::Fail(String::new()), ..skip("numa/far", None) };
        assert_eq!(wrong(&list, ("6.1", "base"), &[failed]), [""; 0]);
    }

    #[test]
    fn a_part_is_not_the_whole() {
        let list = read(LIST).unwrap();
        assert_eq!(wrong(&list, ("6.1", "base"), &[skip("check/everything", None)]).len(), 2);
    }

    #[test]
    fn a_row_without_a_reason_or_with_a_wrong_key_is_refused() {
        assert!(read("[[skip]]\nkernel = \"6.1\"\nmachine = \"base\"\ncase = \"a/b\"\n").is_err());
        assert!(read("[[skip]]\nkernal = \"6.1\"\n").is_err());
        assert_eq!(read("").unwrap(), []);
    }

    #[test]
    fn the_committed_list_can_be_read() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../vm/expected-skips.toml");
        read(&std::fs::read_to_string(file).unwrap()).unwrap();
    }
}
