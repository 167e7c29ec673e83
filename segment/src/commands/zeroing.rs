//! What zeroing cost a program with segments, and who paid.
//!
//! The one idea: what the library and its helper zero they time themselves. What the kernel zeroes
//! at a fault nobody tells: it is at least what was there when it was told, and about as dear as
//! the same faults are here at that moment, which is called an estimate.

use pagelab_interpose::segment::{Counted, Counts, Leaf, Wish};
use pagelab_record::units::{display_bytes, display_ns};
use pagelab_sys::{
    Area,
    loops::Stride,
    memory::{Advice, Backing, Layout},
    time::monotonic_raw_ns,
};
use serde_json::{Value, json};

/// Areas that are touched for a price, and small pages in each of them: few, as whoever waits for a
/// program waits for this, too.
const AREAS: usize = 3;
const PAGES: usize = 32;
const PAGE: u64 = 4096;

/// What a fault takes here, at the median: of a small page, and of 2 MiB.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Prices {
    page_ns: Option<u64>,
    leaf_ns: Option<u64>,
}

impl Prices {
    /// Of the faults that there were.
    pub(super) fn here(wish: &Wish, counts: &Counts) -> Self {
        let (all, large) = at_faults(counts);
        // Of a pool and of the module faults are others.
        let is_ordinary = wish.backing == pagelab_interpose::segment::Backing::Thp;
        let of = |is_asked: bool, advice, bytes: usize, touches: usize| {
            let took = (is_asked && is_ordinary).then(|| touched(advice, bytes))??;
            Some(took / touches as u64)
        };
        let leaf = usize::try_from(Leaf::Pmd.bytes()).unwrap_or_default();
        Self {
            page_ns: of(all > large, Advice::NoHugePage, PAGES * 4096, PAGES),
            leaf_ns: of(large > 0, Advice::HugePage, leaf, 1),
        }
    }

    /// What so many bytes took, the large ones apart.
    fn of(self, (all, large): (u64, u64)) -> [(u64, Option<u64>); 2] {
        let leaves = large.div_ceil(Leaf::Pmd.bytes());
        [((all - large) / PAGE, self.page_ns), (leaves, self.leaf_ns)]
    }

    fn sum(self, bytes: (u64, u64)) -> Option<u64> {
        let parts = self.of(bytes).into_iter().filter(|(count, _)| *count > 0);
        let sum: Option<u64> = parts.map(|(count, each)| Some(count * each?)).sum();
        sum.filter(|sum| *sum > 0)
    }
}

/// Nanoseconds in which so much memory is touched for the first time.
fn touched(advice: Advice, bytes: usize) -> Option<u64> {
    let mut times = Vec::new();
    for _ in 0..AREAS {
        let area = Area::mapped(Layout::contiguous(bytes), Backing::Anonymous, 2 << 20).ok()?;
        area.advise(advice).ok()?;
        let begun = monotonic_raw_ns();
        area.touch(0, bytes, Stride { step: 4096, bytes: 8 });
        times.push(monotonic_raw_ns() - begun);
    }
    times.sort_unstable();
    Some(times[AREAS / 2])
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
pub(super) fn lines(counts: &Counts, prices: Prices) -> Vec<String> {
    let bytes = |bytes: u64| display_bytes(bytes as f64);
    let get = |counted| counts.get(counted);
    let zeroed = at_faults(counts);
    let mut line = format!("by the kernel at faults, {} at least", bytes(zeroed.0));
    if let Some(sum) = prices.sum(zeroed) {
        let each = ["4 KiB", "2 MiB"].into_iter().zip(prices.of(zeroed));
        let each = each.filter_map(|(size, (count, each))| {
            let each = each.filter(|_| count > 0)?;
            Some(format!("{} of {size} at {}", count, display_ns(each as f64)))
        });
        let each = each.collect::<Vec<_>>().join(", ");
        line.push_str(&format!(", about {} (an estimate: {each} each)", display_ns(sum as f64)));
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
pub(super) fn json(counts: &Counts, prices: Prices) -> Value {
    let get = |counted| counts.get(counted);
    let timed = |bytes, ns| json!({ "bytes": get(bytes), "cpu_ns": get(ns) });
    let (all, large) = at_faults(counts);
    json!({
        "faults": {
            "bytes_at_least": all, "huge_bytes_at_least": large,
            "base_page_ns": prices.page_ns, "huge_page_ns": prices.leaf_ns,
            "about_ns": prices.sum((all, large)),
        },
        "helper": timed(Counted::HelperBytes, Counted::HelperNs),
        "helpers": get(Counted::Helpers),
        "own": timed(Counted::OwnBytes, Counted::OwnNs),
        "ahead": timed(Counted::AheadBytes, Counted::AheadNs),
        "kept": get(Counted::Kept),
        "returned": get(Counted::Returned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_zeroed_is_priced_by_pages_of_both_sizes() {
        let prices = Prices { page_ns: Some(500), leaf_ns: Some(80_000) };
        let bytes = (5 * PAGE + (4 << 20), 4 << 20);
        assert_eq!(prices.of(bytes), [(5, Some(500)), (2, Some(80_000))]);
        assert_eq!(prices.sum(bytes), Some(162_500));
        assert_eq!(prices.sum((0, 0)), None);
        let unknown = Prices { page_ns: Some(500), leaf_ns: None };
        assert_eq!(unknown.sum(bytes), None, "a part is not the sum");
        assert_eq!(unknown.sum((PAGE, 0)), Some(500));
    }
}
