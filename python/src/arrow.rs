//! A table that any library takes through Arrow's C stream, copied nowhere on the way.
//!
//! The one idea: a capsule is all that leaves; who receives it frees it. No library of Arrow's is
//! needed to make one, and none is imported.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, ffi_stream::FFI_ArrowArrayStream};
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::{exceptions::PyValueError, prelude::*, types::PyCapsule};

/// A table of named columns, for any library that takes Arrow's C stream.
///
/// `pandas.DataFrame.from_arrow(table)`, `polars.DataFrame(table)`, `pyarrow.table(table)`, and in
/// DuckDB `from table`. None of them is required.
#[pyclass(frozen, module = "pagelab")]
#[derive(Debug)]
pub(crate) struct Table(RecordBatch);

impl Table {
    /// A table of these columns, all as long as each other; any may hold nothing in a row.
    pub(crate) fn of(columns: Vec<(&str, ArrayRef)>) -> PyResult<Self> {
        let columns = columns.into_iter().map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(columns).map(Self).map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<pagelab.Table of {} rows: {}>", self.0.num_rows(), self.column_names().join(", "))
    }

    /// The schema, as Arrow's C data interface has it.
    pub(crate) fn __arrow_c_schema__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, as Arrow's C stream interface has them; who asks for another schema gets this one,
    /// as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    pub(crate) fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let (batch, schema) = (self.0.clone(), self.0.schema());
        let batches = RecordBatchIterator::new([Ok(batch)], Arc::clone(&schema));
        PyCapsule::new_with_value(
            py,
            FFI_ArrowArrayStream::new(Box::new(batches)),
            c"arrow_array_stream",
        )
    }
}
