//! Putting a knob back, for whoever does it: the run, its watchdog, or `doctor --restore`.
//!
//! One idea: only our own change is undone. A knob that holds neither the old value nor what our
//! write left there was changed by someone else since, and stays as they want it. The same holds
//! for what was made: something else that has its name by now is not touched.

use std::{fs, io, path::Path};

use super::{
    KnobError, Place,
    journal::{Change, Entry, Journal, Setting},
    lock::{Lock, holder},
    made::Made,
    memcg, monitor,
    outcome::{Outcome, Restored},
    swap, value, zram,
};

/// Restores what a run and its watchdog, both killed, have left changed.
///
/// # Errors
/// [`KnobError::Held`] while a run is alive, or when lock and journal cannot be used.
pub fn restore_leftovers(place: &Place) -> Result<Vec<Restored>, KnobError> {
    if !place.directory().exists() {
        return Ok(Vec::new());
    }
    place.prepare()?;
    let _lock = Lock::take(place, "doctor --restore")?;
    let (_, restored) = all(place)?;
    Ok(restored)
}

/// [`KnobError::Held`] where another run, which is alive, has changed a setting below a folder;
/// nothing for who may not read the journal.
///
/// # Errors
/// While it is so.
pub fn unchanged_below(place: &Place, folder: &Path) -> Result<(), KnobError> {
    let journal = Journal::load(place.journal()).ok();
    let is_below = |entry: &Entry| match &entry.change {
        Change::Set(Setting { path, .. }) => path.starts_with(folder),
        Change::Made(_) => false,
    };
    if !journal.is_some_and(|journal| journal.entries().iter().any(is_below)) {
        return Ok(());
    }
    match holder(place) {
        Some((pid, run)) if pid != std::process::id() => Err(KnobError::Held { pid, run }),
        _ => Ok(()),
    }
}

/// What a run and its watchdog, both killed, have left changed, in a sentence each; nothing while a
/// run is alive, nor for who may not read the journal.
pub fn leftovers(place: &Place) -> Vec<String> {
    let Ok(journal) = Journal::load(place.journal()) else { return Vec::new() };
    let boot = crate::machine::environment::boot_id();
    let is_left = |entry: &&Entry| {
        entry.boot == boot || matches!(entry.change, Change::Made(Made::SwapFile { .. }))
    };
    let sentence = |entry: &Entry| match &entry.change {
        Change::Made(made) => format!("{}, {made}, is left of a killed run", made.path().display()),
        Change::Set(Setting { path, old, new, .. }) => {
            format!("{} was set to {new:?} by a killed run, and was {old:?}", path.display())
        }
    };
    let left: Vec<String> = journal.entries().iter().filter(is_left).map(sentence).collect();
    // The lock last: a run that is alive is hardly ever disturbed by the question.
    if left.is_empty() || Lock::take(place, "doctor").is_err() { Vec::new() } else { left }
}

/// The same before a run, in sentences; none where nothing is changed, or by a run that is alive.
///
/// # Errors
/// When lock and journal cannot be used.
pub fn restore_unattended(place: &Place) -> Result<Vec<String>, KnobError> {
    let lists_changes = fs::symlink_metadata(place.journal()).is_ok_and(|file| file.len() > 0);
    if !lists_changes {
        return Ok(Vec::new());
    }
    match restore_leftovers(place) {
        Ok(left) => Ok(left.iter().map(Restored::to_string).collect()),
        Err(KnobError::Held { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Restores every entry of the journal, the latest first; what failed stays in it.
/// The caller holds the lock.
pub(super) fn all(place: &Place) -> Result<(Journal, Vec<Restored>), KnobError> {
    let path = place.journal();
    let mut journal = Journal::load(path.clone()).map_err(KnobError::of("read", &path))?;
    let mut ids: Vec<u64> = journal.entries().iter().map(|entry| entry.id).collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    let restored = ids.into_iter().filter_map(|id| one(place, &mut journal, id)).collect();
    journal.mend().map_err(KnobError::of("write", &path))?;
    Ok((journal, restored))
}

/// Undoes one change and removes it from the journal; `None` when the journal has no such change.
pub(super) fn one(place: &Place, journal: &mut Journal, id: u64) -> Option<Restored> {
    let entry = journal.get(id)?.clone();
    let is_of_this_boot = entry.boot == crate::machine::environment::boot_id();
    let mut restored = match entry.change {
        Change::Made(made) => unmake(place, &made, is_of_this_boot),
        Change::Set(setting) => {
            let outcome = if journal.bequeath(id) {
                Outcome::Inherited
            } else if is_of_this_boot {
                undo(place, &setting)
            } else {
                Outcome::OtherBoot
            };
            Restored { path: setting.path, old: setting.old, new: setting.new, outcome }
        }
    };
    if restored.is_over()
        && let Err(error) = journal.remove(id)
    {
        let why = format!("{}: {error}", journal.path().display());
        restored.outcome = Outcome::Failed { why };
    }
    Some(restored)
}

fn unmake(place: &Place, made: &Made, is_of_this_boot: bool) -> Restored {
    // Only a file survives a reboot.
    let outcome = if is_of_this_boot || matches!(made, Made::SwapFile { .. }) {
        remove(place, made)
    } else {
        Outcome::OtherBoot
    };
    Restored { path: made.path(), old: String::new(), new: made.to_string(), outcome }
}

/// Removes whatever of it is there.
fn remove(place: &Place, made: &Made) -> Outcome {
    let removed = match made {
        Made::Zram { number, diskseq, .. } => zram::remove(place.tree(), *number, *diskseq),
        Made::SwapFile { path } => swap::remove_file(place.tree(), path),
        Made::MemoryGroup { path, enabled_in } => memcg::remove(place, path, enabled_in.as_deref()),
        Made::Monitor { end, stat } => monitor::remove(place.tree(), *end, *stat),
    };
    removed.unwrap_or_else(|error| Outcome::Remains { why: error.to_string() })
}

fn undo(place: &Place, setting: &Setting) -> Outcome {
    let path = match place.admit(&setting.path) {
        Ok(path) => path,
        Err(KnobError::OutOfBounds { .. } | KnobError::Forbidden { .. }) => {
            return Outcome::Refused;
        }
        Err(KnobError::System(error)) if error.source.kind() == io::ErrorKind::NotFound => {
            return Outcome::Gone;
        }
        Err(error) => return Outcome::Failed { why: error.to_string() },
    };
    let failed = |error: io::Error| Outcome::Failed { why: error.to_string() };
    let found = match value::read(&path) {
        Ok(found) => found,
        Err(error) => return failed(error),
    };
    if found == setting.old {
        return Outcome::AlreadyBack;
    }
    if setting.holds.as_ref().is_some_and(|holds| *holds != found) {
        return Outcome::ChangedByOthers { found };
    }
    match value::write(&path, &setting.old).and_then(|()| value::read(&path)) {
        Ok(found) if found == setting.old => Outcome::PutBack,
        Ok(found) => Outcome::Short { found },
        Err(error) => failed(error),
    }
}
