//! `trace/stats`: what a trace looks like, as shares.
//!
//! The one idea: a record holds counts; every share, of our records and of published ones, gets the
//! same name here, so that the two can stand beside each other. A published record that has shares
//! only leaves the counts out.
//!
//! Tables and charts are in `section` and `charts`; nothing here looks at a trace.

mod charts;
mod section;

use pagelab_record::{
    Case, Measured,
    units::{self, whole},
};

pub(crate) use self::section::section;
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    Entry, Headline, Numbers, Quantity, Run, Tone, Unit, group_thousands, name_of,
    numbers::counted, parameters,
};

/// The workload that this file reads.
pub(crate) use crate::trace::stats::NAME as WORKLOAD;
/// What belongs to the whole trace.
pub(crate) const WHOLE: &str = "trace";
/// Published shares are kept in parts of this.
const BASIS_POINTS: f64 = 10_000.0;

/// What was published of a trace.
fn published_of<'a>(entry: &Entry, published: &'a [Entry]) -> Vec<&'a Entry> {
    let shift = entry.value(parameter::PAGE_SHIFT);
    let mine = |other: &&Entry| {
        other.record.workload == WORKLOAD
            && name_of(other.case()) == name_of(entry.case())
            && other.case().get(parameter::PAGE_SHIFT).is_none_or(|theirs| theirs == shift)
    };
    published.iter().filter(mine).collect()
}

/// Adds what the counters and tables of a trace imply.
pub(crate) fn derive(_: &Case, measured: &Measured, numbers: &mut Numbers) {
    let ops = totals(measured, numbers);
    let mut add = |series: &str, statistic, value: Option<Quantity>| {
        numbers.add(counted(series), statistic, value);
    };
    let widths = rows::<3>(measured, "widths");
    let sum = |column: usize| widths.iter().map(|row| row[column]).sum::<f64>();
    let (all_reads, all_writes) = (sum(1), sum(2));
    for [width, reads, writes] in &widths {
        let series = format!("width/{width}");
        add(&series, "reads", Some(count(*reads)));
        add(&series, "read_share", share(*reads, all_reads));
        add(&series, "writes", Some(count(*writes)));
        add(&series, "write_share", share(*writes, all_writes));
    }
    for [width, reads, writes] in rows::<3>(measured, "width-shares") {
        let series = format!("width/{width}");
        add(&series, "read_share", share(reads, BASIS_POINTS));
        add(&series, "write_share", share(writes, BASIS_POINTS));
    }
    for histogram in ["runs", "reuse", "absent-reuse"] {
        let buckets = rows::<3>(measured, histogram);
        let all = buckets.iter().map(|[.., count]| count).sum::<f64>();
        for [from, to, part] in buckets {
            let series = format!("{histogram}/{}", bucket(from, to));
            add(&series, "count", Some(count(part)));
            add(&series, "share", share(part, all));
        }
    }
    for (table, histogram) in
        [("run-shares", "runs"), ("reuse-shares", "reuse"), ("absent-reuse-shares", "absent-reuse")]
    {
        for [from, to, part] in rows::<3>(measured, table) {
            let series = format!("{histogram}/{}", bucket(from, to));
            add(&series, "share", share(part, BASIS_POINTS));
        }
    }
    caches(measured, &mut add);
    for [page, part] in rows::<2>(measured, "top-pages") {
        let series = page_series(page);
        add(&series, "count", Some(count(part)));
        add(&series, "share", ops.and_then(|ops| share(part, ops)));
    }
    for [page, part] in rows::<2>(measured, "top-page-shares") {
        add(&page_series(page), "share", share(part, BASIS_POINTS));
    }
    for [size, misses] in rows::<2>(measured, "miss-ratio") {
        let series = format!("lru/{size}");
        add(&series, "misses", Some(count(misses)));
        add(&series, "miss_ratio", ops.and_then(|ops| share(misses, ops)));
    }
    for [page, pages, entries, reach, misses] in rows::<5>(measured, "tlb") {
        let series = format!("tlb/{}/{entries}", page_size(page));
        add(&series, "pages", Some(count(pages)));
        add(&series, "reach_bytes", Some(count(reach)));
        add(&series, "misses", Some(count(misses)));
        add(&series, "miss_ratio", ops.and_then(|ops| share(misses, ops)));
    }
}

