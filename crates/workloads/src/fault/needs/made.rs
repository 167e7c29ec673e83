//! Needs that a run meets by making something for the case: a device, a file, a group.

use std::path::PathBuf;

use pagelab_bench::{Need, Remedy};
use pagelab_record::units::display_bytes;
use pagelab_sys::{
    knobs::{Belonging, memcg, swap, zram},
    machine::{rights, topology::Tree},
};

/// What a belonging that can be made is answered with.
fn made(why_not: Option<String>) -> String {
    why_not.unwrap_or_else(|| "nothing: it is made for the case and removed".to_owned())
}

fn no_root() -> Option<String> {
    (!rights::is_root()).then(|| "run as root (sudo)".to_owned())
}

fn no_swap(tree: &Tree) -> Option<String> {
    let cure = "use a kernel with CONFIG_SWAP, outside a container that hides /proc/swaps";
    (!swap::is_offered(tree)).then(|| cure.to_owned())
}

/// A zram device of the case's own, as swap.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Zram {
    /// Bytes that fit.
    pub bytes: u64,
    /// The compression algorithm; `None` is the kernel's default.
    pub algorithm: Option<String>,
}

impl Zram {
    fn why_not(&self) -> Option<String> {
        let tree = Tree::machine();
        let no_zram = || (!zram::is_offered(&tree)).then(|| "sudo modprobe zram".to_owned());
        let unknown = || {
            let (known, wanted) = (zram::algorithms(&tree), self.algorithm.as_ref()?);
            let is_known = known.is_empty() || known.contains(wanted);
            (!is_known).then(|| format!("choose among {}", known.join(", ")))
        };
        no_swap(&tree).or_else(no_zram).or_else(unknown).or_else(no_root)
    }
}

impl Need for Zram {
    fn name(&self) -> String {
        let algorithm = self.algorithm.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
        format!("a zram device of {} as swap{algorithm}", display_bytes(self.bytes as f64))
    }

    fn check(&self) -> bool {
        self.why_not().is_none()
    }

    fn cure(&self) -> String {
        made(self.why_not())
    }

    fn remedy(&self) -> Option<Remedy> {
        let Self { bytes, algorithm } = self.clone();
        Some(Remedy::Create(Belonging::Zram { bytes, algorithm }))
    }
}

/// A swap file of the case's own, of so many bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SwapFile(pub u64);

impl SwapFile {
    fn why_not(&self) -> Option<String> {
        no_swap(&Tree::machine()).or_else(|| swap_directory(self.0).err()).or_else(no_root)
    }
}

impl Need for SwapFile {
    fn name(&self) -> String {
        format!("a swap file of {}", display_bytes(self.0 as f64))
    }

    fn check(&self) -> bool {
        self.why_not().is_none()
    }

    fn cure(&self) -> String {
        made(self.why_not())
    }

    fn remedy(&self) -> Option<Remedy> {
        let directory = swap_directory(self.0).ok()?;
        Some(Remedy::Create(Belonging::SwapFile { bytes: self.0, directory }))
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

/// A memory cgroup of the case's own, with a limit of so many bytes; its process runs in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnGroup(pub u64);

impl OwnGroup {
    fn why_not() -> Option<String> {
        let cure = "use a kernel with the memory controller, mounted at /sys/fs/cgroup";
        (!memcg::is_offered(&Tree::machine())).then(|| cure.to_owned()).or_else(no_root)
    }
}

impl Need for OwnGroup {
    fn name(&self) -> String {
        format!("a memory cgroup limited to {}", display_bytes(self.0 as f64))
    }

    fn check(&self) -> bool {
        Self::why_not().is_none()
    }

    fn cure(&self) -> String {
        made(Self::why_not())
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(Remedy::Create(Belonging::MemoryGroup { limit: self.0 }))
    }
}
