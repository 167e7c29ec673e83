//! What a case is: where it runs, what it brings along, and what may come of it.
//!
//! The one idea: a case is a row of a table that can be printed, so that whoever boots the kernels
//! needs to know nothing about tests. Start from [`Case::DEFAULT`] and name what differs.

use anyhow::Result;
use serde::Serialize;

use crate::{guest::Guest, verdict::Verdict};

/// A kernel of the lane, by the name that does not change when a point release does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Kernel {
    /// The oldest that we support: Debian 12's own.
    #[serde(rename = "6.1")]
    V6_1,
    /// The same with `PREEMPT_RT`, which has no transparent huge pages: for the module.
    #[serde(rename = "6.1-rt")]
    V6_1Rt,
    /// Debian 13's own, as built for Debian 12.
    #[serde(rename = "6.12")]
    V6_12,
    /// The newest that the backports offer.
    #[serde(rename = "newest")]
    Newest,
}

/// Every kernel that the whole of pagelab is tried on, the oldest first.
pub(crate) const ALL: &[Kernel] = &[Kernel::V6_1, Kernel::V6_12, Kernel::Newest];
/// The same and the one that only the module is tried on.
pub(crate) const MODULE: &[Kernel] = &[Kernel::V6_1, Kernel::V6_1Rt, Kernel::V6_12, Kernel::Newest];
/// Those with large folios, `PAGEMAP_SCAN` and everything else that came after 6.1.
pub(crate) const RECENT: &[Kernel] = &[Kernel::V6_12, Kernel::Newest];

/// A machine that the lane can build; its arguments for QEMU are in `xtask/src/vm/machines.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Machine {
    /// Two CPUs, one node.
    Base,
    /// The same with a file system on a disk, on /var/tmp.
    Disk,
    /// A second node without CPUs, described by the HMAT; two tiers from 6.12 on.
    Hmat2,
    /// The same with 1 GiB in the first node, so that it can be filled.
    #[serde(rename = "hmat2-1g")]
    Hmat2Small,
    /// A second node that dax/kmem adds; two tiers on every kernel.
    Daxkmem,
    /// A second node behind a CXL type-3 device; recent kernels only.
    Cxl,
    /// 1 GiB at 4 GiB that the kernel keeps its hands off.
    Reserved,
    /// 3 GiB of 6 at 4 GiB that the kernel keeps its hands off.
    #[serde(rename = "reserved-6g")]
    ReservedLarge,
}

/// A machine and the kernels that the case runs on there.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Place {
    /// The machine.
    pub(crate) machine: Machine,
    /// The kernels.
    pub(crate) kernels: &'static [Kernel],
}

impl Place {
    pub(crate) const fn at(machine: Machine, kernels: &'static [Kernel]) -> Self {
        Self { machine, kernels }
    }
}

/// How the boot of a case ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    /// With a verdict.
    Verdict,
    /// With a panic of the kernel, and anything else is a failure.
    Panic,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Case {
    /// `topic/fact`.
    pub(crate) name: &'static str,
    /// What it shows, as a sentence.
    pub(crate) about: &'static str,
    /// Where it runs.
    pub(crate) places: &'static [Place],
    /// The machine's memory in MiB; 0 for what the machine has by itself.
    pub(crate) memory_mib: u32,
    /// What to add to the kernel's command line.
    pub(crate) parameters: &'static [&'static str],
    /// Modules of the distribution, loaded at boot with what they depend on; and ours, `pagelab`,
    /// which is only put where [`Guest::load`] finds it.
    pub(crate) modules: &'static [&'static str],
    /// Whether `guest run` may run it on the host that it is called on.
    pub(crate) native: bool,
    /// Whether it needs a boot of its own: it leaves the kernel other than it found it.
    pub(crate) alone: bool,
    /// How its boot ends.
    pub(crate) ending: Ending,
    /// The case.
    #[serde(skip)]
    pub(crate) run: fn(&Guest) -> Result<Verdict>,
}

impl Case {
    /// Every kernel on the base machine, nothing brought along; not a case by itself.
    pub(crate) const DEFAULT: Self = Self {
        name: "",
        about: "",
        places: &[Place::at(Machine::Base, ALL)],
        memory_mib: 0,
        parameters: &[],
        modules: &[],
        native: false,
        alone: false,
        ending: Ending::Verdict,
        run: |_| Ok(Verdict::Ok(String::new())),
    };
}
