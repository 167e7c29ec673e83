//! Looks at the memory of a tree of processes while it runs.
//!
//! The one idea: a look takes a CPU, and locks of the program's memory for moments, so looks have a
//! budget: 1.5 % of its time, on a CPU that it need not be on. There are two: what it holds
//! (`status`) costs next to nothing and comes often; in pages of which size and in which mappings
//! (`smaps`; of its children `smaps_rollup`; folios) comes when it is affordable. What nobody may
//! look into is counted as blind: nothing is claimed of it.

mod expensive;

use std::collections::{BTreeMap, BTreeSet};

use pagelab_sys::{machine::proc::Holding, memory::Folios, process::tree, time::monotonic_raw_ns};

use self::expensive::Expensive;
use super::{
    environment::Reached,
    maps::{self, Library, Mapped, Mappings, Weight, is_fuller, is_there, private},
};

/// Cheap looks cost at most one of so many parts of the time.
const SHARE: u64 = 200;
/// Between two looks, nanoseconds: at first, at least, and at most.
const SOONEST_NS: u64 = 1_000_000;
const LATEST_NS: u64 = 100_000_000;
/// A part of the time so far that may pass between two looks.
const PART: u64 = 50;
/// Processes that are looked at in one look, at most.
const PROCESSES: usize = 512;

/// What all looks at a run of the program came to.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The most that was held at one look.
    pub peak: u64,
    /// Bytes times nanoseconds, and the nanoseconds.
    held: u128,
    over_ns: u64,
    /// The most of each kind at one look.
    pub most: [u64; 4],
    /// The most of all kinds together at one look.
    pub large: u64,
    /// The most in folios of the size that was asked about, or larger; `None` where nobody looked
    /// or page frames are not shown.
    pub folios: Option<u64>,
    /// Looks that told something.
    pub looks: u64,
    /// Looks at somebody who would not be looked into.
    pub blind: u64,
    /// Processes that were seen.
    pub processes: BTreeSet<u32>,
    /// Of them, those that lacked a variable of the rung when they were last looked at.
    pub stripped: BTreeSet<u32>,
    /// Of them, those that say another THP policy than the rung's.
    pub other_policy: BTreeSet<u32>,
    /// Of them, those that were seen without our library among their mappings.
    pub unloaded: BTreeSet<u32>,
    /// The mappings of the first process, at the dear look that saw most in large pages.
    pub mappings: Mappings,
}

impl Seen {
    /// What it held on average over time.
    pub fn mean(&self) -> u64 {
        let mean = self.held / u128::from(self.over_ns.max(1));
        u64::try_from(mean).unwrap_or(u64::MAX)
    }

    /// Bytes of mappings that might have had transparent huge pages.
    pub fn eligible(&self) -> u64 {
        self.mappings.values().map(|mapped| mapped.eligible).sum()
    }

    /// With the kernel's word at its end, which does not depend on when somebody looked. It begins
    /// with what the parent held, so one that is not well above that says nothing.
    pub(super) fn at_its_end(mut self, peak: u64, of_parent: u64) -> Self {
        if peak > of_parent + of_parent / 4 {
            self.peak = self.peak.max(peak);
        }
        self
    }

    /// Memory that it shares, beside its files.
    fn shared(&self) -> impl Iterator<Item = &Mapped> {
        let is_shared = |name: &str| {
            ["/dev/zero", "/dev/shm/", "/SYSV", "/memfd:"].iter().any(|of| name.starts_with(of))
        };
        let shared = self.mappings.iter().filter(move |(name, _)| is_shared(name));
        shared.map(|(_, mapped)| mapped).filter(|mapped| mapped.resident > 1 << 20)
    }

    /// Whether it has such memory.
    pub fn shares(&self) -> bool {
        self.shared().next().is_some()
    }

    /// Its peak, were all present that it shares: a pool has to have pages for a whole mapping, and
    /// pages of larger sizes fill one that base pages leave half empty.
    pub(super) fn whole(&self) -> u64 {
        self.peak + self.shared().map(|of| of.size.saturating_sub(of.resident)).sum::<u64>()
    }

    fn take(&mut self, holding: Holding) {
        self.looks += 1;
        self.large = self.large.max(holding.large());
        for (most, now) in self.most.iter_mut().zip(holding.kinds()) {
            *most = (*most).max(now);
        }
    }

    /// Looks at the page sizes of some processes, and at the mappings of the first, which it
    /// returns.
    fn pages(&mut self, all: &[u32]) -> Mappings {
        let mut first = Mappings::default();
        let mut holding = Holding::default();
        let mut is_told = false;
        for (nth, pid) in all.iter().enumerate() {
            let of_one = if nth > 0 {
                Holding::of(*pid)
            } else {
                maps::mappings(*pid).map(|(of_one, mappings)| {
                    first = mappings;
                    of_one
                })
            };
            match of_one {
                Some(of_one) => {
                    holding.join(of_one);
                    is_told = true;
                }
                // Whoever is ending holds nothing, and is not hidden.
                None if is_there(*pid) => self.blind += 1,
                None => (),
            }
        }
        if is_told {
            self.take(holding);
        }
        first
    }

