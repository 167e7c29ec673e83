//! Reads the JUnit file that cargo-nextest leaves.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use roxmltree::{Document, Node};

use super::summary::{Count, Skip};

/// The binary whose tests run the program.
const END_TO_END: &str = "pagelab::e2e";
/// How a test says that it did nothing here, and what would change that.
const SKIPPED: &str = "skipped: ";
const FIX: &str = "; to run it: ";

/// Counts the tests of a file, and what this machine lacks for some.
///
/// # Errors
/// When it is no XML.
pub(super) fn read(text: &str) -> Result<(Count, Vec<Skip>)> {
    let document = Document::parse(text).context("reading what cargo-nextest left")?;
    let (mut count, mut skips) = (Count::default(), Vec::new());
    for case in document.descendants().filter(|node| node.has_tag_name("testcase")) {
        let of = |name| case.attribute(name).unwrap_or_default();
        let has = |tag| case.children().any(|node: Node<'_, '_>| node.has_tag_name(tag));
        if has("failure") || has("error") {
            count.failed.push(format!("{} {}", of("classname"), of("name")));
            continue;
        }
        let lines = case.descendants().filter_map(|node| node.text()).flat_map(str::lines);
        let reasons: BTreeSet<_> = lines.filter_map(|line| line.strip_prefix(SKIPPED)).collect();
        for reason in &reasons {
            let (reason, fix) = reason.split_once(FIX).unwrap_or((reason, "not said"));
            match skips.iter_mut().find(|skip: &&mut Skip| skip.reason == reason) {
                Some(skip) => skip.tests += 1,
                None => skips.push(Skip { tests: 1, reason: reason.into(), fix: fix.into() }),
            }
        }
        count.skipped += usize::from(!reasons.is_empty());
        count.passed += usize::from(reasons.is_empty());
        count.end_to_end += usize::from(reasons.is_empty() && of("classname") == END_TO_END);
    }
    skips.sort_by(|a, b| b.tests.cmp(&a.tests).then_with(|| a.reason.cmp(&b.reason)));
    Ok((count, skips))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_failures_and_skips_are_read() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="nextest-run" tests="3" failures="1" errors="0" time="0.3">
            <testsuite name="pagelab::e2e" tests="3" failures="1">
              <testcase name="a" classname="pagelab::e2e" time="0.1"/>
              <testcase name="b::c" classname="pagelab::e2e" time="0.1">
                <failure type="test failure"/><system-err>skipped: not so</system-err></testcase>
              <testcase name="d" classname="pagelab-sys" time="0.1"><system-err>note
skipped: no zram here; to run it: sudo modprobe zram
skipped: no zram here; to run it: sudo modprobe zram
skipped: no swap; to run it: ext4
</system-err></testcase>
            </testsuite></testsuites>"#;
        let (count, skips) = read(text).unwrap();
        assert_eq!((count.passed, count.end_to_end, count.skipped), (1, 1, 1));
        assert_eq!(count.failed, ["pagelab::e2e b::c"]);
        assert_eq!(skips.iter().map(|skip| skip.tests).collect::<Vec<_>>(), [1, 1]);
        assert_eq!((&*skips[0].reason, &*skips[0].fix), ("no swap", "ext4"));
        assert!(read("<testsuites>").is_err());
    }
}
