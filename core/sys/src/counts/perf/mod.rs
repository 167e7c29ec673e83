//! What the kernel tells about faults while they happen: counts, and records of each.
//!
//! [`FaultCounter`] counts, and nothing else: the witness of the fault workloads asks it. A
//! [`Session`] receives a record for each event of other processes, with addresses and callers, and
//! is for explaining what a program does. [`tracefs`] knows the kernel's tracepoints by name.
//!
//! An open event makes every fault dearer. Nothing that is timed may have one open.

mod count;
mod descriptors;
mod event;
mod parse;
mod plan;
mod session;
pub mod tracefs;

pub use count::FaultCounter;
pub use parse::{Body, Mapping, Record, Stack};
pub use plan::{Callers, Event, Plan, Source, Target, When};
pub use session::{Session, Told};
