//! What a need is called: in skips, in `doctor`, in the plan.

use std::fmt;

use pagelab_record::units::{display_bytes, format_bytes};
use pagelab_sys::uffd::Ability;

use super::Need;
use crate::memtype::needs;

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
                write!(f, "CPUs {}", pagelab_sys::machine::topology::format_list(cpus))
            }
            Self::CpuCount(count) => write!(f, "{count} CPUs"),
            Self::Node(node) => write!(f, "memory node {node}"),
            Self::FarNode => f.write_str("a second memory node"),
            Self::PageReporting => f.write_str("free page reporting that counts"),
            Self::Tsc => f.write_str("an invariant time stamp counter"),
            Self::StringStore => f.write_str("string stores (rep stosb)"),
            Self::Tracepoints => f.write_str("the kernel's tracepoints of page faults"),
            Self::Reclaimable(bytes) => {
                write!(f, "{} of page cache of a file on a disk", display_bytes(*bytes as f64))
            }
            Self::Module => f.write_str("the kernel module of pagelab"),
            Self::Typed(space) => f.write_str(&needs::memory_name(space)),
            Self::Stores { nt, bytes } => {
                write!(f, "{} of {bytes} bytes", if *nt { "non-temporal stores" } else { "stores" })
            }
            Self::Loads { nt, bytes } => {
                write!(f, "{} of {bytes} bytes", if *nt { "movntdqa" } else { "loads" })
            }
            Self::LineFlush => f.write_str("flushing a cache line (clflush)"),
            Self::Setting { path, value } => write!(f, "{path} at {value}"),
            Self::Collapse => f.write_str("MADV_COLLAPSE"),
            Self::Scratch { directory, bytes } => {
                write!(f, "{} in {} for a scratch file", format_bytes(*bytes), directory.display())
            }
            Self::NotedWrites(directory) => {
                let directory = directory.display();
                write!(f, "a file system in {directory} that is told of writes (page_mkwrite)")
            }
            Self::Evictable(directory) => {
                write!(f, "files in {} that can leave memory", directory.display())
            }
            Self::FaultAround => f.write_str("fault-around"),
            Self::Mappings(count) => write!(f, "{count} mappings in one process"),
            Self::Userfaultfd(Ability::Missing) => f.write_str("userfaultfd"),
            Self::Userfaultfd(ability) => write!(f, "userfaultfd with {}", ability.name()),
            Self::Zram { bytes, algorithm } => {
                write!(f, "a zram device of {} as swap", display_bytes(*bytes as f64))?;
                algorithm.as_ref().map_or(Ok(()), |algorithm| write!(f, ", {algorithm}"))
            }
            Self::SwapFile(bytes) => write!(f, "a swap file of {}", display_bytes(*bytes as f64)),
            Self::MemoryGroup(limit) => {
                write!(f, "a memory cgroup limited to {}", display_bytes(*limit as f64))
            }
            Self::SmallNode { node, bytes } => {
                let bytes = display_bytes(*bytes as f64);
                write!(f, "a node {node} with at most {bytes} of free memory")
            }
            Self::ZswapOff => f.write_str("zswap switched off"),
            Self::PageCluster(wanted) => write!(f, "page-cluster {wanted}"),
        }
    }
}
