//! Traces as inputs of cases, and `trace/stats`, the workload that looks at one.
//!
//! [`Source`] says where a trace comes from, [`Wanted`] gets it there, [`Tally`] tells whether two
//! copies are the same trace.

mod door;
pub mod image;
pub mod inputs;
pub mod load;
pub mod params;
mod source;
pub mod stats;
pub mod stream;
mod tables;
mod tally;

pub use door::generators;
pub use inputs::{Medium, Trace, Wanted};
pub use source::Source;
pub use tables::{counters as stats_counters, stats_of, tables as stats_tables};
pub use tally::{Counter, Tally};
