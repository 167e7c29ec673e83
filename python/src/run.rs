//! A run: its records, and its numbers as tables.
//!
//! The one idea: [`Report`] derives every number, for Python as for the terminal; a run of several
//! hosts is a report of each, so that no host's numbers stand for another's. A record that is not
//! valid has no numbers here either.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray, UInt32Array, UInt64Array};
use pagelab_record::{
    Clock, Data, Measured, Nature, Outcome, Record, RunHeader, Unit,
    journal::{self, Damage},
    latency, units,
};
use pagelab_report::{Forms, Line, Report, Style, Told};
use pyo3::{
    exceptions::{PyOSError, PyValueError},
    prelude::*,
    types::PyCapsule,
};

use crate::{
    arrow::Table,
    parts::{default_of, views},
};

/// A run: its records, and its numbers as tables.
///
/// pandas, polars and DuckDB take it as it is (Arrow's C stream), as the table of `numbers()`.
/// `str(run)` is the report for a terminal.
#[pyclass(frozen, module = "pagelab")]
#[derive(Debug)]
pub(crate) struct Run {
    header: RunHeader,
    records: Vec<Record>,
    damage: Option<Damage>,
}

impl Run {
    /// A run of one record.
    pub(crate) fn of(record: Record) -> Self {
        let header = RunHeader {
            schema: pagelab_record::schema::RUN_SCHEMA.to_owned(),
            run: record.run.clone(),
            pagelab: pagelab_bench::tasks::VERSION.to_owned(),
            plan: vec![(record.workload.clone(), record.case.clone())],
            ..RunHeader::default()
        };
        Self { header, records: vec![record], damage: None }
    }

    /// Its record, of a run that has one.
    pub(crate) fn only(&self) -> &Record {
        &self.records[0]
    }

    /// The hosts, each once.
    fn host_names(&self) -> BTreeSet<Option<&str>> {
        self.records.iter().map(|record| record.host.name()).collect()
    }

    /// The report of one host.
    fn report(&self, host: Option<&str>) -> Report {
        let mine = self.records.iter().filter(|record| record.host.name() == host);
        let mine: Vec<Record> = mine.cloned().collect();
        Report::of(&self.header, &mine, self.damage.as_ref(), &[], &views())
    }

    /// Records that ran and whose numbers may be quoted, with their places.
    fn valid(&self) -> impl Iterator<Item = (u32, &Record, &Measured)> {
        (0..).zip(&self.records).filter_map(|(place, record)| match &record.outcome {
            Outcome::Measured(measured)
                if measured.is_valid() && record.nature != Nature::Emulated =>
            {
                Some((place, record, measured))
            }
            _ => None,
        })
    }
}

