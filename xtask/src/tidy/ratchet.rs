//! What was worse before a check existed.
//!
//! An entry is a file, or a crate's folder, and how bad it may be. Entries may only shrink: what
//! has become better than its entry is a problem until the entry is lowered, and nobody adds one.

/// A file or a crate's folder, and the most that is tolerated there.
pub(crate) type Entry = (&'static str, usize);

/// Files with more than 400 lines, tests not counted.
pub(crate) const LONG_FILES: &[Entry] = &[];

/// Files with lines of more than 100 characters, and how many of them.
pub(crate) const LONG_LINES: &[Entry] = &[];

/// Crates with circles of files, and how many files are tied in them.
pub(crate) const FILE_CIRCLES: &[Entry] = &[];

/// Crates with circles of folders, and how many folders and files beside them are tied.
pub(crate) const FOLDER_CIRCLES: &[Entry] = &[];

/// Files that match on the text of a claim, and in how many places.
pub(crate) const CLAIM_TEXTS: &[Entry] = &[];
