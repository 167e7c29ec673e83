//! Memory that only khugepaged can still join into pages of 2 MiB, and how soon it would.
//!
//! Pages that came one by one have paid for their faults. What joining them saves is translation
//! afterwards, which is not told apart here, so no time is promised. khugepaged looks at
//! `pages_to_scan` pages, rests for `scan_sleep_millisecs`, and goes on (`mm/khugepaged.c`).

use pagelab_record::{
    Host, Measured,
    advice::KHUGEPAGED,
    units::{display_bytes, display_ns},
    vocabulary::knob,
};

use super::{super::priced::LARGE, Advice, Knob, density, thp_file};
use pagelab_report::{Quantity, Unit, group_thousands};

/// Base pages in a page of 2 MiB.
const PAGES: f64 = (LARGE / 4096) as f64;

/// Memory that came page by page.
#[derive(Debug, Clone, Copy)]
struct Late {
    /// Base pages.
    pages: f64,
    /// Blocks of 2 MiB around them.
    blocks: f64,
}

impl Late {
    fn of(measured: &Measured) -> Option<Self> {
        let [pages, blocks] = ["late", "late_blocks"].map(|column| density(measured, column));
        // Earlier versions counted no blocks.
        (pages > 0.0).then(|| Self { pages, blocks: blocks.max((pages / PAGES).ceil()) })
    }

    /// Pages that are missing in a block, on average.
    fn missing(self) -> f64 {
        PAGES - self.pages / self.blocks
    }
}

/// khugepaged at work soon.
pub(super) fn late(measured: &Measured) -> Option<Knob> {
    // Every program has a few.
    let late = Late::of(measured).filter(|late| late.pages >= PAGES)?;
    let files = KHUGEPAGED.map(|(file, value)| thp_file(&format!("khugepaged/{file}"), value));
    let way = [thp_file("enabled", "always")].into_iter().chain(files).collect();
    let blocks = late.blocks;
    let advice = Advice::of(knob::KHUGEPAGED, "khugepaged", [way]);
    let change = format!("{} become {blocks:.0} of 2m later; no fault is spared", many(late.pages));
    let saved = Quantity::exact(0.0, Unit::Ns);
    let bytes = Some(late.missing() * blocks * 4096.0);
    Some(Knob { bytes, ..Knob::new(knob::KHUGEPAGED, advice, change, saved) })
}

fn many(pages: f64) -> String {
    let plural = if pages > 1.0 { "s" } else { "" };
    format!("{} page{plural}", group_thousands(pages))
}

/// What khugepaged could still join of a program that was watched for so long, and how long its
/// pass takes as it is set now.
pub(in super::super) fn note(measured: &Measured, host: &Host, watched_ns: f64) -> Option<String> {
    let late = Late::of(measured)?;
    let mut text = format!(
        "khugepaged: {} came page by page, before the 2 MiB around each page were mapped and \
         empty. No THP comes there at a fault; only khugepaged could still join them, which spares \
         no fault: its gain is later translation, and is in no saving.",
        display_bytes(late.pages * 4096.0)
    );
    let number = |key: &str| host.settings.get(&format!("khugepaged_{key}"))?.as_f64();
    let word = |key: &str| host.settings.get(key)?.as_str();
    if word("thp_enabled") == Some("never") {
        text += " As the machine is set up it does not run (enabled=never).";
        return Some(text);
    }
    let [pages, rest] = ["pages_to_scan", "scan_sleep_ms"].map(number);
    let Some((pages, rest)) = pages.zip(rest).filter(|(pages, _)| *pages >= 1.0) else {
        return Some(text);
    };
    let pass_ns = (late.blocks * PAGES / pages).ceil() * rest * 1e6;
    let mut set = format!("pages_to_scan={pages:.0}, scan_sleep_millisecs={rest:.0}");
    for (key, file) in
        [("alloc_sleep_ms", "alloc_sleep_millisecs"), ("max_ptes_none", "max_ptes_none")]
    {
        if let Some(value) = number(key) {
            set += &format!(", {file}={value:.0}");
        }
    }
    text += &format!(
        " As it is set now ({set}) a pass over them takes {} or more, which is {} than the program \
         was watched for.",
        display_ns(pass_ns),
        if pass_ns > watched_ns { "longer" } else { "less" }
    );
    let soon = KHUGEPAGED.map(|(file, value)| format!("{file}={value}")).join(", ");
    text += &format!(" What would have it at work soon: {soon}, below khugepaged/.");
    if number("max_ptes_none").is_some_and(|most| late.missing() > most) {
        text += &format!(
            " It joins no block that lacks more pages than max_ptes_none; theirs lack {:.0} on \
             average.",
            late.missing()
        );
    }
    if word("thp_enabled") == Some("madvise") {
        text += " With enabled=madvise it looks at memory that asked (MADV_HUGEPAGE) only.";
    }
    Some(text)
}
