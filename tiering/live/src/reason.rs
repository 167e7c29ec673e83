//! Why nothing moves.
//!
//! The one idea: a closed set, because people act on it; each reason says what it found and what
//! to do, and whoever shows it, `tier status`, `tier promote` or `doctor`, says the same.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A reason why pages do not move, or move less than they could.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum Reason {
    /// The machine has one node with memory.
    OneNode,
    /// It has several, which the kernel has put into one tier.
    SameTier {
        /// How many.
        nodes: usize,
    },
    /// The kernel moves nothing by itself, and nobody else does.
    ModeOff,
    /// Another engine of the kernel moves pages too.
    AnotherMover {
        /// Which.
        what: String,
    },
    /// Somebody uses DAMON.
    AnotherMonitor {
        /// Its kdamonds.
        kdamonds: u64,
    },
    /// Memory of the process is bound to nodes, or spread over them, by its policy.
    Bound {
        /// Bytes.
        bytes: u64,
    },
    /// The process may not have memory on any node of the top tier.
    Cpuset {
        /// Nodes that it may have.
        allowed: String,
    },
    /// The top tier has nothing free above its watermarks.
    NoFreeMemory,
    /// Memory in hugetlb pages, which stay where they are.
    Hugetlb {
        /// Bytes.
        bytes: u64,
    },
    /// The limit of bytes a second was reached.
    RateLimit {
        /// Nanoseconds that were waited for it.
        waited_ns: u64,
    },
    /// Pages that changed places came back soon, so exchanges rest.
    NotWorthIt,
    /// Nothing that was seen lies below the top tier.
    NothingHot,
}

impl Reason {
    /// What to do about it.
    pub fn cure(&self) -> &'static str {
        match self {
            Self::OneNode => "nothing: there is nowhere to move to",
            Self::SameTier { .. } => {
                "boot with an HMAT or CDAT that tells them apart, or add the slow one by dax/kmem"
            }
            Self::ModeOff => "sysctl kernel.numa_balancing=2, or pagelab tier promote --pid PID",
            Self::AnotherMover { .. } => "sysctl kernel.numa_balancing=0 while pagelab moves",
            Self::AnotherMonitor { .. } => {
                "stop it, or take its results; pagelab does not touch it"
            }
            Self::Bound { .. } => "start the program without numactl --membind or --interleave",
            Self::Cpuset { .. } => "write the fast nodes to cpuset.mems of its group",
            Self::NoFreeMemory => "free memory there, or let demotion: numa/demotion_enabled",
            Self::Hugetlb { .. } => "start the program with transparent huge pages instead",
            Self::RateLimit { .. } => "raise --limit",
            Self::NotWorthIt => "nothing: what is used is more than the top tier holds",
            Self::NothingHot => "nothing: it is where it should be",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneNode => f.write_str("one node has all memory"),
            Self::SameTier { nodes } => write!(f, "the kernel has put {nodes} nodes into one tier"),
            Self::ModeOff => f.write_str("the kernel promotes nothing"),
            Self::AnotherMover { what } => write!(f, "{what} moves pages too"),
            Self::AnotherMonitor { kdamonds } => {
                write!(f, "somebody uses DAMON ({kdamonds} kdamonds)")
            }
            Self::Bound { bytes } => {
                write!(f, "{} MiB are bound to nodes, or spread, by their policy", bytes >> 20)
            }
            Self::Cpuset { allowed } => {
                write!(f, "its cpuset allows the nodes {allowed}, none of the top tier")
            }
            Self::NoFreeMemory => f.write_str("the top tier has nothing free above its watermarks"),
            Self::Hugetlb { bytes } => write!(f, "{} MiB are hugetlb pages", bytes >> 20),
            Self::RateLimit { waited_ns } => {
                write!(f, "the limit was reached: {} ms were waited", waited_ns / 1_000_000)
            }
            Self::NotWorthIt => {
                f.write_str("exchanging pages did not pay: they came back soon after they went")
            }
            Self::NothingHot => f.write_str("nothing that is used lies below the top tier"),
        }
    }
}
