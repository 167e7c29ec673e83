//! What this program consists of.

use std::process::ExitCode;

use pagelab_cli::{Hidden, Part, publication, settings::CASE_COMMAND};
use pagelab_report::VIEWS;
use pagelab_workloads::{CATALOGUE, WORKLOADS, fault::path::guest as path, suites};

/// Every part.
pub(crate) const PARTS: &[&Part] = &[
    &pagelab_program::PART,
    &OTHERS,
    &pagelab_segments::PART,
    &FITS,
    &pagelab_emulation::PART,
    &pagelab_memtype::PART,
    &pagelab_translation::PART,
    &pagelab_tiering::PART,
];

/// What has no crate of its own yet.
const OTHERS: Part = Part {
    workloads: WORKLOADS,
    requirements: CATALOGUE,
    views: VIEWS,
    examples: include_str!("examples.txt"),
    suites: suites::BUILT_IN,
    publications: &[
        publication!("micro-pagefault", "report.j2"),
        publication!("page-fault-latency"),
    ],
    hidden: &[Hidden { is_it: path::is_first, main: first_process }],
    ..Part::NONE
};

/// What stands behind segments.
const FITS: Part = Part { views: pagelab_report::FITS, ..Part::NONE };

/// The first process of a machine that is watched.
fn first_process() -> ExitCode {
    path::main(CASE_COMMAND)
}

#[cfg(test)]
mod tests;
