//! What the kernel counted for the whole machine: vmstat, per-size folios, free page reporting.
//!
//! System-wide counts move for reasons that are not ours, so they are evidence beside a proof (at
//! least this many folios of that size), never a proof by themselves.

use std::{collections::BTreeMap, fs, thread, time::Duration};

use crate::machine::{Tree, proc::counts};

/// Fields of `/proc/vmstat` that a fault benchmark can move, or be moved by: one a line.
const VMSTAT: &str = include_str!("vmstat.txt");

/// A reading of machine-wide counters, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Reads `/proc/vmstat` and, for a folio size, its `stats` directory (since Linux 6.10).
    pub fn read(folio_kib: Option<u64>) -> Self {
        let text = Tree::machine().text("proc/vmstat").unwrap_or_default();
        let known = counts(&text).filter(|(name, _)| VMSTAT.lines().any(|known| known == *name));
        let mut counters: BTreeMap<String, u64> =
            known.map(|(name, count)| (name.to_owned(), count)).collect();
        if let Some(kib) = folio_kib {
            let directory = format!("/sys/kernel/mm/transparent_hugepage/hugepages-{kib}kB/stats");
            for name in ["alloc", "fallback", "fallback_charge"] {
                let name = format!("anon_fault_{name}");
                let value = Tree::machine().number(format!("{directory}/{name}"));
                counters.extend(value.map(|value| (name, value)));
            }
        }
        Self(counters)
    }

    /// The same of the whole machine, with what each CPU has not handed on yet: a counter of a zone
    /// or node, such as `pgpromote_success`, is otherwise up to a second behind and 125 short for
    /// each CPU (`mm/vmstat.c`). Without root it is as [`Counters::read`] finds it.
    pub fn read_whole() -> Self {
        // It acts when it is written, and is no setting.
        let _ = fs::write("/proc/sys/vm/stat_refresh", "1");
        Self::read(None)
    }

    /// What moved between `earlier` and this.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let delta = |(name, value): (&String, &u64)| {
            let before = earlier.0.get(name)?;
            Some((name.clone(), value.saturating_sub(*before)))
        };
        Self(self.0.iter().filter_map(delta).collect())
    }

    /// One counter; `None` where the kernel has none of that name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

/// Pages that the kernel has moved or tried to move so far (`PGMIGRATE_SUCCESS` and
/// `PGMIGRATE_FAIL`, `mm/migrate.c`), for compaction, another node or anything else; `None` without
/// migration. A touch meanwhile finds a migration entry, waits, and faults once more.
pub fn moved_pages() -> Option<u64> {
    let counters = Counters::read(None);
    counters.get("pgmigrate_success").zip(counters.get("pgmigrate_fail")).map(|(a, b)| a + b)
}

/// KiB that free page reporting has handed back to the host so far; `None` where there is none.
///
/// While it moves, memory that was warm becomes cold: the next touch pays the host's fault too.
pub fn reported_kib() -> Option<u64> {
    Tree::machine().number("sys/module/page_reporting/parameters/reported_kib")
}

/// Whether this guest gives free pages back to its host: `page_reporting_order` is all ones until a
/// device asks for that (`mm/page_reporting.c`, Linux 5.14).
pub fn reports_free_pages() -> bool {
    let order = Tree::machine().number("sys/module/page_reporting/parameters/page_reporting_order");
    order.is_some_and(|order: u32| order < u32::MAX)
}

/// Waits until free page reporting has come to rest: nothing handed back for three seconds (the
/// kernel looks every two), at most for so many.
pub fn wait_for_reporting(seconds: u64) {
    const STEP: Duration = Duration::from_millis(50);
    const STEPS_OF_REST: u64 = 60;
    let (mut seen, mut rest) = (reported_kib(), 0);
    for _ in 0..seconds * 20 {
        thread::sleep(STEP);
        let now = reported_kib();
        rest = if now == seen { rest + 1 } else { 0 };
        seen = now;
        if rest == STEPS_OF_REST {
            break;
        }
    }
}
