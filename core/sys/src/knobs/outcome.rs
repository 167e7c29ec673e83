//! What became of a change that was put back, or of something that was removed, in a sentence.

use std::{fmt, path::PathBuf};

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
    pub(super) fn is_over(&self) -> bool {
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
