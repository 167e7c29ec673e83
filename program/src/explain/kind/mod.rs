//! Which kind of fault it was: from where it happened and what the kernel said about it.
//!
//! The one idea: the kernel's own evidence decides (the error code of the exception, the page that
//! was allocated for it, whether it waited for I/O; where it tells none of them, what the page
//! table has there soon after), the mapping only says which question to ask. Where evidence is
//! missing the kind is unknown.
//!
//! Kinds have the names that they have in `fault/latency`, so that a fault of a program finds its
//! price among measured ones.

use std::fmt;

use pagelab_bench::words;
use pagelab_record::vocabulary::table::WAITING;
use pagelab_sys::memory::{Page, State};

words! {
    /// What the kernel had to do. Names are those of the parameter `kind`, where it has them.
    pub enum Kind {
        /// First store to anonymous memory: allocates and clears.
        Write = "write",
        /// First load from anonymous memory: maps the zero page.
        Read = "read",
        /// Store to a page that is the zero page so far.
        ZeroWrite = "zero-write",
        /// Store to a page shared since a fork: copies.
        ForkCow = "fork-cow",
        /// Store to a page that nobody shares any more: only made writable.
        ForkReuse = "reuse",
        /// Store to a private mapping of a file: copies.
        PrivateFileCow = "private-file-cow",
        /// Load from a file in the page cache.
        FileMinor = "file-minor",
        /// Load from a file that was not: waits for the device.
        FileMajor = "file-major",
        /// Store to a shared mapping of a file.
        PageMkwrite = "mkwrite",
        /// First touch of shared memory or tmpfs: allocates and clears.
        ShmemWrite = "shmem-write",
        /// Touch of shared memory that somebody else allocated.
        ShmemMinor = "shmem-minor",
        /// Anonymous memory that was swapped out.
        Swap = "swap",
        /// None of these.
        Other = "other",
        /// Not to be told.
        Unknown = "unknown",
    }

    /// What kind of memory it happened in.
    pub enum Place {
        /// What `brk` grows.
        Heap = "heap",
        /// The stack of a process's first thread.
        Stack = "stack",
        /// Private anonymous mappings, stacks of other threads among them.
        Anonymous = "anonymous",
        /// A private mapping of a file: programs and libraries above all.
        PrivateFile = "private-file",
        /// A shared mapping of a file.
        SharedFile = "shared-file",
        /// Shared anonymous memory, memfd, tmpfs.
        Shmem = "shmem",
        /// Pages of a hugetlb pool.
        Hugetlb = "hugetlb",
        /// The kernel's own mappings in every process: vdso, vvar.
        Kernel = "kernel",
        /// No mapping is known there.
        Unknown = "unknown",
    }
}

/// What the allocator said of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocated {
    /// Nobody told.
    Untold,
    /// No page for user memory.
    Nothing,
    /// Pages, of this order at most.
    Order(u32),
}

/// What a page was before its fault, as far as the faults and calls so far say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Nothing was there.
    New,
    /// The zero page, or the page of the file.
    Original,
    /// A page of the process.
    Own,
    /// The mapping was there before anybody looked.
    Unknown,
}

/// What is known of one fault.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// Where.
    pub place: Place,
    /// Whether it waited for I/O.
    pub major: bool,
    /// The error code of the exception, where the kernel told it.
    pub error: Option<u64>,
    /// What was allocated.
    pub allocated: Allocated,
    /// What the page was before.
    pub before: Before,
    /// What the page table had there soon after, where somebody looked.
    pub after: Option<State>,
    /// Whether the machine has swap at all.
    pub can_swap: bool,
    /// Whether the process may share pages with others since a fork.
    pub forked: bool,
    /// Whether another process shares the page since a fork, as far as that was followed.
    pub shared: Option<bool>,
    /// Whether the memory is shared memory without a name: no `write` fills it.
    pub nameless: bool,
    /// Whether the mapping may be written.
    pub writable: bool,
}

/// The error code says that the page was there and the access was not allowed.
const PRESENT: u64 = 1;
/// The error code says that it was a store.
const STORE: u64 = 2;

/// A kind, and the size of the page that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The kind.
    pub kind: Kind,
    /// Bytes of the page; 4096 where nothing was allocated.
    pub page: u64,
}

/// Decides.
pub fn classify(evidence: &Evidence) -> Verdict {
    let kind = match evidence.place {
        place if evidence.major => major(place),
        Place::Kernel => Kind::Other,
        Place::Unknown => Kind::Unknown,
        _ => match evidence.error {
            Some(error) => told(evidence, error & PRESENT != 0, error & STORE != 0),
            None => looked_at(evidence),
        },
    };
    let page = match (evidence.place, kind) {
        // The page of a hugetlb pool is not allocated in the fault.
        (Place::Hugetlb, _) => LARGE,
        // A page of the page cache that a read brought in is not what the fault maps.
        (_, Kind::FileMinor | Kind::FileMajor) => BASE,
        _ => match (evidence.allocated, evidence.after) {
            (Allocated::Order(order), _) => BASE << order.min(18),
            (Allocated::Untold, Some(State { huge: true, .. })) => LARGE,
            _ => BASE,
        },
    };
    Verdict { kind, page }
}

const BASE: u64 = 4096;
const LARGE: u64 = 2 << 20;