#[pymethods]
impl Run {
    /// Reads the directory of a run, or its journal; `pagelab.load` is this.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let contents = py.detach(|| journal::read(&path)).map_err(|error| match error {
            journal::JournalError::Io { .. } => PyOSError::new_err(error.to_string()),
            _ => PyValueError::new_err(error.to_string()),
        })?;
        let (header, records, damage) = (contents.header, contents.records, contents.damage);
        Ok(Self { header, records, damage })
    }

    /// What the run is called.
    #[getter]
    fn name(&self) -> &str {
        &self.header.run
    }

    /// Where the journal stops being readable, and why; None where it is whole.
    #[getter]
    fn damage(&self) -> Option<String> {
        self.damage.as_ref().map(|damage| format!("line {}: {}", damage.line, damage.why))
    }

    /// The names of the hosts that the records are of, sorted.
    #[getter]
    fn hosts(&self) -> Vec<&str> {
        self.host_names().into_iter().flatten().collect()
    }

    /// The records, in the order of the journal: a list of dictionaries as docs/record.md has them.
    fn records<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let loads = py.import("json")?.getattr("loads")?;
        let read = |record: &Record| {
            let text = serde_json::to_string(record);
            let text = text.map_err(|error| PyValueError::new_err(error.to_string()))?;
            loads.call1((text,))
        };
        self.records.iter().map(read).collect()
    }

    /// The schema of `numbers()`.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.numbers(py)?.__arrow_c_schema__(py)
    }

    /// The rows of `numbers()`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.numbers(py)?.__arrow_c_stream__(py, requested_schema)
    }

    fn __len__(&self) -> usize {
        self.records.len()
    }

    fn __repr__(&self) -> String {
        let hosts = self.hosts().join(", ");
        format!("<pagelab.Run {} of {} records from {hosts}>", self.name(), self.records.len())
    }

    /// The report for a terminal, of each host.
    fn __str__(&self, py: Python<'_>) -> String {
        let style = Style { color: false, width: 100 };
        py.detach(|| {
            let reports = self.host_names().into_iter();
            reports.map(|host| self.report(host).terminal(style)).collect()
        })
    }

    /// Every derived number with its interval, a row each.
    ///
    /// Columns: run, host, workload, one for each parameter that varies (whole numbers or numbers
    /// in base units: bytes, ns, shares of 1; else text), standing, nature, arm, series, time,
    /// statistic, value, low, high (float64; the ends of the 95 % interval, the same where there
    /// is none), unit (ns, ticks, 1/s, B/s, share, ratio, count). A record that is skipped, failed
    /// or not valid has one row without a number.
    fn numbers(&self, py: Python<'_>) -> PyResult<Table> {
        let (axes, lines) = py.detach(|| self.lines());
        numbers(&axes, &lines)
    }

    /// Every observation, as it was kept: what a distribution is drawn of.
    ///
    /// Columns: record (place in `records()`), host, workload, case (what is not as by default, as
    /// text), arm, series, clock (tsc, wall, cpu, scripted), unit (ns, ticks, bytes, pages, count),
    /// process, repetition, ops and bytes that one observation covers, value (uint64, in `unit`),
    /// and count: how many observations have it. Those of histograms are at most 1 % too large.
    /// Raises ValueError where a histogram cannot be read.
    fn observations(&self, py: Python<'_>) -> PyResult<Table> {
        let all = py.detach(|| {
            let mut all = Observations::default();
            for (place, record, measured) in self.valid() {
                all.add(place, record, measured)?;
            }
            Ok::<_, String>(all)
        });
        all.map_err(PyValueError::new_err)?.table()
    }

    /// Every count of every valid record.
    ///
    /// Columns: record (place in `records()`), host, workload, counter (its name; where it is of an
    /// arm, a slash and the arm follow), value (uint64).
    fn counters(&self) -> PyResult<Table> {
        let rows: Vec<_> = self
            .valid()
            .flat_map(|(place, record, measured)| {
                let of = move |(name, value)| (place, record, name, value);
                measured.counters.iter().map(of)
            })
            .collect();
        Table::of(vec![
            ("record", Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.0)))),
            ("host", texts(rows.iter().map(|row| row.1.host.name()))),
            ("workload", texts(rows.iter().map(|row| Some(row.1.workload.as_str())))),
            ("counter", texts(rows.iter().map(|row| Some(row.2.as_str())))),
            ("value", Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| *row.3)))),
        ])
    }
}

impl Run {
    /// The numbers of every host, and the parameters that vary in any of them.
    fn lines(&self) -> (Vec<String>, Vec<Line>) {
        let reports = self.host_names().into_iter().map(|host| self.report(host).lines());
        let reports: Vec<_> = reports.collect();
        let axes: BTreeSet<&String> = reports.iter().flat_map(|lines| &lines.axes).collect();
        let axes: Vec<String> = axes.into_iter().cloned().collect();
        let mut all = Vec::new();
        for report in reports {
            let places: Vec<Option<usize>> = axes
                .iter()
                .map(|axis| report.axes.iter().position(|known| known == axis))
                .collect();
            all.extend(report.lines.into_iter().map(|mut line| {
                let mine = std::mem::take(&mut line.parameters);
                let at = |place: &Option<usize>| mine.get((*place)?).cloned().flatten();
                line.parameters = places.iter().map(at).collect();
                line
            }));
        }
        (axes, all)
    }
}

fn numbers(axes: &[String], lines: &[Line]) -> PyResult<Table> {
    let text = |of: fn(&Line) -> Option<&str>| texts(lines.iter().map(of));
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("run", text(|line| Some(&line.run))),
        ("host", text(|line| line.host.as_deref())),
        ("workload", text(|line| Some(&line.workload))),
    ];
    for (place, axis) in axes.iter().enumerate() {
        columns.push((axis, parameter(lines.iter().map(|line| line.parameters[place].as_deref()))));
    }
    let told = |of: fn(&Told) -> &str| texts(lines.iter().map(|line| line.number.as_ref().map(of)));
    let number = |at: usize| -> ArrayRef {
        let value = |line: &Line| line.number.as_ref().map(|told| told.value[at]);
        Arc::new(lines.iter().map(value).collect::<Float64Array>())
    };
    columns.extend([
        ("standing", text(|line| Some(line.standing))),
        ("nature", text(|line| Some(line.nature))),
        ("arm", told(|told| &told.arm)),
        ("series", told(|told| &told.series)),
        ("time", told(|told| told.time)),
        ("statistic", told(|told| &told.statistic)),
        ("value", number(0)),
        ("low", number(1)),
        ("high", number(2)),
        ("unit", told(|told| told.unit)),
    ]);
    Table::of(columns)
}

fn texts<'t>(values: impl Iterator<Item = Option<&'t str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

