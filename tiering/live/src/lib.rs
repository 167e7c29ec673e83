//! The policies of `pagelab-tier` on a running machine.
//!
//! The one idea: an engine is a loop of four steps. A *source* says which pages of a process were
//! used; the *driver* of `tier`, which is pure, says which should move; the *mover* moves them, no
//! faster than it may, and looks where they are; the *log* has every event that the driver saw, so
//! that a replay makes every decision again.
//!
//! Nothing here decides what is hot. What a kernel lacks is said with what to do about it.

pub mod board;
pub mod engine;
pub mod heat;
mod large;
pub mod log;
pub mod mover;
pub mod predict;
pub mod reason;
pub mod source;
mod space;
pub mod status;
pub mod target;
pub mod yard;

pub use engine::{Engine, Options, Pass};
pub use large::Large;
pub use reason::Reason;

/// Bytes of a base page.
const PAGE: u64 = 4096;
