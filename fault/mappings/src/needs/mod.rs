//! What faults need of the host beside memory and pages: files, swap, pressure, userfaultfd.

mod made;

use std::{borrow::Cow, io::ErrorKind, path::PathBuf};

use pagelab_bench::{Need, Plain, Remedy, needs::Setting};
use pagelab_record::units::{display_bytes, format_bytes};
use pagelab_sys::{
    arch,
    counts::reported_kib,
    files::{scratch, shortage::scratch_directory},
    loops::calls::has_collapse,
    machine::{FreeMemory, Tree},
    uffd::Ability,
};

pub use made::Own;

/// `MADV_COLLAPSE` (since Linux 6.1).
pub const COLLAPSE: Plain = Plain {
    name: "MADV_COLLAPSE",
    has: has_collapse,
    cure: "use Linux 6.1 or later, with transparent huge pages",
};

/// An invariant time stamp counter.
pub const TSC: Plain = Plain {
    name: "an invariant time stamp counter",
    has: arch::has_reliable_tsc,
    cure: "use a machine whose CPU reports an invariant TSC",
};

/// Free page reporting that counts what it hands back to the host.
pub const PAGE_REPORTING: Plain = Plain {
    name: "free page reporting that counts",
    has: || reported_kib().is_some(),
    cure: "use a virtual machine with a balloon device that reports free pages, and a kernel with \
           /sys/module/page_reporting/parameters/reported_kib",
};

/// A fault on a file maps what lies around it in the page cache, too.
pub const FAULT_AROUND: Plain = Plain {
    name: "fault-around",
    has: scratch::maps_around,
    cure: "sudo mount -t debugfs none /sys/kernel/debug; \
           echo 65536 | sudo tee /sys/kernel/debug/fault_around_bytes",
};

/// A directory for scratch files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Room {
    /// Its path.
    pub directory: PathBuf,
    /// Free bytes.
    pub bytes: u64,
}

impl Need for Room {
    fn name(&self) -> String {
        let directory = self.directory.display();
        format!("{} in {directory} for a scratch file", format_bytes(self.bytes))
    }

    fn check(&self) -> bool {
        scratch::free_bytes(&self.directory).is_some_and(|free| free >= self.bytes)
    }

    fn cure(&self) -> String {
        let found = match scratch::free_bytes(&self.directory) {
            Some(free) => format!("has {} free", display_bytes(free as f64)),
            None => "cannot be written to".to_owned(),
        };
        let directory = self.directory.display();
        format!("choose another --dir ({directory} {found}), or a smaller --size")
    }
}

/// What only a disk file system can do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnDisk {
    /// It is told of the first write to a mapped page.
    NotesWrites,
    /// Pages can leave memory.
    Evicts,
}

/// A directory on a file system that can do this.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Disk(pub OnDisk, pub PathBuf);

impl Need for Disk {
    fn name(&self) -> String {
        let directory = self.1.display();
        match self.0 {
            OnDisk::NotesWrites => {
                format!("a file system in {directory} that is told of writes (page_mkwrite)")
            }
            OnDisk::Evicts => format!("files in {directory} that can leave memory"),
        }
    }

    fn check(&self) -> bool {
        match self.0 {
            OnDisk::NotesWrites => scratch::notes_writes(&self.1),
            OnDisk::Evicts => scratch::can_evict(&self.1),
        }
    }

    fn cure(&self) -> String {
        let directory = self.1.display();
        format!("--dir on a disk file system such as ext4 or xfs ({directory} is on none)")
    }

    fn is_alike(&self, other: &dyn Need) -> bool {
        other.of::<Self>().is_some_and(|other| other.0 == self.0)
    }
}

/// So many mappings in one process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mappings(pub u64);

impl Need for Mappings {
    fn name(&self) -> String {
        format!("{} mappings in one process", self.0)
    }

    fn check(&self) -> bool {
        scratch::mappings_max().is_none_or(|most| most >= self.0)
    }

    fn cure(&self) -> String {
        format!("sudo sysctl vm.max_map_count={}", self.0)
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(Remedy::set(PathBuf::from(scratch::MAPPINGS), self.0.to_string()))
    }
}

/// A userfaultfd that this process may open, and that can do so much.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Uffd(pub Ability);

impl Need for Uffd {
    fn name(&self) -> String {
        match self.0 {
            Ability::Missing => "userfaultfd".to_owned(),
            ability => format!("userfaultfd with {}", ability.name()),
        }
    }

    fn check(&self) -> bool {
        self.0.is_here()
    }

    /// A newer kernel, or the right to open a userfaultfd at all.
    fn cure(&self) -> String {
        let since = self.0.since();
        match Ability::refusal() {
            None => format!("use Linux {since} or later (on x86-64)"),
            Some(why) if why.kind() == ErrorKind::PermissionDenied => {
                "sudo sysctl vm.unprivileged_userfaultfd=1, or allow userfaultfd in the \
                 container's seccomp profile, or sudo chmod a+rw /dev/userfaultfd (since Linux 6.1)"
                    .to_owned()
            }
            Some(why) => {
                format!(
                    "use a kernel with CONFIG_USERFAULTFD, Linux {since} or later (here: {why})"
                )
            }
        }
    }

    fn is_alike(&self, other: &dyn Need) -> bool {
        other.of::<Self>() == Some(self)
    }
}

/// zswap is off: it would keep in memory what is to leave it.
pub const ZSWAP_OFF: Setting = Setting {
    path: "/sys/module/zswap/parameters/enabled",
    value: Cow::Borrowed("N"),
    called: Some("zswap switched off"),
    may_lack: true,
};

/// The kernel reads no page ahead from swap.
pub const NO_READAHEAD: Setting = Setting {
    path: "/proc/sys/vm/page-cluster",
    value: Cow::Borrowed("0"),
    called: Some("page-cluster 0"),
    may_lack: false,
};

/// A directory on a disk with so many bytes free, whose files' pages can be reclaimed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reclaimable(pub u64);

impl Need for Reclaimable {
    fn name(&self) -> String {
        format!("{} of page cache of a file on a disk", display_bytes(self.0 as f64))
    }

    fn check(&self) -> bool {
        scratch_directory(self.0).is_ok()
    }

    fn cure(&self) -> String {
        let why = scratch_directory(self.0).err().unwrap_or_default();
        format!("TMPDIR=DIRECTORY on a disk file system ({why})")
    }
}

/// A memory node with at most so much free.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SmallNode {
    /// Its number.
    pub node: usize,
    /// Bytes.
    pub bytes: u64,
}

impl Need for SmallNode {
    fn name(&self) -> String {
        let bytes = display_bytes(self.bytes as f64);
        format!("a node {} with at most {bytes} of free memory", self.node)
    }

    fn check(&self) -> bool {
        let free = FreeMemory::of(&Tree::machine(), self.node);
        free.is_some_and(|free| free.bytes() <= self.bytes)
    }

    fn cure(&self) -> String {
        let free = FreeMemory::of(&Tree::machine(), self.node).map_or(0, |free| free.bytes());
        format!(
            "boot with mem=2G on the kernel's command line, or use a virtual machine of that size \
             (cargo xtask vm pressure/): all free memory is broken up, and here {} are free",
            display_bytes(free as f64)
        )
    }
}
