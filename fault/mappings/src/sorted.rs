//! The samples of one repetition, sorted into series after the loop.
//!
//! The one idea: the loop leaves one number for each touch, in order, and nothing is decided while
//! a clock runs. Afterwards a sample goes to one of three series: the fault itself, the fault that
//! also allocated a page of page table, and the fault whose memory the *host* had to back first.
//!
//! In a virtual machine fresh memory may be backed by the host already (warm) or not (cold), and a
//! cold touch takes one fault more, below the kernel that we ask. Nothing in the guest says which
//! it was, but it shows: the host's fault takes several times as long, and pages that follow each
//! other in time come from one stretch of free memory. So the touches are judged in runs, by their
//! median against the lowest median of a run that the process has seen. A lone stall moves no
//! median and so stays where it is: in the tail of the fault.

use hdrhistogram::Histogram;
use pagelab_record::latency;
use pagelab_sys::loops::{MIGRATED, TouchList};

/// A run is cold when its median is this many times that of a warm run. A host's fault was measured
/// at 9 times a warm one for base pages and at 26 times for 2 MiB.
const COLDER: u64 = 4;

/// Stands for a sample that was filed elsewhere.
pub const SET_ASIDE: u64 = MIGRATED - 1;

/// Bytes of base pages in a run, and the fewest touches of one.
const RUN_BYTES: u64 = 256 << 10;
const RUN_FEWEST: u64 = 4;

/// What a run of touches takes where the host backs the memory, learned from the samples.
#[derive(Debug, Clone, Copy)]
pub struct HostLevel {
    run: usize,
    warm_ns: Option<u64>,
}

impl HostLevel {
    /// For pages of so many bytes; nothing is learned yet.
    pub fn of(page_bytes: u64) -> Self {
        let run = (RUN_BYTES / page_bytes).max(RUN_FEWEST);
        Self { run: usize::try_from(run).expect("a run is short"), warm_ns: None }
    }

    /// The lowest median of a run so far.
    pub fn warm_ns(&self) -> Option<u64> {
        self.warm_ns
    }

    /// Learns from a repetition that may be warm, in part or in whole.
    pub fn learn(&mut self, samples: &[u64]) {
        let lowest = samples.chunks_exact(self.run).filter_map(median).min();
        self.warm_ns = self.warm_ns.into_iter().chain(lowest).min();
    }

    fn is_cold(&self, run: &[u64]) -> bool {
        let colder = |warm: u64| median(run).is_some_and(|median| median > COLDER * warm.max(1));
        run.len() == self.run && self.warm_ns.is_some_and(colder)
    }
}

/// The median of the samples of a run that did not migrate.
fn median(run: &[u64]) -> Option<u64> {
    let mut known: Vec<u64> = run.iter().copied().filter(|ns| *ns != MIGRATED).collect();
    known.sort_unstable();
    known.get(known.len() / 2).copied()
}

/// The distributions of a repetition, and what could not go into them.
#[derive(Debug)]
pub struct Sorted {
    /// The fault.
    pub ordinary: Histogram<u64>,
    /// The fault that also allocated a page of page table.
    pub apart: Histogram<u64>,
    /// Either, where the host had to back the memory first.
    pub cold: Histogram<u64>,
    /// From when a touch was due to its end; empty unless the loop was paced.
    pub response: Histogram<u64>,
    /// Samples without a time, because the thread changed CPU.
    pub migrated: u64,
    /// Samples longer than the histogram tells apart.
    pub saturated: u64,
}

impl Sorted {
    /// Empty distributions, allocated and present.
    pub fn empty() -> Self {
        Self {
            ordinary: latency::empty(),
            apart: latency::empty(),
            cold: latency::empty(),
            response: latency::empty(),
            migrated: 0,
            saturated: 0,
        }
    }

    /// Sorts the samples of one repetition, which replaces the one before.
    ///
    /// `host` is what tells cold from warm; without, everything is warm.
    pub fn sort(
        &mut self,
        list: &TouchList,
        service: &[u64],
        response: &[u64],
        mut host: Option<&mut HostLevel>,
    ) {
        for histogram in [&mut self.ordinary, &mut self.apart, &mut self.cold, &mut self.response] {
            histogram.reset();
        }
        (self.migrated, self.saturated) = (0, 0);
        if let Some(host) = host.as_deref_mut() {
            host.learn(service);
        }
        let run = host.as_deref().map_or(service.len().max(1), |host| host.run);
        let mut marks = list.marks();
        for run in service.chunks(run) {
            let is_cold = host.as_deref().is_some_and(|host| host.is_cold(run));
            for (ns, apart) in run.iter().zip(&mut marks) {
                let into = match (is_cold, apart) {
                    (true, _) => &mut self.cold,
                    (false, true) => &mut self.apart,
                    (false, false) => &mut self.ordinary,
                };
                if *ns == SET_ASIDE {
                    continue;
                }
                if *ns == MIGRATED {
                    self.migrated += 1;
                } else if into.record(*ns).is_err() {
                    self.saturated += 1;
                    into.saturating_record(*ns);
                }
            }
        }
        for ns in response.iter().filter(|ns| **ns != MIGRATED) {
            self.response.saturating_record(*ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(touches: usize) -> TouchList {
        TouchList::new((0..touches).map(|index| (index * 4096, index % 512 == 0)))
    }

    #[test]
    fn a_stretch_that_the_host_had_to_back_is_a_series_of_its_own() {
        let mut samples = vec![1300_u64; 1024];
        samples[256..512].fill(12_000);
        let mut host = HostLevel::of(4096);
        let mut sorted = Sorted::empty();
        sorted.sort(&list(1024), &samples, &[], Some(&mut host));
        assert_eq!((sorted.cold.len(), sorted.ordinary.len(), sorted.apart.len()), (256, 766, 2));
        sorted.sort(&list(1024), &samples, &[], None);
        assert_eq!(sorted.cold.len(), 0);
    }

    #[test]
    fn a_repetition_that_is_cold_throughout_is_known_by_an_earlier_one() {
        let mut host = HostLevel::of(4096);
        let mut sorted = Sorted::empty();
        sorted.sort(&list(512), &[12_000; 512], &[], Some(&mut host));
        assert_eq!(sorted.cold.len(), 0, "nothing to compare with");
        sorted.sort(&list(512), &[1300; 512], &[], Some(&mut host));
        sorted.sort(&list(512), &[12_000; 512], &[], Some(&mut host));
        assert_eq!((sorted.cold.len(), sorted.ordinary.len()), (512, 0));
    }

    proptest! {
        #[test]
        fn no_sample_is_lost_and_lone_stalls_stay_in_the_tail(
            stalls in prop::collection::btree_map(0_usize..2048, 10_000_u64..1 << 40, 0..20),
            migrated in prop::collection::btree_set(0_usize..2048, 0..20),
        ) {
            let mut samples = vec![1300_u64; 2048];
            for (at, ns) in &stalls {
                samples[*at] = *ns;
            }
            for at in &migrated {
                samples[*at] = MIGRATED;
            }
            let mut host = HostLevel::of(4096);
            let mut sorted = Sorted::empty();
            sorted.sort(&list(2048), &samples, &[], Some(&mut host));
            let filed = sorted.ordinary.len() + sorted.apart.len() + sorted.cold.len();
            prop_assert_eq!(filed + sorted.migrated, 2048);
            prop_assert_eq!(sorted.migrated, migrated.len() as u64);
            prop_assert_eq!(sorted.cold.len(), 0);
        }
    }
}
