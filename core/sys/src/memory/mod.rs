//! Memory under test: where it lies, what the kernel is told of it, and what it says of it.
//!
//! Everything that reaches memory stands on [`area::Area`].

pub mod accessed;
pub mod account;
mod area;
mod bytes;
mod code;
mod filemap;
mod folios;
mod frames;
mod heap;
mod leaves;
pub mod locked;
pub(crate) mod map;
pub mod memfd;
mod moving;
pub mod outside;
pub(crate) mod pagemap;
mod peek;
mod populate;
mod residency;
mod states;
mod written;

pub(crate) use area::word_at;
pub use area::{Advice, Area, Backing, Layout, Ranges, has_populate_write};
pub use bytes::HugeBytes;
pub use code::make_code_present;
pub use filemap::FileMap;
pub use folios::Folios;
pub use frames::frames;
pub use leaves::{LEAF_SIZES, count_leaves, leaves};
pub use moving::{UNANSWERED, move_pages, places};
pub use peek::peek;
pub use residency::{Residency, Scanner, Swapped, in_core, nodes_of};
pub use states::{Page, State, States};
pub use written::{Stretch, Walk, clear_written, notes_stores};
