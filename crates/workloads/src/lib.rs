//! The workloads that are in no part yet: a folder for each collection.

use pagelab_bench::Table;

/// The workloads that are in no part yet, in the order of `list`.
pub const WORKLOADS: Table = &[];
