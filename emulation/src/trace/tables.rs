//! The statistics of a trace as tables and counters of a record, and back.
//!
//! The one idea: a record holds all of them, so that the author's layout, JSON and charts are
//! functions of the record. Shares are not stored: they follow.

use pagelab_record::{Case, Measured, Table};
use pagelab_trace::{
    Width,
    stats::{
        Absent, Bucket, DirectMapped, PageOps, Point, Reach, Reuse, StackDistances, Stats,
        TlbMisses,
    },
};

/// The tables of some statistics; one that was not asked for is not there.
pub fn tables(stats: &Stats) -> Vec<Table> {
    let mut all = vec![
        widths(stats),
        buckets("runs", "runs", &stats.runs),
        buckets("reuse", "operations", &stats.reuse.distances),
        buckets("absent-reuse", "reads", &stats.absent.reuse.distances),
        caches("caches", &stats.reuse.caches),
        caches("absent-caches", &stats.absent.reuse.caches),
    ];
    if stats.top > 0 {
        let rows = stats.top_pages.iter().map(|page| [page.page, page.ops]);
        all.push(Table::new("top-pages", [("page", "number"), ("ops", "operations")], rows));
    }
    if let Some(stack) = &stats.stack {
        let rows = stack.curve.iter().map(|point| [point.pages, point.misses]);
        all.push(Table::new("miss-ratio", [("size", "pages"), ("misses", "operations")], rows));
    }
    if !stats.tlb.is_empty() {
        all.push(tlb(&stats.tlb));
    }
    all
}

/// The counters of some statistics.
pub fn counters(stats: &Stats) -> Vec<(&'static str, u64)> {
    let mut all = vec![
        ("ops", stats.ops),
        ("bytes_consumed", stats.bytes_consumed),
        ("bytes_total", stats.bytes_total),
        ("reads", stats.reads),
        ("writes", stats.writes),
        ("straddles", stats.straddles),
        ("transitions", stats.transitions),
        ("pages", stats.reuse.cold),
        ("absent_reads", stats.absent.reads),
        ("absent_pages", stats.absent.pages),
    ];
    if let Some(stack) = &stats.stack {
        all.extend([
            ("stack_one_in", stack.one_in),
            ("stack_runs", stack.runs),
            ("stack_sampled_pages", stack.sampled_pages),
        ]);
    }
    all
}

/// The statistics that a record of `trace/stats` holds; `None` where it holds none.
pub fn stats_of(case: &Case, measured: &Measured) -> Option<Stats> {
    let found = Found(measured);
    let ops = found.counter("ops")?;
    let count = |name: &str| found.counter(name).unwrap_or(0);
    let page_shift = case.get("page-shift").and_then(|shift| shift.parse().ok()).unwrap_or(12);
    let widths = found.rows::<3>("widths");
    let of_width = |column: usize| [0, 1, 2, 3].map(|row| widths.get(row).map_or(0, |r| r[column]));
    Some(Stats {
        page_shift,
        top: case.get("top-k").and_then(|top| top.parse().ok()).unwrap_or(0),
        ops,
        bytes_consumed: count("bytes_consumed"),
        bytes_total: count("bytes_total"),
        reads: count("reads"),
        writes: count("writes"),
        read_widths: of_width(1),
        write_widths: of_width(2),
        straddles: count("straddles"),
        transitions: count("transitions"),
        runs: found.buckets("runs"),
        top_pages: found
            .rows("top-pages")
            .into_iter()
            .map(|[page, ops]| PageOps { page, ops })
            .collect(),
        reuse: Reuse {
            distances: found.buckets("reuse"),
            cold: count("pages"),
            caches: found.caches("caches"),
        },
        absent: Absent {
            reads: count("absent_reads"),
            pages: count("absent_pages"),
            reuse: Reuse {
                distances: found.buckets("absent-reuse"),
                cold: count("absent_pages"),
                caches: found.caches("absent-caches"),
            },
        },
        stack: found.counter("stack_one_in").map(|one_in| StackDistances {
            page_shift,
            one_in,
            ops,
            runs: count("stack_runs"),
            sampled_pages: count("stack_sampled_pages"),
            curve: found
                .rows("miss-ratio")
                .into_iter()
                .map(|[pages, misses]| Point { pages, misses, miss_ratio: share(misses, ops) })
                .collect(),
            distances: Vec::new(),
        }),
        tlb: found.reaches(ops),
    })
}

/// What was measured, to be taken apart again.
struct Found<'m>(&'m Measured);

