//! Emulated memory: how fast a trace is replayed into it, and whether it remembers rightly.
//!
//! An [`Arm`] is a backend and a decoder; [`replay`] times all arms of a case over one trace,
//! [`verify`] compares each with a naive memory, load by load.

mod arm;
mod player;
mod reader;
pub mod replay;
pub mod verify;

pub use arm::{ALL, Arm};
