//! What zeroing cost a program with segments, and who paid.
//!
//! The one idea: what the library and its helper zero they time themselves. What the kernel zeroes
//! at a fault nobody tells: it is at least what was there at the end, and about as dear as the same
//! fault is here, right after the program.

use pagelab_record::units::{display_bytes, display_ns};
use pagelab_sys::{
    loops::bulk::Buffer,
    process::segment::{Counted, Counts, Leaf, Wish},
    time::monotonic_raw_ns,
};
use serde_json::{Value, json};

/// Leaves that are touched for it.
const LEAVES: usize = 5;

/// What the kernel takes for a fault of 2 MiB here, at the median; `None` where there were none.
pub(super) fn leaf_ns(wish: &Wish, counts: &Counts) -> Option<u64> {
    let large = counts.get(Counted::HeapLarge) + counts.get(Counted::MmapLarge);
    if wish.leaf == Leaf::Base || large == 0 {
        return None;
    }
    let bytes = usize::try_from(Leaf::Pmd.bytes()).ok()?;
    let mut times = Vec::new();
    for _ in 0..LEAVES {
        let begun = monotonic_raw_ns();
        let buffer = Buffer::new(bytes).ok()?;
        times.push(monotonic_raw_ns() - begun);
        drop(buffer);
    }
    times.sort_unstable();
    Some(times[LEAVES / 2])
}

/// Bytes that the kernel zeroed at faults, at least: those that were there at the end.
fn at_faults(counts: &Counts) -> (u64, u64) {
    let sum = |of: [Counted; 2]| of.into_iter().map(|counted| counts.get(counted)).sum::<u64>();
    let large = sum([Counted::HeapLarge, Counted::MmapLarge]);
    let all = large + sum([Counted::HeapSmall, Counted::MmapSmall]);
    let else_zeroed = counts.get(Counted::AheadBytes);
    (all.saturating_sub(else_zeroed), large.saturating_sub(else_zeroed))
}

/// The lines for people.
pub(super) fn lines(counts: &Counts, leaf_ns: Option<u64>) -> Vec<String> {
    let bytes = |bytes: u64| display_bytes(bytes as f64);
    let get = |counted| counts.get(counted);
    let (all, large) = at_faults(counts);
    let mut line = format!("by the kernel at faults, {} at least", bytes(all));
    if let Some(ns) = leaf_ns.filter(|_| large > 0) {
        let leaves = (large / Leaf::Pmd.bytes()).max(1);
        let [sum, each] = [leaves * ns, ns].map(|ns| display_ns(ns as f64));
        line.push_str(&format!("; of it huge pages about {sum}, {each} each as measured after"));
    }
    let mut lines = vec![line];
    let timed = |who: &str, [zeroed, ns]: [Counted; 2]| {
        let (zeroed, ns) = (get(zeroed), get(ns));
        let time = display_ns(ns as f64);
        (ns > 0).then(|| format!("{who}, {} in {time} of CPU time", bytes(zeroed)))
    };
    let helpers = match get(Counted::Helpers) {
        0 | 1 => "by a helper at release".to_owned(),
        many => format!("by {many} helpers at release"),
    };
    lines.extend(timed(&helpers, [Counted::HelperBytes, Counted::HelperNs]));
    let own = "by the program's threads, which took it again sooner";
    lines.extend(timed(own, [Counted::OwnBytes, Counted::OwnNs]));
    lines.extend(timed("ahead", [Counted::AheadBytes, Counted::AheadNs]));
    let (kept, returned) = (get(Counted::Kept), get(Counted::Returned));
    if kept + returned > 0 {
        let [kept, returned] = [kept, returned].map(bytes);
        lines.push(format!("kept at the end {kept}; {returned} went back, taken by nobody"));
    }
    lines
}

/// The same for a program to read.
pub(super) fn json(counts: &Counts, leaf_ns: Option<u64>) -> Value {
    let get = |counted| counts.get(counted);
    let timed = |bytes, ns| json!({ "bytes": get(bytes), "cpu_ns": get(ns) });
    let (all, large) = at_faults(counts);
    json!({
        "faults": { "bytes_at_least": all, "huge_bytes_at_least": large, "huge_page_ns": leaf_ns },
        "helper": timed(Counted::HelperBytes, Counted::HelperNs),
        "helpers": get(Counted::Helpers),
        "own": timed(Counted::OwnBytes, Counted::OwnNs),
        "ahead": timed(Counted::AheadBytes, Counted::AheadNs),
        "kept": get(Counted::Kept),
        "returned": get(Counted::Returned),
    })
}
