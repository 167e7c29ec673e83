//! What `fault/throughput` turns away beside what `fault/latency` does too.

use pagelab_bench::{PageSize, Refusal};

use pagelab_mappings::{Arm, Asked, Lie, Place};

fn has_peer(asked: &Asked) -> bool {
    asked.has(Arm::PageFault1) || asked.has(Arm::Pft)
}

/// Whether all is as a short loop in C has it.
fn is_bare(asked: &Asked) -> bool {
    matches!(asked.page, PageSize::Base | PageSize::Thp)
        && asked.place == Place::Anon
        && asked.is_touched()
        && !asked.is_random
        && !asked.is_ragged
        && asked.mem_node.is_none()
        && asked.touch.bytes == 8
}

fn touches_each_base_page(asked: &Asked) -> bool {
    asked.page == PageSize::Base && asked.stride().step == 4096
}

/// Whether nothing is asked for that only a first store has.
fn is_ordinary(asked: &Asked) -> bool {
    asked.touch.bytes == 8
        && asked.stride().step as u64 == asked.page.bytes()
        && asked.is_touched()
        && asked.place == Place::Anon
        && !asked.is_ragged
}

fn is_indivisible(asked: &Asked) -> bool {
    let step = asked.stride().step as u64;
    let window = if asked.is_folio() { 1 << 20 } else { 1 };
    let unit = asked.page.bytes().max(step).max(window) * asked.workers() as u64;
    !asked.size.is_multiple_of(unit) || (asked.is_folio() && step > window)
}

/// Whether no CPU is left for a thread beside.
fn lacks_cpus(asked: &Asked) -> bool {
    let is_short = |cpus: &Vec<usize>| cpus.len() <= asked.threads;
    asked.cpus.is_none || asked.cpus.listed.as_ref().is_some_and(is_short)
}

/// What is turned away beside what other rooms turn away.
pub(super) const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.is_hugetlb() && asked.place != Place::Anon,
        "backing=brk|fixed with page=hugetlb-…",
        "hugetlb pages have no brk; use backing=anon",
    ),
    Refusal::new(
        |asked| asked.place == Place::Brk && asked.is_folio(),
        "backing=brk with page=16k … 1m",
        "one heap range would come in 2m pages; use backing=anon",
    ),
    Refusal::new(
        |asked| asked.is_ragged && asked.is_hugetlb(),
        "align=ragged with page=hugetlb-…",
        "a hugetlb mapping is always aligned",
    ),
    Refusal::new(
        |asked| asked.is_ragged && asked.page == PageSize::Base,
        "align=ragged with page=4k",
        "a mapping has no ends smaller than a base page",
    ),
    Refusal::new(
        |asked| asked.is_ragged && asked.is_folio(),
        "align=ragged with page=16k … 1m",
        "large folios lie in windows of their own; use page=2m",
    ),
    Refusal::new(
        |asked| asked.is_ragged && asked.stride().step != 4096,
        "align=ragged without touch=…@4k",
        "the ends are touched only by a stride of 4k",
    ),
    Refusal::new(
        |asked| asked.threads > 1 && asked.processes > 1,
        "threads and processes above 1",
        "they are two questions; ask one at a time",
    ),
    Refusal::new(
        |asked| asked.is_random && asked.threads > 1,
        "order=random with threads above 1",
        "threads share the range in ascending shares",
    ),
    Refusal::new(
        |asked| asked.has(Arm::C) && !(is_bare(asked) && !asked.fifo && asked.workers() == 1),
        "arms=c outside page=4k|2m, anon, touch=8@…, one ordinary worker",
        "the C loop does no more",
    ),
    Refusal::new(
        |asked| has_peer(asked) && !(is_bare(asked) && touches_each_base_page(asked)),
        "arms=page-fault1|pft outside page=4k, anon, ascending touch=8@4k",
        "their loops do no more",
    ),
    Refusal::new(
        is_indivisible,
        "size not divisible by page and stride × workers",
        "every worker touches whole pages",
    ),
    Refusal::new(
        |asked| asked.lies_truly() || (asked.lie != Lie::None && !asked.is_write()),
        "a lie that would be the truth, or that this page size cannot tell",
        "nothing would be proven",
    ),
    Refusal::new(
        |asked| !asked.kind.in_throughput,
        "a kind whose cost is a call",
        "nothing is touched in bulk; use fault/latency",
    ),
    Refusal::new(
        |asked| !asked.is_write() && !is_ordinary(asked),
        "a kind other than write with populate, backing, align or touch",
        "only a first store has these; use kind=write",
    ),
    Refusal::new(
        |asked| (asked.has(Arm::C) || has_peer(asked)) && !asked.is_write(),
        "other arms with a kind other than write",
        "the C loops store to fresh memory",
    ),
    Refusal::new(
        |asked| {
            asked.divides && (asked.threads == 1 || asked.is_folio() || asked.place == Place::Brk)
        },
        "vmas=each with threads=1, backing=brk or page=16k … 1m",
        "there is nothing to divide",
    ),
    Refusal::new(
        |asked| asked.call.is_some() && asked.processes > 1,
        "beside with processes above 1",
        "calls beside are made in the same address space",
    ),
    Refusal::new(
        |asked| {
            let is_other = asked.has(Arm::C) || has_peer(asked) || !asked.is_touched();
            asked.call.is_some() && is_other
        },
        "beside with populate or other arms",
        "the calls are made beside touches that fault",
    ),
    Refusal::new(
        |asked| asked.call.is_some() && lacks_cpus(asked),
        "beside with cpu=none or fewer CPUs than threads and one more",
        "the thread that calls needs a CPU of its own",
    ),
];