/// The numbers of the trace as a whole; returns its operations, where they are known.
fn totals(measured: &Measured, numbers: &mut Numbers) -> Option<f64> {
    let counter = |name: &str| measured.counters.get(name).map(|value| *value as f64);
    let (reads, writes) = (counter("reads"), counter("writes"));
    let ops = counter("ops").or_else(|| Some(reads? + writes?));
    let mut add = |statistic, value| numbers.add(counted(WHOLE), statistic, value);
    add("ops", ops.map(count));
    let bytes = counter("bytes_consumed");
    add("bytes", bytes.map(count));
    add("reads", reads.map(count));
    add("read_share", reads.zip(ops).and_then(|(part, ops)| share(part, ops)));
    add("writes", writes.map(count));
    add("write_share", writes.zip(ops).and_then(|(part, ops)| share(part, ops)));
    let straddles = counter("straddles");
    add("straddles", straddles.map(count));
    add("straddle_share", straddles.zip(ops).and_then(|(part, ops)| share(part, ops)));
    let transitions = counter("transitions");
    add("transitions", transitions.map(count));
    // The first operation is no transition.
    add("transition_share", transitions.zip(ops).and_then(|(part, ops)| share(part, ops - 1.0)));
    add("transitions_incl_first", counter("transitions_incl_first").map(count));
    add("pages", counter("pages").map(count));
    let absent = counter("absent_reads");
    add("absent_reads", absent.map(count));
    add("absent_share", absent.zip(ops).and_then(|(part, ops)| share(part, ops)));
    add("absent_pages", counter("absent_pages").map(count));
    add("sampled_one_in", counter("stack_one_in").map(count));
    ops
}

fn caches(measured: &Measured, add: &mut impl FnMut(&str, &'static str, Option<Quantity>)) {
    for (table, name) in [("caches", "cache"), ("absent-caches", "absent-cache")] {
        for [entries, hits, misses, conflicts, cold] in rows::<5>(measured, table) {
            let series = format!("{name}/{entries}");
            add(&series, "hits", Some(count(hits)));
            add(&series, "hit_rate", share(hits, hits + misses));
            add(&series, "misses", Some(count(misses)));
            add(&series, "conflicts", Some(count(conflicts)));
            add(&series, "cold", Some(count(cold)));
        }
    }
    for [entries, rate] in rows::<2>(measured, "cache-hit-rates") {
        add(&format!("cache/{entries}"), "hit_rate", share(rate, BASIS_POINTS));
    }
    for [lowest, highest] in rows::<2>(measured, "absent-cache-hit-rates") {
        add("absent-cache", "hit_rate_low", share(lowest, BASIS_POINTS));
        add("absent-cache", "hit_rate_high", share(highest, BASIS_POINTS));
    }
}

/// The rows of a table that have so many cells.
fn rows<const N: usize>(measured: &Measured, name: &str) -> Vec<[f64; N]> {
    let table = measured.table(name);
    let rows = table.map(|table| &table.rows[..]).unwrap_or_default();
    let row = |row: &Vec<i64>| -> Option<[f64; N]> {
        let cells: &[i64; N] = row.as_slice().try_into().ok()?;
        Some(cells.map(|cell| cell as f64))
    };
    rows.iter().filter_map(row).collect()
}

fn count(value: f64) -> Quantity {
    Quantity::exact(value, Unit::Count)
}

fn share(part: f64, whole: f64) -> Option<Quantity> {
    (whole > 0.0).then(|| Quantity::exact(part / whole, Unit::Share))
}

/// A range of lengths: `1`, `2-3`, `4-7`.
fn bucket(from: f64, to: f64) -> String {
    // The end of the last one may be all there is.
    match (from, to) {
        (from, to) if from >= to => format!("{from:.0}"),
        (from, to) if to > 1e18 => format!("{from:.0}+"),
        _ => format!("{from:.0}-{to:.0}"),
    }
}

fn page_series(page: f64) -> String {
    format!("page/{:#x}", whole(page))
}

fn page_size(bytes: f64) -> String {
    units::format_bytes(whole(bytes))
}

/// A share with two digits, as the author prints them.
pub(crate) fn percent(share: Quantity) -> String {
    format!("{:.2} %", share.value * 100.0)
}

/// What one looks at first in a trace, where nothing was timed.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    headline(&run.entries).into_iter().collect()
}

