//! Memory traces: the raw format, files, statistics and generators.
//!
//! A trace is a sequence of loads and stores ([`Op`]). Whatever consumes one is a [`Visit`]: the
//! decoder is generic over it and calls it once for each operation, so that replay, statistics and
//! conversion share one loop and pay for no dispatch. Nothing here needs a particular operating
//! system, and nothing here measures.

pub mod decode;
pub mod file;
pub mod image;
pub mod map;
pub mod op;
pub mod raw;
pub mod stats;
pub mod synth;

pub use op::{Access, Op, Visit, Width};
pub use raw::{Halt, RecordError};
