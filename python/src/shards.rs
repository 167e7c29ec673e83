//! Parts of a trace's statistics: collected anywhere, put together here.

use std::path::PathBuf;

use pagelab_trace::{
    file::{Start, span},
    stats::{Collector, Options, Part, Stack, Whole},
};
use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    types::PyBytes,
};
use serde::{Deserialize, Serialize};

/// A part on its way: where it lies in the trace, and what it holds.
#[derive(Serialize, Deserialize)]
struct Shard {
    from: u64,
    to: u64,
    trailing: u64,
    part: Part,
}

/// Options as Python says them: page shift, top, caches, one page in so many of the stacks (0 for
/// none), TLBs.
type Asked = (u32, usize, Vec<u64>, u64, bool);

fn options((page_shift, top, caches, one_in, tlb): Asked) -> Options {
    let stack = match one_in {
        0 => Stack::Off,
        1 => Stack::Exact,
        one_in => Stack::Sampled { one_in },
    };
    Options { page_shift, top, caches, stack, tlb }
}

fn bad(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Collects the operations that begin in a range of bytes, as a shard; `exact` says that a record
/// begins at the first byte.
#[pyfunction]
pub(crate) fn part_of_trace(
    py: Python<'_>,
    path: PathBuf,
    from: u64,
    end: u64,
    exact: bool,
    asked: Asked,
) -> PyResult<Bound<'_, PyBytes>> {
    let bytes = py.detach(|| {
        let mut collector = Collector::new(&options(asked)).map_err(bad)?;
        let start = if exact { Start::At(from) } else { Start::Near(from) };
        let read = span(&path, start, end, &mut collector).map_err(bad)?;
        let (from, to, trailing) = (read.from, read.to, read.trailing);
        postcard::to_allocvec(&Shard { from, to, trailing, part: collector.into_part() })
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    })?;
    Ok(PyBytes::new(py, &bytes))
}

/// Puts shards together, in their order.
#[pyclass(module = "pagelab")]
#[derive(Debug)]
pub(crate) struct Merger {
    whole: Whole,
    at: u64,
    trailing: u64,
}

#[pymethods]
impl Merger {
    #[new]
    fn new(asked: Asked) -> PyResult<Self> {
        Ok(Self { whole: Whole::new(&options(asked)).map_err(bad)?, at: 0, trailing: 0 })
    }

    /// Adds the next shard. Where it does not begin at the end of the one before, nothing is added,
    /// and the byte is returned where it must begin.
    fn append(&mut self, py: Python<'_>, shard: &Bound<'_, PyBytes>) -> PyResult<Option<u64>> {
        let Shard { from, to, trailing, part } =
            postcard::from_bytes(shard.as_bytes()).map_err(bad)?;
        // A shard may lie inside a record of the one before.
        if part.ops > 0 && from != self.at {
            return Ok(Some(self.at));
        }
        py.detach(|| self.whole.append(&part)).map_err(bad)?;
        self.at = self.at.max(to);
        self.trailing = trailing;
        Ok(None)
    }

    /// The statistics of all shards so far, as JSON; nothing can be added then.
    fn finish(&mut self, py: Python<'_>) -> PyResult<String> {
        let empty = Whole::new(&Options::default()).map_err(bad)?;
        let whole = std::mem::replace(&mut self.whole, empty);
        let stats = py.detach(|| whole.finish(self.trailing));
        serde_json::to_string(&stats).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}
