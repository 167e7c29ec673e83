//! `pagelab fleet`: the same work over many machines, for whatever starts commands on them.
//!
//! The one idea: a contract of files, and no engine. A list of tasks never changes; a task leaves
//! one file for each machine and boot, under its own name, written beside and renamed. So whoever
//! is killed is started again, and what is there is not measured twice.

mod exec;
mod merge;
mod plan;

use std::path::Path;

use pagelab_bench::tasks::List;

use crate::{args::Row, exit::Failure};

/// The commands of `pagelab fleet`.
pub(super) const ROW: Row = Row::group(
    "fleet",
    "The same work over many machines: cut it into tasks, run a shard, put it together",
    &[
        Row::of::<plan::Plan>("plan"),
        Row::of::<exec::Exec>("exec"),
        Row::of::<merge::Merge>("merge"),
    ],
);

/// The list of tasks in a folder, as text and read.
///
/// # Errors
/// When there is none, it is damaged, or it is of another version.
fn list_in(folder: &Path) -> Result<(String, List), Failure> {
    List::read(folder).map_err(Failure::from)
}
