//! Cases that are carried out in this process: simulations, statistics and replays.
//!
//! The one idea: a case is what `pagelab run` would make of the same parameters, and goes through
//! the same loop with the same proof; a result whose proof does not hold is an error, not a number.

use ::sobol::{Sobol, params::JoeKuoD6};
use pagelab_bench::{
    Inputs, Row,
    measure::measure,
    plan::{Overrides, Planned},
    results::Origin,
    runner::Runner,
};
use pagelab_emulation::{
    emu::replay::REPLAY,
    trace::{params::Asked, stats::STATS, stats_of},
};
use pagelab_record::{Clock, Data, Measured, Outcome};
use pagelab_sys::time::ClockChoice;
use pagelab_tiering::simulation::SIMULATION;
use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    types::{PyDict, PyList},
};

use crate::{
    arguments::{case, pairs},
    run::Run,
};

/// What came of an arm: its name, and counts by name.
type Outcomes = Vec<(String, Vec<(String, u64)>)>;

/// Simulates a case; a dictionary for each of its arms.
#[pyfunction]
pub(crate) fn simulate<'py>(point: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyList>> {
    let pairs = pairs(point)?;
    let arms = point.py().detach(|| simulated(&pairs))?;
    rows(point.py(), arms)
}

/// Simulates many, one after the other; what came of one that makes no sense is why.
#[pyfunction]
pub(crate) fn simulate_all<'py>(
    py: Python<'py>,
    points: Vec<Bound<'py, PyDict>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let texts = points.iter().map(pairs).collect::<PyResult<Vec<_>>>()?;
    let came: Vec<_> = py.detach(|| texts.iter().map(|pairs| simulated(pairs)).collect());
    let row = |arms: PyResult<Outcomes>| match arms {
        Ok(arms) => Ok(rows(py, arms)?.into_any()),
        Err(error) => Ok(error.value(py).str()?.into_any()),
    };
    came.into_iter().map(row).collect()
}

fn rows(py: Python<'_>, arms: Outcomes) -> PyResult<Bound<'_, PyList>> {
    let row = |(arm, counts): (String, Vec<(String, u64)>)| {
        let row = PyDict::new(py);
        row.set_item("arm", arm)?;
        counts.into_iter().try_for_each(|(name, count)| row.set_item(name, count))?;
        Ok(row)
    };
    PyList::new(py, arms.into_iter().map(row).collect::<PyResult<Vec<_>>>()?)
}

/// One case without a record: to find out what a machine is takes longer than a small simulation.
fn simulated(pairs: &[(String, String)]) -> PyResult<Outcomes> {
    let planned = case(&SIMULATION, pairs, ClockChoice::Raw, Overrides::default())?;
    let failed = |error: &dyn std::fmt::Display| PyRuntimeError::new_err(error.to_string());
    let inputs = Inputs::none().map_err(|error| failed(&error))?;
    let (measured, constants) =
        measure(planned.workload, &planned.case, &planned.method, 0, inputs)
            .map_err(|error| failed(&error))?;
    proven(&measured)?;
    let times = measured.series.iter().filter(|series| series.clock == Clock::Scripted);
    let of_arm = |series: &pagelab_record::Series| {
        let time = match &series.data {
            Data::Values(values) => values.first().copied().unwrap_or_default(),
            _ => 0,
        };
        let ending = format!("/{}", series.arm);
        let counters = constants
            .iter()
            .filter_map(|(name, count)| Some((name.strip_suffix(&ending)?.to_owned(), *count)));
        let counts = [("time_ns".to_owned(), time)].into_iter().chain(counters);
        (series.arm.clone(), counts.collect())
    };
    Ok(times.map(of_arm).collect())
}

fn proven(measured: &Measured) -> PyResult<()> {
    measured.broken().next().map_or(Ok(()), |claim| {
        Err(PyRuntimeError::new_err(format!("{claim}; there is no number")))
    })
}

/// A case of this process, with its record; what it lacks or how it failed is an error.
fn recorded(row: Row, keywords: &Bound<'_, PyDict>, over: Overrides) -> PyResult<Run> {
    let pairs = pairs(keywords)?;
    keywords.py().detach(|| {
        let planned = case(row, &pairs, ClockChoice::of_this_machine(), over)?;
        fits(&planned)?;
        let origin = Origin::here().map_err(PyRuntimeError::new_err)?;
        let record = Runner::new(&origin.run(), &[], &[]).run_here(&planned);
        match &record.outcome {
            Outcome::Measured(_) => Ok(Run::of(record)),
            Outcome::Skipped { need, cure } => {
                Err(PyRuntimeError::new_err(format!("needs {need}: {cure}")))
            }
            Outcome::Failed { reason } => Err(PyRuntimeError::new_err(reason.clone())),
        }
    })
}

/// A trace that cannot be read is a mistake of who names it.
fn fits(planned: &Planned) -> PyResult<()> {
    let asked = Asked::of(&planned.case);
    asked.source.check().map_err(PyValueError::new_err)
}

/// Statistics of a trace, as JSON.
#[pyfunction]
pub(crate) fn trace_stats(keywords: &Bound<'_, PyDict>) -> PyResult<String> {
    let run = recorded(&STATS, keywords, Overrides::default())?;
    let record = run.only();
    let Some(measured) = record.measured() else { unreachable!("it was measured") };
    proven(measured)?;
    let stats = stats_of(&record.case, measured);
    serde_json::to_string(&stats).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Replays of a trace, timed in this process.
#[pyfunction]
pub(crate) fn replay(keywords: &Bound<'_, PyDict>, budget: f64) -> PyResult<Run> {
    let budget = format!("{budget}")
        .parse()
        .map_err(|why| PyValueError::new_err(format!("budget: {why}")))?;
    recorded(&REPLAY, keywords, Overrides { budget: Some(budget), ..Overrides::default() })
}

/// The first points of a Sobol sequence in so many dimensions, each coordinate from 0 to below 1.
#[pyfunction]
pub(crate) fn sobol(dimensions: usize, count: usize) -> PyResult<Vec<Vec<f64>>> {
    const MOST: usize = 100;
    if !(1..=MOST).contains(&dimensions) {
        return Err(PyValueError::new_err(format!(
            "{dimensions} dimensions: a Sobol sequence has 1 to {MOST} here"
        )));
    }
    Ok(Sobol::<f64>::new(dimensions, &JoeKuoD6::minimal()).take(count).collect())
}
