//! Claims, and documents of other versions.

mod document;

use super::*;
use crate::vocabulary::Check;

fn claim(observed: i64) -> Claim {
    Claim::check(Check::MajorFaults, "pagelab", 10, observed, 0)
}

#[test]
fn the_worst_check_of_a_claim_is_kept_and_all_are_counted() {
    let mut witness = Vec::new();
    // 12 is as far off as 8: the first stays.
    for observed in [10, 11, 8, 12, 10] {
        claim(observed).fold_into(&mut witness);
    }
    assert_eq!(witness.len(), 1);
    assert_eq!((witness[0].observed, witness[0].checks, witness[0].holds), (8, 5, false));
}

#[test]
fn claims_of_two_arms_are_two_claims() {
    let mut witness = Vec::new();
    claim(10).fold_into(&mut witness);
    Claim { arm: "control".into(), ..claim(10) }.fold_into(&mut witness);
    assert_eq!(witness.len(), 2);
}

#[test]
fn a_tolerance_is_inclusive() {
    assert!(Claim::check(Check::MajorFaults, "a", 10, 18, 8).holds);
    assert!(!Claim::check(Check::MajorFaults, "a", 10, 19, 8).holds);
}

#[test]
fn unknown_fields_are_ignored_and_new_ones_have_defaults() {
    let text = r#"{"name":"touch","arm":"a","clock":"tsc","unit":"ns","ops":4,
                       "values":[1,2],"from_the_future":true}"#;
    let series: Series = serde_json::from_str(text).unwrap();
    assert_eq!(series.data, Data::Values(vec![1, 2]));
    assert_eq!(series.bytes, 0);
}