impl Found<'_> {
    fn counter(&self, name: &str) -> Option<u64> {
        self.0.counters.get(name).copied()
    }

    /// The rows of a table that have so many cells.
    fn rows<const N: usize>(&self, name: &str) -> Vec<[u64; N]> {
        let rows = self.0.table(name).map(|table| &table.rows[..]).unwrap_or_default();
        let row = |row: &Vec<i64>| -> Option<[u64; N]> {
            let cells: &[i64; N] = row.as_slice().try_into().ok()?;
            Some(cells.map(i64::cast_unsigned))
        };
        rows.iter().filter_map(row).collect()
    }

    fn buckets(&self, name: &str) -> Vec<Bucket> {
        self.rows(name).into_iter().map(|[min, max, count]| Bucket { min, max, count }).collect()
    }

    fn caches(&self, name: &str) -> Vec<DirectMapped> {
        let cache = |[entries, hits, misses, conflicts, cold]: [u64; 5]| DirectMapped {
            entries,
            hits,
            misses,
            conflicts,
            cold,
        };
        self.rows(name).into_iter().map(cache).collect()
    }

    fn reaches(&self, ops: u64) -> Vec<Reach> {
        let mut all: Vec<Reach> = Vec::new();
        for [page_bytes, pages, entries, reach_bytes, misses] in self.rows("tlb") {
            let miss_ratio = share(misses, ops);
            let row = TlbMisses { entries, reach_bytes, misses, miss_ratio };
            let page_shift = page_bytes.trailing_zeros();
            match all.last_mut().filter(|last| last.page_shift == page_shift) {
                Some(last) => last.tlbs.push(row),
                None => all.push(Reach { page_shift, pages, tlbs: vec![row] }),
            }
        }
        all
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn widths(stats: &Stats) -> Table {
    let counts = stats.read_widths.iter().zip(&stats.write_widths);
    let rows = Width::ALL
        .iter()
        .zip(counts)
        .map(|(width, (reads, writes))| [width.bytes() as u64, *reads, *writes]);
    let columns = [("width", "bytes"), ("reads", "operations"), ("writes", "operations")];
    Table::new("widths", columns, rows)
}

fn buckets(name: &str, unit: &str, of: &[Bucket]) -> Table {
    let rows = of.iter().map(|bucket| [bucket.min, bucket.max, bucket.count]);
    Table::new(name, [("from", "operations"), ("to", "operations"), ("count", unit)], rows)
}

fn caches(name: &str, of: &[DirectMapped]) -> Table {
    let columns = [
        ("entries", "pages"),
        ("hits", "operations"),
        ("misses", "operations"),
        ("conflicts", "operations"),
        ("cold", "operations"),
    ];
    let rows = of.iter().map(|c| [c.entries, c.hits, c.misses, c.conflicts, c.cold]);
    Table::new(name, columns, rows)
}

fn tlb(of: &[Reach]) -> Table {
    let columns = [
        ("page", "bytes"),
        ("pages", "pages"),
        ("entries", "entries"),
        ("reach", "bytes"),
        ("misses", "operations"),
    ];
    let rows = of.iter().flat_map(|reach| {
        reach.tlbs.iter().map(|tlb| {
            [1 << reach.page_shift, reach.pages, tlb.entries, tlb.reach_bytes, tlb.misses]
        })
    });
    Table::new("tlb", columns, rows)
}

#[cfg(test)]
mod tests {
    use pagelab_trace::{
        Op,
        stats::{Collector, Options, Stack},
    };

    use super::*;

    fn collected(options: &Options) -> Stats {
        let mut collector = Collector::new(options).unwrap();
        for at in 0..5000_u64 {
            let addr = 0x10_0000 + at * at * 640 % (1 << 22);
            let op = Op::store(addr, Width::ALL[usize::try_from(at % 4).unwrap()], at);
            let op = if at % 3 == 0 { op } else { Op::load(addr, Width::W2) };
            let Ok(()) = op.visit(&mut collector);
        }
        collector.finish(7)
    }

    fn through_a_record(stats: &Stats) -> Stats {
        let case = Case::default()
            .with("page-shift", &stats.page_shift.to_string())
            .with("top-k", &stats.top.to_string());
        let counters = counters(stats).into_iter().map(|(name, value)| (name.to_owned(), value));
        let measured =
            Measured { tables: tables(stats), counters: counters.collect(), ..Measured::default() };
        stats_of(&case, &measured).unwrap()
    }

    #[test]
    fn a_record_holds_all_of_the_statistics() {
        let all = Options {
            page_shift: 13,
            top: 5,
            caches: vec![3, 64],
            stack: Stack::Sampled { one_in: 4 },
            tlb: true,
        };
        for options in [Options::default(), all, Options { top: 0, ..Options::default() }] {
            let mut stats = collected(&options);
            let back = through_a_record(&stats);
            assert_eq!(back.text("t"), stats.text("t"));
            if let Some(stack) = &mut stats.stack {
                stack.distances.clear();
            }
            assert_eq!(back, stats);
        }
    }

    #[test]
    fn a_record_without_statistics_holds_none() {
        assert_eq!(stats_of(&Case::default(), &Measured::default()), None);
    }
}
