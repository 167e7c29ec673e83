//! The stacks of a program, folded for flame graphs.
//!
//! The one idea: a line is a stack, from the outermost function to the one that faulted, and what
//! its faults cost in nanoseconds: a flame graph of it shows stall. What has no price counts by
//! what was seen of it.

use pagelab_record::vocabulary::table::STACK;

use super::{WORKLOAD, groups, prices::Prices, section::all_places};
use pagelab_report::{Run, visible};

/// Every stack with its weight, a line each, in order of name; empty where none is known.
pub fn folded(run: &Run) -> String {
    let prices = Prices::of(&run.entries);
    let programs = run.valid(WORKLOAD).into_iter();
    let lines = programs.filter_map(|entry| entry.measured()).flat_map(|measured| {
        let places = all_places(measured, &groups(measured, &prices), STACK).into_iter();
        let weighed = places.map(|place| {
            let ns = place.cost.map_or(place.seen, |cost| cost.value);
            format!("{} {ns:.0}\n", place.name)
        });
        weighed.collect::<Vec<_>>()
    });
    let mut lines: Vec<String> = lines.filter(|line| !line.ends_with(" 0\n")).collect();
    lines.sort_unstable();
    visible(&lines.concat())
}
