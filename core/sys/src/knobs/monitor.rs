//! A monitor of DAMON of one's own, over the frames of a memory node, that migrates what is hot.
//!
//! One idea: DAMON's directory is one for the machine, so a monitor is made only where there is
//! none, and is all that there is until it is removed: from its folder to its state, in the order
//! in which the kernel takes it, and gone in the reverse order. What is there and is not as it was
//! made is somebody's, and is left alone. So are DAMON's settings ([`Place`] admits none of them).
//!
//! The kernel's own monitor (`damon_stat`, since Linux 6.17) lets no other run beside it: it is off
//! meanwhile, and on again where it was.
//!
//! Made is not on: memory that a case lays was accessed just then, and would move under it. Whoever
//! has it turns it on ([`OwnMonitor::start`]).
//!
//! [`Place`]: super::Place

use std::{fs, ops::Range, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    KnobError, Knobs, Outcome,
    made::Made,
    making::Making,
    value::{again, is_busy, read, write},
};
use crate::{SysError, machine::Tree};

const FOLDER: &str = "sys/kernel/mm/damon/admin/kdamonds";
const COUNT: &str = "nr_kdamonds";
const STATE: &str = "0/state";
const END: &str = "0/contexts/0/targets/0/regions/0/end";
const STAT: &str = "sys/module/damon_stat/parameters/enabled";
/// Attempts to take away a monitor that is just ending.
const ATTEMPTS: u32 = 100;
const WAIT: Duration = Duration::from_millis(25);

/// What it is made of, below [`FOLDER`], but for its frames and their target. Regions that were
/// accessed once in the 100 ms of an aggregation are migrated, of their pages (filter `young`)
/// those that were accessed since; intervals and numbers of regions are the kernel's.
const STEPS: [(&str, &str); 16] = [
    (COUNT, "1"),
    ("0/contexts/nr_contexts", "1"),
    ("0/contexts/0/operations", "paddr"),
    ("0/contexts/0/targets/nr_targets", "1"),
    ("0/contexts/0/targets/0/regions/nr_regions", "1"),
    ("0/contexts/0/targets/0/regions/0/start", START_FRAME),
    (END, END_FRAME),
    ("0/contexts/0/schemes/nr_schemes", "1"),
    ("0/contexts/0/schemes/0/action", "migrate_hot"),
    ("0/contexts/0/schemes/0/target_nid", TARGET),
    ("0/contexts/0/schemes/0/access_pattern/sz/max", "18446744073709551615"),
    ("0/contexts/0/schemes/0/access_pattern/nr_accesses/min", "1"),
    ("0/contexts/0/schemes/0/access_pattern/nr_accesses/max", "4294967295"),
    ("0/contexts/0/schemes/0/access_pattern/age/max", "4294967295"),
    ("0/contexts/0/schemes/0/filters/nr_filters", "1"),
    ("0/contexts/0/schemes/0/filters/0/type", "young"),
];
/// What stands in [`STEPS`] for what differs.
const START_FRAME: &str = "start";
const END_FRAME: &str = "end";
const TARGET: &str = "target";

/// One that was made, and is off until it is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnMonitor {
    state: PathBuf,
}

impl OwnMonitor {
    /// Turns it on: from now on pages move.
    ///
    /// # Errors
    /// When the kernel refuses, as while somebody else has a monitor.
    pub fn start(&self) -> Result<(), SysError> {
        self.turn("on")
    }

    /// Turns it off; no page moves any more when this returns.
    ///
    /// # Errors
    /// When it had not been started, or somebody took it away.
    pub fn stop(&self) -> Result<(), SysError> {
        self.turn("off")
    }

    fn turn(&self, state: &str) -> Result<(), SysError> {
        let failed =
            |source| SysError::new("turn", format!("{} {state}", self.state.display()), source);
        again(ATTEMPTS, WAIT, is_busy, |_| write(&self.state, state)).map_err(failed)
    }
}

/// Whether there is DAMON, and nobody has a monitor.
pub fn is_free(tree: &Tree) -> bool {
    tree.number::<u64>(format!("{FOLDER}/{COUNT}")) == Some(0)
}

fn is_on(tree: &Tree) -> bool {
    tree.text(STAT).is_some_and(|text| text.trim() == "Y")
}

/// Makes one, over these addresses of the machine; it is off.
pub(super) fn make<'k>(
    knobs: &'k Knobs,
    frames: &Range<u64>,
    target: usize,
) -> Result<(Making<'k>, OwnMonitor), KnobError> {
    let tree = knobs.place.tree();
    let count = tree.path(format!("{FOLDER}/{COUNT}"));
    if !is_free(tree) {
        let why = "no DAMON, or somebody has a monitor, which is never taken away".to_owned();
        return Err(KnobError::Unsuitable { path: count, why });
    }
    let stat = is_on(tree);
    let making = Making::begin(knobs, Made::Monitor { end: frames.end, stat })?;
    if stat {
        set(tree, STAT, "N")?;
    }
    for (file, value) in STEPS {
        let value = match value {
            START_FRAME => frames.start.to_string(),
            END_FRAME => frames.end.to_string(),
            TARGET => target.to_string(),
            plain => plain.to_owned(),
        };
        set(tree, &format!("{FOLDER}/{file}"), &value)?;
    }
    Ok((making, OwnMonitor { state: tree.path(format!("{FOLDER}/{STATE}")) }))
}

