//! Needs that several collections have: memory, pages, processors, nodes, rights, settings.
//!
//! A need that one workload has lives with it. The `catalogue` lists those that `doctor` goes
//! through.

use std::path::PathBuf;

use pagelab_bench::{
    Remedy,
    need::{Need, Plain},
    params::PageSize,
};
use pagelab_record::units::{display_bytes, format_bytes};
use pagelab_sys::{
    machine::{
        rights,
        thp::{HugePages, Policy},
        topology::{Topology, format_list},
        value::selected,
    },
    memory::area::has_populate_write,
};

/// `MADV_POPULATE_WRITE` (since Linux 5.14).
pub const POPULATE_WRITE: Plain =
    Plain { name: "MADV_POPULATE_WRITE", has: has_populate_write, cure: "use Linux 5.14 or later" };

/// `SCHED_FIFO` is allowed.
pub const SCHED_FIFO: Plain = Plain {
    name: "the right to use SCHED_FIFO",
    has: rights::may_use_fifo,
    cure: "run as root, or: sudo setcap cap_sys_nice=ep $(command -v pagelab)",
};

/// So much memory at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Memory(pub u64);

impl Need for Memory {
    fn name(&self) -> String {
        format!("{} of memory", display_bytes(self.0 as f64))
    }

    fn check(&self) -> bool {
        self.0 <= Topology::machine().memory_budget().bytes
    }

    fn cure(&self) -> String {
        let budget = Topology::machine().memory_budget();
        format!(
            "choose a smaller --size (of a trace, fewer --ops): {} are available, limited by {}",
            display_bytes(budget.bytes as f64),
            budget.limited_by
        )
    }
}

/// So many bytes may be locked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lockable(pub u64);

impl Need for Lockable {
    fn name(&self) -> String {
        format!("{} of lockable memory", format_bytes(self.0))
    }

    fn check(&self) -> bool {
        rights::lockable_bytes().is_none_or(|limit| limit >= self.0)
    }

    fn cure(&self) -> String {
        format!("ulimit -l {} (as root), or grant CAP_IPC_LOCK", self.0.div_ceil(1024))
    }
}

/// The command that a knob takes, where the kernel has it.
fn by_hand(need: &dyn Need, without: &str) -> String {
    need.remedy().and_then(|remedy| remedy.by_hand()).unwrap_or_else(|| without.to_owned())
}

const NO_SUCH_PAGES: &str =
    "use a kernel that offers this page size (64k and others since Linux 6.8)";

/// The kernel offers transparent pages of this size to mappings that ask for them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transparent {
    /// The page size.
    pub page: PageSize,
    /// Also to those that do not ask, for what is populated inside `mmap`.
    pub unasked: bool,
}

impl Need for Transparent {
    fn name(&self) -> String {
        let whom = if self.unasked { "every mapping" } else { "mappings that ask for them" };
        format!("transparent pages of {} for {whom}", self.page)
    }

    fn check(&self) -> bool {
        match HugePages::machine().policy(self.page.bytes()) {
            Some(Policy::Always) => true,
            Some(Policy::Madvise) => !self.unasked,
            _ => false,
        }
    }

    fn cure(&self) -> String {
        by_hand(self, NO_SUCH_PAGES)
    }

    fn remedy(&self) -> Option<Remedy> {
        let value = if self.unasked { "always" } else { "madvise" };
        let path = HugePages::machine().enabled_path(self.page.bytes())?;
        Some(Remedy::Set(path, value.to_owned()))
    }

    fn is_alike(&self, other: &dyn Need) -> bool {
        other.of::<Self>().is_some_and(|other| other.page == self.page)
    }
}

/// The kernel does not offer transparent pages of this size, which would come out instead of
/// those that the case names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Without(pub PageSize);

impl Need for Without {
    fn name(&self) -> String {
        format!("no transparent pages of {}", self.0)
    }

    fn check(&self) -> bool {
        matches!(HugePages::machine().policy(self.0.bytes()), None | Some(Policy::Never))
    }

    fn cure(&self) -> String {
        by_hand(self, NO_SUCH_PAGES)
    }

    fn remedy(&self) -> Option<Remedy> {
        let path = HugePages::machine().enabled_path(self.0.bytes())?;
        Some(Remedy::Set(path, "never".to_owned()))
    }
}

/// So many free pages in a hugetlb pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pool {
    /// 2 to this power is the page size.
    pub shift: u32,
    /// Free pages.
    pub pages: u64,
}

impl Need for Pool {
    fn name(&self) -> String {
        format!("{} free hugetlb pages of {}", self.pages, format_bytes(1 << self.shift))
    }

    fn check(&self) -> bool {
        HugePages::machine().pools().iter().any(|pool| {
            pool.page_size == 1 << self.shift
                && pool.free.saturating_sub(pool.reserved) >= self.pages
        })
    }

