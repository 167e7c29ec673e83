//! What translation costs a load: TLBs, and the walks of those that miss them.
//!
//! [`chase`] measures it, `view` shows it, and [`prices`] makes of its records what a page size
//! costs at any distance, which the part of programs asks for.

pub mod chase;
mod course;
mod ground;
pub mod prices;
mod view;

use pagelab_bench::Table;
use pagelab_cli::Part;
use pagelab_record::vocabulary::series::LOAD;
use pagelab_report::{Derive::Alone, Sections::Each, Time, View};

/// The workload, as records call it.
pub const WORKLOAD: &str = "tlb/chase";

/// The part of pagelab that is about translation.
pub const PART: Part = Part {
    workloads: WORKLOADS,
    views: VIEWS,
    examples: include_str!("examples.txt"),
    ..Part::NONE
};

/// In the order of `list`.
const WORKLOADS: Table = &[&chase::CHASE];

/// In the order of reading.
const VIEWS: &[View] = &[View {
    workloads: &[WORKLOAD],
    main: &[(LOAD, Time::Elapsed)],
    short: &["page", "size"],
    derive: &[Alone(view::derive)],
    sections: Each(&[view::section]),
    headlines: view::headlines,
    ..View::NONE
}];

#[cfg(test)]
mod tests;
