//! Settings of the machine as rungs: what everybody gets while the program runs.

use pagelab_record::{
    asked::{Lack, Reach},
    units::display_bytes,
    vocabulary::knob,
};
use pagelab_sys::machine::thp::Policy;

use super::{ANONYMOUS, Ground, Offer, Only, Proof, SHARED, Start, lack, lines, policy, rung};

/// What is missing where a setting of the machine must be changed.
pub(super) fn not_root(ground: &Ground<'_>) -> Option<Lack> {
    let cure = "run as root: sudo pagelab try; it is put back afterwards";
    (!ground.is_root).then(|| lack("the right to change settings of the machine", cure))
}

pub(super) fn thp_always(ground: &Ground<'_>) -> Vec<Offer> {
    let Some(pmd) = ground.pages.pmd_size() else { return Vec::new() };
    if ground.pages.policy(pmd) == Some(Policy::Always) {
        return Vec::new();
    }
    let how = "transparent huge pages for everybody, asked for or not";
    let mut rung = rung("thp-always", how, Reach::Machine, pmd);
    rung.knob = Some(knob::page(pmd));
    rung.lacks.extend(not_root(ground));
    "every program of the machine gets them, with the memory that they take"
        .clone_into(&mut rung.cost);
    let settings = policy(ground, pmd, "always");
    let start = Start { thp: Some(true), settings, proof: ANONYMOUS, ..Start::default() };
    rung.keep = lines(&start);
    rung.keep.push("kernel parameter: transparent_hugepage=always".to_owned());
    vec![Offer { rung, start }]
}

/// Sizes between the base page and the PMD (since Linux 6.8).
pub(super) fn mthp(ground: &Ground<'_>) -> Vec<Offer> {
    let pmd = ground.pages.pmd_size().unwrap_or(2 << 20);
    let sizes = ground.pages.sizes().into_iter().filter(|size| *size < pmd);
    let offer = |size: u64| {
        if ground.pages.policy(size) == Some(Policy::Always) {
            return None;
        }
        let path = ground.pages.enabled_path(size)?;
        let name = format!("mthp-{}k", size >> 10);
        let how = format!("folios of {} for everybody", display_bytes(size as f64));
        let mut rung = rung(&name, &how, Reach::Machine, size);
        rung.knob = Some(knob::page(size));
        rung.lacks.extend(not_root(ground));
        "every program of the machine gets them".clone_into(&mut rung.cost);
        let mut settings = vec![(path, "always".to_owned())];
        // A larger size that is on would come first.
        if ground.pages.policy(pmd) == Some(Policy::Always) {
            settings.extend(ground.pages.enabled_path(pmd).map(|own| (own, "never".to_owned())));
        }
        let proof = Proof::Folios(size);
        let start = Start { thp: Some(true), settings, proof, ..Start::default() };
        rung.keep = lines(&start);
        rung.keep.push(format!("kernel parameter: thp_anon={}K:always (Linux 6.12)", size >> 10));
        Some(Offer { rung, start })
    };
    sizes.filter_map(offer).collect()
}

const SHMEM: &str = "sys/kernel/mm/transparent_hugepage/shmem_enabled";

pub(super) fn shared_memory(ground: &Ground<'_>) -> Vec<Offer> {
    let path = ground.tree.path(SHMEM);
    if ground.tree.choice(SHMEM).is_none_or(|now| ["always", "force"].contains(&now.as_str())) {
        return Vec::new();
    }
    let pmd = ground.pages.pmd_size().unwrap_or(2 << 20);
    let how = "transparent huge pages for shared memory of everybody";
    let mut rung = rung("shmem-thp", how, Reach::Machine, pmd);
    rung.lacks.extend(not_root(ground));
    "shared memory of every program gets them".clone_into(&mut rung.cost);
    let settings = vec![(path, "always".to_owned())];
    let start =
        Start { thp: Some(true), settings, proof: SHARED, only: Only::Sharing, ..Start::default() };
    rung.keep = lines(&start);
    vec![Offer { rung, start }]
}
