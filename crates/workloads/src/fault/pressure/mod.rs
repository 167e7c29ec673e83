//! `--pressure`: first stores whose page is not simply there to be had.
//!
//! The one idea: memory is made short in one way before every repetition, off the clock, and the
//! touches pay for it in the fault. `memcg` fills a memory cgroup of the case's own, so that they
//! reclaim; `fragmented` breaks the free memory of a node into small blocks, so that they compact.
//!
//! A fault that cannot have the page under test gets a base page instead (it *falls back*). What
//! came out is read back from the page table page by page, and the two are never one distribution:
//! in `fault/latency` faults that fell back are a series of their own, in `fault/throughput`, where
//! one body holds both, they are counted.

mod fragmented;
mod memcg;
mod pieces;

use pagelab_bench::{
    Kind, Param,
    inputs::Inputs,
    need::{Need, Needed},
    params::PageSize,
    refusal::Refusal,
    workload::Error,
};
use pagelab_record::Case;

use super::{
    kinds::Stage,
    space::{Space, size_of},
};
use crate::needs::Without;

/// The parameter.
pub(super) const PRESSURE: Param =
    Param::axis("pressure", Kind::Choice(&["none", "fragmented", "memcg"]), "none").help(
        "memcg: a cgroup of the case's own is full; fragmented: no free block is a large page",
    );

/// What both fault workloads turn away.
pub(super) const REFUSALS: &[Refusal<Case>] = &[
    Refusal::new(
        is_refused,
        "pressure with kind other than write, populate, lie, hugetlb pages, a skew or processes",
        "only a first store to fresh memory is squeezed; use kind=write and threads",
    ),
    Refusal::new(
        |case| is_fragmented(case) && PageSize::of(case) == PageSize::Base,
        "pressure=fragmented with page=4k",
        "a base page needs no block; use page=2m or 64k",
    ),
];

/// What touches in bulk turn away, which would be counted wrongly: a folio of zeros that compaction
/// splits while others are touched is the zero page afterwards (since Linux 6.12), and faults in a
/// second lap.
pub(super) const REFUSALS_IN_BULK: &[Refusal<Case>] = &[Refusal::new(
    |case| is_fragmented(case) && matches!(PageSize::of(case), PageSize::Folio(_)),
    "pressure=fragmented with page=16k … 1m, in bulk",
    "compaction may split folios that were touched before; use fault/latency, or page=2m",
)];

/// Whether memory is made short.
pub(super) fn is_pressed(case: &Case) -> bool {
    case.get("pressure").is_some_and(|pressure| pressure != "none")
}

fn is_fragmented(case: &Case) -> bool {
    case.get("pressure") == Some("fragmented")
}

/// Whether the case asks for what cannot be squeezed.
fn is_refused(case: &Case) -> bool {
    let is_other = |name: &str, value: &str| case.get(name).is_some_and(|given| given != value);
    let is_hugetlb = matches!(PageSize::of(case), PageSize::Hugetlb(_));
    // The lie of this room is refused elsewhere where it would be the truth.
    let lies = is_other("lie", "none") && is_other("lie", "unfragmented");
    is_pressed(case)
        && (is_hugetlb
            || lies
            || is_other("kind", "write")
            || is_other("populate", "touch")
            || is_other("align", "aligned")
            || is_other("backing", "anon")
            || is_other("touch", "8@page")
            || is_other("processes", "1")
            || is_other("beside", "none")
            || is_other("host", "warm")
            || is_other("arms", "pagelab"))
}

/// The size that `auto` becomes: what a disk reads, or the kernel compacts, in a moment.
pub(super) fn automatic_size(size: u64) -> u64 {
    size.min(64 << 20)
}

/// What it needs of the host.
pub(super) fn needs(case: &Case) -> Vec<Needed> {
    if !is_pressed(case) {
        return Vec::new();
    }
    let (page, size) = (PageSize::of(case), size_of(case));
    let mut needs =
        if is_fragmented(case) { fragmented::needs(case, size) } else { memcg::needs(size) };
    if page != PageSize::Base {
        // What falls back is a base page only where no other folio is on offer.
        let folios = PageSize::offered().into_iter();
        let others = folios.filter(|other| matches!(other, PageSize::Folio(_)) && *other != page);
        needs.extend(others.map(|page| Without(page).needed()));
    }
    needs
}

/// The stage of a case, under pressure where the case says so. Binds the space to the node whose
/// memory is broken up, where there are several.
///
/// # Errors
/// When the scratch file cannot be written, or the group of the case was not made.
pub(super) fn under(
    case: &Case,
    space: &mut Space,
    stage: Box<dyn Stage>,
    inputs: &Inputs,
) -> Result<Box<dyn Stage>, Error> {
    match case.get("pressure") {
        Some("memcg") => memcg::squeezed(case, space, stage, inputs),
        Some("fragmented") => fragmented::broken_up(case, space, stage),
        _ => Ok(stage),
    }
}

#[cfg(test)]
mod tests {
    use crate::fault::{latency::Latency, throughput::Throughput};
    use pagelab_bench::{plan::complete, workload::Workload};

    #[test]
    fn what_cannot_be_put_under_pressure_is_refused_and_the_neighbour_is_not() {
        for (refused, neighbour) in [
            ([("pressure", "fragmented"), ("page", "4k")], ("page", "2m")),
            ([("pressure", "fragmented"), ("page", "hugetlb-2m")], ("page", "2m")),
            ([("pressure", "memcg"), ("kind", "read")], ("page", "4k")),
            ([("pressure", "memcg"), ("lie", "present")], ("lie", "none")),
        ] {
            for workload in [&Latency as &dyn Workload, &Throughput] {
                let error = complete(workload, &refused).unwrap_err();
                assert!(error.starts_with("pressure"), "{error}");
                assert!(complete(workload, &[refused[0], neighbour]).is_ok(), "{neighbour:?}");
            }
        }
    }

    #[test]
    fn folios_that_compaction_may_split_are_touched_one_by_one_only() {
        let pairs = [("pressure", "fragmented"), ("page", "64k")];
        assert!(complete(&Latency, &pairs).is_ok());
        let error = complete(&Throughput, &pairs).unwrap_err();
        assert!(error.contains("use fault/latency"), "{error}");
    }

    #[test]
    fn only_where_memory_is_to_be_broken_up_is_it_a_lie_not_to() {
        let lie = ("lie", "unfragmented");
        let pairs = [("pressure", "fragmented"), ("page", "2m"), lie];
        assert!(complete(&Latency, &pairs).is_ok() && complete(&Throughput, &pairs).is_ok());
        for pressure in ["none", "memcg"] {
            let error = complete(&Latency, &[("pressure", pressure), ("page", "2m"), lie]);
            assert!(error.unwrap_err().contains("would be the truth"), "{pressure}");
        }
    }
}
