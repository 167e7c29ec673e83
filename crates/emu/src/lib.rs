//! A memory of 2^64 bytes, emulated at the speed of its trace.

pub mod memory;
pub mod noop;
pub mod policy;
pub mod replay;
pub mod table;

pub use memory::{Fault, Kind, Memory};
pub use policy::{Absent, Edge, Policy};
