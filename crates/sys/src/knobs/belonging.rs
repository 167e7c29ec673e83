//! What a case owns on the machine: made for it, used by it alone, and removed after it.
//!
//! One idea: a belonging is undone from its name alone. The name is in the journal before the
//! thing exists, and removing looks at what is there instead of at how far the making came, so a
//! kill between any two steps leaves nothing that [`Made::remove`] does not find.
//!
//! It is not for settings, which have an old value ([`Knobs::set`]), nor for what dies with a
//! process anyway (mappings, descriptors, memfds).

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    KnobError, Knobs, Outcome, Place, Restored,
    journal::Change,
    memcg::{self, MemoryGroup},
    swap::{self, SwapSpace},
    zram,
};

/// Something that can be made for a case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Belonging {
    /// A zram device of its own, in use as swap before all other swap.
    Zram {
        /// Bytes that fit into it, uncompressed.
        bytes: u64,
        /// One of those that the kernel lists; `None` is the kernel's default.
        algorithm: Option<String>,
    },
    /// A swap file of its own, in use before all other swap.
    SwapFile {
        /// Bytes that fit into it.
        bytes: u64,
        /// Where it lies, on a file system that can hold one (see [`swap::why_not_in`]).
        directory: PathBuf,
    },
    /// A memory cgroup of its own, below (v2: beside, where below is not allowed) that of the run.
    MemoryGroup {
        /// Bytes that its processes may charge to it.
        limit: u64,
    },
}

impl fmt::Display for Belonging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zram { bytes, algorithm } => {
                write!(f, "a zram device of {} as swap", mebibytes(*bytes))?;
                algorithm.as_ref().map_or(Ok(()), |algorithm| write!(f, ", {algorithm}"))
            }
            Self::SwapFile { bytes, directory } => {
                write!(f, "a swap file of {} in {}", mebibytes(*bytes), directory.display())
            }
            Self::MemoryGroup { limit } => {
                write!(f, "a memory cgroup with a limit of {}", mebibytes(*limit))
            }
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// What was made, for whoever uses it; plain data that crosses to the case's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obtained {
    /// Swap space that is on.
    Swap(SwapSpace),
    /// A group that processes can enter.
    Group(MemoryGroup),
}

/// The journal's line of something that is being made, is there, or is being removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "made", rename_all = "kebab-case")]
pub(super) enum Made {
    Zram {
        number: u32,
        bytes: u64,
        /// Which device of this number it is; unknown until it was added.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diskseq: Option<u64>,
    },
    SwapFile {
        path: PathBuf,
    },
    MemoryGroup {
        path: PathBuf,
        /// Where the memory controller was switched on for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        enabled_in: Option<PathBuf>,
    },
}

impl Made {
    /// What people call it by.
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Zram { number, .. } => format!("/dev/zram{number}").into(),
            Self::SwapFile { path } | Self::MemoryGroup { path, .. } => path.clone(),
        }
    }

    /// Removes whatever of it is there.
    pub(super) fn remove(&self, place: &Place) -> Outcome {
        let removed = match self {
            Self::Zram { number, diskseq, .. } => zram::remove(place.tree(), *number, *diskseq),
            Self::SwapFile { path } => swap::remove_file(place.tree(), path),
            Self::MemoryGroup { path, enabled_in } => {
                memcg::remove(place, path, enabled_in.as_deref())
            }
        };
        removed.unwrap_or_else(|error| Outcome::Remains { why: error.to_string() })
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zram { bytes, .. } => write!(f, "a zram device of {}", mebibytes(*bytes)),
            Self::SwapFile { .. } => f.write_str("a swap file"),
            Self::MemoryGroup { .. } => f.write_str("a memory cgroup"),
        }
    }
}

/// A belonging, removed on drop; everything in it must be done with by then.
#[derive(Debug)]
#[must_use = "the belonging is removed when the guard is dropped"]
pub struct BelongingGuard<'knobs> {
    making: Making<'knobs>,
    obtained: Obtained,
}

impl BelongingGuard<'_> {
    /// What it is and where.
    pub fn obtained(&self) -> &Obtained {
        &self.obtained
    }

    /// Removes it now and says what became of it.
    pub fn remove(mut self) -> Option<Restored> {
        self.making.undo()
    }
}

/// Something that is on its way; removed on drop, however far it has come.
#[derive(Debug)]
pub(super) struct Making<'knobs> {
    knobs: &'knobs Knobs,
    id: Option<u64>,
}

impl<'knobs> Making<'knobs> {
    /// Journals what is about to be made.
    pub(super) fn begin(knobs: &'knobs Knobs, made: Made) -> Result<Self, KnobError> {
        let mut state = knobs.state();
        let journal = state.journal.path().to_owned();
        let id = state.journal.append(Change::Made(made));
        Ok(Self { knobs, id: Some(id.map_err(KnobError::of("append", &journal))?) })
    }

    /// Journals what it has come to.
    pub(super) fn came_to(&self, made: &Made) -> Result<(), KnobError> {
        let mut state = self.knobs.state();
        let journal = state.journal.path().to_owned();
        let id = self.id.expect("not undone yet");
        state.journal.remake(id, made).map_err(KnobError::of("write", &journal))
    }

    fn undo(&mut self) -> Option<Restored> {
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

impl Knobs {
    /// Makes something for a case and keeps it until the guard is dropped.
    ///
    /// # Errors
    /// When the kernel cannot or the user may not, or the watchdog is dead. Nothing is left then.
    pub fn create(&self, what: &Belonging) -> Result<BelongingGuard<'_>, KnobError> {
        let _one_at_a_time = self.one_at_a_time();
        self.state().watchdog.check()?;
        let (making, obtained) = match what {
            Belonging::Zram { bytes, algorithm } => {
                let (making, swap) = zram::make(self, *bytes, algorithm.as_deref())?;
                (making, Obtained::Swap(swap))
            }
            Belonging::SwapFile { bytes, directory } => {
                let (making, swap) = swap::make_file(self, *bytes, directory)?;
                (making, Obtained::Swap(swap))
            }
            Belonging::MemoryGroup { limit } => {
                let (making, group) = memcg::make(self, *limit)?;
                (making, Obtained::Group(group))
            }
        };
        Ok(BelongingGuard { making, obtained })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_named_with_its_size_and_its_place() {
        let algorithm = Some("zstd".to_owned());
        let swap_file = Belonging::SwapFile { bytes: (1 << 20) + 1, directory: "/var".into() };
        for (what, said) in [
            (Belonging::Zram { bytes: 4 << 20, algorithm }, "a zram device of 4 MiB as swap, zstd"),
            (Belonging::Zram { bytes: 1, algorithm: None }, "a zram device of 1 MiB as swap"),
            (swap_file, "a swap file of 2 MiB in /var"),
            (Belonging::MemoryGroup { limit: 1 << 30 }, "a memory cgroup with a limit of 1024 MiB"),
        ] {
            assert_eq!(what.to_string(), said);
        }
    }

    #[test]
    fn what_was_made_has_a_path_and_a_name() {
        let file = || PathBuf::from("/var/pagelab-swap-1-0");
        for (made, path, said) in [
            (
                Made::Zram { number: 3, bytes: 1 << 20, diskseq: None },
                PathBuf::from("/dev/zram3"),
                "a zram device of 1 MiB",
            ),
            (Made::SwapFile { path: file() }, file(), "a swap file"),
            (Made::MemoryGroup { path: file(), enabled_in: None }, file(), "a memory cgroup"),
        ] {
            assert_eq!((made.path(), made.to_string().as_str()), (path, said));
        }
    }

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