/// The values of a parameter: whole numbers or numbers where all of them are, else text.
fn parameter<'t>(values: impl Iterator<Item = Option<&'t str>> + Clone) -> ArrayRef {
    let whole: Result<Int64Array, _> =
        values.clone().map(|value| value.map(str::parse::<i64>).transpose()).collect();
    if let Ok(whole) = whole {
        return Arc::new(whole);
    }
    let real: Result<Float64Array, _> =
        values.clone().map(|value| value.map(str::parse::<f64>).transpose()).collect();
    real.map_or_else(|_| texts(values), |real| Arc::new(real))
}

/// The columns of what was observed.
#[derive(Default)]
struct Observations {
    record: Vec<u32>,
    host: Vec<Option<String>>,
    workload: Vec<String>,
    /// What tells the record from the others of its run, as `name=value` with blanks between.
    case: Vec<String>,
    arm: Vec<String>,
    series: Vec<String>,
    clock: Vec<&'static str>,
    unit: Vec<&'static str>,
    process: Vec<u32>,
    repetition: Vec<u32>,
    ops: Vec<u64>,
    bytes: Vec<u64>,
    value: Vec<u64>,
    count: Vec<u64>,
}

impl Observations {
    /// Adds the observations of a record; those of a histogram that are alike have one row.
    fn add(&mut self, place: u32, record: &Record, measured: &Measured) -> Result<(), String> {
        let case = told(record);
        for series in &measured.series {
            let observed: Vec<(u64, u64)> = match &series.data {
                Data::Values(values) => values.iter().map(|value| (*value, 1)).collect(),
                Data::Histogram(text) => latency::decode(text)?
                    .iter_recorded()
                    .map(|step| (step.value_iterated_to(), step.count_at_value()))
                    .collect(),
                // Quantiles of somebody else are no observations.
                Data::Summary(_) => continue,
            };
            let rows = observed.len();
            let repeat = |text: &str| std::iter::repeat_n(text.to_owned(), rows);
            self.record.extend(std::iter::repeat_n(place, rows));
            let host = record.host.name().map(ToOwned::to_owned);
            self.host.extend(std::iter::repeat_n(host, rows));
            self.workload.extend(repeat(&record.workload));
            self.case.extend(repeat(&case));
            self.arm.extend(repeat(&series.arm));
            self.series.extend(repeat(&series.name));
            self.clock.extend(std::iter::repeat_n(clock(series.clock), rows));
            self.unit.extend(std::iter::repeat_n(unit(series.unit), rows));
            self.process.extend(std::iter::repeat_n(series.process, rows));
            self.repetition.extend(std::iter::repeat_n(series.repetition, rows));
            self.ops.extend(std::iter::repeat_n(series.ops, rows));
            self.bytes.extend(std::iter::repeat_n(series.bytes, rows));
            self.value.extend(observed.iter().map(|(value, _)| *value));
            self.count.extend(observed.iter().map(|(_, count)| *count));
        }
        Ok(())
    }

    fn table(self) -> PyResult<Table> {
        let text = |values: Vec<String>| -> ArrayRef { Arc::new(StringArray::from(values)) };
        let word = |values: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(values)) };
        let small = |values: Vec<u32>| -> ArrayRef { Arc::new(UInt32Array::from(values)) };
        let large = |values: Vec<u64>| -> ArrayRef { Arc::new(UInt64Array::from(values)) };
        Table::of(vec![
            ("record", small(self.record)),
            ("host", Arc::new(StringArray::from(self.host))),
            ("workload", text(self.workload)),
            ("case", text(self.case)),
            ("arm", text(self.arm)),
            ("series", text(self.series)),
            ("clock", word(self.clock)),
            ("unit", word(self.unit)),
            ("process", small(self.process)),
            ("repetition", small(self.repetition)),
            ("ops", large(self.ops)),
            ("bytes", large(self.bytes)),
            ("value", large(self.value)),
            ("count", large(self.count)),
        ])
    }
}

/// The parameters of a record that are not what they are when nobody asks, in base units.
fn told(record: &Record) -> String {
    let set = record.case.0.iter().filter(|(name, value)| {
        default_of(&record.workload, name).is_none_or(|default| default != value.as_str())
    });
    let pair = |(name, value): (&pagelab_record::Word, &pagelab_record::Word)| {
        format!("{name}={}", units::base_value(name, value))
    };
    set.map(pair).collect::<Vec<_>>().join(" ")
}

fn clock(clock: Clock) -> &'static str {
    match clock {
        Clock::Tsc => "tsc",
        Clock::Wall => "wall",
        Clock::Cpu => "cpu",
        Clock::Scripted => "scripted",
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Ns => "ns",
        Unit::Ticks => "ticks",
        Unit::Bytes => "bytes",
        Unit::Pages => "pages",
        Unit::Count => "count",
    }
}
