//! The statistics as anybody would write them: each with maps of its own, updated for each
//! operation. Slow and plain, to compare with.

use std::convert::Infallible;

use pagelab_trace::{
    Visit,
    stats::{Absent, Bucket, DirectMapped, Options, PageOps, Reuse, Stats},
};
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Clone, Copy)]
struct Seen {
    write: bool,
    width: usize,
    page: u64,
    end_page: u64,
    index: u64,
}

#[derive(Default)]
struct Widths {
    reads: [u64; 4],
    writes: [u64; 4],
}

impl Widths {
    fn update(&mut self, op: Seen) {
        let counts = if op.write { &mut self.writes } else { &mut self.reads };
        counts[op.width.ilog2() as usize] += 1;
    }
}

#[derive(Default)]
struct Straddles(u64);

impl Straddles {
    fn update(&mut self, op: Seen) {
        if op.page != op.end_page {
            self.0 += 1;
        }
    }
}

#[derive(Default)]
struct Locality {
    ops: FxHashMap<u64, u64>,
    transitions: u64,
    runs: Buckets,
    page: Option<u64>,
    length: u64,
}

impl Locality {
    fn update(&mut self, op: Seen) {
        *self.ops.entry(op.page).or_default() += 1;
        match self.page {
            Some(page) if page == op.page => self.length += 1,
            Some(_) => {
                self.transitions += 1;
                self.runs.add(self.length);
                (self.page, self.length) = (Some(op.page), 1);
            }
            None => (self.page, self.length) = (Some(op.page), 1),
        }
    }

    fn finish(&mut self) {
        if self.length > 0 {
            self.runs.add(self.length);
        }
    }

    fn top(&self, count: usize) -> Vec<PageOps> {
        let mut pages: Vec<_> =
            self.ops.iter().map(|(&page, &ops)| PageOps { page, ops }).collect();
        pages.sort_by_key(|entry| entry.page);
        pages.sort_by_key(|entry| std::cmp::Reverse(entry.ops));
        pages.truncate(count);
        pages
    }
}

#[derive(Default)]
struct Distances {
    last: FxHashMap<u64, u64>,
    again: Buckets,
    cold: u64,
}

impl Distances {
    fn update(&mut self, op: Seen) {
        match self.last.insert(op.page, op.index) {
            Some(before) => self.again.add(op.index - before),
            None => self.cold += 1,
        }
    }
}

struct Caches(Vec<(DirectMapped, Vec<Option<u64>>)>);

impl Caches {
    fn new(sizes: &[u64]) -> Self {
        let cache = |&entries: &u64| {
            let empty = DirectMapped { entries, hits: 0, misses: 0, conflicts: 0, cold: 0 };
            (empty, vec![None; usize::try_from(entries).expect("small caches")])
        };
        Self(sizes.iter().map(cache).collect())
    }

    fn update(&mut self, op: Seen) {
        for (cache, slots) in &mut self.0 {
            let slot = usize::try_from(op.page % cache.entries).expect("small caches");
            let slot = &mut slots[slot];
            match *slot {
                Some(page) if page == op.page => {
                    cache.hits += 1;
                    continue;
                }
                Some(_) => cache.conflicts += 1,
                None => cache.cold += 1,
            }
            cache.misses += 1;
            *slot = Some(op.page);
        }
    }

    fn finish(self) -> Vec<DirectMapped> {
        self.0.into_iter().map(|(cache, _)| cache).collect()
    }
}

struct AbsentReads {
    present: FxHashSet<u64>,
    reads: u64,
    distances: Distances,
    caches: Caches,
}

impl AbsentReads {
    fn update(&mut self, op: Seen) {
        if op.write {
            self.present.insert(op.page);
        } else if !self.present.contains(&op.page) {
            self.reads += 1;
            self.distances.update(op);
            self.caches.update(op);
        }
    }
}

struct Buckets([u64; 64]);

impl Default for Buckets {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl Buckets {
    fn add(&mut self, value: u64) {
        self.0[value.ilog2() as usize] += 1;
    }

    fn finish(&self) -> Vec<Bucket> {
        let bucket = |at: usize| {
            let min = 1_u64 << at;
            Bucket { min, max: min + (min - 1), count: self.0[at] }
        };
        (0..64).map(bucket).filter(|bucket| bucket.count > 0).collect()
    }
}

/// What [`pagelab_trace::stats::Collector`] is compared with; knows no stack distances.
pub(crate) struct Oracle {
    shift: u32,
    top: usize,
    ops: u64,
    bytes: u64,
    widths: Widths,
    straddles: Straddles,
    locality: Locality,
    distances: Distances,
    caches: Caches,
    absent: AbsentReads,
}

impl Oracle {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            shift: options.page_shift,
            top: options.top,
            ops: 0,
            bytes: 0,
            widths: Widths::default(),
            straddles: Straddles::default(),
            locality: Locality::default(),
            distances: Distances::default(),
            caches: Caches::new(&options.caches),
            absent: AbsentReads {
                present: FxHashSet::default(),
                reads: 0,
                distances: Distances::default(),
                caches: Caches::new(&options.caches),
            },
        }
    }

    #[inline]
    fn update(&mut self, addr: u64, width: usize, write: bool) {
        let end = addr.saturating_add(width as u64 - 1);
        let (page, end_page) = (addr >> self.shift, end >> self.shift);
        let op = Seen { write, width, page, end_page, index: self.ops };
        self.widths.update(op);
        self.straddles.update(op);
        self.locality.update(op);
        self.distances.update(op);
        self.caches.update(op);
        self.absent.update(op);
        self.ops += 1;
        self.bytes += 10 + if write { width as u64 } else { 0 };
    }

    pub(crate) fn finish(mut self, bytes_trailing: u64) -> Stats {
        self.locality.finish();
        let absent = self.absent;
        Stats {
            page_shift: self.shift,
            top: self.top,
            ops: self.ops,
            bytes_consumed: self.bytes,
            bytes_total: self.bytes + bytes_trailing,
            reads: self.widths.reads.iter().sum(),
            writes: self.widths.writes.iter().sum(),
            read_widths: self.widths.reads,
            write_widths: self.widths.writes,
            straddles: self.straddles.0,
            transitions: self.locality.transitions,
            runs: self.locality.runs.finish(),
            top_pages: self.locality.top(self.top),
            reuse: Reuse {
                distances: self.distances.again.finish(),
                cold: self.distances.cold,
                caches: self.caches.finish(),
            },
            absent: Absent {
                reads: absent.reads,
                pages: absent.distances.last.len() as u64,
                reuse: Reuse {
                    distances: absent.distances.again.finish(),
                    cold: absent.distances.cold,
                    caches: absent.caches.finish(),
                },
            },
            stack: None,
            tlb: Vec::new(),
        }
    }
}

impl Visit for Oracle {
    type Stop = Infallible;

    #[inline]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Infallible> {
        self.update(addr, N, false);
        Ok(())
    }

    #[inline]
    fn store<const N: usize>(&mut self, addr: u64, _: [u8; N]) -> Result<(), Infallible> {
        self.update(addr, N, true);
        Ok(())
    }
}
