//! Memory traces: the raw format, files, statistics and generators.
//!
//! A trace is a sequence of loads and stores ([`Op`]). Whatever consumes one is a [`Visit`]: the
//! decoder is generic over it and calls it once for each operation, so that replay, statistics and
//! conversion share one loop and pay for no dispatch. Nothing here needs a particular operating
//! system, and nothing here measures.
//!
//! # Made
//!
//! A generator is named by a text, and the same text gives the same operations everywhere.
//!
//! ```
//! use pagelab_trace::{Op, Visit, Width, file::Encoder, synth::Spec};
//!
//! let spec = Spec::parse("zipf:footprint=64m,stores=0.3")?.with_ops(1000);
//! let trace: Vec<u8> = spec.stream().flatten().collect();
//!
//! // Or operation by operation: an encoder is a visitor.
//! let mut encoder = Encoder::new(trace);
//! let Ok(()) = Op::store(0x1000, Width::W8, 42).visit(&mut encoder);
//! assert!(encoder.bytes().ends_with(&42_u64.to_le_bytes()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Read
//!
//! ```
//! use std::convert::Infallible;
//! use pagelab_trace::{Visit, decode, synth::Spec};
//!
//! /// Bytes that a trace stores.
//! struct Stored(u64);
//!
//! impl Visit for Stored {
//!     type Stop = Infallible;
//!
//!     fn load<const N: usize>(&mut self, _: u64) -> Result<(), Infallible> {
//!         Ok(())
//!     }
//!
//!     fn store<const N: usize>(&mut self, _: u64, _: [u8; N]) -> Result<(), Infallible> {
//!         self.0 += N as u64;
//!         Ok(())
//!     }
//! }
//!
//! let spec = Spec::parse("sequential:stores=1")?.with_ops(10);
//! let trace: Vec<u8> = spec.stream().flatten().collect();
//! let mut stored = Stored(0);
//! let used = decode::visit(&trace, 0, &mut stored)?;
//! assert_eq!((used, stored.0), (trace.len(), 80));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Written, and read from a file
//!
//! The name of a file says how it is compressed when it is written, and its first bytes when it is
//! read. A file is read in pieces, however long it is.
//!
//! ```
//! use pagelab_trace::{file::{self, Writer}, stats::{Collector, Options}, synth::Spec};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("trace.bin.zst");
//! let mut writer = Writer::new(file::create(std::fs::File::create(&path)?, &path)?);
//! for piece in Spec::parse("fib")?.with_ops(1000).stream() {
//!     pagelab_trace::decode::visit(&piece, 0, &mut writer)?;
//! }
//! writer.finish()?.finish()?;
//!
//! let mut collector = Collector::new(&Options::default())?;
//! let streamed = file::open(&path)?.stream(&mut collector, |_| {})?;
//! let stats = collector.finish(streamed.trailing as u64);
//! assert_eq!((stats.ops, stats.writes), (1000, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! None is on by default. `gz`, `xz` and `zst` read and write compressed files, `elf` reads images
//! of programs, `serde` makes statistics `Serialize`. What a file needs and a build lacks is an
//! error that names the feature. `examples/read.rs` is a whole program.

pub mod decode;
pub mod file;
pub mod image;
pub mod op;
pub mod raw;
pub mod stats;
pub mod synth;

pub use op::{Access, Op, Visit, Width};
pub use raw::{Halt, RecordError};
