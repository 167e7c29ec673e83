//! What was made on the machine, as a line of the journal names it.
//!
//! One idea: the line suffices to find and to remove it, whichever step of its making was the last.

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

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
    /// Of DAMON.
    Monitor {
        /// Where its frames end: what it is known by.
        end: u64,
        /// Whether the kernel's own was on.
        stat: bool,
    },
}

impl Made {
    /// What people call it by.
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Zram { number, .. } => format!("/dev/zram{number}").into(),
            Self::SwapFile { path } | Self::MemoryGroup { path, .. } => path.clone(),
            Self::Monitor { .. } => "/sys/kernel/mm/damon/admin/kdamonds/0".into(),
        }
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zram { bytes, .. } => write!(f, "a zram device of {}", mebibytes(*bytes)),
            Self::SwapFile { .. } => f.write_str("a swap file"),
            Self::MemoryGroup { .. } => f.write_str("a memory cgroup"),
            Self::Monitor { .. } => f.write_str("a monitor of DAMON"),
        }
    }
}

/// A size as sentences say it.
pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
