//! What a case needs of the host: one concept behind `doctor`, skipped records, test skips and
//! error texts.
//!
//! A need knows how to check itself and how a person can meet it. Some are met by a knob, which a
//! run with root sets for the case and puts back.

use std::{fmt, path::PathBuf};

use pagelab_record::units::{display_bytes, format_bytes};
use pagelab_sys::{
    arch,
    area::has_populate_write,
    knobs::thp::{HugePages, Policy},
    memtype::latency::can_flush,
    rights,
    topology::Topology,
};

use crate::{
    memtype::{needs, space::Space},
    params::PageSize,
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
    /// An invariant time stamp counter.
    Tsc,
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
            Self::Tsc => arch::has_reliable_tsc(),
            Self::StringStore => arch::HAS_STRING_STORE,
            Self::Module => needs::has_module(),
            Self::Typed(space) => needs::has_memory(space),
            Self::Stores { nt, bytes } => needs::lack_of_stores(*nt, *bytes).is_none(),
            Self::Loads { nt, bytes } => needs::lack_of_loads(*nt, *bytes).is_none(),
            Self::LineFlush => can_flush(),
        }
    }

    /// What was found, where there is more to say than whether the host has it.
    pub fn found(&self) -> Option<String> {
        (*self == Self::Module).then(needs::module_state)
    }

    /// What to do about it: a command to paste where there is one.
    pub fn cure(&self) -> String {
        match self {
            Self::Memory(_) => {
                let budget = Topology::machine().memory_budget();
                format!(
                    "choose a smaller --size (of a trace, fewer --ops): {} are available, limited \
                     by {}",
                    display_bytes(budget.bytes as f64),
                    budget.limited_by
                )
            }
            Self::Transparent { .. } | Self::Without(_) | Self::Pool { .. } => match self.knob() {
                Some((path, value)) => format!("echo {value} | sudo tee {}", path.display()),
                None if matches!(self, Self::Pool { .. }) => {
                    "use a kernel and CPU with hugetlb pages of this size (1g needs pdpe1gb)".into()
                }
                None => "use a kernel that offers this page size (64k and others since Linux 6.8)"
                    .to_owned(),
            },
            Self::Lockable(bytes) => {
                format!("ulimit -l {} (as root), or grant CAP_IPC_LOCK", bytes.div_ceil(1024))
            }
            Self::PopulateWrite => "use Linux 5.14 or later".to_owned(),
            Self::Fifo => {
                "run as root, or: sudo setcap cap_sys_nice=ep $(command -v pagelab)".to_owned()
            }
            Self::Cpus(_) | Self::CpuCount(_) => {
                let allowed = Topology::machine().cpus().allowed;
                format!(
                    "choose among CPUs {} (see also taskset -p $$)",
                    pagelab_sys::topology::format_list(&allowed)
                )
            }
            Self::Node(_) | Self::FarNode => {
                let nodes: Vec<usize> = Topology::machine().nodes().iter().map(|n| n.id).collect();
                format!(
                    "use a machine with such a node; this one has {}",
                    pagelab_sys::topology::format_list(&nodes)
                )
            }
            Self::Tsc => "use a machine whose CPU reports an invariant TSC".to_owned(),
            Self::Module => needs::module_cure(),
            Self::Typed(space) => needs::memory_cure(space),
            Self::Stores { nt, bytes } => needs::width_cure(needs::lack_of_stores(*nt, *bytes)),
            Self::Loads { nt, bytes } => needs::width_cure(needs::lack_of_loads(*nt, *bytes)),
            Self::StringStore | Self::LineFlush => "use an x86-64 machine".to_owned(),
        }
    }

    /// The setting that meets it: the file and the value to write, where there is one.
    ///
    /// A hugetlb pool grows by what is missing, so its value depends on the pool's present state.
    pub fn knob(&self) -> Option<(PathBuf, String)> {
        let huge = HugePages::machine();
        match self {
            Self::Transparent { page, unasked } => {
                let value = if *unasked { "always" } else { "madvise" };
                Some((huge.enabled_path(page.bytes())?, value.to_owned()))
            }
            Self::Without(page) => Some((huge.enabled_path(page.bytes())?, "never".to_owned())),
            Self::Pool { shift, pages } => {
                let pool = huge.pools().into_iter().find(|pool| pool.page_size == 1 << shift)?;
                let missing = pages.saturating_sub(pool.free.saturating_sub(pool.reserved));
                Some((pool.path, (pool.pages + missing).to_string()))
            }
            _ => None,
        }
    }

    /// Every need that does not depend on a case: what `doctor` goes through.
    pub fn catalogue() -> Vec<Self> {
        let mut all = vec![Self::Tsc, Self::StringStore, Self::Fifo, Self::Lockable(256 << 20)];
        all.extend([Self::Memory(2 << 30), Self::CpuCount(2), Self::FarNode, Self::PopulateWrite]);
        all.push(Self::Module);
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

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(bytes) => write!(f, "{} of memory", display_bytes(*bytes as f64)),
            Self::Transparent { page, unasked: false } => {
                write!(f, "transparent pages of {page} for mappings that ask for them")
            }
            Self::Transparent { page, unasked: true } => {
                write!(f, "transparent pages of {page} for every mapping")
            }
            Self::Without(page) => write!(f, "no transparent pages of {page}"),
            Self::Pool { shift, pages } => {
                write!(f, "{pages} free hugetlb pages of {}", format_bytes(1 << shift))
            }
            Self::Lockable(bytes) => write!(f, "{} of lockable memory", format_bytes(*bytes)),
            Self::PopulateWrite => f.write_str("MADV_POPULATE_WRITE"),
            Self::Fifo => f.write_str("the right to use SCHED_FIFO"),
            Self::Cpus(cpus) => {
                write!(f, "CPUs {}", pagelab_sys::topology::format_list(cpus))
            }
            Self::CpuCount(count) => write!(f, "{count} CPUs"),
            Self::Node(node) => write!(f, "memory node {node}"),
            Self::FarNode => f.write_str("a second memory node"),
            Self::Tsc => f.write_str("an invariant time stamp counter"),
            Self::StringStore => f.write_str("string stores (rep stosb)"),
            Self::Module => f.write_str("the kernel module of pagelab"),
            Self::Typed(space) => f.write_str(&needs::memory_name(space)),
            Self::Stores { nt, bytes } => {
                write!(f, "{} of {bytes} bytes", if *nt { "non-temporal stores" } else { "stores" })
            }
            Self::Loads { nt, bytes } => {
                write!(f, "{} of {bytes} bytes", if *nt { "movntdqa" } else { "loads" })
            }
            Self::LineFlush => f.write_str("flushing a cache line (clflush)"),
        }
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
        ]);
        for need in all {
            assert!(!need.to_string().is_empty() && need.cure().len() > 10, "{need:?}");
        }
    }

    #[test]
    fn more_memory_than_there_is_is_a_need_that_is_not_met() {
        let need = Need::Memory(1 << 60);
        assert!(!need.check());
        assert!(need.cure().contains("limited by"), "{}", need.cure());
    }
}
