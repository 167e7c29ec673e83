//! What a run with root does about a need, and undoes after the case: settings and belongings.
//!
//! The one idea: a setting is changed where the need is not met, a belonging is made for each case
//! anew, so the need for one is met when it *can* be made. What cannot be done has a cure.

use std::{fmt, path::PathBuf};

use pagelab_sys::{
    files::scratch,
    knobs::{Belonging, memcg, swap, zram},
    machine::{rights, thp::HugePages, topology::Tree},
};

use crate::Need;

/// What a run with root does about a need, and undoes after the case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Sets this knob to this value; where the need is met already, nothing.
    Set(PathBuf, String),
    /// Makes something, for each case anew.
    Create(Belonging),
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(path, value) => write!(f, "{} = {value}", path.display()),
            Self::Create(belonging) => belonging.fmt(f),
        }
    }
}

impl Need {
    /// What a run with root does to meet it, where there is something.
    ///
    /// A hugetlb pool grows by what is missing, so its value depends on the pool's present state.
    pub fn remedy(&self) -> Option<Remedy> {
        let huge = HugePages::machine();
        let set = |(path, value): (PathBuf, String)| Remedy::Set(path, value);
        match self {
            Self::Transparent { page, unasked } => {
                let value = if *unasked { "always" } else { "madvise" };
                Some(set((huge.enabled_path(page.bytes())?, value.to_owned())))
            }
            Self::Without(page) => {
                Some(set((huge.enabled_path(page.bytes())?, "never".to_owned())))
            }
            Self::Pool { shift, pages } => {
                let pool = huge.pools().into_iter().find(|pool| pool.page_size == 1 << shift)?;
                let missing = pages.saturating_sub(pool.free.saturating_sub(pool.reserved));
                Some(set((pool.path, (pool.pages + missing).to_string())))
            }
            Self::Setting { path, value } => {
                let path = PathBuf::from(path);
                path.is_file().then(|| set((path, (*value).to_owned())))
            }
            Self::Mappings(count) => {
                Some(set((PathBuf::from(scratch::MAPPINGS), count.to_string())))
            }
            Self::ZswapOff => Some(set((Tree::machine().path(ZSWAP), "N".to_owned()))),
            Self::PageCluster(wanted) => {
                Some(set((Tree::machine().path(PAGE_CLUSTER), wanted.to_string())))
            }
            Self::Zram { bytes, algorithm } => {
                let algorithm = algorithm.clone();
                Some(Remedy::Create(Belonging::Zram { bytes: *bytes, algorithm }))
            }
            Self::SwapFile(bytes) => {
                let directory = swap_directory(*bytes).ok()?;
                Some(Remedy::Create(Belonging::SwapFile { bytes: *bytes, directory }))
            }
            Self::MemoryGroup(limit) => {
                Some(Remedy::Create(Belonging::MemoryGroup { limit: *limit }))
            }
            _ => None,
        }
    }

    /// What a run does before this case: nothing where the need is met, or cannot be.
    pub fn pending(&self) -> Option<Remedy> {
        match (self.remedy()?, self.check()) {
            (remedy @ Remedy::Set(..), false) | (remedy @ Remedy::Create(_), true) => Some(remedy),
            _ => None,
        }
    }

    /// Whether the host does not meet it and a run cannot either.
    pub fn is_lacking(&self) -> bool {
        !self.check() && !matches!(self.remedy(), Some(Remedy::Set(..)))
    }

    /// Why a belonging cannot be made, with what to do about it.
    pub(crate) fn why_not_made(&self) -> Option<String> {
        let tree = Tree::machine();
        let root = || (!rights::is_root()).then(|| "run as root (sudo)".to_owned());
        let no_swap = || {
            let cure = "use a kernel with CONFIG_SWAP, outside a container that hides /proc/swaps";
            (!swap::is_offered(&tree)).then(|| cure.to_owned())
        };
        match self {
            Self::Zram { algorithm, .. } => {
                let no_zram =
                    || (!zram::is_offered(&tree)).then(|| "sudo modprobe zram".to_owned());
                let unknown = || {
                    let (known, wanted) = (zram::algorithms(&tree), algorithm.as_ref()?);
                    let is_known = known.is_empty() || known.contains(wanted);
                    (!is_known).then(|| format!("choose among {}", known.join(", ")))
                };
                no_swap().or_else(no_zram).or_else(unknown).or_else(root)
            }
            Self::SwapFile(bytes) => {
                no_swap().or_else(|| swap_directory(*bytes).err()).or_else(root)
            }
            Self::MemoryGroup(_) => {
                let cure = "use a kernel with the memory controller, mounted at /sys/fs/cgroup";
                (!memcg::is_offered(&tree)).then(|| cure.to_owned()).or_else(root)
            }
            _ => None,
        }
    }
}

/// zswap's switch: a boolean that reads `Y` or `N`.
pub(crate) const ZSWAP: &str = "sys/module/zswap/parameters/enabled";

/// The readahead of swap, as a power of two.
pub(crate) const PAGE_CLUSTER: &str = "proc/sys/vm/page-cluster";

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
