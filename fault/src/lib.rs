//! What a page fault costs: how many a second, how long one takes, and what the kernel executes
//! for it; and the limits of the machine that all of it is set against.
//!
//! What faults are measured on is `pagelab-mappings`: address space, kinds, rounds. The workloads
//! differ in where they read the clock.

mod arms;
mod ballast;
mod c_loop;
pub mod latency;
pub mod limit;
mod note;
pub mod path;
mod peers;
mod refused;
mod requirements;
mod samples;
pub mod stages;
pub mod stalls;
pub mod throughput;
pub mod userfaultfd;
mod views;

use std::process::ExitCode;

use pagelab_bench::Table;
use pagelab_cli::{Hidden, Part, publication, settings::CASE_COMMAND};

pub use self::views::throughput::{FAULT_IN, release_per_page};

use self::path::guest;

/// The part of pagelab that is about faults and the limits of a machine.
pub const PART: Part = Part {
    workloads: WORKLOADS,
    requirements: requirements::REQUIREMENTS,
    views: views::VIEWS,
    examples: include_str!("examples.txt"),
    suites: SUITES,
    publications: &[
        publication!("micro-pagefault", "report.j2"),
        publication!("page-fault-latency"),
    ],
    hidden: &[Hidden { is_it: guest::is_first, main: first_process }],
    ..Part::NONE
};

/// What reports show of workers and of fits over page sizes: a row of its own, because it comes
/// behind what takes faults in segments.
pub const FITS: Part = Part { views: views::FITS, ..Part::NONE };

/// In the order of `list`.
const WORKLOADS: Table = &[
    &limit::timer::TIMER,
    &limit::syscall::SYSCALL,
    &limit::bulk::CLEAR,
    &limit::bulk::COPY,
    &limit::bulk::READ,
    &throughput::THROUGHPUT,
    &latency::LATENCY,
    &userfaultfd::USERFAULTFD,
    &stages::STAGES,
    &path::PATH,
];

const SUITES: &[(&str, &str)] = &[
    ("limits", include_str!("../../suites/limits.toml")),
    ("micro-pagefault", include_str!("../../suites/micro-pagefault.toml")),
    ("page-fault-latency", include_str!("../../suites/page-fault-latency.toml")),
];

/// The first process of a machine that is watched.
fn first_process() -> ExitCode {
    guest::main(CASE_COMMAND)
}

#[cfg(test)]
mod tests;
