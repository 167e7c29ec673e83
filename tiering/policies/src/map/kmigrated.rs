//! The daemon of pghot: who looks for ready pages, and which of them it lets go.
//!
//! The one idea: it polls. A pass looks at the node's bit, then at the bit of each section, then at
//! every record of a hot section, and consumes what is ready; only then it asks whether the page
//! should move. What it refuses then, or cannot isolate, has lost its history: that is how it was
//! published, and [`Kmigrated::keeps`] is the correction. Moving is for whoever takes the batches.

use super::{
    limit::Gate,
    pghot::{Frames, Map, Mode, Record},
};
use crate::PAGE_BYTES;

/// The daemon of one node.
#[derive(Debug, Clone)]
pub struct Kmigrated {
    /// `kmigrated_batch_nr`: a batch goes out when it has one page more.
    pub batch_nr: usize,
    /// `pghot_promote_rate_limit_MBps`, in pages a second.
    pub rate_pages: u64,
    /// Whether the record of a page that is refused or cannot be isolated is put back.
    pub keeps: bool,
    /// Who may go, in milliseconds.
    pub(crate) gate: Gate,
    /// Pages that were consumed and then refused.
    pub refused: u64,
}

/// A page that should move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The page frame.
    pub pfn: u32,
    /// What its record said.
    pub record: Record,
}

/// What is true for a whole pass.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Milliseconds since the start.
    pub ms: u64,
    /// The same in jiffies.
    pub jiffies: u64,
    /// Whether the target is above its promotion watermark by 1 GiB or a 16th of it.
    pub has_room: bool,
}

impl Kmigrated {
    /// As published for a map: batches of 512 and one, 65,536 MB a second.
    pub const fn published(map: &Map) -> Self {
        Self {
            batch_nr: 512,
            rate_pages: 65_536 * (1 << 20) / PAGE_BYTES,
            keeps: false,
            gate: Gate::new(1000, map.tunables.window_ms),
            refused: 0,
        }
    }

    /// One pass; hands out batches with their target, and returns how many records it walked over.
    /// The pages of a batch have one target and, since version 6, one memory cgroup.
    pub fn pass(
        &mut self,
        map: &mut Map,
        frames: &impl Frames,
        now: Now,
        mut flush: impl FnMut(&[Candidate], u16),
    ) -> u64 {
        if !map.take_activation() {
            return 0;
        }
        let mode = map.tunables.mode;
        let mut batch: Vec<Candidate> = Vec::with_capacity(self.batch_nr + 1);
        let (mut target, mut cgroup, mut walked) = (map.tunables.target, 0, 0);
        for section in 0..map.sections() {
            if !map.take_section(section) {
                continue;
            }
            walked += map.frames(section).len() as u64;
            for pfn in map.ready(section) {
                if !frames.is_on_lru(pfn) {
                    continue;
                }
                let record = map.take(pfn);
                let wanted = match mode {
                    Mode::Default => map.tunables.target,
                    Mode::Precision | Mode::Wide => record.node,
                };
                if !record.ready || frames.is_on(pfn, wanted) {
                    continue;
                }
                if !self.should_migrate(map, record, now) {
                    self.refused += 1;
                    if self.keeps {
                        map.restore(pfn, record);
                    }
                    continue;
                }
                let charged = frames.cgroup(pfn);
                if (wanted, charged) != (target, cgroup) && !batch.is_empty() {
                    flush(&batch, target);
                    batch.clear();
                }
                (target, cgroup) = (wanted, charged);
                batch.push(Candidate { pfn, record });
                if batch.len() > self.batch_nr {
                    flush(&batch, target);
                    batch.clear();
                }
            }
        }
        if !batch.is_empty() {
            flush(&batch, target);
        }
        walked
    }

