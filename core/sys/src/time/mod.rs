//! Clocks, and what a thread's time went into.
//!
//! It measures nothing by itself: the loops read these clocks.

pub(crate) mod clock;
mod disturbance;
pub mod usage;

pub use clock::{Clock, ClockChoice, Span, empty_pairs, monotonic_raw_ns, unix_seconds};
pub use disturbance::{Disturbance, tick_ns};
pub use usage::Usage;
