//! The workloads, and the one loop that measures them.
//!
//! A [`Workload`] turns a case into trials, one for each arm; [`measure`] repeats them in a fresh
//! process and [`runner`] turns what comes back into a record. Nothing here draws or prints.

pub mod asked;
mod catalogue;
pub mod count;
pub mod emu;
pub mod fault;
mod grid;
pub mod inputs;
pub mod limit;
pub mod measure;
pub mod memtype;
pub mod meter;
pub mod need;
pub mod needs;
pub mod params;
pub mod partial;
pub mod plan;
pub mod remedy;
mod request;
pub mod runner;
mod same;
pub mod suite;
pub mod suites;
pub mod tier;
pub mod trace;
pub mod workload;

pub use catalogue::{CATALOGUE, catalogue};
pub use need::{Need, Needed};
pub use params::{Kind, Param, Role};
pub use remedy::Remedy;
pub use workload::{Error, Trial, Workload};

/// Every workload, in the order `pagelab list` prints them.
///
/// Help, completion, documentation and tests are views of this list.
pub const WORKLOADS: workload::Table = &[
    &limit::timer::Timer,
    &limit::syscall::Syscall,
    &limit::bulk::CLEAR,
    &limit::bulk::COPY,
    &limit::bulk::READ,
    &fault::throughput::Throughput,
    &fault::latency::Latency,
    &fault::userfaultfd::Userfaultfd,
    &fault::stages::Stages,
    &emu::replay::EmuReplay,
    &emu::verify::EmuVerify,
    &trace::stats::TraceStats,
    &memtype::bandwidth::Bandwidth,
    &memtype::latency::Latency,
    &memtype::order::Order,
    &tier::simulation::Simulation,
];

/// The workload of that name.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn workload(name: &str) -> Result<workload::Row, String> {
    workload::find(WORKLOADS, name)
}

#[cfg(test)]
mod tests;
