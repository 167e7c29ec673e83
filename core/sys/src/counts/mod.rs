//! What the kernel counts: for the whole machine, and by event.
//!
//! A count is read before and after, never inside.

mod counters;
mod helpers;
pub mod perf;

pub use counters::{Counters, moved_pages, reported_kib, reports_free_pages, wait_for_reporting};
pub use helpers::KernelHelpers;
