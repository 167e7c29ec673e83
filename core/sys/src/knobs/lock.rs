//! The one lock for all runs on a machine, the door before it, and how to wait for both.
//!
//! One idea: `flock` belongs to the open file description, not to the process. The watchdog
//! inherits the description, so the lock outlives a killed run for exactly as long as its knobs
//! are not yet back. Whoever takes it passes the door, which is shut for that moment only: a
//! process that keeps it shut keeps everybody out while runs of its own take and free the lock.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
    thread,
    time::Duration,
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{KnobError, Place};
use crate::{process::interrupted, time::monotonic_raw_ns};

/// How often somebody who waits looks again.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks in a row after which it is told that nobody has signed.
const UNSIGNED: u32 = 50;

/// The door before the lock, kept shut: nobody takes the knobs but whoever is let in. So tests keep
/// other runs away from settings that only their own runs may change.
#[derive(Debug)]
pub struct Door {
    _shut: Lock,
}

/// A locked file: the lock, or the door. It ends when it is dropped, or else with the last copy of
/// the description.
#[derive(Debug)]
pub(super) struct Lock {
    /// A forked child that drops its copy must not unlock for its parent.
    pid: u32,
    /// Open for reading only: a copy of it is the watchdog's stdout, which must not print into it.
    description: File,
}

/// Who holds a lock: the content of its file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Holder {
    pid: u32,
    run: String,
}

impl Lock {
    /// Takes the lock, or says who has it.
    pub(super) fn take(place: &Place, run: &str) -> Result<Self, KnobError> {
        let _door = if is_let_in(place) { None } else { Some(Self::of(&place.door(), run)?) };
        Self::of(&place.lock(), run)
    }

    /// A second descriptor of the same description, for the watchdog.
    pub(super) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.description.try_clone().map(OwnedFd::from)
    }

    /// Locks a file, or says who has.
    fn of(path: &Path, run: &str) -> Result<Self, KnobError> {
        // 0o600: nobody else may open it, so nobody else can hold us up.
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)
            .map_err(KnobError::of("open", path))?;
        let description = File::open(path).map_err(KnobError::of("open", path))?;
        match flock(&description, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let Holder { pid, run } = Holder::of(path);
                return Err(KnobError::Held { pid, run });
            }
            Err(errno) => return Err(KnobError::of("flock", path)(errno.into())),
        }
        let seized = Self { pid: std::process::id(), description };
        let holder = Holder { pid: seized.pid, run: run.to_owned() };
        let text = serde_json::to_vec(&holder).expect("a number and a text are JSON");
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(path)
            .and_then(|mut file| file.write_all(&text))
            .map_err(KnobError::of("write", path))?;
        Ok(seized)
    }
}

impl Door {
    /// The environment variable that lets a process in: the number of whoever has shut the door.
    pub const VARIABLE: &str = "PAGELAB_KNOBS_DOOR";

    /// Shuts it, while nobody holds the knobs.
    ///
    /// # Errors
    /// [`KnobError::Held`] while somebody does, [`KnobError::Denied`] without root.
    pub fn shut(place: &Place, run: &str) -> Result<Self, KnobError> {
        place.prepare()?;
        let door = Lock::of(&place.door(), run)?;
        Lock::of(&place.lock(), run)?;
        Ok(Self { _shut: door })
    }
}

/// Whether whoever has shut the door lets this process in.
fn is_let_in(place: &Place) -> bool {
    let let_in_by = env::var(Door::VARIABLE).ok().and_then(|pid| pid.parse().ok());
    let_in_by.is_some_and(|pid: u32| Holder::of(&place.door()).pid == pid)
}

/// Asks for the knobs again while another run holds them: for so long, or until an interrupt.
/// `tell` hears who holds them, once for each holder.
///
/// # Errors
/// Whatever `ask` says in the end.
pub fn patiently<T>(
    limit: Duration,
    tell: &mut dyn FnMut(&KnobError),
    mut ask: impl FnMut() -> Result<T, KnobError>,
) -> Result<T, KnobError> {
    let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let deadline = monotonic_raw_ns().saturating_add(limit);
    // Whoever asks holds the door for a moment, and has not yet signed at the first.
    let (mut told, mut unsigned) = (Vec::new(), 0);
    loop {
        let held = match ask() {
            Err(held @ KnobError::Held { .. }) => held,
            other => return other,
        };
        if interrupted() || monotonic_raw_ns() >= deadline {
            return Err(held);
        }
        if let KnobError::Held { pid, .. } = held {
            unsigned = if pid == 0 { unsigned + 1 } else { 0 };
            if !told.contains(&pid) && (pid != 0 || unsigned > UNSIGNED) {
                tell(&held);
                told.push(pid);
            }
        }
        thread::sleep(PAUSE);
    }
}