fn major(place: Place) -> Kind {
    match place {
        Place::PrivateFile | Place::SharedFile => Kind::FileMajor,
        Place::Kernel => Kind::Other,
        _ => Kind::Swap,
    }
}

/// By the exception: whether the page was there, and whether it was a store.
fn told(evidence: &Evidence, present: bool, store: bool) -> Kind {
    use Allocated::{Nothing, Order, Untold};
    let Evidence { allocated, before, can_swap, forked, .. } = *evidence;
    match evidence.place {
        Place::PrivateFile => match (present, store, allocated) {
            (_, false, _) if before == Before::Own && can_swap => Kind::Swap,
            (_, false, _) => Kind::FileMinor,
            (true, true, Nothing) => Kind::ForkReuse,
            (true, true, Order(_)) if before == Before::Own && forked => Kind::ForkCow,
            (_, true, Order(_)) => Kind::PrivateFileCow,
            (false, true, Nothing) => {
                if can_swap {
                    Kind::Swap
                } else {
                    Kind::Other
                }
            }
            (_, true, Untold) if before != Before::Own && !forked => Kind::PrivateFileCow,
            (true, true, Untold) => after_fork(evidence),
            (false, true, Untold) => Kind::Unknown,
        },
        Place::SharedFile if store => Kind::PageMkwrite,
        Place::SharedFile => Kind::FileMinor,
        Place::Shmem => match allocated {
            Order(_) if present && store => Kind::PrivateFileCow,
            Order(_) => Kind::ShmemWrite,
            Nothing => Kind::ShmemMinor,
            Untold if is_first_of_all(evidence) => Kind::ShmemWrite,
            Untold => Kind::Unknown,
        },
        Place::Hugetlb if present && store => Kind::ForkCow,
        Place::Hugetlb => Kind::Write,
        _ => match (present, store, allocated) {
            // Pages in the swap cache come back without I/O.
            (false, false, _) if before == Before::Own && can_swap => Kind::Swap,
            (false, false, _) => Kind::Read,
            (false, true, Order(_)) => Kind::Write,
            (false, true, Nothing) if can_swap => Kind::Swap,
            (false, true, Untold) if before == Before::New => Kind::Write,
            (false, true, Untold) => Kind::Unknown,
            (true, true, Nothing) => Kind::ForkReuse,
            // Pages that a call populated for reading were not seen; without a fork nothing but
            // the zero page is shared.
            (true, true, _) if before == Before::Original => Kind::ZeroWrite,
            (true, true, Order(_)) => {
                if forked {
                    Kind::ForkCow
                } else {
                    Kind::ZeroWrite
                }
            }
            (true, true, Untold) => after_fork(evidence),
            // Without swap, the kernel was moving the page (`migration_entry_wait`).
            (false, true, Nothing) | (true, false, _) => Kind::Other,
        },
    }
}

/// A store to a page that was shared, by who has it still.
fn after_fork(evidence: &Evidence) -> Kind {
    match evidence.shared {
        Some(true) => Kind::ForkCow,
        Some(false) => Kind::ForkReuse,
        None => Kind::Unknown,
    }
}

/// By what the page table had soon after, where the exception told nothing. A page that was there
/// before may have been given back in between, or shared: then nobody knows.
fn looked_at(evidence: &Evidence) -> Kind {
    let Evidence { before, writable, .. } = *evidence;
    let after = evidence.after.map(|state| state.page);
    match (evidence.place, before, after) {
        (Place::PrivateFile | Place::SharedFile, ..) if !writable => Kind::FileMinor,
        (Place::PrivateFile, _, Some(Page::File)) => Kind::FileMinor,
        (Place::PrivateFile, Before::New | Before::Original, Some(Page::Anonymous)) => {
            Kind::PrivateFileCow
        }
        (Place::Shmem, ..) if is_first_of_all(evidence) => Kind::ShmemWrite,
        (Place::Hugetlb, Before::New, _) => Kind::Write,
        (Place::Heap | Place::Stack | Place::Anonymous, before, Some(page)) => match (before, page)
        {
            (Before::New, Page::Anonymous) => Kind::Write,
            (Before::New, Page::Zero) => Kind::Read,
            (Before::Original, Page::Anonymous) => Kind::ZeroWrite,
            _ => Kind::Unknown,
        },
        _ => Kind::Unknown,
    }
}

/// Whether nobody can have touched this page of shared memory before.
fn is_first_of_all(evidence: &Evidence) -> bool {
    evidence.nameless && evidence.before == Before::New && !evidence.forked
}

/// A kind with a size and a place: what faults are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// What the kernel did.
    pub kind: Kind,
    /// Bytes of the page.
    pub page: u64,
    /// Where.
    pub place: Place,
    /// Whether it waited for something that another had begun: such a fault has no price of its
    /// own.
    pub waiting: bool,
}

impl Group {
    /// The page as cases spell it.
    pub fn page_name(&self) -> String {
        let size = pagelab_record::units::format_bytes(self.page);
        if self.place == Place::Hugetlb { format!("hugetlb-{size}") } else { size }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = if self.waiting { WAITING } else { "" };
        write!(f, "{}{waiting}/{}/{}", self.kind.name(), self.page_name(), self.place.name())
    }
}

#[cfg(test)]
mod tests;
