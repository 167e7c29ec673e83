//! Putting a knob back, for whoever does it: the run, its watchdog, or `doctor --restore`.
//!
//! One idea: only our own change is undone. A knob that holds neither the old value nor what our
//! write left there was changed by someone else since, and stays as they want it. The same holds
//! for what was made: something else that has its name by now is not touched.

use std::{fmt, fs, io, path::PathBuf};

use super::{
    KnobError, Place,
    belonging::Made,
    journal::{Change, Entry, Journal, Setting},
    lock::Lock,
    value,
};

/// What became of one journalled change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The knob.
    pub path: PathBuf,
    /// The value from before the change; empty for something that was made.
    pub old: String,
    /// The value that the change had asked for; of something that was made, what it is.
    pub new: String,
    /// What was done.
    pub outcome: Outcome,
}

/// How putting one knob back ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The old value was written and reads back.
    PutBack,
    /// The knob held the old value already.
    AlreadyBack,
    /// Another change of ours is on top; it will put back the older value.
    Inherited,
    /// Someone else changed it since; it was left alone.
    ChangedByOthers {
        /// What it holds.
        found: String,
    },
    /// The old value was written, and the kernel holds another: huge pages still in use.
    Short {
        /// What it holds.
        found: String,
    },
    /// The knob is gone: a device or module was removed.
    Gone,
    /// The change was made before a reboot, which undid it.
    OtherBoot,
    /// The journal names a file that is not a knob; it was not touched.
    Refused,
    /// It could not be put back, and stays in the journal.
    Failed {
        /// Why.
        why: String,
    },
    /// What had been made was removed.
    Removed,
    /// What was to be made is not there: it was never made, or is removed already.
    NotThere,
    /// Something has its name, but it is not what was made; it was left alone.
    NotOurs {
        /// What tells.
        why: String,
    },
    /// It could not be removed, and stays in the journal.
    Remains {
        /// Why.
        why: String,
    },
}

impl Restored {
    /// Whether nothing is left to do or to wonder about.
    pub fn is_clean(&self) -> bool {
        use Outcome::{AlreadyBack, Inherited, NotThere, OtherBoot, PutBack, Removed};
        let outcome = &self.outcome;
        matches!(outcome, PutBack | AlreadyBack | Inherited | OtherBoot | Removed | NotThere)
    }

    /// Whether nothing of the change is left, or nothing that is ours to undo.
    fn is_over(&self) -> bool {
        !matches!(self.outcome, Outcome::Failed { .. } | Outcome::Remains { .. })
    }
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, old, new, outcome } = self;
        let path = path.display();
        match outcome {
            Outcome::PutBack => write!(f, "{path} was put back from {new:?} to {old:?}"),
            Outcome::AlreadyBack => write!(f, "{path} holds {old:?} again already"),
            Outcome::Inherited => write!(f, "{path} is put back to {old:?} by a later change"),
            Outcome::ChangedByOthers { found } => write!(
                f,
                "{path} was left at {found:?}: someone changed it after pagelab had set it to \
                 {new:?}; before that it was {old:?}"
            ),
            Outcome::Short { found } => write!(
                f,
                "{path} was put back to {old:?} but holds {found:?}: the rest follows when the \
                 pages in use are freed"
            ),
            Outcome::Gone => write!(f, "{path} is gone; it was {old:?}"),
            Outcome::OtherBoot => write!(f, "{path} was reset by a reboot; nothing to put back"),
            Outcome::Refused => write!(f, "{path} is not a knob; the journal's line was dropped"),
            Outcome::Failed { why } => {
                write!(f, "{path} could not be put back to {old:?}: {why}; try again as root")
            }
            Outcome::Removed => write!(f, "{path}, {new}, was removed"),
            Outcome::NotThere => write!(f, "{path}, {new}, is not there any more"),
            Outcome::NotOurs { why } => {
                write!(f, "{path} was left alone: it is not {new} that pagelab made: {why}")
            }
            Outcome::Remains { why } => write!(
                f,
                "{path}, {new}, could not be removed: {why}; try again as root: pagelab doctor \
                 --restore"
            ),
        }
    }
}

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
        made.remove(place)
    } else {
        Outcome::OtherBoot
    };
    Restored { path: made.path(), old: String::new(), new: made.to_string(), outcome }
}

fn undo(place: &Place, setting: &Setting) -> Outcome {
    let path = match place.admit(&setting.path) {
        Ok(path) => path,
        Err(KnobError::OutOfBounds { .. }) => return Outcome::Refused,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_said_and_what_is_to_be_wondered_about_is_not_clean() {
        let (found, why) = ("2".to_owned(), "busy".to_owned());
        let all = [
            (Outcome::PutBack, true, true, "put back from \"1\" to \"0\""),
            (Outcome::AlreadyBack, true, true, "holds \"0\" again already"),
            (Outcome::Inherited, true, true, "by a later change"),
            (Outcome::ChangedByOthers { found: found.clone() }, false, true, "left at \"2\""),
            (Outcome::Short { found }, false, true, "but holds \"2\""),
            (Outcome::Gone, false, true, "is gone; it was \"0\""),
            (Outcome::OtherBoot, true, true, "reset by a reboot"),
            (Outcome::Refused, false, true, "is not a knob"),
            (Outcome::Failed { why: why.clone() }, false, false, "back to \"0\": busy"),
            (Outcome::Removed, true, true, "was removed"),
            (Outcome::NotThere, true, true, "is not there any more"),
            (Outcome::NotOurs { why: why.clone() }, false, true, "left alone"),
            (Outcome::Remains { why }, false, false, "could not be removed: busy"),
        ];
        for (outcome, is_clean, is_over, said) in all {
            let (path, old, new) = ("/sys/a".into(), "0".into(), "1".into());
            let restored = Restored { path, old, new, outcome };
            assert_eq!((restored.is_clean(), restored.is_over()), (is_clean, is_over));
            let text = restored.to_string();
            assert!(text.starts_with("/sys/a") && text.contains(said), "{text}");
        }
    }
}
