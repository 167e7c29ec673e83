//! What Python sees of pagelab: runs as Arrow, simulation, statistics and replay of traces, and the
//! tasks of a fleet.
//!
//! The one idea: a function takes the parameters of a workload, as text, and calls the same code as
//! the command of that name; whatever takes time is done with the interpreter let go. Everything
//! that is for people (names, defaults, documentation) is in `pagelab/*.py`; nothing here measures
//! by itself, and no number is computed twice.

mod arguments;
mod arrow;
mod cases;
mod fleet;
mod parts;
mod run;
mod shards;

use pyo3::prelude::*;

/// The native half of the package `pagelab`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", pagelab_bench::tasks::VERSION)?;
    module.add_class::<arrow::Table>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<fleet::Plan>()?;
    module.add_class::<shards::Merger>()?;
    module.add_function(wrap_pyfunction!(cases::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(cases::simulate_all, module)?)?;
    module.add_function(wrap_pyfunction!(cases::trace_stats, module)?)?;
    module.add_function(wrap_pyfunction!(cases::replay, module)?)?;
    module.add_function(wrap_pyfunction!(cases::sobol, module)?)?;
    module.add_function(wrap_pyfunction!(shards::part_of_trace, module)?)?;
    Ok(())
}
