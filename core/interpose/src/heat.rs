//! The yard: where programs that are watched for hot pages and whoever watches them meet.
//!
//! The one idea: a file in memory that all of them map or read. Each program that is loaded has a
//! row with its number and its descriptor of faults; what the library in a program sees of loads
//! is an entry of a ring, two words, which whoever watches takes out. Whatever stands there was
//! written by somebody's program: it is bounded, and nothing is believed but that it was said.

/// The package whose library it is.
pub const PACKAGE: &str = "pagelab-heat";
/// The variable that names the file of the yard.
pub const HEAT: &str = "PAGELAB_HEAT";
/// Programs that have a row; further ones are only counted.
pub const ROWS: usize = 1024;
/// Entries of the ring.
pub const RING: usize = 1 << 19;
/// Where in the yard rows begin, in words.
pub const ROWS_AT: usize = 8;
/// Words of a row.
pub const ROW_WORDS: usize = 8;
/// Where the ring begins, in words.
pub const RING_AT: usize = ROWS_AT + ROWS * ROW_WORDS;
/// Words of an entry.
pub const ENTRY_WORDS: usize = 2;
/// Words of the yard.
pub const WORDS: usize = RING_AT + RING * ENTRY_WORDS;
/// Bytes of the file.
pub const HEAT_BYTES: usize = WORDS * size_of::<u64>();
/// Room of the ring for entries that threads begin at the same time.
pub const SPARE: usize = 1024;

/// A word at the head of the yard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// Programs that were loaded.
    Programs,
    /// Entries that were begun.
    Begun,
    /// Entries that were taken out.
    Taken,
    /// The sweep that is asked for.
    Asked,
    /// Entries that there was no room for.
    Lost,
    /// From how many bytes on memory is looked at for loads; 0 where none is.
    Sampled,
}

/// A word of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The process; written last.
    Pid,
    /// The number of its descriptor of faults, and 1; 0 for none.
    Descriptor,
    /// Why it has none.
    Errno,
    /// The last sweep that is done.
    Swept,
    /// Places that were left out of sweeps for good: a lock lies in them.
    LeftOut,
    /// Calls in progress that fail on memory registered for faults: nothing is registered
    /// meanwhile.
    Calls,
    /// 1 while the watcher registers a mapping: such a call waits.
    Registering,
}

/// What an entry is, in the lowest bits of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Pages were looked at, all of them for the same time.
    Looked = 1,
    /// A page was accessed meanwhile.
    Seen = 2,
}

const PAGE: u64 = 4096;

/// The words of an entry; the first is never 0.
pub const fn entry(kind: Kind, address: u64, pages: u32, pid: u32) -> [u64; ENTRY_WORDS] {
    [(address / PAGE * PAGE) | kind as u64, (pages as u64) << 32 | pid as u64]
}
