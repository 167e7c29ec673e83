//! What pagelab consists of, for Python: the tables of its parts.

use std::sync::LazyLock;

use pagelab_bench::{Row, workload::find};
use pagelab_report::{self as report, VIEWS, Views};
use pagelab_workloads::LATER;

/// Every workload.
pub(crate) static WORKLOADS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let emulation = pagelab_emulation::PART.workloads;
    pagelab_workloads::WORKLOADS.iter().chain(emulation).chain(LATER).copied().collect()
});

/// What is shown of every workload.
pub(crate) fn views() -> Views {
    let [program, emulation, memtype] =
        [pagelab_program::PART, pagelab_emulation::PART, pagelab_memtype::PART];
    let tables = [program.views, VIEWS, emulation.views, memtype.views, report::LATER];
    Views::new(tables.into_iter().flatten(), default_of)
}

/// The default of a parameter, where it has one.
pub(crate) fn default_of(workload: &str, parameter: &str) -> Option<&'static str> {
    let row = find(&WORKLOADS, workload).ok()?;
    row.params().iter().find(|param| param.name == parameter).map(|param| param.default)
}
