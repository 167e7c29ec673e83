//! Keywords of Python as parameters of a workload.
//!
//! The one idea: a value is what one would write on the command line: text as it is, a number as
//! its digits, a list with commas between. Whether it makes sense is for the workload to say.

use pagelab_bench::{
    Param, Row,
    plan::{self, Overrides, Plan, Planned},
    suite::Entry,
};
use pagelab_sys::time::ClockChoice;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple},
};

/// Names and values, as text.
pub(crate) type Pairs = Vec<(String, String)>;

/// Reads keywords; an underscore in a name is a hyphen.
///
/// # Errors
/// `TypeError` for what is no text, number or list of those.
pub(crate) fn pairs(keywords: &Bound<'_, PyDict>) -> PyResult<Pairs> {
    keywords
        .iter()
        .map(|(name, value)| {
            let name = name.extract::<String>()?.replace('_', "-");
            let value = text(&value).map_err(|error| {
                PyTypeError::new_err(format!("{name}: {}", error.value(value.py())))
            })?;
            Ok((name, value))
        })
        .collect()
}

fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let items = |items: Vec<Bound<'_, PyAny>>| -> PyResult<String> {
        Ok(items.iter().map(text).collect::<PyResult<Vec<_>>>()?.join(","))
    };
    if let Ok(list) = value.cast::<PyList>() {
        return items(list.iter().collect());
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return items(tuple.iter().collect());
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(if flag.is_true() { "on" } else { "off" }.to_owned());
    }
    let is_known = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
        || value.hasattr("__fspath__")?
        || value.hasattr("__index__")?
        || value.hasattr("__float__")?;
    if is_known {
        return value.str()?.extract();
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!("expected text, a number or a list of those, not {kind}")))
}

/// The one case of a workload that these parameters name.
///
/// # Errors
/// `ValueError` with a sentence that names the parameter and what is accepted.
pub(crate) fn case(
    row: Row,
    pairs: &[(String, String)],
    clock: ClockChoice,
    over: Overrides,
) -> PyResult<Planned> {
    let axes = pairs.iter().map(|(name, value)| {
        let known = row.params().iter().find(|param| param.name == name);
        let whole = known.is_some_and(|param: &Param| param.kind.has_commas());
        let values = if whole { vec![value.clone()] } else { split(value) };
        (name.clone(), values)
    });
    let entry = Entry::new(row, axes.collect());
    let Plan { mut cases, left_out } =
        plan::of_cases(&entry, clock, over).map_err(PyValueError::new_err)?;
    match (cases.pop(), cases.len()) {
        (Some(planned), 0) => Ok(planned),
        (None, _) => Err(PyValueError::new_err(left_out.join("; "))),
        (Some(_), more) => Err(PyValueError::new_err(format!(
            "these are {} cases of {}, and one is asked for: a list is for what is compared inside \
             a case",
            more + 1,
            row.name()
        ))),
    }
}

fn split(value: &str) -> Vec<String> {
    value.split(',').map(ToOwned::to_owned).collect()
}
