//! Clocks, and what a thread's time went into.
//!
//! It measures nothing by itself: the loops read these clocks.

pub mod clock;
pub mod disturbance;
pub mod usage;
