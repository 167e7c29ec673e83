//! Chains of loads in a report: knees of translation, knees of data, and what is not said.

use pagelab_report::{Forms, Report, Style};

use crate::{
    made::journal,
    made_chains::{SIZES, record},
};

const WIDE: Style = Style { color: false, width: 10_000 };

fn report(noise: f64) -> String {
    let base = SIZES.map(|size| record("4k", size, noise));
    let huge = [SIZES[0], SIZES[9]].map(|size| record("2m", size, noise));
    let records = [&base[..], &huge].concat();
    Report::of(&journal().header, &records, None, &[], &crate::views()).terminal(WIDE)
}

/// The section's own lines.
fn section(text: &str) -> &str {
    let from = text.find("Translation: loads").expect("there is a section");
    let end = text[from..].find("\n\nWitness").map_or(text.len(), |end| from + end);
    &text[from..end]
}

#[test]
fn knees_of_the_difference_are_tlbs_and_those_of_both_are_caches() {
    let text = report(0.0);
    insta::assert_snapshot!(section(&text));
    assert!(text.contains("more for a load over 4 KiB pages than over 2 MiB pages, 1 GiB"));
}

#[test]
fn what_the_interval_does_not_carry_is_no_knee_and_no_headline() {
    let text = report(40.0);
    assert!(!text.contains("more for a load over"), "{text}");
    assert!(!section(&text).contains("dTLB"), "{text}");
}
