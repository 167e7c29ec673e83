//! What faults come to: counts by kind, size, place, mapping, thread and call site.

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use super::{
    blocks::Density,
    kind::{Group, Place},
};

/// An instruction: a file and an offset in it, or an address where no file is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The file; empty where there is none.
    pub file: Rc<str>,
    /// Offset in the file, or the address.
    pub at: u64,
}

/// Faults of one group, in one place of the program or altogether.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Faults.
    pub faults: u64,
    /// Of them, those that waited for I/O.
    pub major: u64,
    /// Of them, those taken inside system calls.
    pub kernel: u64,
    /// Of them, those that also allocated pages of page table.
    pub tables: u64,
    /// Of them, those whose kind was assumed.
    pub assumed: u64,
    /// Of them, those that met another fault of the same address space on another CPU.
    pub crowded: u64,
    /// Faults that were in flight together, at most, summed over the crowded ones.
    pub crowd: u64,
    /// Of the crowded ones, those that met one in the same mapping.
    pub shared: u64,
    /// Of faults on files in the page cache, those looked at whose page was of a large folio.
    pub in_folio: u64,
    /// Of them, those looked at whose page was a base page.
    pub in_base: u64,
    /// Of them, those whose exception was seen, so that `seen_ns` covers them.
    pub timed: u64,
    /// Nanoseconds from exception to handled, watching included.
    pub seen_ns: u64,
}

impl Count {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.faults += other.faults;
        self.major += other.major;
        self.kernel += other.kernel;
        self.tables += other.tables;
        self.assumed += other.assumed;
        self.crowded += other.crowded;
        self.crowd += other.crowd;
        self.shared += other.shared;
        self.in_folio += other.in_folio;
        self.in_base += other.in_base;
        self.timed += other.timed;
        self.seen_ns += other.seen_ns;
    }
}

/// Faults by group.
pub type Groups = BTreeMap<Group, Count>;

/// Faults of all threads of one name.
#[derive(Debug, Clone, Default)]
pub struct Crew {
    /// Threads of that name that took faults.
    pub threads: u64,
    /// Their faults.
    pub groups: Groups,
}

/// A mapping that faults came from.
#[derive(Debug, Clone, Default)]
pub struct Mapped {
    /// Bytes, when it was last looked at.
    pub length: u64,
    /// Its faults.
    pub groups: Groups,
}

/// Everything that was counted.
#[derive(Debug, Default)]
pub struct Seen {
    /// All faults.
    pub groups: Groups,
    /// Faults by where the program was.
    pub sites: HashMap<Vec<Frame>, Groups>,
    /// Faults by mapping: kind of place, name, and which of that name.
    pub mappings: BTreeMap<(Place, Rc<str>, u32, u64), Mapped>,
    /// How densely memory was touched.
    pub density: BTreeMap<Place, Density>,
    /// Exceptions that no handled fault followed: signals, and faults cut off by the end.
    pub unhandled: u64,
    /// Programs that the kernel let nobody watch further, by name; see [`super::tally`].
    pub hidden: Vec<String>,
    /// Processes that were seen.
    pub processes: u64,
    /// Threads of one process that took faults, where they are most:
    /// [`busy`](super::threads::Threads::busy).
    pub threads: u64,
    /// Faults by the name of the thread.
    pub crews: BTreeMap<Rc<str>, Crew>,
}
