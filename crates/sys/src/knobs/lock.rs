//! The one lock for all runs on a machine.
//!
//! One idea: `flock` belongs to the open file description, not to the process. The watchdog
//! inherits the description, so the lock outlives a killed run for exactly as long as its knobs
//! are not yet back.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{KnobError, Place};

/// A held lock. It ends when it is dropped, or else with the last copy of the description.
#[derive(Debug)]
pub(super) struct Lock {
    /// A forked child that drops its copy must not unlock for its parent.
    pid: u32,
    /// Open for reading only: a copy of it is the watchdog's stdout, which must not print into it.
    description: File,
}

/// Who holds the lock: the content of the lock file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Holder {
    pid: u32,
    run: String,
}

impl Lock {
    /// Takes the lock, or says who has it.
    pub(super) fn take(place: &Place, run: &str) -> Result<Self, KnobError> {
        let path = place.lock();
        // 0o600: nobody else may open it, so nobody else can hold us up.
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .map_err(KnobError::of("open", &path))?;
        let description = File::open(&path).map_err(KnobError::of("open", &path))?;
        match flock(&description, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let holder = fs::read(&path).ok();
                let holder = holder.and_then(|text| serde_json::from_slice(&text).ok());
                let Holder { pid, run } = holder.unwrap_or_default();
                return Err(KnobError::Held { pid, run });
            }
            Err(errno) => return Err(KnobError::of("flock", &path)(errno.into())),
        }
        let lock = Self { pid: std::process::id(), description };
        let holder = Holder { pid: lock.pid, run: run.to_owned() };
        let text = serde_json::to_vec(&holder).expect("a number and a text are JSON");
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .and_then(|mut file| file.write_all(&text))
            .map_err(KnobError::of("write", &path))?;
        Ok(lock)
    }

    /// A second descriptor of the same description, for the watchdog.
    pub(super) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.description.try_clone().map(OwnedFd::from)
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

/// Whether `fd` is the lock of this place, and held through this very description.
pub(super) fn is_held_through(place: &Place, fd: impl AsFd) -> bool {
    let Ok(ours) = rustix::fs::fstat(&fd) else { return false };
    let Ok(theirs) = rustix::fs::stat(place.lock()) else { return false };
    (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)
        && flock(fd, FlockOperation::NonBlockingLockExclusive).is_ok()
}
