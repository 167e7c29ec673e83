//! What the kernel counts: for the whole machine, and by event.
//!
//! A count is read before and after, never inside.

pub mod counters;
pub mod perf;
