//! The variant of memory that comes page by page: khugepaged joins it soon.
//!
//! khugepaged looks at memory that may have transparent huge pages only, so the policy is `always`,
//! as in `thp-always`; what is more here is what that cannot do at a fault.

use pagelab_record::{advice::KHUGEPAGED, asked::Reach};
use pagelab_sys::machine::thp::Policy;

use super::{Ground, Offer, Only, Proof, Start, lines, machine::not_root, policy, rung};

const FOLDER: &str = "sys/kernel/mm/transparent_hugepage/khugepaged";

pub(super) fn khugepaged(ground: &Ground<'_>) -> Vec<Offer> {
    let Some(pmd) = ground.pages.pmd_size() else { return Vec::new() };
    let path = |file: &str| ground.tree.path(format!("{FOLDER}/{file}"));
    if !KHUGEPAGED.iter().all(|(file, _)| path(file).exists()) {
        return Vec::new();
    }
    let how =
        "transparent huge pages for everybody, and khugepaged soon joins what came page by page";
    let mut rung = rung("khugepaged", how, Reach::Machine, pmd);
    rung.lacks.extend(not_root(ground));
    "khugepaged goes over the memory of every program, and copies what it joins"
        .clone_into(&mut rung.cost);
    let is_always = ground.pages.policy(pmd) == Some(Policy::Always);
    let mut settings = if is_always { Vec::new() } else { policy(ground, pmd, "always") };
    settings.extend(KHUGEPAGED.map(|(file, value)| (path(file), value.to_owned())));
    let (proof, only) = (Proof::Joined, Only::Late);
    let start = Start { thp: Some(true), settings, proof, only, ..Start::default() };
    rung.keep = lines(&start);
    vec![Offer { rung, start }]
}