impl Holder {
    fn of(path: &Path) -> Self {
        let text = fs::read(path).ok();
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }
}

impl Drop for Lock {
    /// Unlocks instead of merely closing: a child that another thread is just starting holds a copy
    /// of every descriptor until its `exec`, and would keep the lock for that moment.
    fn drop(&mut self) {
        if std::process::id() == self.pid {
            let _ = flock(&self.description, FlockOperation::Unlock);
        }
    }
}

/// Who holds the lock of a place: the process, and its run as it signed; `None` where nobody does,
/// or nobody says. Asking takes no lock, so that it is in nobody's way.
pub fn holder(place: &Place) -> Option<(u32, String)> {
    let path = place.lock();
    let file = rustix::fs::stat(&path).ok()?;
    // `1: FLOCK  ADVISORY  WRITE PID MAJOR:MINOR:INODE 0 EOF`, the device in hexadecimal
    // (proc_locks(5)).
    let (major, minor) = (rustix::fs::major(file.st_dev), rustix::fs::minor(file.st_dev));
    let which = format!("{major:02x}:{minor:02x}:{}", file.st_ino);
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let of_it = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("FLOCK") && words.nth(3) == Some(&which)
    };
    let line = locks.lines().find(of_it)?;
    let pid = line.split_whitespace().nth(4)?.parse().ok()?;
    let Holder { pid: signed, run } = Holder::of(&path);
    Some(if signed > 0 { (signed, run) } else { (pid, "another run of pagelab".to_owned()) })
}

/// Whether `fd` is the lock of this place, and held through this very description.
pub(super) fn is_held_through(place: &Place, fd: impl AsFd) -> bool {
    let Ok(ours) = rustix::fs::fstat(&fd) else { return false };
    let Ok(theirs) = rustix::fs::stat(place.lock()) else { return false };
    (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)
        && flock(fd, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_holder_is_told_once_and_one_that_has_not_signed_yet_is_not() {
        let mut asked = [0, 7, 0, 9, 0, 7, 9].into_iter();
        let mut told = Vec::new();
        let mut tell = |held: &KnobError| told.push(held.to_string());
        let ask = || match asked.next() {
            Some(pid) => Err(KnobError::Held { pid, run: format!("run {pid}") }),
            None => Ok(()),
        };
        patiently(Duration::MAX, &mut tell, ask).unwrap();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("run 7") && told[1].contains("run 9"), "{told:?}");
    }

    #[test]
    fn one_that_does_not_sign_is_told_after_a_while_and_once() {
        let unsigned = |times: u32| (0..times).map(|_| 0);
        let asked = unsigned(UNSIGNED).chain([7]).chain(unsigned(UNSIGNED + 5));
        let mut asked: std::collections::VecDeque<u32> = asked.collect();
        let mut told = Vec::new();
        let mut tell = |held: &KnobError| told.push(held.to_string());
        let ask = || match asked.pop_front() {
            Some(pid) => Err(KnobError::Held { pid, run: format!("run {pid}") }),
            None => Ok(()),
        };
        patiently(Duration::MAX, &mut tell, ask).unwrap();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("run 7") && told[1].contains("run 0"), "{told:?}");
    }

    #[test]
    fn who_holds_a_lock_is_told_without_taking_it() {
        let root = tempfile::tempdir().unwrap();
        let place = Place::at(root.path());
        assert_eq!(holder(&place), None, "there is no file");
        let held = Lock::of(&place.lock(), "a run").unwrap();
        let found = holder(&place);
        // Some file systems show another device here than to stat.
        assert!(found.is_none() || found == Some((held.pid, "a run".to_owned())), "{found:?}");
        drop(held);
        assert_eq!(holder(&place), None);
    }

    #[test]
    fn a_lock_is_held_through_its_own_description_alone() {
        let root = tempfile::tempdir().unwrap();
        let place = Place::at(root.path());
        let held = Lock::of(&place.lock(), "a run").unwrap();
        assert!(is_held_through(&place, &held.description));
        let second = File::open(place.lock()).unwrap();
        assert!(!is_held_through(&place, &second), "the same file, opened once more");
        fs::write(root.path().join("other"), "").unwrap();
        let other = File::open(root.path().join("other")).unwrap();
        assert!(!is_held_through(&place, &other), "another file");
        // A fork that drops its copy unlocks nothing.
        let forked = Lock { pid: held.pid + 1, description: held.description.try_clone().unwrap() };
        drop(forked);
        assert!(!is_held_through(&place, &second));
        drop(held);
        assert!(is_held_through(&place, &second));
    }
}
