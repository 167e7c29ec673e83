//! A store to a page that KSM merged with others: it is copied out of the shared one.
//!
//! All pages are filled alike, with a word that no other process has, and offered to `ksmd`. They
//! are merged once nobody maps any of them alone. Merging is waited for off the clock, by the scans
//! that `ksmd` makes: a busy machine gives it less time, not worse chances. It goes on looking at
//! the pages while they are touched, on whatever CPU it gets, which is part of what KSM costs. The
//! settings that make it look at all pages in each pass are knobs.
//!
//! The stable page is shared by at most `max_page_sharing` (256) others. The touched pages are kept
//! apart afterwards, so that the control walks over pages that nobody merges again.

use std::{path::Path, time::Duration};

use pagelab_bench::{Error, Need, Witness, needs::Setting};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    Area,
    counts::Counters,
    machine::{Tree, rights},
    memory::{Ranges, account::Frames},
    time::monotonic_raw_ns,
};

use super::{
    anon::base_only,
    state::{Before, is_true_of_populated, populated},
};
use crate::{FaultKind, Stage, populate::touch_all};

/// What makes `ksmd` go through everything at once; its own choice of pace would undo it.
const SETTINGS: &[(&str, &str)] = &[
    ("/sys/kernel/mm/ksm/advisor_mode", "none"),
    ("/sys/kernel/mm/ksm/smart_scan", "0"),
    ("/sys/kernel/mm/ksm/pages_to_scan", "1000000"),
    // Between two scans there is time for the touches: one that meets a scan may fault twice.
    ("/sys/kernel/mm/ksm/sleep_millisecs", "500"),
];
/// What makes it run at all; last, so that it is put back first.
const RUN: Setting = Setting::new("/sys/kernel/mm/ksm/run", "1");

/// How often `ksmd` has been through everything.
const SCANS: &str = "/sys/kernel/mm/ksm/full_scans";
/// An attempt ends after so many scans that merged nothing; a page needs two, to be seen unchanged.
const SCANS_IN_VAIN: u64 = 4;
/// How long not one scan may come to its end, nanoseconds.
const SCAN_NS_MAX: u64 = 60_000_000_000;
/// How often all pages start again.
const ATTEMPTS: u64 = 5;

/// See the module's documentation.
pub(super) const KSM: FaultKind = FaultKind {
    name: "ksm",
    help: "store to a page that KSM merged with equal ones: copies it",
    allocates_tables: false,
    cannot_tell: is_true_of_populated,
    refuse: |asked| base_only(asked, "KSM merges base pages only"),
    needs: |_| {
        // Whoever cannot set them takes the pace as it is.
        let mut needs = Vec::new();
        if rights::is_root() {
            let known = SETTINGS.iter().filter(|(path, _)| Path::new(path).is_file());
            needs.extend(known.map(|(path, value)| Setting::new(path, value).needed()));
        }
        needs.push(RUN.needed());
        needs
    },
    // `ksmd` would merge again what one of several touches left alike.
    in_throughput: false,
    // Merging takes far longer than the touches.
    automatic_size_max: 32 << 20,
    // Some scans, half a second apart.
    waits_s: 2.5,
    stage: |_, space, _| {
        Ok(Box::new(Merged {
            before: Before::new(populated(space))?,
            ranges: Ranges::default(),
            alone: 0,
            moved: Counters::default(),
        }))
    },
    ..FaultKind::PLAIN
};

impl Merged {
    /// Waits until no page is left that nobody else maps; `false` when scans no longer merge any.
    fn is_merged(&mut self) -> Result<bool, Error> {
        let tree = Tree::machine();
        let scans = || tree.number::<u64>(SCANS).unwrap_or(0);
        let (mut fewest, mut fruitful) = (u64::MAX, scans());
        let (mut last, mut since) = (fruitful, monotonic_raw_ns());
        loop {
            // Before the look: what a scan merges while we look is its own.
            let scan = scans();
            self.alone = Frames::read(&self.ranges)?.exclusive();
            if self.alone == 0 {
                // The scan that merged the last page comes to its end.
                std::thread::sleep(Duration::from_millis(100));
                return Ok(true);
            }
            if self.alone < fewest {
                (fewest, fruitful) = (self.alone, scan);
            }
            if scan != last {
                (last, since) = (scan, monotonic_raw_ns());
            }
            if scan > fruitful + SCANS_IN_VAIN {
                return Ok(false);
            }
            if monotonic_raw_ns() > since + SCAN_NS_MAX {
                return Err(Error::Case(format!(
                    "ksmd ended no scan for {} s: start it with 1 in /sys/kernel/mm/ksm/run, or \
                     raise /sys/kernel/mm/ksm/pages_to_scan",
                    SCAN_NS_MAX / 1_000_000_000
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Memory whose pages are all merged.
#[derive(Debug)]
struct Merged {
    before: Before,
    ranges: Ranges,
    alone: u64,
    moved: Counters,
}

impl Stage for Merged {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        touch_all(area);
        self.ranges = area.ranges();
        for attempt in 0..ATTEMPTS {
            // Not zero in any word: each touch, a store of zero, makes its page another one.
            let word = 0x7061_6765_0000_0001 | u64::from(std::process::id()) << 1;
            area.fill(|| word + attempt * 2);
            area.mergeable(true)?;
            if self.is_merged()? {
                self.before.look(area)?;
                self.moved = Counters::read(None);
                return Ok(());
            }
            // A merged page that only one mapping is left of finds no partner any more
            // (`max_page_sharing`): all of them start again, with another content.
            self.ranges.keep_apart()?;
        }
        Err(Error::Case(format!(
            "ksmd left {} pages unmerged in {ATTEMPTS} attempts: choose a smaller --size, or raise \
             /sys/kernel/mm/ksm/max_page_sharing",
            self.alone
        )))
    }

    fn done(&mut self) -> Result<(), Error> {
        self.moved = Counters::read(None).since(&self.moved);
        self.ranges.keep_apart()?;
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.before.testify(witness);
        witness.expect(Check::UnsharedBefore, 0, self.alone);
        if let Some(copied) = self.moved.get("cow_ksm") {
            witness.expect_at_least(Check::MergedCopied, self.before.expected.present, copied);
        }
        Ok(())
    }
}
