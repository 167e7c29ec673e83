//! Which kind of fault it was: from where it happened and what the kernel said about it.
//!
//! The one idea: the kernel's own evidence decides (the error code of the exception, the page that
//! was allocated for it, whether it waited for I/O), the mapping only says which question to ask.
//! Where evidence is missing the likeliest kind is taken and the fault counts as assumed.
//!
//! Kinds have the names that they have in `fault/latency`, so that a fault of a program finds its
//! price among measured ones.

use std::fmt;

use pagelab_bench::words;

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
        /// None of these, or not to be told.
        Other = "other",
    }
}

words! {
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
    /// The largest order of pages allocated for user memory in the fault; `None` for none.
    pub order: Option<u32>,
    /// Whether allocations are told at all.
    pub sees_allocations: bool,
    /// Whether the machine has swap at all.
    pub can_swap: bool,
    /// Whether this page was seen as the zero page, or can be nothing else that is copied.
    pub was_zero: bool,
    /// Whether this page faulted before.
    pub was_touched: bool,
    /// Whether the mapping may be written.
    pub writable: bool,
}

/// The error code says that the page was there and the access was not allowed.
const PRESENT: u64 = 1;
/// The error code says that it was a store.
const STORE: u64 = 2;

/// A kind, the size of the page that came, and how sure that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The kind.
    pub kind: Kind,
    /// Bytes of the page; 4096 where nothing was allocated.
    pub page: u64,
    /// Whether evidence was missing and the likeliest kind was taken.
    pub assumed: bool,
}

/// Decides.
pub fn classify(evidence: &Evidence) -> Verdict {
    let page = 4096 << evidence.order.unwrap_or(0).min(18);
    let Some(error) = evidence.error else {
        return Verdict { kind: guess(evidence), page, assumed: true };
    };
    let (present, store) = (error & PRESENT != 0, error & STORE != 0);
    let allocated = evidence.order.is_some();
    // Without the allocator's word, what usually happens is taken to have happened.
    let (took_page, reuses) =
        if evidence.sees_allocations { (allocated, !allocated) } else { (true, false) };
    let assumed = !evidence.sees_allocations;
    let kind = match evidence.place {
        _ if evidence.major => major(evidence.place),
        Place::Heap | Place::Stack | Place::Anonymous | Place::Unknown => match (present, store) {
            (true, true) if reuses => Kind::ForkReuse,
            (true, true) if evidence.was_zero => Kind::ZeroWrite,
            (true, true) => Kind::ForkCow,
            (false, true) if took_page => Kind::Write,
            // Pages in the swap cache come back without I/O.
            (false, true) if evidence.can_swap => Kind::Swap,
            (false, false) => Kind::Read,
            // Without swap, the kernel was moving the page (`migration_entry_wait`).
            (false, true) | (true, false) => Kind::Other,
        },
        Place::PrivateFile => match (present, store) {
            (true, true) if reuses => Kind::ForkReuse,
            (_, true) => Kind::PrivateFileCow,
            (_, false) => Kind::FileMinor,
        },
        Place::SharedFile if store => Kind::PageMkwrite,
        Place::SharedFile => Kind::FileMinor,
        Place::Shmem if present && store && took_page => Kind::PrivateFileCow,
        Place::Shmem if took_page => Kind::ShmemWrite,
        Place::Shmem => Kind::ShmemMinor,
        Place::Hugetlb if present && store => Kind::ForkCow,
        Place::Hugetlb => Kind::Write,
        Place::Kernel => Kind::Other,
    };
    // The page of a hugetlb pool is not allocated in the fault.
    let page = if evidence.place == Place::Hugetlb { 2 << 20 } else { page };
    // A page of the page cache that a read brought in is not what the fault maps.
    let page = if kind == Kind::FileMinor || kind == Kind::FileMajor { 4096 } else { page };
    let assumed = assumed && !matches!(kind, Kind::Read | Kind::FileMinor | Kind::ZeroWrite);
    Verdict { kind, page, assumed }
}

fn major(place: Place) -> Kind {
    match place {
        Place::PrivateFile | Place::SharedFile => Kind::FileMajor,
        Place::Kernel => Kind::Other,
        _ => Kind::Swap,
    }
}

