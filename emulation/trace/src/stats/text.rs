//! The statistics as text, in the layout of fast-mem's tool; what it does not have comes after.

use super::{Bucket, DirectMapped, Reach, StackDistances, Stats};

const WIDTHS: [&str; 4] = ["u8", "u16", "u32", "u64"];

impl Stats {
    /// The statistics as text, each line with its end; `name` is what the trace is called.
    pub fn text(&self, name: &str) -> String {
        let mut text = format!(
            "trace_stats\ntrace: {name}\npage_shift: {}\ntop_k: {}\n",
            self.page_shift, self.top
        );
        let (consumed, total) = (thousands(self.bytes_consumed), thousands(self.bytes_total));
        text += &format!("ops: {}\nbytes: {consumed}/{total}\n", thousands(self.ops));
        text += &format!("reads: {}\n", thousands(self.reads));
        text += &format!("writes: {}\n", thousands(self.writes));
        widths(&mut text, "reads", &self.read_widths, self.reads);
        widths(&mut text, "writes", &self.write_widths, self.writes);
        text += &format!("straddle ops: {}\n", part(self.straddles, self.ops));
        let pairs = self.ops.saturating_sub(1);
        text += &format!("page transitions: {}\n", part(self.transitions, pairs));
        histogram(&mut text, "page run lengths", &self.runs);
        if self.top > 0 {
            text += "top pages:\n";
            for page in &self.top_pages {
                text += &format!("  {:#x}: {}\n", page.page, part(page.ops, self.ops));
            }
        }
        histogram(&mut text, "reuse distance (ops)", &self.reuse.distances);
        text += &format!("cold misses: {}\n", thousands(self.reuse.cold));
        caches(&mut text, "direct-mapped page cache sim", &self.reuse.caches);
        let absent = &self.absent;
        let (reads, pages) = (thousands(absent.reads), thousands(absent.pages));
        text += &format!("absent reads: {reads} (distinct pages: {pages})\n");
        histogram(&mut text, "absent reuse distance (ops)", &absent.reuse.distances);
        text += &format!("absent cold misses: {}\n", thousands(absent.reuse.cold));
        caches(&mut text, "absent direct-mapped cache sim", &absent.reuse.caches);
        if let Some(stack) = &self.stack {
            curve(&mut text, stack);
        }
        for reach in &self.tlb {
            tlb(&mut text, reach, self.ops);
        }
        text
    }
}

fn widths(text: &mut String, what: &str, counts: &[u64; 4], whole: u64) {
    *text += &format!("width distribution ({what}):\n");
    for (width, count) in WIDTHS.iter().zip(counts) {
        *text += &format!("  {width}: {}\n", part(*count, whole));
    }
}

fn histogram(text: &mut String, what: &str, buckets: &[Bucket]) {
    let whole = buckets.iter().map(|bucket| bucket.count).sum();
    *text += &format!("{what}:\n");
    for bucket in buckets {
        let (min, max) = (thousands(bucket.min), thousands(bucket.max));
        *text += &format!("  {min}-{max}: {}\n", part(bucket.count, whole));
    }
}

fn caches(text: &mut String, what: &str, caches: &[DirectMapped]) {
    if caches.is_empty() {
        return;
    }
    *text += &format!("{what}:\n");
    for cache in caches {
        let all = cache.hits.saturating_add(cache.misses);
        *text += &format!(
            "  N={}: hits {}, misses {}, conflict {} ({:.2}% of misses)\n",
            cache.entries,
            part(cache.hits, all),
            part(cache.misses, all),
            thousands(cache.conflicts),
            percent(cache.conflicts, cache.misses)
        );
    }
}

/// The curve at the powers of two, and where it ends.
fn curve(text: &mut String, stack: &StackDistances) {
    let how = match stack.one_in {
        1 => "exact".to_owned(),
        one_in => format!("estimated from 1 page in {}", thousands(one_in)),
    };
    *text += &format!("LRU page cache misses ({how}):\n");
    let last = stack.curve.len().saturating_sub(1);
    for (at, point) in stack.curve.iter().enumerate() {
        if at == last || point.pages.is_power_of_two() {
            *text += &format!("  N={}: {}\n", point.pages, part(point.misses, stack.ops));
        }
    }
}

fn tlb(text: &mut String, reach: &Reach, ops: u64) {
    let page = size(1 << reach.page_shift);
    let pages = thousands(reach.pages);
    *text += &format!("TLB misses, {page} pages (distinct pages: {pages}):\n");
    for tlb in &reach.tlbs {
        let (covered, misses) = (size(tlb.reach_bytes), part(tlb.misses, ops));
        *text += &format!("  N={} ({covered}): {misses}\n", tlb.entries);
    }
}

/// `part (12.34%)`.
fn part(part: u64, whole: u64) -> String {
    format!("{} ({:.2}%)", thousands(part), percent(part, whole))
}

/// Multiplies first, as fast-mem's tool does, so that the last digit is rounded alike.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// A number with a comma before every third digit from the right.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size in bytes in the largest unit that divides it.
fn size(bytes: u64) -> String {
    match bytes.trailing_zeros() {
        0..10 => format!("{bytes} B"),
        10..20 => format!("{} KiB", bytes >> 10),
        20..30 => format!("{} MiB", bytes >> 20),
        30..40 => format!("{} GiB", bytes >> 30),
        _ => format!("{} TiB", bytes >> 40),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_before_every_third_digit() {
        let numbers = [0, 12, 123, 1_234, 123_456, 4_160_787_522].map(thousands);
        assert_eq!(numbers, ["0", "12", "123", "1,234", "123,456", "4,160,787,522"]);
    }

    #[test]
    fn sizes_have_the_unit_that_divides_them() {
        let sizes = [100, 4096, 6 << 20, 1 << 30, 4 << 40].map(size);
        assert_eq!(sizes, ["100 B", "4 KiB", "6 MiB", "1 GiB", "4 TiB"]);
    }
}
