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
pub(crate) fn part_of_trace<'py>(
    py: Python<'py>,
    path: PathBuf,
    from: u64,
    end: u64,
    exact: bool,
    asked: Asked,
) -> PyResult<Bound<'py, PyBytes>> {
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

/// Puts shards together that follow each other; the first one that does not meet the one before is
/// told by its place and the byte where it must begin, and nothing else is done.
///
/// Returns the statistics as JSON, or that place and that byte.
#[pyfunction]
pub(crate) fn merged(
    py: Python<'_>,
    shards: Vec<Bound<'_, PyBytes>>,
    asked: Asked,
) -> PyResult<(Option<String>, Option<(usize, u64)>)> {
    let mut whole = Whole::new(&options(asked)).map_err(bad)?;
    let (mut at, mut trailing) = (0, 0);
    for (place, bytes) in shards.iter().enumerate() {
        let shard: Shard = postcard::from_bytes(bytes.as_bytes())
            .map_err(|error| bad(format!("shard {place}: {error}")))?;
        // A shard may be all inside a record of the one before.
        if shard.part.ops > 0 && shard.from != at {
            return Ok((None, Some((place, at))));
        }
        py.detach(|| whole.append(&shard.part))
            .map_err(|misfit| bad(format!("shard {place}: {misfit}")))?;
        at = at.max(shard.to);
        trailing = shard.trailing;
    }
    let stats = py.detach(|| whole.finish(trailing));
    let text = serde_json::to_string(&stats);
    text.map(|text| (Some(text), None)).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
