//! What a case needs of the host: one concept behind `doctor`, skipped records, test skips and
//! error texts.
//!
//! A need knows how to check itself and how a person can meet it. Some are met by a knob, which a
//! run with root sets for the case and puts back; some by a belonging, which it makes for the case
//! and removes. Such a need is checked for whether the thing can be made.

mod cure;
mod name;

use std::path::PathBuf;

use pagelab_sys::{
    arch,
    counts::counters::reported_kib,
    files::{scratch, shortage::scratch_directory},
    loops::calls::has_collapse,
    machine::{
        blocks::FreeMemory,
        rights,
        thp::{HugePages, Policy},
        topology::{Topology, Tree},
        value::selected,
    },
    memory::area::has_populate_write,
    memtype::latency::can_flush,
    uffd::Ability,
};

use crate::{
    fault::stages::may_trace,
    memtype::{needs, space::Space},
    params::PageSize,
    remedy::{PAGE_CLUSTER, ZSWAP},
};

/// A capability that a case cannot do without.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// So much memory at once.
    Memory(u64),
    /// The kernel offers transparent pages of this size to mappings that ask for them.
    Transparent {
        /// The page size.
        page: PageSize,
        /// Also to those that do not ask, for what is populated inside `mmap`.
        unasked: bool,
    },
    /// The kernel does not offer transparent pages of this size, which would come out instead of
    /// those that the case names.
    Without(PageSize),
    /// So many free pages in a hugetlb pool.
    Pool {
        /// 2 to this power is the page size.
        shift: u32,
        /// Free pages.
        pages: u64,
    },
    /// So many bytes may be locked.
    Lockable(u64),
    /// `MADV_POPULATE_WRITE` (since Linux 5.14).
    PopulateWrite,
    /// `SCHED_FIFO` is allowed.
    Fifo,
    /// These CPUs are online and allowed, this many of them.
    Cpus(Vec<usize>),
    /// This many CPUs are allowed.
    CpuCount(usize),
    /// This memory node exists and has memory.
    Node(usize),
    /// A second memory node, which is farther away.
    FarNode,
    /// Free page reporting that counts what it hands back to the host.
    PageReporting,
    /// An invariant time stamp counter.
    Tsc,
    /// The kernel tells this process of its own faults at their entry: a tracepoint.
    Tracepoints,
    /// String stores (`rep stosb`).
    StringStore,
    /// The kernel module, loaded, of this program's version, and open to this user.
    Module,
    /// Memory of this type from the module.
    Typed(Space),
    /// Stores of this width.
    Stores {
        /// Non-temporal ones.
        nt: bool,
        /// Bytes.
        bytes: u64,
    },
    /// Loads of this width.
    Loads {
        /// `movntdqa`.
        nt: bool,
        /// Bytes.
        bytes: u64,
    },
    /// Flushing a cache line from user space (`clflush`).
    LineFlush,
    /// A file below `/sys` or `/proc` holds this value.
    Setting {
        /// The file.
        path: &'static str,
        /// What it must hold.
        value: &'static str,
    },
    /// `MADV_COLLAPSE` (since Linux 6.1).
    Collapse,
    /// A directory for scratch files.
    Scratch {
        /// Its path.
        directory: PathBuf,
        /// Free bytes.
        bytes: u64,
    },
    /// A directory whose file system is told of the first store to a clean page.
    NotedWrites(PathBuf),
    /// A directory whose files can be taken out of memory.
    Evictable(PathBuf),
    /// A fault on a file maps what lies around it in the page cache, too.
    FaultAround,
    /// So many mappings in one process.
    Mappings(u64),
    /// A userfaultfd that this process may open, and that can do so much.
    Userfaultfd(Ability),
    /// A zram device of the case's own, as swap.
    Zram {
        /// Bytes that fit.
        bytes: u64,
        /// The compression algorithm; `None` is the kernel's default.
        algorithm: Option<String>,
    },
    /// A swap file of the case's own, of so many bytes.
    SwapFile(u64),
    /// A memory cgroup of the case's own, with a limit of so many bytes; its process runs in it.
    MemoryGroup(u64),
    /// A directory on a disk with so many bytes free, whose files' pages can be reclaimed.
    Reclaimable(u64),
    /// A memory node with at most so much free.
    SmallNode {
        /// Its number.
        node: usize,
        /// Bytes.
        bytes: u64,
    },
    /// Pages that are evicted go to the swap device and not into zswap.
    ZswapOff,
    /// How many pages around the one that is missing are read from swap: 2 to this power.
    PageCluster(u32),
}

