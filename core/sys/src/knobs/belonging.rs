//! What a case owns on the machine: made for it, used by it alone, and removed after it.
//!
//! One idea: a belonging is undone from its name alone. The name is in the journal before the
//! thing exists, and removing looks at what is there instead of at how far the making came, so a
//! kill between any two steps leaves nothing that restoring does not find.
//!
//! It is not for settings, which have an old value ([`Knobs::set`]), nor for what dies with a
//! process anyway (mappings, descriptors, memfds).

use std::{fmt, ops::Range, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    KnobError, Knobs, Restored,
    made::mebibytes,
    making::Making,
    memcg::{self, MemoryGroup},
    monitor::{self, OwnMonitor},
    swap::{self, SwapSpace},
    zram,
};

/// Something that can be made for a case.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// A monitor of DAMON that migrates what is hot, where nobody has one.
    Monitor {
        /// The addresses of the machine that it watches.
        frames: Range<u64>,
        /// The memory node that hot pages go to.
        target: usize,
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
            Self::Monitor { frames, target } => {
                let bytes = mebibytes(frames.end.saturating_sub(frames.start));
                write!(f, "a monitor of DAMON over {bytes} that migrates to node {target}")
            }
        }
    }
}

/// What was made, for whoever uses it; plain data that crosses to the case's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obtained {
    /// Swap space that is on.
    Swap(SwapSpace),
    /// A group that processes can enter.
    Group(MemoryGroup),
    /// A monitor that is off until it is started.
    Monitor(OwnMonitor),
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

impl Knobs {
    /// Makes something for a case and keeps it until the guard is dropped.
    ///
    /// # Errors
    /// When the kernel cannot or the user may not, or the watchdog is dead. Nothing is left then.
    pub fn create(&self, what: &Belonging) -> Result<BelongingGuard<'_>, KnobError> {
        let _one_at_a_time = self.one_at_a_time();
        self.state().watchdog.check()?;
        let swap = |(making, space)| (making, Obtained::Swap(space));
        let (making, obtained) = match what {
            Belonging::Zram { bytes, algorithm } => {
                zram::make(self, *bytes, algorithm.as_deref()).map(swap)
            }
            Belonging::SwapFile { bytes, directory } => {
                swap::make_file(self, *bytes, directory).map(swap)
            }
            Belonging::MemoryGroup { limit } => {
                memcg::make(self, *limit).map(|(making, group)| (making, Obtained::Group(group)))
            }
            Belonging::Monitor { frames, target } => {
                let made = monitor::make(self, frames, *target);
                made.map(|(making, monitor)| (making, Obtained::Monitor(monitor)))
            }
        }?;
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
            (
                Belonging::Monitor { frames: 0..1 << 20, target: 3 },
                "a monitor of DAMON over 1 MiB that migrates to node 3",
            ),
        ] {
            assert_eq!(what.to_string(), said);
        }
    }
}
