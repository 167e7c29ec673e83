//! Every change to the machine, put back.
//!
//! A knob is a file below `/sys` or `/proc` whose content is a setting: an mTHP `enabled` file,
//! `nr_hugepages` of a pool, a sysctl.
//!
//! One idea: the old value is on the disk before the new one is in the kernel, and a process that
//! the run cannot take down with it holds the way back. So a knob is restored when its
//! [`KnobGuard`] is dropped (return, error, panic), by the watchdog when the run is killed, and by
//! [`restore_leftovers`] when both were.
//!
//! ```text
//! Knobs::acquire ─► lock (one run a machine) ─► what is left over is put back ─► watchdog is ready
//! Knobs::set     ─► journal{old,new} + fsync ─► write ─► read back ─► journal{holds} ─► KnobGuard
//! drop           ─► still what we left there? ─► write old ─► journal without it
//! Knobs::create  ─► journal{made} + fsync    ─► make, step by step ─► BelongingGuard
//! drop           ─► still ours? ─► remove, step by step ─► journal without it
//! ```
//!
//! Rules that hold at every instant:
//! 1. A knob is changed only while the lock is held and the watchdog is alive.
//! 2. Whatever is changed is in the journal; the journal may list more, never less.
//! 3. Only our own change is undone: what someone else wrote since stays, with a warning.
//! 4. The lock is free only when every knob is back (or nobody is left to put it back).
//! 5. What is made ([`Belonging`]) has a name that nothing else had, journalled before it exists:
//!    whoever removes it needs nothing but that line, whichever step the maker was killed in.
//! 6. Swap, devices, files and groups of others are never touched, not even for a moment.
//!
//! It is not for settings that cannot be read (`drop_caches`) nor for those of one process
//! (affinity, limits).

mod belonging;
mod error;
mod journal;
mod lock;
mod made;
mod making;
pub mod memcg;
pub mod monitor;
mod outcome;
mod place;
mod restore;
pub mod swap;
mod value;
mod watchdog;
pub mod zram;

use std::{
    path::Path,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
};

pub use belonging::{Belonging, BelongingGuard, Obtained};
pub use error::KnobError;
use journal::{Change, Journal, Setting};
use lock::Lock;
pub use lock::{Door, holder, patiently};
use making::Making;
pub use memcg::MemoryGroup;
pub use monitor::OwnMonitor;
pub use outcome::{Outcome, Restored};
pub use place::Place;
pub use restore::{leftovers, restore_leftovers, restore_unattended, unchanged_below};
pub use swap::SwapSpace;
use watchdog::Watchdog;
pub use watchdog::{WATCHDOG_COMMAND, watchdog_command, watchdog_main};

/// The right to change the machine. Acquire it when the first knob is needed, not before.
///
/// When it ends, everything is back and the lock is free.
#[derive(Debug)]
pub struct Knobs {
    place: Place,
    /// A forked child that drops its copy must not restore the parent's knobs.
    pid: u32,
    /// One change at a time, while the state stays free for guards that are dropped meanwhile.
    changing: Mutex<()>,
    state: Mutex<State>,
}

/// One change of one knob, put back on drop.
///
/// Guards of one knob may nest and may be dropped in any order: the value from before the first
/// is what remains after the last. Knobs that depend on each other are to be put back in reverse,
/// as local variables are (a `Vec` drops its first element first).
#[derive(Debug)]
#[must_use = "the knob is put back when the guard is dropped"]
pub struct KnobGuard<'knobs> {
    making: Making<'knobs>,
}

/// Dropped in this order: the watchdog ends before this process gives up the lock.
#[derive(Debug)]
struct State {
    journal: Journal,
    warnings: Vec<String>,
    watchdog: Watchdog,
    _lock: Lock,
}