fn set(tree: &Tree, file: &str, value: &str) -> Result<(), KnobError> {
    let path = tree.path(file);
    write(&path, value).map_err(KnobError::rejected(&path, value))
}

/// Removes what there is of the one whose frames end there.
pub(super) fn remove(tree: &Tree, end: u64, stat: bool) -> Result<Outcome, KnobError> {
    let at = |file: &str| tree.path(format!("{FOLDER}/{file}"));
    let holds = |file: &str| read(&at(file)).ok();
    let put = |path: PathBuf, value: &str| {
        again(ATTEMPTS, WAIT, is_busy, |_| write(&path, value))
            .map_err(KnobError::of("write", &path))
    };
    let outcome = match holds(COUNT).as_deref() {
        None | Some("0") => Outcome::NotThere,
        // Until the end is written there is nothing that could be on.
        Some("1") if holds(END).is_none_or(|found| found == "0" || found == end.to_string()) => {
            let is_running = holds(STATE).is_some_and(|state| state == "on");
            if is_running && holds(END) != Some(end.to_string()) {
                let why = "another monitor is on".to_owned();
                return Ok(Outcome::NotOurs { why });
            }
            // In each attempt: a case that dies with its run may still turn it on meanwhile, and
            // the kernel removes none that is on.
            again(ATTEMPTS, WAIT, is_busy, |_| {
                if holds(STATE).is_some_and(|state| state == "on") {
                    write(&at(STATE), "off")?;
                }
                write(&at(COUNT), "0")
            })
            .map_err(KnobError::of("write", &at(COUNT)))?;
            Outcome::Removed
        }
        Some(count) => {
            let why = format!("{count} monitors, of other frames");
            return Ok(Outcome::NotOurs { why });
        }
    };
    if stat && fs::metadata(tree.path(STAT)).is_ok() {
        put(tree.path(STAT), "Y")?;
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose monitor has these files; a file system makes none by itself.
    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::at(root.path()).with(files.iter().copied());
        (root, tree)
    }

    fn below(file: &str) -> String {
        format!("{FOLDER}/{file}")
    }

    #[test]
    fn what_a_number_makes_is_written_behind_it() {
        let at = |file: &str| STEPS.iter().position(|step| step.0 == file).unwrap();
        for (number, folder) in [
            (COUNT, "0/"),
            ("0/contexts/nr_contexts", "0/contexts/0/"),
            ("0/contexts/0/targets/nr_targets", "0/contexts/0/targets/0/"),
            ("0/contexts/0/targets/0/regions/nr_regions", "0/contexts/0/targets/0/regions/0/"),
            ("0/contexts/0/schemes/nr_schemes", "0/contexts/0/schemes/0/"),
            ("0/contexts/0/schemes/0/filters/nr_filters", "0/contexts/0/schemes/0/filters/0/"),
        ] {
            let first = STEPS.iter().position(|step| step.0.starts_with(folder)).unwrap();
            assert!(at(number) < first, "{number}");
        }
    }

    #[test]
    fn one_that_is_as_it_was_made_is_off_before_it_is_gone() {
        for state in ["on", "off"] {
            let (count, on, end) = (below(COUNT), below(STATE), below(END));
            let (_root, tree) = tree(&[(&count, "1"), (&on, state), (&end, "4096"), (STAT, "N")]);
            assert_eq!(remove(&tree, 4096, true).unwrap(), Outcome::Removed);
            let found = [&count, &on, STAT].map(|file| tree.text(file).unwrap());
            assert_eq!(found, ["0", "off", "Y"]);
        }
    }

    #[test]
    fn one_is_turned_on_and_off() {
        let on = below(STATE);
        let (_root, tree) = tree(&[(&on, "off")]);
        let monitor = OwnMonitor { state: tree.path(&on) };
        let state = || tree.text(&on).unwrap();
        monitor.start().unwrap();
        assert_eq!(state(), "on");
        monitor.stop().unwrap();
        assert_eq!(state(), "off");
        let gone = OwnMonitor { state: tree.path("gone/0/state") };
        assert!(gone.start().unwrap_err().to_string().contains("gone/0/state"));
    }

    #[test]
    fn one_that_was_just_begun_is_gone_and_none_is_none() {
        let count = below(COUNT);
        let (_root, begun) = tree(&[(&count, "1")]);
        assert_eq!(remove(&begun, 4096, false).unwrap(), Outcome::Removed);
        assert!(is_free(&begun));
        assert_eq!(remove(&begun, 4096, false).unwrap(), Outcome::NotThere);
        assert_eq!(remove(&Tree::at("/nowhere"), 4096, true).unwrap(), Outcome::NotThere);
        assert!(!is_free(&Tree::at("/nowhere")));
    }

    #[test]
    fn one_of_somebody_stays_as_it_is() {
        let (count, on, end) = (below(COUNT), below(STATE), below(END));
        for files in [
            &[(&*count, "2"), (&*on, "on"), (&*end, "4096")][..],
            &[(&*count, "1"), (&*on, "on"), (&*end, "8192")],
            &[(&*count, "1"), (&*on, "on")],
        ] {
            let (_root, tree) = tree(files);
            assert!(matches!(remove(&tree, 4096, false).unwrap(), Outcome::NotOurs { .. }));
            assert!(!is_free(&tree));
            for (file, value) in files {
                assert_eq!(tree.text(file).unwrap(), *value);
            }
        }
    }
}
