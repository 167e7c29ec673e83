//! Needs that a run meets by making something for the case: a device, a file, a group.

use std::{mem::discriminant, path::PathBuf};

use pagelab_bench::{Need, Remedy};
use pagelab_record::units::display_bytes;
use pagelab_sys::{
    knobs::{Belonging, memcg, swap, zram},
    machine::{Tree, rights},
};

fn no_root() -> Option<String> {
    (!rights::is_root()).then(|| "run as root (sudo)".to_owned())
}

fn no_swap(tree: &Tree) -> Option<String> {
    let cure = "use a kernel with CONFIG_SWAP, outside a container that hides /proc/swaps";
    (!swap::is_offered(tree)).then(|| cure.to_owned())
}

/// What is made for each case anew, and removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Own {
    /// A zram device as swap.
    Zram {
        /// Its size.
        bytes: u64,
        /// How it compresses; the kernel's default where nothing is said.
        algorithm: Option<String>,
    },
    /// A swap file of so many bytes.
    SwapFile(u64),
    /// A memory cgroup with such a limit.
    Group(u64),
}

impl Own {
    fn why_not(&self) -> Option<String> {
        let tree = Tree::machine();
        let why_not = match self {
            Self::Zram { algorithm, .. } => {
                let no_zram =
                    || (!zram::is_offered(&tree)).then(|| "sudo modprobe zram".to_owned());
                let unknown = || {
                    let (known, wanted) = (zram::algorithms(&tree), algorithm.as_ref()?);
                    let is_known = known.is_empty() || known.contains(wanted);
                    (!is_known).then(|| format!("choose among {}", known.join(", ")))
                };
                no_swap(&tree).or_else(no_zram).or_else(unknown)
            }
            Self::SwapFile(bytes) => no_swap(&tree).or_else(|| swap_directory(*bytes).err()),
            Self::Group(_) => {
                let cure = "use a kernel with the memory controller, mounted at /sys/fs/cgroup";
                (!memcg::is_offered(&tree)).then(|| cure.to_owned())
            }
        };
        why_not.or_else(no_root)
    }
}

impl Need for Own {
    fn name(&self) -> String {
        let size = |bytes: &u64| display_bytes(*bytes as f64);
        match self {
            Self::Zram { bytes, algorithm } => {
                let algorithm = algorithm.as_ref().map(|name| format!(", {name}"));
                let algorithm = algorithm.unwrap_or_default();
                format!("a zram device of {} as swap{algorithm}", size(bytes))
            }
            Self::SwapFile(bytes) => format!("a swap file of {}", size(bytes)),
            Self::Group(limit) => format!("a memory cgroup limited to {}", size(limit)),
        }
    }

    fn check(&self) -> bool {
        self.why_not().is_none()
    }

    fn cure(&self) -> String {
        let made = "nothing: it is made for the case and removed";
        self.why_not().unwrap_or_else(|| made.to_owned())
    }

    fn remedy(&self) -> Option<Remedy> {
        let belonging = match self.clone() {
            Self::Zram { bytes, algorithm } => Belonging::Zram { bytes, algorithm },
            Self::SwapFile(bytes) => {
                Belonging::SwapFile { bytes, directory: swap_directory(bytes).ok()? }
            }
            Self::Group(limit) => Belonging::MemoryGroup { limit },
        };
        Some(Remedy::Create(belonging))
    }

    fn is_alike(&self, other: &dyn Need) -> bool {
        other.of::<Self>().is_some_and(|other| discriminant(other) == discriminant(self))
    }
}

/// Where a swap file of so many bytes can lie, or why nowhere.
fn swap_directory(bytes: u64) -> Result<PathBuf, String> {
    let candidates = [PathBuf::from("/var/tmp"), std::env::current_dir().unwrap_or_default()];
    let mut reasons = Vec::new();
    for directory in candidates {
        match swap::why_not_in(&directory, bytes) {
            None => return Ok(directory),
            Some(why) => reasons.push(why),
        }
    }
    Err(format!("run in a directory on ext4 or xfs with room: {}", reasons.join("; ")))
}
