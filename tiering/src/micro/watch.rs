//! What happens to the pages meanwhile: ten times a second, the kernel's counters and where pages
//! lie.
//!
//! The one idea: of some thousand pages, evenly spread, the kernel is asked for the node of each,
//! which takes under a millisecond; the counters say how many pages were moved, the nodes say
//! whether it was those. It runs beside the accesses, in a thread that belongs to no CPU.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, SyncSender},
    },
    thread,
    time::Duration,
};

use pagelab_bench::Meter;
use pagelab_record::{
    Unit,
    vocabulary::series::{DEMOTED, HINT_FAULTS, ON_FAST, PROMOTED, TICK},
};
use pagelab_sys::{SysError, counts::Counters, memory::nodes_of, time::monotonic_raw_ns};

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(100);
/// Pages that are asked about.
const LOOKED_AT: usize = 4096;

/// Pages that were demoted, by what counts them.
const DEMOTIONS: [&str; 4] =
    ["pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged", "pgdemote_proactive"];

/// Base pages that were demoted since.
pub(super) fn demoted(counted: &Counters) -> u64 {
    DEMOTIONS.iter().filter_map(|name| counted.get(name)).sum()
}

/// What was found at one time.
#[derive(Debug, Clone, Copy)]
struct Look {
    at_ns: u64,
    promoted: u64,
    demoted: u64,
    hint_faults: u64,
    on_fast: u64,
}

/// Everything that was found, in order.
#[derive(Debug, Default)]
pub(super) struct Seen(Vec<Look>);

/// Whom to ask, and for what.
#[derive(Debug)]
pub(super) struct Watch {
    pages: Vec<usize>,
    near: Option<i32>,
    promotions: &'static str,
    is_over: AtomicBool,
}

impl Watch {
    /// A look-out over memory from `base` on; `near` is the fast node, where there are two.
    pub(super) fn over(
        base: usize,
        bytes: usize,
        near: Option<i32>,
        promotions: &'static str,
    ) -> Self {
        let all = bytes / 4096;
        let count = all.min(LOOKED_AT);
        let pages = (0..count).map(|nth| base + nth * all / count * 4096).collect();
        Self { pages, near, promotions, is_over: AtomicBool::new(false) }
    }

    /// How many pages are asked about.
    pub(super) fn looked_at(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Looks, lets `body` run and looks until it is done, and once more then.
    ///
    /// # Errors
    /// When the kernel does not say where pages lie.
    pub(super) fn during<T>(&self, body: impl FnOnce() -> T) -> Result<(T, Seen), SysError> {
        thread::scope(|scope| {
            let (tell, looked) = mpsc::sync_channel(1);
            let watcher = scope.spawn(move || self.look_on(&tell));
            // Or the first look failed.
            let _ = looked.recv();
            let result = body();
            self.is_over.store(true, Ordering::Release);
            watcher.thread().unpark();
            let seen = watcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            seen.map(|seen| (result, seen))
        })
    }

    /// Says when it has looked.
    fn look_on(&self, tell: &SyncSender<()>) -> Result<Seen, SysError> {
        let (start, before) = (monotonic_raw_ns(), Counters::read(None));
        let mut seen = Vec::with_capacity(1024);
        loop {
            let is_last = self.is_over.load(Ordering::Acquire);
            let at_ns = monotonic_raw_ns() - start;
            seen.push(self.look(at_ns, &Counters::read(None).since(&before))?);
            if is_last {
                return Ok(Seen(seen));
            }
            let _ = tell.try_send(());
            let next = PERIOD.as_nanos() * seen.len() as u128;
            let left = next.saturating_sub((monotonic_raw_ns() - start).into());
            thread::park_timeout(Duration::from_nanos(u64::try_from(left).unwrap_or(0)));
        }
    }

    fn look(&self, at_ns: u64, counted: &Counters) -> Result<Look, SysError> {
        let mut nodes = vec![-1; self.pages.len()];
        if self.near.is_some() {
            nodes_of(&self.pages, &mut nodes)?;
        }
        let on_fast = nodes.iter().filter(|node| Some(**node) == self.near).count() as u64;
        let count = |name| counted.get(name).unwrap_or(0);
        Ok(Look {
            at_ns,
            promoted: count(self.promotions),
            demoted: demoted(counted),
            hint_faults: count("numa_hint_faults"),
            on_fast,
        })
    }
}

impl Seen {
    /// Leaves it as series: a value for each look.
    pub(super) fn file(&self, meter: &mut Meter) {
        type Of = fn(&Look) -> u64;
        let series: [(&str, Unit, Of); 5] = [
            (TICK, Unit::Ns, |look| look.at_ns),
            (PROMOTED, Unit::Count, |look| look.promoted),
            (DEMOTED, Unit::Count, |look| look.demoted),
            (HINT_FAULTS, Unit::Count, |look| look.hint_faults),
            (ON_FAST, Unit::Count, |look| look.on_fast),
        ];
        for (name, unit, of) in series {
            meter.observe_all(name, unit, self.0.iter().map(of).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_spread_evenly_and_all_of_a_few() {
        let few = Watch::over(1 << 30, 5 * 4096, None, "x");
        assert_eq!(few.pages, (0..5).map(|nth| (1 << 30) + nth * 4096).collect::<Vec<_>>());
        let many = Watch::over(0, 1 << 30, None, "x");
        assert_eq!(many.looked_at(), 4096);
        assert!(many.pages.windows(2).all(|pair| pair[1] - pair[0] == 64 * 4096));
    }

    #[test]
    fn it_looks_at_the_beginning_and_at_the_end_and_between() {
        let watch = Watch::over(0, 0x1000, None, "x");
        let ((), Seen(looks)) = watch.during(|| ()).unwrap();
        assert!(looks.len() >= 2, "{looks:?}");
        assert!(looks.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns), "{looks:?}");
    }
}