/// The likeliest kind where the exception told nothing.
fn guess(evidence: &Evidence) -> Kind {
    match evidence.place {
        place if evidence.major => major(place),
        Place::Heap | Place::Stack | Place::Anonymous | Place::Unknown => {
            match (evidence.writable, evidence.was_touched) {
                (true, true) => Kind::ZeroWrite,
                (true, false) => Kind::Write,
                (false, _) => Kind::Read,
            }
        }
        Place::PrivateFile if evidence.writable => Kind::PrivateFileCow,
        Place::SharedFile if evidence.writable => Kind::PageMkwrite,
        Place::PrivateFile | Place::SharedFile => Kind::FileMinor,
        Place::Shmem => Kind::ShmemWrite,
        Place::Hugetlb => Kind::Write,
        Place::Kernel => Kind::Other,
    }
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
        write!(f, "{}/{}/{}", self.kind.name(), self.page_name(), self.place.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: Evidence = Evidence {
        place: Place::Anonymous,
        major: false,
        error: Some(0),
        order: None,
        sees_allocations: true,
        can_swap: true,
        was_zero: false,
        was_touched: false,
        writable: true,
    };

    fn kind(evidence: Evidence) -> (&'static str, u64, bool) {
        let verdict = classify(&evidence);
        (verdict.kind.name(), verdict.page >> 10, verdict.assumed)
    }

    #[test]
    fn anonymous_memory_is_read_written_and_copied() {
        let write = |error, order| kind(Evidence { error: Some(error), order, ..SEEN });
        assert_eq!(write(6, Some(0)), ("write", 4, false));
        assert_eq!(write(6, Some(4)), ("write", 64, false));
        assert_eq!(write(6, Some(9)), ("write", 2048, false));
        assert_eq!(write(4, None), ("read", 4, false));
        assert_eq!(write(7, Some(0)), ("fork-cow", 4, false));
        assert_eq!(write(7, None), ("reuse", 4, false));
        assert_eq!(write(6, None), ("swap", 4, false));
        let moved = Evidence { error: Some(6), can_swap: false, ..SEEN };
        assert_eq!(kind(moved), ("other", 4, false));
        let zero = Evidence { error: Some(7), order: Some(0), was_zero: true, ..SEEN };
        assert_eq!(kind(zero), ("zero-write", 4, false));
        assert_eq!(kind(Evidence { major: true, ..SEEN }).0, "swap");
    }

    #[test]
    fn files_are_read_copied_and_dirtied() {
        let private = Evidence { place: Place::PrivateFile, ..SEEN };
        assert_eq!(kind(private).0, "file-minor");
        assert_eq!(kind(Evidence { major: true, ..private }).0, "file-major");
        let store = Evidence { error: Some(6), order: Some(0), ..private };
        assert_eq!(kind(store).0, "private-file-cow");
        let shared = Evidence { place: Place::SharedFile, error: Some(7), ..SEEN };
        assert_eq!(kind(shared).0, "mkwrite");
        // A large folio of the page cache is not the size of what is mapped.
        assert_eq!(kind(Evidence { order: Some(4), ..private }), ("file-minor", 4, false));
    }

    #[test]
    fn shared_memory_is_allocated_once() {
        let shmem = Evidence { place: Place::Shmem, error: Some(6), ..SEEN };
        assert_eq!(kind(Evidence { order: Some(0), ..shmem }).0, "shmem-write");
        assert_eq!(kind(shmem).0, "shmem-minor");
        let pool = Evidence { place: Place::Hugetlb, error: Some(6), ..SEEN };
        assert_eq!(kind(pool), ("write", 2048, false));
        let group = Group { kind: Kind::Write, page: 2 << 20, place: Place::Hugetlb };
        assert_eq!(group.to_string(), "write/hugetlb-2m/hugetlb");
    }

    #[test]
    fn what_nobody_told_is_assumed_and_says_so() {
        let blind = Evidence { error: None, sees_allocations: false, ..SEEN };
        assert_eq!(kind(blind), ("write", 4, true));
        assert_eq!(kind(Evidence { was_touched: true, ..blind }), ("zero-write", 4, true));
        assert_eq!(kind(Evidence { writable: false, ..blind }), ("read", 4, true));
        // An exception without the allocator: a store is taken to have allocated.
        let half = Evidence { error: Some(6), sees_allocations: false, ..SEEN };
        assert_eq!(kind(half), ("write", 4, true));
    }
}
