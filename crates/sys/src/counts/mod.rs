//! What the kernel counts: for the whole machine, and by event.
//!
//! A count is read before and after, never inside.

mod counters;
pub mod perf;

pub use counters::{Counters, moved_pages, reported_kib, wait_for_reporting};