    /// Looks for folios of this many bytes, which no page table tells: also those of each mapping
    /// of the first process.
    fn find_folios(&mut self, folios: &mut Folios, size: u64, all: &[u32], first: &mut Mappings) {
        let mut found = 0;
        let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
        for (nth, pid) in all.iter().enumerate() {
            for (range, name) in private(*pid) {
                let Some(bytes) = folios.bytes_in(*pid, range, size) else { return };
                found += bytes;
                if nth == 0 {
                    *by_name.entry(name).or_default() += bytes;
                }
            }
        }
        self.folios = Some(self.folios.unwrap_or(0).max(found));
        for (name, mapped) in first {
            mapped.large = by_name.get(name).copied().unwrap_or(0).max(mapped.large);
        }
    }

    /// Adds a look; `pool_is_shared` says whether pages of the pool are shared memory.
    fn weigh(&mut self, all: &[Weight], since_ns: u64, pool_is_shared: bool) {
        let sum = |of: fn(&Weight) -> u64| all.iter().map(of).sum::<u64>();
        // What each has of files and of shared memory is mostly the same.
        let most = |of: fn(&Weight) -> u64| all.iter().map(of).max().unwrap_or(0);
        let pool = if pool_is_shared { most(|one| one.hugetlb) } else { sum(|one| one.hugetlb) };
        let held = sum(|one| one.anonymous) + pool + most(|one| one.file) + most(|one| one.shared);
        // One of several never holds more than all of them.
        self.peak = self.peak.max(held).max(most(|one| one.peak + one.hugetlb));
        self.held += u128::from(held) * u128::from(since_ns);
        self.over_ns += since_ns;
    }
}

/// What must be found in every process.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// Variables of the environment and their values.
    pub environment: Vec<(String, String)>,
    /// Whether the policy of the process allows transparent huge pages.
    pub thp: Option<bool>,
    /// Bytes of the folios that are looked for.
    pub folio: Option<u64>,
    /// Whether our library is to be in it, which puts what is shared into the hugetlb pool.
    pub preload: bool,
    /// Nanoseconds that the program takes, where that is known.
    pub whole_ns: Option<u64>,
}

/// Somebody who looks at a program.
#[derive(Debug)]
pub struct Eyes {
    /// The program.
    main: u32,
    /// Children of ours that are not its; `None` where it is no child of ours.
    others: Option<Vec<u32>>,
    expected: Expected,
    folios: Option<Folios>,
    seen: Seen,
    started_ns: u64,
    last_ns: u64,
    spent_ns: u64,
    dear: Expensive,
}

/// When a look comes in any case, where it costs no more than so much of the time: of a short
/// program the first one, at which nothing is there yet, takes all that its looks may cost.
const LATE: u64 = 80;
const LATE_SHARE: u64 = 50;

/// Nanoseconds from the start on until the late look at a program that takes `whole_ns`, where one
/// look costs no more than all did so far; `None` behind it, or where it costs too much.
fn late(whole_ns: u64, spent_ns: u64, last_ns: u64) -> Option<u64> {
    let late = whole_ns / 100 * LATE;
    (last_ns < late && spent_ns * 2 * LATE_SHARE <= whole_ns).then_some(late)
}

impl Eyes {
    /// Eyes for a process; whoever is below us before it was started is not its.
    pub fn of(main: u32, others: &[u32], expected: Expected) -> Self {
        let now = monotonic_raw_ns();
        Self {
            main,
            others: Some(others.to_vec()),
            folios: expected.folio.and_then(|_| Folios::open()),
            expected,
            seen: Seen::default(),
            started_ns: now,
            last_ns: now,
            spent_ns: 0,
            dear: Expensive::default(),
        }
    }

    /// Eyes for a process that is not below us; whoever is below it is its.
    pub fn beside(main: u32, expected: Expected) -> Self {
        Self { others: None, ..Self::of(main, &[], expected) }
    }

    /// Nanoseconds until the next look; 0 where it is due.
    pub fn rest_ns(&self) -> u64 {
        let now = monotonic_raw_ns();
        let gone = self.last_ns - self.started_ns;
        let soon = (gone / PART).clamp(SOONEST_NS, LATEST_NS);
        // What the cheap looks cost must be no more than their share by then.
        let cheap = self.spent_ns - self.dear.spent_ns;
        let due = (self.last_ns + soon).max(self.started_ns + cheap * SHARE);
        let late = self.expected.whole_ns.and_then(|whole_ns| late(whole_ns, cheap, gone));
        let due = late.map_or(due, |late| due.min(self.started_ns + late));
        due.saturating_sub(now)
    }

    /// Looks at nobody below this process from now on: it is ours, and no part of the program.
    pub fn ignore(&mut self, pid: u32) {
        self.others.get_or_insert_default().push(pid);
    }