impl Knobs {
    /// Takes the machine's lock and starts the watchdog; `watchdog` must end up in
    /// [`watchdog_main`] with the same place, as [`watchdog_command`] does in our binary.
    ///
    /// What a run that was killed together with its watchdog left changed is put back first, with
    /// a warning.
    ///
    /// # Errors
    /// [`KnobError::Held`] while another run holds the lock, [`KnobError::Denied`] without root.
    pub fn acquire(place: &Place, run: &str, watchdog: Command) -> Result<Self, KnobError> {
        place.prepare()?;
        let lock = Lock::take(place, run)?;
        let (journal, leftovers) = restore::all(place)?;
        let watchdog = Watchdog::start(watchdog, &lock)?;
        let warnings = leftovers.iter().map(ToString::to_string).collect();
        let state = State { journal, warnings, watchdog, _lock: lock };
        Ok(Self {
            place: place.clone(),
            pid: std::process::id(),
            changing: Mutex::new(()),
            state: Mutex::new(state),
        })
    }

    /// Sets a knob until the guard is dropped.
    ///
    /// The kernel may give less than was asked for (`nr_hugepages` on a fragmented machine). A
    /// value that the knob holds already is not written.
    ///
    /// # Errors
    /// When the path is not a knob, the kernel rejects the value, the user may not, or the watchdog
    /// is dead. The knob is as before then.
    pub fn set(&self, path: impl AsRef<Path>, value: &str) -> Result<KnobGuard<'_>, KnobError> {
        let (path, value) = (self.place.admit(path.as_ref())?, value.trim());
        let _one_at_a_time = self.one_at_a_time();
        let (old, id) = {
            let mut state = self.state();
            state.watchdog.check()?;
            let old = value::read(&path).map_err(KnobError::of("read", &path))?;
            let nested = state.journal.entries().iter().any(|e| e.setting_of(&path).is_some());
            // On top of a change of ours even the same value needs its entry: the guard below may
            // be dropped first, and then this one holds the knob.
            let id = (nested || old != value).then(|| {
                let journal = state.journal.path().to_owned();
                let (path, old, new) = (path.clone(), old.clone(), value.to_owned());
                let id = state.journal.append(Change::Set(Setting { path, old, new, holds: None }));
                id.map_err(KnobError::of("append", &journal))
            });
            (old, id.transpose()?)
        };
        // From here on an error drops the guard, and that puts back whatever was written.
        let making = Making::of(self, id);
        let guard = KnobGuard { making };
        let Some(id) = id else { return Ok(guard) };
        if old != value {
            value::write(&path, value).map_err(KnobError::rejected(&path, value))?;
        }
        let obtained = value::read(&path).map_err(KnobError::of("read", &path))?;
        self.state().journal.settle(id, &obtained)?;
        Ok(guard)
    }

    /// Finds out whether a knob takes this value and keeps it, and puts it back.
    ///
    /// # Errors
    /// As [`Knobs::set`]; [`KnobError::Unsuitable`] where it holds something else then.
    pub fn try_out(&self, path: &Path, value: &str) -> Result<(), KnobError> {
        let _put_back = self.set(path, value)?;
        let found = value::read(path).map_err(KnobError::of("read", path))?;
        if found == value {
            return Ok(());
        }
        let why =
            format!("holds {found:?} after {value:?} was written: name a value that it keeps");
        Err(KnobError::Unsuitable { path: path.to_owned(), why })
    }

    /// Why nothing more can be changed: the watchdog has died.
    pub fn unguarded(&self) -> Option<KnobError> {
        self.state().watchdog.check().err()
    }

    /// What happened on the way back so far that a reader of the results should know.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.state().warnings)
    }

    /// One change at a time, so that what is journalled is what is done.
    fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state; a panic while it was locked does not keep the knobs from being put back.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_back(&self, id: u64) -> Option<Restored> {
        if std::process::id() != self.pid {
            return None;
        }
        let mut state = self.state();
        let restored = restore::one(&self.place, &mut state.journal, id)?;
        if !restored.is_clean() {
            state.warnings.push(restored.to_string());
        }
        Some(restored)
    }
}

impl Drop for Knobs {
    /// Puts back what was forgotten (`mem::forget`), the latest first.
    fn drop(&mut self) {
        let ids: Vec<u64> = self.state().journal.entries().iter().map(|entry| entry.id).collect();
        for id in ids.into_iter().rev() {
            self.put_back(id);
        }
    }
}

impl KnobGuard<'_> {
    /// Puts the knob back now and says what became of it; `None` when nothing had been changed.
    pub fn restore(mut self) -> Option<Restored> {
        self.making.undo()
    }
}