fn headline(entries: &[Entry]) -> Option<Headline> {
    let of = |entry: &Entry, statistic| entry.numbers.get(counted(WHOLE), statistic);
    let known = |entry: &&Entry| of(entry, "transition_share").is_some();
    // A trace that stays on its page has little to tell.
    let tells = |entry: &&Entry| of(entry, "transition_share").map_or(0.0, |share| share.value);
    let entry =
        entries.iter().filter(known).max_by(|a, b| tells(a).total_cmp(&tells(b))).filter(|_| {
            entries.iter().all(|entry| entry.record.workload != crate::emu::replay::NAME)
        })?;
    let pages = of(entry, "pages").map(|pages| format!("{} pages", group_thousands(pages.value)));
    let absent = of(entry, "absent_share").map(|share| format!("{} absent reads", percent(share)));
    let detail: Vec<String> = pages.into_iter().chain(absent).collect();
    Some(Headline {
        value: percent(of(entry, "transition_share")?),
        label: format!(
            "page transitions of {}",
            parameters::display_trace(entry.value(parameter::TRACE))
        ),
        detail: detail.join(" · "),
        tone: Tone::Strong,
    })
}

#[cfg(test)]
mod tests {
    use pagelab_record::journal;

    use pagelab_report::{Views, titles};

    use super::*;
    use crate::views::VIEWS;

    fn published() -> Vec<Entry> {
        let text = include_str!("../../../../published/fast-memory/records.jsonl");
        let records = journal::read_records(text).unwrap();
        let views = Views::new(VIEWS, |_, _| None);
        records.iter().filter(|r| r.workload == WORKLOAD).map(|r| views.entry(r)).collect()
    }

    fn of(trace: &str, series: &str, statistic: &str) -> Option<f64> {
        let published = published();
        let mut mine = published.iter().filter(|entry| entry.value("trace") == trace);
        mine.find_map(|e| e.numbers.get(counted(series), statistic)).map(|q| q.value)
    }

    #[test]
    fn the_published_counts_add_up() {
        let whole = |trace, statistic| of(trace, WHOLE, statistic).unwrap();
        for trace in ["fib", "exec-block"] {
            let ops = whole(trace, "ops");
            assert!((whole(trace, "reads") + whole(trace, "writes") - ops).abs() < 0.5);
            // fast-mem's worklog counts the first operation as a transition.
            let first = whole(trace, "transitions_incl_first") - whole(trace, "transitions");
            assert!((first - 1.0).abs() < 1e-9);
        }
        let absent = whole("exec-block", "absent_share");
        assert!((absent - 0.8328).abs() < 5e-5, "{absent}");
    }

    #[test]
    fn the_published_shares_follow_from_the_published_counts() {
        let transitions = of("exec-block", WHOLE, "transition_share").unwrap();
        assert!((transitions - 0.3468).abs() < 5e-5, "{transitions}");
        for (statistic, widths) in [("read_share", "1 2 4 8"), ("write_share", "1 2 4 8")] {
            let shares =
                widths.split(' ').map(|w| of("exec-block", &format!("width/{w}"), statistic));
            let sum: f64 = shares.map(Option::unwrap).sum();
            assert!((sum - 1.0).abs() < 2e-4, "{sum}");
        }
        // An operation that is no transition reuses the page of the one before.
        let near = of("exec-block", "reuse/1", "share").unwrap();
        assert!((1.0 - transitions - near).abs() < 1e-4, "{near}");
    }

    #[test]
    fn two_cases_of_one_trace_are_told_apart() {
        let entry = |trace: &str, ops: &str| {
            let mut entry = published().swap_remove(0);
            entry.record.case = Case::default().with("trace", trace).with("ops", ops);
            entry
        };
        let all = [entry("/a/rv.bin", "2m"), entry("fib", "2m"), entry("/b/rv.bin", "4m")];
        let titles = titles(&all.iter().collect::<Vec<_>>(), &[]);
        assert_eq!(titles, ["rv.bin, ops=2m", "fib", "rv.bin, ops=4m"]);
    }

    #[test]
    fn an_open_bucket_has_no_end() {
        assert_eq!(bucket(1.0, 1.0), "1");
        assert_eq!(bucket(4.0, 7.0), "4-7");
        assert_eq!(bucket(2f64.powi(62), i64::MAX as f64), "4611686018427387904+");
    }
}
