//! The rungs of glibc's malloc: its tunable, with transparent huge pages and with a pool's.
//!
//! The one idea: a tunable is a word of one variable, in which others may have theirs.

use std::env;

use pagelab_record::{
    asked::{Lack, Reach},
    units::display_bytes,
    vocabulary::knob,
};

use super::{
    ANONYMOUS, Ground, Offer, Only, POOL, POOL_COST, Start, admitting, lack, lines, pool, rung,
};
use pagelab_cli::program::Program;

pub(super) const TUNABLES: &str = "GLIBC_TUNABLES";
const HUGETLB: &str = "glibc.malloc.hugetlb";
/// The variable with one tunable in place of what it says of it now.
pub(super) fn tunables(now: Option<&str>, name: &str, value: &str) -> (String, String) {
    let is_other = |entry: &&str| {
        !entry.is_empty() && entry.split_once('=').is_none_or(|(key, _)| key != name)
    };
    let kept = now.into_iter().flat_map(|now| now.split(':')).filter(is_other);
    let all: Vec<String> = kept.map(ToOwned::to_owned).chain([format!("{name}={value}")]).collect();
    (TUNABLES.to_owned(), all.join(":"))
}

/// The tunable for huge pages, of this value.
pub(super) fn tunable(value: &str) -> Vec<(String, String)> {
    vec![tunables(env::var(TUNABLES).ok().as_deref(), HUGETLB, value)]
}

/// What is missing where the program reads no tunables.
pub(super) fn no_tunables(program: &Program) -> Option<Lack> {
    let cure = "try the rungs collapse and thp-always, which need nothing of the program";
    let need = if program.is_setuid {
        "a program that keeps its user: a setuid one ignores tunables"
    } else {
        "a program with glibc, dynamic or static: its malloc has the tunable"
    };
    (!program.takes_tunables()).then(|| lack(need, cure))
}

pub(super) fn thp(ground: &Ground<'_>) -> Vec<Offer> {
    let pmd = ground.pages.pmd_size().unwrap_or(2 << 20);
    let how = "malloc asks for transparent huge pages";
    let mut rung = rung("malloc-thp", how, Reach::Program, pmd);
    rung.knob = Some(knob::MALLOC_THP.to_owned());
    rung.lacks.extend(no_tunables(ground.program));
    let settings = admitting(ground).unwrap_or_else(|lack| {
        rung.lacks.push(lack);
        Vec::new()
    });
    if !settings.is_empty() {
        rung.reach = Reach::Machine;
    }
    "nothing: what it starts inherits it".clone_into(&mut rung.cost);
    // glibc's commit 801deb07f6ec ends the string that it compares (2.38).
    "glibc 2.35 to 2.37 compares what the kernel says of THP with a byte behind it, which is 0 in \
     some runs only: in the others the tunable does nothing"
        .clone_into(&mut rung.fickle);
    let environment = tunable("1");
    let start =
        Start { environment, thp: Some(true), settings, proof: ANONYMOUS, ..Start::default() };
    rung.keep = lines(&start);
    let unit = "systemd unit: Environment=GLIBC_TUNABLES=glibc.malloc.hugetlb=1 (glibc 2.35)";
    rung.keep.push(unit.to_owned());
    vec![Offer { rung, start }]
}

pub(super) fn hugetlb(ground: &Ground<'_>) -> Vec<Offer> {
    let how = "malloc takes pages of the hugetlb pool, which is set aside for it";
    let mut rung = rung("malloc-hugetlb", how, Reach::Machine, 2 << 20);
    rung.lacks.extend(no_tunables(ground.program));
    let Some((page, path)) = pool(ground, &mut rung) else {
        return vec![Offer { rung, start: Start::default() }];
    };
    POOL_COST.clone_into(&mut rung.cost);
    let start = Start {
        environment: tunable("2"),
        pool: Some((page, path)),
        proof: POOL,
        only: Only::Alone,
        ..Start::default()
    };
    rung.keep = lines(&start);
    let pages = display_bytes(page as f64);
    rung.keep.push(format!("sysctl: vm.nr_hugepages=N, pages of {pages} (glibc 2.35)"));
    vec![Offer { rung, start }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunable_replaces_itself_and_leaves_others_alone() {
        let value = |now| tunables(now, HUGETLB, "1").1;
        assert_eq!(value(None), "glibc.malloc.hugetlb=1");
        assert_eq!(value(Some("")), "glibc.malloc.hugetlb=1");
        let now = "glibc.malloc.hugetlb=2:glibc.malloc.arena_max=1";
        assert_eq!(value(Some(now)), "glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1");
    }
}
