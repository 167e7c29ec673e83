//! Putting a knob back, for whoever does it: the run, its watchdog, or `doctor --restore`.
//!
//! One idea: only our own change is undone. A knob that holds neither the old value nor what our
//! write left there was changed by someone else since, and stays as they want it.

use std::{fmt, io, path::PathBuf};

use super::{
    KnobError, Place,
    journal::{Entry, Journal},
    lock::Lock,
    value,
};

/// What became of one journalled change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The knob.
    pub path: PathBuf,
    /// The value from before the change.
    pub old: String,
    /// The value that the change had asked for.
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
}

impl Restored {
    /// Whether nothing is left to do or to wonder about.
    pub fn is_clean(&self) -> bool {
        use Outcome::{AlreadyBack, Inherited, OtherBoot, PutBack};
        matches!(self.outcome, PutBack | AlreadyBack | Inherited | OtherBoot)
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
    let mut outcome = if journal.bequeath(id) { Outcome::Inherited } else { undo(place, &entry) };
    if !matches!(outcome, Outcome::Failed { .. })
        && let Err(error) = journal.remove(id)
    {
        let why = format!("{}: {error}", journal.path().display());
        outcome = Outcome::Failed { why };
    }
    Some(Restored { path: entry.path, old: entry.old, new: entry.new, outcome })
}

fn undo(place: &Place, entry: &Entry) -> Outcome {
    if entry.boot != crate::environment::boot_id() {
        return Outcome::OtherBoot;
    }
    let path = match place.admit(&entry.path) {
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
    if found == entry.old {
        return Outcome::AlreadyBack;
    }
    if entry.holds.as_ref().is_some_and(|holds| *holds != found) {
        return Outcome::ChangedByOthers { found };
    }
    match value::write(&path, &entry.old).and_then(|()| value::read(&path)) {
        Ok(found) if found == entry.old => Outcome::PutBack,
        Ok(found) => Outcome::Short { found },
        Err(error) => failed(error),
    }
}
