//! What `fault/latency` turns away beside what `fault/throughput` does too.

use pagelab_bench::Refusal;

use pagelab_mappings::{Arm, Asked};

fn can_be_cold(asked: &Asked) -> bool {
    asked.is_touched() && asked.kind.takes_fresh_memory && asked.kind.is_fault
}

/// Touches of a repetition.
pub(super) fn touches(asked: &Asked) -> u64 {
    asked.size / asked.page.bytes()
}

/// What is turned away beside what other rooms turn away.
pub(super) const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.is_cold && !can_be_cold(asked),
        "host=cold with a kind that takes no fresh memory, or a populating call",
        "nothing is cold",
    ),
    Refusal::new(
        |asked| !asked.kind.is_fault && asked.rate.is_some(),
        "rate with kind=present",
        "no fault is waited for",
    ),
    Refusal::new(
        |asked| asked.walks && asked.rate.is_some(),
        "caches=cold with a rate",
        "who walks between two touches is late for the next; leave rate at max",
    ),
    Refusal::new(
        |asked| asked.fifo && asked.rate.is_some_and(|rate| touches(asked) * 10 > rate * 9),
        "rate and fifo for more than 0.9 s a repetition",
        "the kernel throttles real-time threads at 0.95 s; use a smaller size",
    ),
    Refusal::new(
        |asked| asked.has(Arm::AsPublished) && asked.kind.name != "read",
        "arms=as-published with kind=write or present",
        "the published method reads; use kind=read",
    ),
    Refusal::new(
        |asked| {
            !asked.size.is_multiple_of(if asked.is_folio() { 1 << 20 } else { asked.page.bytes() })
        },
        "size not divisible by the page (and by 1m for 16k … 1m)",
        "only whole pages are touched",
    ),
    Refusal::new(
        Asked::lies_truly,
        "a lie that would be the truth, or that this page size cannot tell",
        "nothing would be proven",
    ),
    Refusal::new(
        |asked| !asked.is_touched() && !asked.is_write(),
        "populate other than touch with kind other than write",
        "both say what memory is like",
    ),
    Refusal::new(
        |asked| asked.directory.is_some() && !asked.kind.uses_dir,
        "dir with a kind that uses no file",
        "leave it at auto",
    ),
];

/// Said by the kinds themselves, each in its own words.
pub(super) const BY_KIND: (&str, &str) = (
    "a kind with a page size that it does not come in",
    "a read maps base pages, for one; the error says which size to ask for",
);
