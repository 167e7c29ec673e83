//! Tasks of a fleet's plan, as a driver in Python sees them.
//!
//! The one idea: the plan and its results are those of `pagelab fleet`. What is a model or a count
//! is carried out here and leaves the same file; what is measured is left to the static binary.

use std::path::PathBuf;

use pagelab_bench::{
    measure::Method,
    plan::{Planned, again},
    results::{self, Origin},
    runner::Runner,
    tasks::{Head, List, Task, VERSION},
};
use pagelab_cli::part;
use pagelab_record::{RunHeader, schema::RUN_SCHEMA};
use pagelab_sys::time::ClockChoice;
use pyo3::{exceptions::PyValueError, prelude::*};

/// A plan that was read.
#[pyclass(frozen, module = "pagelab")]
#[derive(Debug)]
pub(crate) struct Plan {
    text: String,
    list: List,
}

#[pymethods]
impl Plan {
    /// Reads the folder of a plan.
    #[staticmethod]
    fn load(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        let (text, list) = py.detach(|| List::read(&folder)).map_err(PyValueError::new_err)?;
        Ok(Self { text, list })
    }

    /// Reads the text of a plan.
    #[staticmethod]
    fn parse(py: Python<'_>, text: String) -> PyResult<Self> {
        let list = py.detach(|| List::parse(&text, VERSION));
        let list = list.map_err(|(line, why)| PyValueError::new_err(format!("line {line}: {why}")));
        list.map(|list| Self { text, list })
    }

    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    #[getter]
    fn shards(&self) -> u32 {
        self.list.head.shards.get()
    }

    /// Of each task its name, whether it is measured, and seconds that it takes, roughly.
    fn tasks(&self, py: Python<'_>) -> PyResult<Vec<(String, bool, f64)>> {
        let of = |task: &Task| {
            let planned = planned(task, ClockChoice::Raw)?;
            let is_measured = planned.workload.about().is_measured;
            Ok((task.id.clone(), is_measured, planned.estimated_seconds()))
        };
        let all: Result<_, String> = py.detach(|| self.list.tasks.iter().map(of).collect());
        all.map_err(PyValueError::new_err)
    }

    /// The plan of some of its tasks, as text.
    fn part(&self, names: Vec<String>) -> PyResult<String> {
        let is_wanted = |task: &&Task| names.contains(&task.id);
        let tasks: Vec<Task> = self.list.tasks.iter().filter(is_wanted).cloned().collect();
        let head = Head { tasks: tasks.len(), ..self.list.head.clone() };
        let mut text = Vec::new();
        let written = List { head, tasks }.write(&mut text);
        let text = written.and_then(|()| String::from_utf8(text).map_err(std::io::Error::other));
        text.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Carries out all tasks in this process; of each the name of its file and what belongs into
    /// it.
    fn carry_out(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let came: Result<Vec<_>, String> = py.detach(|| {
            let origin = Origin::here()?;
            let runner = Runner::new(&origin.run(), &[], &[]);
            let header = self.header(&origin);
            let one = |task: &Task| {
                let named = |why| format!("task {}: {why}", task.id);
                task.check_files().map_err(named)?;
                let planned = planned(task, ClockChoice::of_this_machine()).map_err(named)?;
                let record = runner.run_here(&planned);
                Ok((origin.file(&task.id), results::text(&header, task, &record)))
            };
            self.list.tasks.iter().map(one).collect()
        });
        came.map_err(PyValueError::new_err)
    }

    /// The task and the host whose result a file of this name would be.
    #[staticmethod]
    fn of_file(name: &str) -> Option<(String, String)> {
        let (task, origin) = Origin::of_file(name)?;
        Some((task.to_owned(), origin.run()))
    }

    /// This host since it booted, as names of results say it.
    #[staticmethod]
    fn here() -> PyResult<String> {
        Origin::here().map(|origin| origin.run()).map_err(PyValueError::new_err)
    }
}

impl Plan {
    fn header(&self, origin: &Origin) -> RunHeader {
        let head = &self.list.head;
        RunHeader {
            schema: RUN_SCHEMA.to_owned(),
            run: origin.run(),
            pagelab: VERSION.to_owned(),
            suite: head.suite.clone(),
            published: head.published.clone(),
            ..RunHeader::default()
        }
    }
}

fn planned(task: &Task, clock: ClockChoice) -> Result<Planned, String> {
    let method = Method { forks: 1, ..task.method };
    again(part::workloads(), &task.workload, &task.case, method, clock)
}