    fn cure(&self) -> String {
        by_hand(self, "use a kernel and CPU with hugetlb pages of this size (1g needs pdpe1gb)")
    }

    /// A pool grows by what is missing, so the value depends on its present state.
    fn remedy(&self) -> Option<Remedy> {
        let pools = HugePages::machine().pools();
        let pool = pools.into_iter().find(|pool| pool.page_size == 1 << self.shift)?;
        let missing = self.pages.saturating_sub(pool.free.saturating_sub(pool.reserved));
        Some(Remedy::Set(pool.path, (pool.pages + missing).to_string()))
    }

    fn is_alike(&self, other: &dyn Need) -> bool {
        other.of::<Self>().is_some_and(|other| other.shift == self.shift)
    }
}

fn choose_cpus() -> String {
    let allowed = Topology::machine().cpus().allowed;
    format!("choose among CPUs {} (see also taskset -p $$)", format_list(&allowed))
}

/// These CPUs are online and allowed, this many of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cpus(pub Vec<usize>);

impl Need for Cpus {
    fn name(&self) -> String {
        format!("CPUs {}", format_list(&self.0))
    }

    fn check(&self) -> bool {
        let allowed = Topology::machine().cpus().allowed;
        self.0.iter().all(|cpu| allowed.contains(cpu))
    }

    fn cure(&self) -> String {
        choose_cpus()
    }
}

/// This many CPUs are allowed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CpuCount(pub usize);

impl Need for CpuCount {
    fn name(&self) -> String {
        format!("{} CPUs", self.0)
    }

    fn check(&self) -> bool {
        Topology::machine().cpus().allowed.len() >= self.0
    }

    fn cure(&self) -> String {
        choose_cpus()
    }
}

fn other_machine() -> String {
    let nodes: Vec<usize> = Topology::machine().nodes().iter().map(|node| node.id).collect();
    format!("use a machine with such a node; this one has {}", format_list(&nodes))
}

/// This memory node exists and has memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node(pub usize);

impl Need for Node {
    fn name(&self) -> String {
        format!("memory node {}", self.0)
    }

    fn check(&self) -> bool {
        Topology::machine().nodes().iter().any(|node| node.id == self.0 && node.memory > 0)
    }

    fn cure(&self) -> String {
        other_machine()
    }
}

/// A second memory node, which is farther away.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FarNode;

impl Need for FarNode {
    fn name(&self) -> String {
        "a second memory node".to_owned()
    }

    fn check(&self) -> bool {
        far_node().is_some()
    }

    fn cure(&self) -> String {
        other_machine()
    }
}

/// The memory node farthest from the CPU that cases run on, where there are two.
pub fn far_node() -> Option<usize> {
    let topology = Topology::machine();
    let nodes = topology.nodes();
    let cpu = topology.default_cpu()?;
    let near = nodes.iter().find(|node| node.cpus.contains(&cpu))?;
    nodes
        .iter()
        .filter(|node| node.id != near.id && node.memory > 0)
        .max_by_key(|node| near.distances.get(node.id).copied())
        .map(|node| node.id)
}

/// Where the kernel's own switches are, for root, once somebody mounted it.
const DEBUGFS: &str = "/sys/kernel/debug";

/// A file below `/sys` or `/proc` holds this value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Setting {
    /// The file.
    pub path: &'static str,
    /// What it must hold.
    pub value: &'static str,
    /// What that is called, where the path says too little.
    pub called: Option<&'static str>,
    /// Whether a kernel without the file is fine.
    pub may_lack: bool,
}

impl Setting {
    /// This value in this file.
    pub const fn new(path: &'static str, value: &'static str) -> Self {
        Self { path, value, called: None, may_lack: false }
    }
}

impl Need for Setting {
    fn name(&self) -> String {
        self.called.map_or_else(|| format!("{} at {}", self.path, self.value), str::to_owned)
    }

    fn check(&self) -> bool {
        let text = std::fs::read_to_string(self.path);
        text.map_or(self.may_lack, |text| selected(&text) == self.value)
    }

    fn cure(&self) -> String {
        let path = self.path;
        if path.starts_with(DEBUGFS) {
            return by_hand(self, &format!("as root: mount -t debugfs none {DEBUGFS}"));
        }
        by_hand(self, &format!("use a kernel that was built with {path}"))
    }

    fn remedy(&self) -> Option<Remedy> {
        let path = PathBuf::from(self.path);
        path.is_file().then(|| Remedy::Set(path, self.value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_in_a_file_system_that_nobody_mounted_is_met_by_mounting_it() {
        let need = Setting::new("/sys/kernel/debug/none/such", "1");
        assert!(need.is_lacking());
        assert!(need.cure().contains("mount -t debugfs"), "{}", need.cure());
    }

    #[test]
    fn more_memory_than_there_is_is_a_need_that_is_not_met() {
        let need = Memory(1 << 60);
        assert!(!need.check());
        assert!(need.cure().contains("limited by"), "{}", need.cure());
    }
}
