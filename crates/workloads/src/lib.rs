//! The workloads: a folder for each collection, the needs that they have, and the suites.
//!
//! The one idea: what can be measured is a visible list, [`WORKLOADS`]; what the host is asked for
//! is another, [`CATALOGUE`]. How it is measured is `pagelab-bench`'s.

use pagelab_bench::{Row, Table, workload::find};

mod catalogue;
pub mod fault;
pub mod limit;
pub mod suites;

pub use catalogue::{CATALOGUE, catalogue};

/// The workloads that are in no part yet, in the order of `list`.
pub const WORKLOADS: Table = &[
    &limit::timer::TIMER,
    &limit::syscall::SYSCALL,
    &limit::bulk::CLEAR,
    &limit::bulk::COPY,
    &limit::bulk::READ,
    &fault::throughput::THROUGHPUT,
    &fault::latency::LATENCY,
    &fault::userfaultfd::USERFAULTFD,
    &fault::stages::STAGES,
    &fault::path::PATH,
];

/// The workload of that name.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn workload(name: &str) -> Result<Row, String> {
    find(WORKLOADS, name)
}

#[cfg(test)]
mod tests;
