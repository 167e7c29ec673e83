//! What `fault/throughput` and `fault/latency` both turn away: ways of populating, memory that is
//! short, and what only swap reads.

use pagelab_bench::{PageSize, Refusal};

use pagelab_mappings::{
    Arm, Asked, Lie, Place, Populate, Pressure,
    choices::{SwapTo, Swapping},
};

/// Memory that is short.
pub(super) const PRESSED: &[Refusal<Asked>] = &[
    Refusal::new(
        is_pressed_beside,
        "pressure with kind other than write, populate, lie, hugetlb pages, a skew or processes",
        "only a first store to fresh memory is squeezed; use kind=write and threads",
    ),
    Refusal::new(
        |asked| asked.pressure == Pressure::Fragmented && asked.page == PageSize::Base,
        "pressure=fragmented with page=4k",
        "a base page needs no block; use page=2m or 64k",
    ),
];

/// The same for touches in bulk.
pub(super) const PRESSED_IN_BULK: &[Refusal<Asked>] = &[Refusal::new(
    |asked| asked.pressure == Pressure::Fragmented && asked.is_folio(),
    "pressure=fragmented with page=16k … 1m, in bulk",
    "compaction may split folios that were touched before; use fault/latency, or page=2m",
)];

/// Whether memory is short, and something else is asked for that cannot be squeezed.
fn is_pressed_beside(asked: &Asked) -> bool {
    let is_plain = asked.is_write()
        && asked.is_touched()
        && asked.place == Place::Anon
        && (asked.touch.bytes, asked.touch.stride) == (8, None)
        && asked.arms == [Arm::Pagelab]
        && asked.processes == 1
        && asked.call.is_none();
    let is_skewed = asked.is_ragged || !matches!(asked.lie, Lie::None | Lie::Unfragmented);
    let is_short = asked.pressure != Pressure::None;
    is_short && (asked.is_hugetlb() || asked.is_cold || is_skewed || !is_plain)
}

/// Ways of populating.
pub(super) const POPULATED: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.populate.locks() && asked.is_hugetlb(),
        "populate=mlock… or map-locked with page=hugetlb-…",
        "hugetlb pages are never paged out: nothing to lock",
    ),
    Refusal::new(
        |asked| asked.populate == Populate::Read && asked.page != PageSize::Base,
        "populate=populate-read with anything but page=4k",
        "larger pages are not mapped one by one as the zero page",
    ),
    Refusal::new(
        |asked| asked.populate.is_early() && asked.mem_node.is_some(),
        "populate=map-populate, map-locked or mlockall-future with mem-node",
        "memory is there before it can be bound to a node",
    ),
];

/// The same where there is a heap, and threads.
pub(super) const POPULATED_IN_BULK: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| {
            let takes_flags = matches!(asked.populate, Populate::Map | Populate::MapLocked);
            takes_flags && asked.place == Place::Brk
        },
        "populate=map-populate or map-locked with backing=brk",
        "brk takes no flags",
    ),
    Refusal::new(
        |asked| asked.populate == Populate::MadviseEach && asked.threads == 1,
        "populate=madvise-populate-each with threads=1",
        "each thread populates its share: with one it is madvise-populate",
    ),
];

/// What only `kind=swap` reads.
pub(super) const SWAPPED: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| !asked.is_swap() && asked.swap != Swapping::DEFAULT,
        "swap, algorithm, page-cluster or content with a kind other than swap",
        "they say nothing there; leave them out or ask for kind=swap",
    ),
    Refusal::new(
        |asked| asked.is_swap() && asked.swap.to == SwapTo::File && asked.swap.algorithm.is_some(),
        "algorithm with swap=file",
        "a file is not compressed; use swap=zram",
    ),
    Refusal::new(
        |asked| asked.swap.reads_ahead && (asked.rate.is_some() || asked.walks),
        "rate or caches=cold with page-cluster=default",
        "the loop that tells major from minor faults does neither; use page-cluster=0",
    ),
];