    /// Looks at all processes of the tree; they, the program first.
    pub fn look(&mut self) -> Vec<u32> {
        let begun = monotonic_raw_ns();
        let mut all = vec![self.main];
        let below = match &self.others {
            Some(others) => tree::below_us_but(others),
            None => tree::below(self.main),
        };
        all.extend(below.into_iter().filter(|pid| *pid != self.main));
        all.truncate(PROCESSES);
        let weights: Vec<Weight> = all.iter().filter_map(|pid| Weight::of(*pid)).collect();
        if !weights.is_empty() {
            let is_shared = self.expected.preload;
            self.seen.weigh(&weights, begun - self.last_ns, is_shared);
        }
        self.last_ns = begun;
        for pid in &all {
            if is_there(*pid) && self.seen.processes.insert(*pid) {
                self.meet(*pid);
            }
        }
        let gone = begun - self.started_ns;
        let Self { dear, folios, seen, expected, .. } = self;
        let mut is_dear = false;
        dear.when_affordable(gone, expected.whole_ns, || {
            is_dear = true;
            let mut first = seen.pages(&all);
            if let (Some(folios), Some(size)) = (folios, expected.folio) {
                seen.find_folios(folios, size, &all, &mut first);
            }
            if is_fuller(&first, &seen.mappings) {
                seen.mappings = first;
            }
            if expected.preload {
                let lacks = |pid: &&u32| maps::library(**pid) == Some(Library::Missing);
                seen.unloaded.extend(all.iter().filter(lacks));
            }
        });
        if is_dear {
            // When it was met it may have been whoever executed it since.
            all.iter().filter(|pid| is_there(**pid)).for_each(|pid| self.meet(*pid));
        }
        self.spent_ns += monotonic_raw_ns() - begun;
        all
    }

    /// A process that is seen for the first time, or may have executed another program since.
    fn meet(&mut self, pid: u32) {
        match Reached::of(pid, &self.expected.environment) {
            Reached::Yes => _ = self.seen.stripped.remove(&pid),
            Reached::No => _ = self.seen.stripped.insert(pid),
            Reached::Unknown => (),
        }
        let policy = crate::explain::allowed::thp(pid);
        if let (Some(wanted), Some(found)) = (self.expected.thp, policy)
            && wanted != found
        {
            self.seen.other_policy.insert(pid);
        }
    }

    /// What was seen.
    pub fn close(self) -> Seen {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_shares_is_counted_as_a_whole_and_other_memory_as_it_was_held() {
        const MIB: u64 = 1 << 20;
        let mapped = |size, resident| Mapped { size, resident, ..Mapped::default() };
        let mappings = [
            ("/dev/zero (deleted)", mapped(512 * MIB, 200 * MIB)),
            ("anonymous", mapped(4096 * MIB, 90 * MIB)),
            ("/memfd:doors", mapped(64 * MIB, 4096)),
        ];
        let mappings = mappings.map(|(name, mapped)| (name.to_owned(), mapped)).into();
        let seen = Seen { peak: 300 * MIB, mappings, ..Seen::default() };
        assert_eq!((seen.whole(), seen.shares()), (612 * MIB, true));
    }

    #[test]
    fn a_short_program_is_looked_at_late_and_one_that_is_shorter_than_a_look_is_not() {
        let ms = 1_000_000;
        assert_eq!(late(50 * ms, ms / 4, ms), Some(40 * ms));
        assert_eq!(late(50 * ms, ms / 4, 40 * ms), None, "it was there");
        assert_eq!(late(5 * ms, ms / 4, ms), None, "a tenth of its time");
    }

    #[test]
    fn a_peak_that_nobody_looked_at_is_known_at_the_end() {
        let peak = |seen: u64, at_its_end, of_parent| {
            let seen = Seen { peak: seen, ..Seen::default() };
            seen.at_its_end(at_its_end, of_parent).peak
        };
        assert_eq!((peak(0, 64, 16), peak(2, 64, 16)), (64, 64));
        // As much as was there at the fork, and more that was seen.
        assert_eq!((peak(5, 17, 16), peak(99, 64, 16)), (5, 99));
    }

    #[test]
    fn this_process_is_seen_and_a_missing_one_is_not_blind() {
        let environment = vec![("NO_SUCH".to_owned(), "1".to_owned())];
        let expected = Expected { environment, ..Expected::default() };
        let mut eyes = Eyes::of(std::process::id(), &tree::below_us(), expected);
        assert_eq!(eyes.look().first(), Some(&std::process::id()));
        let seen = eyes.close();
        assert!(seen.peak > 1 << 20 && seen.looks == 1 && seen.blind == 0, "{seen:?}");
        assert_eq!(seen.stripped.len(), seen.processes.len());
        let mut eyes = Eyes::of(u32::MAX, &tree::below_us(), Expected::default());
        eyes.look();
        assert_eq!((eyes.seen.looks, eyes.seen.blind, eyes.seen.peak), (0, 0, 0));
    }
}
