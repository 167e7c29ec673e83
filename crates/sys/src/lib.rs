//! The system room: every syscall, all asm, all unsafe that meets the operating system.
//!
//! It imports nothing of ours and knows no workload, no case and no record: it hands out safe,
//! named pieces (a mapping, a clock, a measured loop, a count, a knob) from which the benchmarks
//! are built. No `pub unsafe fn` leaves it.

pub mod environment;
mod error;
pub mod knobs;
pub mod topology;

pub use error::SysError;
