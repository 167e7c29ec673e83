//! A case of `fault/latency`, read once; and what is turned away.

use pagelab_bench::{params::PageSize, refusal::Refusal};
use pagelab_record::Case;

use crate::fault::{
    kinds::{self, FaultKind, kind_of},
    populate::{self, Populate},
    space::size_of,
};

/// A case, read.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(super) struct Asked {
    pub(super) kind: &'static dyn FaultKind,
    pub(super) page: PageSize,
    pub(super) populate: Populate,
    pub(super) size: u64,
    /// Touches a second; `None` as fast as they come.
    pub(super) rate: Option<u64>,
    pub(super) as_published: bool,
    pub(super) is_random: bool,
    pub(super) is_cold: bool,
    /// Pages are swapped out, to memory.
    pub(super) swaps: bool,
    pub(super) swaps_to_memory: bool,
    pub(super) names_dir: bool,
    pub(super) fifo: bool,
    pub(super) reads: bool,
    pub(super) lies_truly: bool,
}

impl Asked {
    pub(super) fn of(case: &Case) -> Self {
        let is = |name: &str, value: &str| case.get(name) == Some(value);
        let swaps = is("kind", "swap");
        Self {
            kind: kind_of(case),
            page: PageSize::of(case),
            populate: Populate::of(case),
            size: size_of(case),
            rate: rate_of(case),
            as_published: case
                .get("arms")
                .is_some_and(|arms| arms.split(',').any(|arm| arm == "as-published")),
            is_random: is("order", "random"),
            is_cold: is("host", "cold"),
            swaps,
            swaps_to_memory: swaps && is("swap", "zram"),
            names_dir: !is("dir", "auto"),
            fifo: is("fifo", "on"),
            reads: is("lie", "read"),
            lies_truly: populate::lie_is_true(case) || kinds::lie_is_true(case),
        }
    }

    pub(super) fn is_touched(&self) -> bool {
        self.populate == Populate::Touch
    }

    pub(super) fn can_be_cold(&self) -> bool {
        self.is_touched() && self.kind.takes_fresh_memory() && self.kind.is_fault()
    }

    pub(super) fn touches(&self) -> u64 {
        self.size / self.page.bytes()
    }

    pub(super) fn footprint(&self) -> u64 {
        // zram holds what is swapped out in memory; in the worst case it does not get smaller.
        self.size * if self.swaps_to_memory { 2 } else { 1 }
    }
}

/// What is turned away beside what other rooms turn away.
pub(super) const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.is_cold && !asked.can_be_cold(),
        "host=cold with a kind that takes no fresh memory, or a populating call",
        "nothing is cold",
    ),
    Refusal::new(
        |asked| !asked.kind.is_fault() && asked.rate.is_some(),
        "rate with kind=present",
        "no fault is waited for",
    ),
    Refusal::new(
        |asked| asked.fifo && asked.rate.is_some_and(|rate| asked.touches() * 10 > rate * 9),
        "rate and fifo for more than 0.9 s a repetition",
        "the kernel throttles real-time threads at 0.95 s; use a smaller size",
    ),
    Refusal::new(
        |asked| asked.as_published && asked.kind.name() != "read",
        "arms=as-published with kind=write or present",
        "the published method reads; use kind=read",
    ),
    Refusal::new(
        |asked| {
            let is_folio = matches!(asked.page, PageSize::Folio(_));
            !asked.size.is_multiple_of(if is_folio { 1 << 20 } else { asked.page.bytes() })
        },
        "size not divisible by the page (and by 1m for 16k … 1m)",
        "only whole pages are touched",
    ),
    Refusal::new(
        |asked| asked.lies_truly,
        "a lie that would be the truth, or that this page size cannot tell",
        "nothing would be proven",
    ),
    Refusal::new(
        |asked| !asked.is_touched() && asked.kind.name() != "write",
        "populate other than touch with kind other than write",
        "both say what memory is like",
    ),
    Refusal::new(
        |asked| asked.names_dir && !asked.kind.uses_dir(),
        "dir with a kind that uses no file",
        "leave it at auto",
    ),
];

/// Said by the kinds themselves, each in its own words.
pub(super) const BY_KIND: (&str, &str) = (
    "a kind with a page size that it does not come in",
    "a read maps base pages, for one; the error says which size to ask for",
);

/// Touches a second; `None` as fast as they come.
pub(super) fn rate_of(case: &Case) -> Option<u64> {
    case.get("rate").and_then(|rate| rate.parse().ok())
}
