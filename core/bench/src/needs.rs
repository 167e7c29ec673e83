//! Needs that several parts have: memory, pages, processors, nodes, rights, settings.
//!
//! A need that one workload has lives with it. `doctor` goes through those that the parts name.

use std::{borrow::Cow, fmt, mem::discriminant, path::PathBuf};

use pagelab_record::units::{display_bytes, format_bytes};
use pagelab_sys::{
    machine::{
        Topology, Tree, format_list, rights,
        thp::{HugePages, Policy},
    },
    memory::has_populate_write,
};

use crate::{Need, PageSize, Plain, Remedy};

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

/// What the kernel offers of transparent pages of a size: to mappings that ask for them, to every
/// mapping, or nothing, where they would come out instead of those that the case names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transparent {
    /// The page size.
    pub page: PageSize,
    /// To whom. `Always` is for what is populated inside `mmap`, which asks too late.
    pub to: Policy,
}

impl Need for Transparent {
    fn name(&self) -> String {
        let page = self.page;
        match self.to {
            Policy::Always => format!("transparent pages of {page} for every mapping"),
            Policy::Madvise => {
                format!("transparent pages of {page} for mappings that ask for them")
            }
            Policy::Never => format!("no transparent pages of {page}"),
        }
    }

    fn check(&self) -> bool {
        match (HugePages::machine().policy(self.page.bytes()), self.to) {
            (None, to) => to == Policy::Never,
            (Some(found), to) => found == to || (found, to) == (Policy::Always, Policy::Madvise),
        }
    }

    fn cure(&self) -> String {
        by_hand(self, "use a kernel that offers this page size (64k and others since Linux 6.8)")
    }

    fn remedy(&self) -> Option<Remedy> {
        let value = match self.to {
            Policy::Always => "always",
            Policy::Madvise => "madvise",
            Policy::Never => "never",
        };
        let path = HugePages::machine().enabled_path(self.page.bytes())?;
        Some(Remedy::set(path, value))
    }

    fn is_alike(&self, other: &dyn Need) -> bool {
        let is_never = |need: &Self| need.to == Policy::Never;
        other.of::<Self>().is_some_and(|other| match (is_never(self), is_never(other)) {
            (false, false) => other.page == self.page,
            (one, two) => one == two,
        })
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
        Some(Remedy::set(pool.path, (pool.pages + missing).to_string()))
    }

    fn is_alike(&self, other: &dyn Need) -> bool {
        other.of::<Self>().is_some_and(|other| other.shift == self.shift)
    }
}

/// CPUs that are online and allowed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Cpus {
    /// These ones.
    These(Vec<usize>),
    /// This many.
    Count(usize),
}

impl Need for Cpus {
    fn name(&self) -> String {
        match self {
            Self::These(cpus) => format!("CPUs {}", format_list(cpus)),
            Self::Count(count) => format!("{count} CPUs"),
        }
    }

    fn check(&self) -> bool {
        let allowed = Topology::machine().cpus().allowed;
        match self {
            Self::These(cpus) => cpus.iter().all(|cpu| allowed.contains(cpu)),
            Self::Count(count) => allowed.len() >= *count,
        }
    }

    fn cure(&self) -> String {
        let allowed = Topology::machine().cpus().allowed;
        format!("choose among CPUs {} (see also taskset -p $$)", format_list(&allowed))
    }

    fn is_alike(&self, other: &dyn Need) -> bool {
        other.of::<Self>().is_some_and(|other| discriminant(other) == discriminant(self))
    }
}

/// A memory node, which has memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// The one of this number.
    Number(usize),
    /// A second one, which is farther away.
    Far,
}

impl Node {
    /// Its number; of the far one, where there is one.
    pub fn number(self) -> Option<usize> {
        match self {
            Self::Far => far_node(),
            Self::Number(number) => Some(number),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Far => f.write_str("far"),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl Need for Node {
    fn name(&self) -> String {
        match self {
            Self::Number(number) => format!("memory node {number}"),
            Self::Far => "a second memory node".to_owned(),
        }
    }

    fn check(&self) -> bool {
        let nodes = || Topology::machine().nodes().into_iter().filter(|node| node.memory > 0);
        match self {
            Self::Number(number) => nodes().any(|node| node.id == *number),
            Self::Far => far_node().is_some(),
        }
    }

    fn cure(&self) -> String {
        let nodes: Vec<usize> = Topology::machine().nodes().iter().map(|node| node.id).collect();
        format!("use a machine with such a node; this one has {}", format_list(&nodes))
    }

    fn is_alike(&self, other: &dyn Need) -> bool {
        other.of::<Self>().is_some_and(|other| discriminant(other) == discriminant(self))
    }
}

/// The memory node of the CPU that cases run on.
pub fn near_node() -> Option<usize> {
    let topology = Topology::machine();
    let cpu = topology.default_cpu()?;
    topology.nodes().into_iter().find(|node| node.cpus.contains(&cpu)).map(|node| node.id)
}

/// The memory node farthest from the CPU that cases run on, where there are two.
pub fn far_node() -> Option<usize> {
    let nodes = Topology::machine().nodes();
    let near = near_node()?;
    let near = nodes.iter().find(|node| node.id == near)?;
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
    pub value: Cow<'static, str>,
    /// What that is called, where the path says too little.
    pub called: Option<&'static str>,
    /// Whether a kernel without the file is fine.
    pub may_lack: bool,
}

impl Setting {
    /// This value in this file.
    pub const fn new(path: &'static str, value: &'static str) -> Self {
        Self { path, value: Cow::Borrowed(value), called: None, may_lack: false }
    }
}

impl Need for Setting {
    fn name(&self) -> String {
        self.called.map_or_else(|| format!("{} at {}", self.path, self.value), str::to_owned)
    }

    fn check(&self) -> bool {
        let value = Tree::machine().choice(self.path);
        value.map_or(self.may_lack, |value| value == self.value)
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
        path.is_file().then(|| Remedy::set(path, &*self.value))
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
