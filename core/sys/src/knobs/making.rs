//! A change: journalled before it is made, undone when it is not kept.

use std::path::{Path, PathBuf};

use super::{KnobError, Knobs, Restored, journal::Change, made::Made};

/// Something that is made or set; undone on drop, however far it has come.
#[derive(Debug)]
pub(super) struct Making<'knobs> {
    knobs: &'knobs Knobs,
    id: Option<u64>,
}

impl<'knobs> Making<'knobs> {
    /// A change that is journalled already; none for one that was not needed.
    pub(super) fn of(knobs: &'knobs Knobs, id: Option<u64>) -> Self {
        Self { knobs, id }
    }

    /// Journals what is about to be made.
    pub(super) fn begin(knobs: &'knobs Knobs, made: Made) -> Result<Self, KnobError> {
        let mut state = knobs.state();
        let journal = state.journal.path().to_owned();
        let id = state.journal.append(Change::Made(made));
        Ok(Self { knobs, id: Some(id.map_err(KnobError::of("append", &journal))?) })
    }

    /// Journals what it has come to.
    pub(super) fn came_to(&self, made: &Made) -> Result<(), KnobError> {
        let id = self.id.expect("not undone yet");
        self.knobs.state().journal.remake(id, made)
    }

    /// Removes what there is of it, or puts it back; `None` when there is nothing to undo.
    pub(super) fn undo(&mut self) -> Option<Restored> {
        self.knobs.put_back(self.id.take()?)
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.undo();
    }
}

/// A path of this prefix in `directory` that nothing has, this process's number in it.
pub(super) fn unused_name(directory: &Path, prefix: &str) -> PathBuf {
    let mut number = 0_u64;
    loop {
        let path = directory.join(format!("{prefix}{}-{number}", std::process::id()));
        if std::fs::symlink_metadata(&path).is_err() {
            return path;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_something_has_is_not_used_again() {
        let root = tempfile::tempdir().unwrap();
        let mut names = Vec::new();
        for _ in 0..3 {
            let name = unused_name(root.path(), "pagelab-");
            assert!(!names.contains(&name) && name.starts_with(root.path()));
            std::fs::write(&name, "").unwrap();
            names.push(name);
        }
    }
}
