//! Memory under test: where it lies, what the kernel is told of it, and what it says of it.
//!
//! Everything that reaches memory stands on [`area::Area`].

pub mod account;
pub mod area;
pub mod bytes;
pub mod filemap;
pub mod folios;
mod heap;
pub mod locked;
pub(crate) mod map;
pub mod memfd;
pub(crate) mod pagemap;
mod populate;
pub mod residency;
