//! Repetitions that are thrown away, and what shows that they must be: the host took memory back,
//! a file left the page cache, or a claim broke: while the kernel moved pages, or once in a process
//! for a reason that nothing shows.

use std::{thread, time::Duration};

use pagelab_record::vocabulary::Check;
use pagelab_sys::counts::{moved_pages, reported_kib};

use crate::meter::{COLD, Witness};

/// Repetitions that were kept although the host took memory back meanwhile.
pub(crate) const KEPT_COLD: &str = "repetitions_with_cold_memory";

/// Claimed of a case whose file was reclaimed; claimed where that happened at all.
const RECLAIMED: &str = "repetitions whose file was reclaimed meanwhile in every attempt";

/// What was thrown away, and why.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub(crate) attempts_max: u32,
    /// Attempts for the host's sake end when together they took longer.
    pub(crate) rest_ns: u64,
    pub(crate) host: HostWatch,
    pub(crate) kernel: MoveWatch,
    /// Thrown away because the host took memory back, and kept although it did.
    pub(crate) cold: u32,
    pub(crate) kept_cold: u32,
    /// Thrown away because a file was reclaimed, and repetitions that always lost it.
    pub(crate) reclaimed: u32,
    pub(crate) given_up: u32,
    /// Thrown away because a claim broke: while the kernel moved pages, and for no reason seen.
    pub(crate) moved: u32,
    pub(crate) unproven: u32,
    /// How often [`LATE`] was waited for.
    pub(crate) patience: u32,
}

/// How long after a batch of pages began to move the kernel counts it.
const BATCH: Duration = Duration::from_millis(20);
/// The same where whoever moves them gets few turns, asked so often in a process.
const LATE: Duration = Duration::from_millis(500);
const PATIENCE_MAX: u32 = 4;

impl Losses {
    pub(crate) fn new(attempts_max: u32, rest_ns: u64) -> Self {
        Self { attempts_max, rest_ns, ..Self::default() }
    }

    /// Whoever moves pages slowly is not waited for: what breaks a claim is known.
    pub(crate) const fn be_impatient(&mut self) {
        self.patience = PATIENCE_MAX;
    }

    /// Whether a repetition is to be taken again because a claim of it is broken.
    pub(crate) fn forgive(&mut self, witness: &Witness) -> bool {
        if witness.holds() {
            return false;
        }
        // A processor may fault once more than it should, one time in 10^8 here. What does so twice
        // in a process is no chance, unless whoever moves the page waits for a processor itself.
        let is_chance = self.unproven == 0;
        let is_patient = !is_chance && self.patience < PATIENCE_MAX;
        self.patience += u32::from(is_patient);
        let is_moved = self.kernel.has_moved(if is_patient { LATE } else { BATCH });
        let is_forgiven = is_moved || is_chance;
        *(if is_moved { &mut self.moved } else { &mut self.unproven }) += u32::from(is_forgiven);
        is_forgiven
    }

    /// Says so in the record.
    pub(crate) fn testify(&self, witness: &mut Witness) {
        witness.begin("");
        if self.cold > 0 {
            witness.count("repetitions_discarded_reporting", u64::from(self.cold));
            witness.warn(format!(
                "free page reporting handed memory back to the host {} times: those repetitions \
                 were thrown away and taken again; less idle memory, or a host without a balloon \
                 device, avoids it",
                self.cold
            ));
        }
        if self.kept_cold > 0 {
            witness.count(KEPT_COLD, u64::from(self.kept_cold));
            witness.warn(format!(
                "free page reporting handed memory back to the host during {} repetitions that \
                 last too long to be spared: what the host may have had to back again is filed \
                 apart, in series that end in {COLD}, and is in no other number; a smaller --size \
                 avoids it",
                self.kept_cold
            ));
        }
        if self.reclaimed > 0 {
            witness.expect((Check::FileReclaimed, RECLAIMED), 0, u64::from(self.given_up));
            witness.count("repetitions_discarded_reclaim", u64::from(self.reclaimed));
            witness.warn(format!(
                "pages of the file left the page cache {} times before they were touched: those \
                 repetitions were thrown away and taken again; more free memory, or no proactive \
                 reclaim (DAMON, memory.reclaim) beside it, avoids it",
                self.reclaimed
            ));
        }
        if self.unproven > 0 {
            witness.count("repetitions_discarded_unproven", u64::from(self.unproven));
            witness.warn(
                "a claim did not hold in one repetition of a process, and nothing shows why: it \
                 was thrown away and taken again, and the claims hold in all that were kept"
                    .to_owned(),
            );
        }
        if self.moved > 0 {
            witness.count("repetitions_discarded_migration", u64::from(self.moved));
            witness.warn(format!(
                "the kernel moved pages of this machine during {} repetitions whose faults were \
                 not those expected: they were thrown away and taken again; nobody else who asks \
                 for huge pages, no compaction and no NUMA balancing beside it avoids it",
                self.moved
            ));
        }
    }
}

/// Watches whether free memory was handed back to the host.
#[derive(Debug)]
pub(crate) struct HostWatch {
    /// KiB handed back so far, where the kernel says.
    reported: Watch,
    moved_before: bool,
}

impl Default for HostWatch {
    fn default() -> Self {
        Self::of(reported_kib)
    }
}

impl HostWatch {
    pub(crate) fn of(reported: fn() -> Option<u64>) -> Self {
        Self { reported: Watch { read: reported, seen: None }, moved_before: false }
    }

    pub(crate) fn before(&mut self) {
        // Memory given back since the last repetition is cold now: this one only warms it.
        let is_first = self.reported.seen.is_none();
        self.moved_before = self.reported.has_moved() && !is_first;
    }

    /// Whether nothing was given back since the end of the repetition before this one.
    pub(crate) fn after(&mut self) -> bool {
        !self.reported.has_moved() && !self.moved_before
    }
}

/// Watches whether pages were moved. Who touches a page in that moment takes one fault more, or
/// finds it absent: compaction runs for anybody's huge page, and no claim can count on that.
#[derive(Debug)]
pub(crate) struct MoveWatch(Watch);

impl Default for MoveWatch {
    fn default() -> Self {
        Self::of(moved_pages)
    }
}

impl MoveWatch {
    pub(crate) fn of(moved: fn() -> Option<u64>) -> Self {
        Self(Watch { read: moved, seen: None })
    }

    pub(crate) fn before(&mut self) {
        self.0.has_moved();
    }

    /// Whether pages were moved since the repetition began. The kernel counts a batch when all of
    /// it was moved (`migrate_pages`, `mm/migrate.c`), which may be some time after a touch met it.
    fn has_moved(&mut self, at_most: Duration) -> bool {
        let looks = at_most.as_millis().div_ceil(BATCH.as_millis());
        self.0.has_moved()
            || (0..looks).any(|_| {
                thread::sleep(BATCH);
                self.0.has_moved()
            })
    }
}

/// A count of the machine, and what it was when it was last read.
#[derive(Debug)]
struct Watch {
    read: fn() -> Option<u64>,
    seen: Option<u64>,
}

impl Watch {
    /// Whether it is another than when it was last read.
    fn has_moved(&mut self) -> bool {
        let now = (self.read)();
        let earlier = std::mem::replace(&mut self.seen, now);
        now != earlier
    }
}
