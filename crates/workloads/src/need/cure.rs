//! What a person can do about a need that is not met: a command to paste where there is one.

use pagelab_record::units::display_bytes;
use pagelab_sys::{
    files::{scratch, shortage::scratch_directory},
    machine::{
        blocks::FreeMemory,
        topology::{Topology, Tree},
    },
    uffd::Ability,
};

use super::Need;
use crate::{memtype::needs, remedy::Remedy};

/// Where the kernel's own switches are, for root, once somebody mounted it.
const DEBUGFS: &str = "/sys/kernel/debug";

impl Need {
    /// What to do about it: a command to paste where there is one.
    #[expect(clippy::too_many_lines, reason = "an arm for each need")]
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
            Self::Transparent { .. }
            | Self::Without(_)
            | Self::Pool { .. }
            | Self::ZswapOff
            | Self::PageCluster(_) => match self.remedy() {
                Some(Remedy::Set(path, value)) => {
                    format!("echo {value} | sudo tee {}", path.display())
                }
                _ if matches!(self, Self::Pool { .. }) => {
                    "use a kernel and CPU with hugetlb pages of this size (1g needs pdpe1gb)".into()
                }
                _ => "use a kernel that offers this page size (64k and others since Linux 6.8)"
                    .to_owned(),
            },
            Self::Lockable(bytes) => {
                format!("ulimit -l {} (as root), or grant CAP_IPC_LOCK", bytes.div_ceil(1024))
            }
            Self::PopulateWrite => "use Linux 5.14 or later".to_owned(),
            Self::Setting { path, value } => match self.remedy() {
                Some(_) => format!("echo {value} | sudo tee {path}"),
                None if path.starts_with(DEBUGFS) => {
                    format!("as root: mount -t debugfs none {DEBUGFS}")
                }
                None => format!("use a kernel that was built with {path}"),
            },
            Self::Collapse => "use Linux 6.1 or later, with transparent huge pages".to_owned(),
            Self::Fifo => {
                "run as root, or: sudo setcap cap_sys_nice=ep $(command -v pagelab)".to_owned()
            }
            Self::Cpus(_) | Self::CpuCount(_) => {
                let allowed = Topology::machine().cpus().allowed;
                format!(
                    "choose among CPUs {} (see also taskset -p $$)",
                    pagelab_sys::machine::topology::format_list(&allowed)
                )
            }
            Self::Node(_) | Self::FarNode => {
                let nodes: Vec<usize> = Topology::machine().nodes().iter().map(|n| n.id).collect();
                format!(
                    "use a machine with such a node; this one has {}",
                    pagelab_sys::machine::topology::format_list(&nodes)
                )
            }
            Self::PageReporting => "use a virtual machine with a balloon device that reports free \
                                    pages, and a kernel with \
                                    /sys/module/page_reporting/parameters/reported_kib"
                .to_owned(),
            Self::Tsc => "use a machine whose CPU reports an invariant TSC".to_owned(),
            Self::Tracepoints => "run as root (in a container with CAP_PERFMON, CAP_SYS_ADMIN and \
                                  perf_event_open), on an x86-64 kernel with tracefs"
                .to_owned(),
            Self::Reclaimable(bytes) => format!(
                "TMPDIR=DIRECTORY on a disk file system ({})",
                scratch_directory(*bytes).err().unwrap_or_default()
            ),
            Self::Module => needs::module_cure(),
            Self::Typed(space) => needs::memory_cure(space),
            Self::Stores { nt, bytes } => needs::width_cure(needs::lack_of_stores(*nt, *bytes)),
            Self::Loads { nt, bytes } => needs::width_cure(needs::lack_of_loads(*nt, *bytes)),
            Self::Userfaultfd(ability) => uffd_cure(*ability),
            Self::StringStore | Self::LineFlush => "use an x86-64 machine".to_owned(),
            Self::Scratch { directory, .. } => {
                let found = match scratch::free_bytes(directory) {
                    Some(free) => format!("has {} free", display_bytes(free as f64)),
                    None => "cannot be written to".to_owned(),
                };
                let directory = directory.display();
                format!("choose another --dir ({directory} {found}), or a smaller --size")
            }
            Self::NotedWrites(directory) | Self::Evictable(directory) => {
                let directory = directory.display();
                format!("--dir on a disk file system such as ext4 or xfs ({directory} is on none)")
            }
            Self::FaultAround => "sudo mount -t debugfs none /sys/kernel/debug; \
                                  echo 65536 | sudo tee /sys/kernel/debug/fault_around_bytes"
                .to_owned(),
            Self::Mappings(count) => format!("sudo sysctl vm.max_map_count={count}"),
            Self::SmallNode { node, .. } => {
                let free = FreeMemory::of(&Tree::machine(), *node).map_or(0, |free| free.bytes());
                format!(
                    "boot with mem=2G on the kernel's command line, or use a virtual machine of \
                     that size (cargo xtask vm pressure/): all free memory is broken up, and here \
                     {} are free",
                    display_bytes(free as f64)
                )
            }
            Self::Zram { .. } | Self::SwapFile(_) | Self::MemoryGroup(_) => self
                .why_not_made()
                .unwrap_or_else(|| "nothing: it is made for the case and removed".to_owned()),
        }
    }
}

/// A newer kernel, or the right to open a userfaultfd at all.
fn uffd_cure(ability: Ability) -> String {
    match Ability::refusal() {
        None => format!("use Linux {} or later (on x86-64)", ability.since()),
        Some(why) if why.kind() == std::io::ErrorKind::PermissionDenied => {
            "sudo sysctl vm.unprivileged_userfaultfd=1, or allow userfaultfd in the container's \
             seccomp profile, or sudo chmod a+rw /dev/userfaultfd (since Linux 6.1)"
                .to_owned()
        }
        Some(why) => format!(
            "use a kernel with CONFIG_USERFAULTFD, Linux {} or later (here: {why})",
            ability.since()
        ),
    }
}