    /// Whether a ready page may go, after NUMA balancing's rules.
    fn should_migrate(&mut self, map: &Map, record: Record, now: Now) -> bool {
        let latency = map.tunables.mode.latency(now.jiffies, record.time);
        let age_ms = latency * 1000 / map.tunables.hz;
        self.gate.admits(map.tunables.window_ms, self.rate_pages, now.has_room, now.ms, age_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::pghot::{Source, Tunables};

    /// Lower-tier pages of node 1, all there; one of them is not on an LRU list.
    struct Lower;

    impl Frames for Lower {
        fn is_online(&self, _: u32) -> bool {
            true
        }
        fn node(&self, _: u32) -> u16 {
            1
        }
        fn is_top_tier(&self, _: u32) -> bool {
            false
        }
        fn is_on_lru(&self, pfn: u32) -> bool {
            pfn != 13
        }
        fn is_node(&self, node: u16) -> bool {
            node < 3
        }
        fn cgroup(&self, pfn: u32) -> u32 {
            pfn / 1000
        }
    }

    fn ready(mode: Mode, pfns: &[(u32, u16)]) -> Map {
        let mut map = Map::new(100_000, Tunables { threshold: 1, ..Tunables::published(mode) });
        for &(pfn, node) in pfns {
            map.record_access(pfn, node, Source::HwHint, 10, &Lower);
        }
        map
    }

    fn room(has_room: bool, ms: u64) -> Now {
        Now { ms, jiffies: ms, has_room }
    }

    fn run(daemon: &mut Kmigrated, map: &mut Map, now: Now) -> (u64, Vec<(Vec<u32>, u16)>) {
        let mut batches = Vec::new();
        let walked = daemon.pass(map, &Lower, now, |batch, node| {
            batches.push((batch.iter().map(|candidate| candidate.pfn).collect(), node));
        });
        (walked, batches)
    }

    #[test]
    fn only_hot_sections_are_walked_and_once() {
        let mut map = ready(Mode::Default, &[(3, 0), (70_000, 0)]);
        let mut daemon = Kmigrated::published(&map);
        let (walked, batches) = run(&mut daemon, &mut map, room(true, 10));
        assert_eq!((walked, batches), (65_536, vec![(vec![3], 0), (vec![70_000], 0)]));
        assert_eq!(run(&mut daemon, &mut map, room(true, 10)).0, 0);
        assert_eq!(map.get(3).frequency, 0);
    }

    #[test]
    fn a_batch_has_one_page_more_than_its_number() {
        let pfns: Vec<(u32, u16)> = (100..700).map(|pfn| (pfn, 0)).collect();
        let mut map = ready(Mode::Default, &pfns);
        let (_, batches) = run(&mut Kmigrated::published(&map), &mut map, room(true, 10));
        let lengths: Vec<usize> = batches.iter().map(|batch| batch.0.len()).collect();
        assert_eq!(lengths, [513, 87]);
    }

    #[test]
    fn precision_flushes_where_the_target_changes_and_default_has_one_target() {
        let pfns = [(1, 0), (2, 2), (3, 2), (4, 0)];
        let mut map = ready(Mode::Precision, &pfns);
        let (_, batches) = run(&mut Kmigrated::published(&map), &mut map, room(true, 10));
        assert_eq!(batches, [(vec![1], 0), (vec![2, 3], 2), (vec![4], 0)]);
        let mut map = ready(Mode::Default, &pfns);
        let (_, batches) = run(&mut Kmigrated::published(&map), &mut map, room(true, 10));
        assert_eq!(batches, [(vec![1, 2, 3, 4], 0)]);
    }

    #[test]
    fn a_batch_is_of_one_cgroup() {
        let mut map = ready(Mode::Default, &[(1, 0), (999, 0), (1000, 0), (70_000, 0)]);
        let (_, batches) = run(&mut Kmigrated::published(&map), &mut map, room(true, 10));
        assert_eq!(batches, [(vec![1, 999], 0), (vec![1000], 0), (vec![70_000], 0)]);
    }

    #[test]
    fn what_is_refused_has_lost_its_history_unless_it_is_kept() {
        for keeps in [false, true] {
            let mut map = ready(Mode::Default, &[(5, 0)]);
            let mut daemon = Kmigrated { keeps, ..Kmigrated::published(&map) };
            // 3.2 s later, in buckets of 128 ms: older than the threshold.
            let (_, batches) = run(&mut daemon, &mut map, room(false, 3400));
            assert_eq!((batches, daemon.refused), (vec![], 1));
            assert_eq!(map.get(5).ready, keeps);
        }
    }

    #[test]
    fn readiness_survives_the_window_where_there_is_room() {
        let mut map = ready(Mode::Default, &[(5, 0)]);
        let (_, batches) = run(&mut Kmigrated::published(&map), &mut map, room(true, 3_600_000));
        assert_eq!(batches, [(vec![5], 0)]);
    }

    #[test]
    fn the_rate_limit_counts_by_the_second() {
        let pfns: Vec<(u32, u16)> = (100..200).map(|pfn| (pfn, 0)).collect();
        let mut map = ready(Mode::Default, &pfns);
        let mut daemon = Kmigrated { rate_pages: 10, ..Kmigrated::published(&map) };
        let (_, batches) = run(&mut daemon, &mut map, room(false, 20));
        assert_eq!(batches[0].0.len(), 9);
        assert_eq!(daemon.refused, 91);
    }

    #[test]
    fn few_candidates_raise_the_threshold_by_a_sixteenth_of_the_range() {
        let mut map = ready(Mode::Default, &[(5, 0)]);
        let mut daemon = Kmigrated::published(&map);
        run(&mut daemon, &mut map, room(false, 20));
        assert_eq!(daemon.gate.limit.threshold, 3000);
        map.record_access(5, 0, Source::HwHint, 61_000, &Lower);
        run(&mut daemon, &mut map, room(false, 61_000));
        assert_eq!(daemon.gate.limit.threshold, 3375);
    }
}
