//! What is done from outside while the program runs: its memory or its code becomes huge pages.
//!
//! The one idea: nothing is asked of the program, so static ones, and those that run already, have
//! these rungs too; the right to advise another process's memory is what is needed.

use pagelab_record::asked::{Lack, Reach};
use pagelab_sys::memory::outside;

use super::{ANONYMOUS, Ground, Offer, Outside, Proof, Start, lack, rung, words};

const CODE: Proof = Proof::Kinds(&[2]);

/// What is missing where memory is advised from outside.
fn not_outside() -> Option<Lack> {
    let error = outside::may_collapse().err()?;
    let cure = "as root, on Linux 6.1 or later: sudo pagelab try";
    Some(lack(&format!("process_madvise(MADV_COLLAPSE) ({error})"), cure))
}

pub(super) fn collapse(ground: &Ground<'_>) -> Vec<Offer> {
    let Some(pmd) = ground.pages.pmd_size() else { return Vec::new() };
    let how = "its dense anonymous memory is collapsed into huge pages from outside, while it runs";
    let mut rung = rung("collapse", how, Reach::Privileged, pmd);
    rung.lacks.extend(not_outside());
    rung.keep =
        words(&["code: madvise(p, n, MADV_COLLAPSE) once its memory is filled (Linux 6.1)"]);
    "its pages are copied once; the kernel may compact for them".clone_into(&mut rung.cost);
    let outside = Some(Outside::Anonymous);
    let start = Start { thp: Some(true), outside, proof: ANONYMOUS, ..Start::default() };
    vec![Offer { rung, start }]
}

pub(super) fn code(ground: &Ground<'_>) -> Vec<Offer> {
    let Some(pmd) = ground.pages.pmd_size() else { return Vec::new() };
    let mut rung =
        rung("code", "its code is collapsed into huge pages from outside", Reach::Privileged, pmd);
    rung.lacks.extend(not_outside());
    rung.keep = words(&["code: madvise(text, n, MADV_COLLAPSE) at its start (Linux 6.1)"]);
    "the file's pages become huge for everybody who maps it".clone_into(&mut rung.cost);
    let outside = Some(Outside::Code);
    let start = Start { thp: Some(true), outside, proof: CODE, ..Start::default() };
    vec![Offer { rung, start }]
}