impl Need {
    /// Whether this host has it now.
    pub fn check(&self) -> bool {
        let huge = HugePages::machine;
        match self {
            Self::Memory(bytes) => *bytes <= Topology::machine().memory_budget().bytes,
            Self::Transparent { page, unasked } => match huge().policy(page.bytes()) {
                Some(Policy::Always) => true,
                Some(Policy::Madvise) => !unasked,
                _ => false,
            },
            Self::Without(page) => {
                matches!(huge().policy(page.bytes()), None | Some(Policy::Never))
            }
            Self::Pool { shift, pages } => huge().pools().iter().any(|pool| {
                pool.page_size == 1 << shift && pool.free.saturating_sub(pool.reserved) >= *pages
            }),
            Self::Lockable(bytes) => rights::lockable_bytes().is_none_or(|limit| limit >= *bytes),
            Self::PopulateWrite => has_populate_write(),
            Self::Fifo => rights::may_use_fifo(),
            Self::Cpus(cpus) => {
                let allowed = Topology::machine().cpus().allowed;
                cpus.iter().all(|cpu| allowed.contains(cpu))
            }
            Self::CpuCount(count) => Topology::machine().cpus().allowed.len() >= *count,
            Self::Node(node) => {
                Topology::machine().nodes().iter().any(|n| n.id == *node && n.memory > 0)
            }
            Self::FarNode => far_node().is_some(),
            Self::PageReporting => reported_kib().is_some(),
            Self::Tsc => arch::has_reliable_tsc(),
            Self::Tracepoints => may_trace(),
            Self::StringStore => arch::HAS_STRING_STORE,
            Self::Module => needs::has_module(),
            Self::Typed(space) => needs::has_memory(space),
            Self::Stores { nt, bytes } => needs::lack_of_stores(*nt, *bytes).is_none(),
            Self::Loads { nt, bytes } => needs::lack_of_loads(*nt, *bytes).is_none(),
            Self::LineFlush => can_flush(),
            Self::Setting { path, value } => {
                std::fs::read_to_string(path).is_ok_and(|text| selected(&text) == *value)
            }
            Self::Collapse => has_collapse(),
            Self::Scratch { directory, bytes } => {
                scratch::free_bytes(directory).is_some_and(|free| free >= *bytes)
            }
            Self::NotedWrites(directory) => scratch::notes_writes(directory),
            Self::Evictable(directory) => scratch::can_evict(directory),
            Self::FaultAround => scratch::maps_around(),
            Self::Mappings(count) => scratch::mappings_max().is_none_or(|most| most >= *count),
            Self::Userfaultfd(ability) => ability.is_here(),
            Self::Reclaimable(bytes) => scratch_directory(*bytes).is_ok(),
            Self::Zram { .. } | Self::SwapFile(_) | Self::MemoryGroup(_) => {
                self.why_not_made().is_none()
            }
            Self::SmallNode { node, bytes } => {
                FreeMemory::of(&Tree::machine(), *node).is_some_and(|free| free.bytes() <= *bytes)
            }
            Self::ZswapOff => Tree::machine().text(ZSWAP).is_none_or(|text| text != "Y"),
            Self::PageCluster(wanted) => Tree::machine().number(PAGE_CLUSTER) == Some(*wanted),
        }
    }

    /// What was found, where there is more to say than whether the host has it.
    pub fn found(&self) -> Option<String> {
        (*self == Self::Module).then(needs::module_state)
    }

    /// Every need that does not depend on a case: what `doctor` goes through.
    pub fn catalogue() -> Vec<Self> {
        let mut all = vec![Self::Tsc, Self::StringStore, Self::Fifo, Self::Lockable(256 << 20)];
        all.push(Self::Tracepoints);
        all.extend([Self::Memory(2 << 30), Self::CpuCount(2), Self::FarNode, Self::PopulateWrite]);
        all.push(Self::Module);
        let directory = scratch::default_directory;
        all.push(Self::Scratch { directory: directory(), bytes: 128 << 20 });
        all.extend([Self::NotedWrites(directory()), Self::Evictable(directory())]);
        all.extend([Self::FaultAround, Self::Mappings(40_000)]);
        all.extend(Ability::ALL.map(Self::Userfaultfd));
        all.push(Self::Zram { bytes: 64 << 20, algorithm: None });
        all.extend([Self::SwapFile(64 << 20), Self::MemoryGroup(64 << 20)]);
        all.extend([32, 64].map(|bytes| Self::Stores { nt: false, bytes }));
        all.push(Self::Loads { nt: true, bytes: 16 });
        for page in PageSize::offered() {
            match page {
                PageSize::Base => (),
                PageSize::Hugetlb(shift) => {
                    all.push(Self::Pool { shift, pages: (256 << 20 >> shift).max(1) });
                }
                PageSize::Folio(_) | PageSize::Thp => {
                    all.push(Self::Transparent { page, unasked: false });
                }
            }
        }
        all
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_need_has_a_name_and_a_cure() {
        let mut all = Need::catalogue();
        all.extend([
            Need::Cpus(vec![0, 1]),
            Need::Node(7),
            Need::Without(PageSize::Thp),
            Need::Transparent { page: PageSize::Folio(8192), unasked: true },
            Need::Typed(Space::of_fence_word(None)),
            Need::Loads { nt: true, bytes: 8 },
            Need::LineFlush,
            Need::ZswapOff,
            Need::Reclaimable(1 << 20),
            Need::SmallNode { node: 0, bytes: 0 },
            Need::PageCluster(0),
            Need::Zram { bytes: 1 << 20, algorithm: Some("no-such".to_owned()) },
            Need::PageReporting,
            Need::Collapse,
            Need::Setting { path: "/proc/sys/kernel/none", value: "1" },
        ]);
        for need in all {
            assert!(!need.to_string().is_empty() && need.cure().len() > 10, "{need:?}");
        }
    }

    #[test]
    fn a_setting_in_a_file_system_that_nobody_mounted_is_met_by_mounting_it() {
        let need = Need::Setting { path: "/sys/kernel/debug/none/such", value: "1" };
        assert!(need.is_lacking());
        assert!(need.cure().contains("mount -t debugfs"), "{}", need.cure());
    }

    #[test]
    fn more_memory_than_there_is_is_a_need_that_is_not_met() {
        let need = Need::Memory(1 << 60);
        assert!(!need.check());
        assert!(need.cure().contains("limited by"), "{}", need.cure());
    }
}
