//! Every derived number, for programs: `pagelab.report/1` and CSV.
//!
//! The one idea: both are the same list of numbers, each with its interval, unit and the standing
//! of the record that it comes from. A record that is not valid keeps its case, its claims and its
//! reasons here, and has no numbers.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use pagelab_record::{Measured, Outcome, units::base_value, verdict::Ratio};
use serde_json::{Map, Value, json};

use crate::{
    Entry, Limits, Run,
    findings::{Cell, Compared, Finding},
    numbers::Number,
};

/// The schema of [`value`].
const SCHEMA: &str = "pagelab.report/1";

/// The whole report as a JSON value.
pub(crate) fn value(run: &Run) -> Value {
    let Run { header, damage, published, limits, findings, .. } = run;
    let mut value = json!({
        "schema": SCHEMA,
        "run": header.run,
        "pagelab": header.pagelab,
        "suite": header.suite,
        "command": header.command,
        "planned": header.plan.len(),
        "damage": damage.as_ref().map(|damage| json!({"line": damage.line, "why": damage.why})),
        "cases": run.all().map(case_value).collect::<Vec<_>>(),
        "published": published.iter().map(case_value).collect::<Vec<_>>(),
        "derived": limits_value(limits),
        "findings": findings.iter().map(finding_value).collect::<Vec<_>>(),
    });
    for (name, more) in run.views.json(run) {
        *name.split('.').fold(&mut value, |value, name| &mut value[name]) = more;
    }
    value
}

pub(crate) fn case_value(entry: &Entry) -> Value {
    let record = &entry.record;
    let mut case = json!({
        "workload": record.workload,
        "case": record.case,
        "nature": record.nature,
        "standing": entry.standing.name(),
        "host": record.host,
        "numbers": entry.numbers,
    });
    let more = match &record.outcome {
        Outcome::Measured(Measured { witness, warnings, counters, left_out, .. }) => {
            let mut more = json!({"witness": witness, "warnings": warnings, "counters": counters});
            if !left_out.is_empty() {
                more["left_out"] = json!(left_out);
            }
            more
        }
        Outcome::Skipped { need, cure } => json!({"need": need, "cure": cure}),
        Outcome::Failed { reason } => json!({"reason": reason}),
    };
    if let (Value::Object(case), Value::Object(more)) = (&mut case, more) {
        case.extend(more);
    }
    case
}

fn limits_value(limits: &Limits) -> Value {
    let operations = ["clear", "copy", "read"];
    let level = |level: &crate::limits::Level| {
        let mut value = Map::new();
        value.insert("level".to_owned(), level.name.clone().into());
        value.insert("buffer_bytes".to_owned(), level.buffer_bytes.into());
        for (name, best) in operations.iter().zip(&level.best) {
            let best = best.as_ref();
            let best = best.map(|best| json!({"arm": best.arm, "bandwidth": best.bandwidth}));
            value.insert((*name).to_owned(), best.into());
        }
        Value::Object(value)
    };
    let cost = |cost: &(&str, crate::quantity::Quantity, &str)| {
        let (name, median, _) = cost;
        json!({"cost": name, "median": median})
    };
    json!({
        "levels": limits.levels.iter().map(level).collect::<Vec<_>>(),
        "costs": limits.costs.iter().map(cost).collect::<Vec<_>>(),
        "tsc_hz": limits.tsc_hz,
    })
}

/// A sentence with all that it rests on.
fn finding_value(finding: &Finding) -> Value {
    let ratio = |compared: &Compared| {
        let Ratio { value, low, high, p, .. } = compared.ratio;
        let side = |cell: &Cell| {
            let Cell { workload, case, place, middle } = cell;
            let (arm, series) = (&place.arm, &place.series);
            let (value, unit) = (middle.value, middle.unit);
            json!({
                "workload": workload, "case": case, "arm": arm, "series": series,
                "value": value, "unit": unit,
            })
        };
        let [of, to] = compared.sides.each_ref().map(side);
        json!({
            "statistic": compared.statistic.name(),
            "of": of, "to": to, "ratio": value, "low": low, "high": high, "p": p,
            "processes": compared.ratio.units,
        })
    };
    json!({
        "rule": finding.rule,
        "finding": finding.sentence,
        "nature": finding.nature,
        "caveat": finding.caveat,
        "ratios": finding.ratios.iter().map(ratio).collect::<Vec<_>>(),
    })
}

/// A number with everything that says of what it is, in base units; a case without numbers has one
/// line that says so.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The run.
    pub run: String,
    /// The host that its record is of, where that says it.
    pub host: Option<String>,
    /// `collection/name`.
    pub workload: String,
    /// The value of each parameter that varies in the run, in the order of [`Lines::axes`]; `None`
    /// where the workload has no such parameter.
    pub parameters: Vec<Option<String>>,
    /// `valid`, `emulated`, `invalid`, `skipped` or `failed`.
    pub standing: &'static str,
    /// `measured`, `emulated`, `simulated` or `published`.
    pub nature: &'static str,
    /// The number; `None` where the standing is not `valid`.
    pub number: Option<Told>,
}

/// A number of a [`Line`].
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Which of the things compared inside a case.
    pub arm: String,
    /// What was observed.
    pub series: String,
    /// `elapsed`, `cpu`, or `none` for what is no time.
    pub time: &'static str,
    /// `p50`, `bandwidth`, …
    pub statistic: Cow<'static, str>,
    /// The number, and the ends of its interval.
    pub value: [f64; 3],
    /// `ns`, `ticks`, `1/s`, `B/s`, `share`, `ratio` or `count`.
    pub unit: &'static str,
}

/// The numbers of a run as a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    /// The parameters in which two cases of one workload differ.
    pub axes: Vec<String>,
    /// The lines.
    pub lines: Vec<Line>,
}

/// One line for each number of each case. `docs/csv.md` describes them.
pub(crate) fn lines(run: &Run) -> Lines {
    let entries: Vec<&Entry> = run.all().chain(&run.published).collect();
    let axes = axes(&entries);
    let mut lines = Vec::new();
    for entry in entries {
        let record = &entry.record;
        let value = |axis: &&str| record.case.get(axis).map(|value| base_value(axis, value));
        let line = |number| Line {
            run: record.run.clone(),
            host: record.host.name().map(ToOwned::to_owned),
            workload: record.workload.clone(),
            parameters: axes.iter().map(value).collect(),
            standing: entry.standing.name(),
            nature: record.nature.name(),
            number,
        };
        if entry.numbers.0.is_empty() {
            lines.push(line(None));
        }
        let told = |number: &Number| Told {
            arm: number.arm.clone(),
            series: number.series.clone(),
            time: number.time.name(),
            statistic: number.statistic.clone(),
            value: [number.quantity.value, number.quantity.low, number.quantity.high],
            unit: number.quantity.unit.name(),
        };
        lines.extend(entry.numbers.0.iter().map(|number| line(Some(told(number)))));
    }
    Lines { axes: axes.into_iter().map(ToOwned::to_owned).collect(), lines }
}

/// The same as rows of fields, after one with their names.
pub(crate) fn rows(run: &Run) -> Vec<Vec<String>> {
    let names = "standing,nature,arm,series,time,statistic,value,low,high,unit";
    let Lines { axes, lines } = lines(run);
    let case = ["run", "workload"].map(str::to_owned).into_iter().chain(axes);
    let mut rows = vec![case.chain(names.split(',').map(str::to_owned)).collect()];
    for line in lines {
        let mut row = vec![line.run, line.workload];
        row.extend(line.parameters.into_iter().map(Option::unwrap_or_default));
        row.extend([line.standing, line.nature].map(str::to_owned));
        row.extend(match line.number {
            None => Default::default(),
            Some(Told { arm, series, time, statistic, value, unit }) => {
                let [value, low, high] = value.map(|value| value.to_string());
                let (time, unit) = (time.to_owned(), unit.to_owned());
                [arm, series, time, statistic.into_owned(), value, low, high, unit]
            }
        });
        rows.push(row);
    }
    rows
}

/// The parameters in which two cases of one workload differ.
fn axes<'e>(entries: &[&'e Entry]) -> BTreeSet<&'e str> {
    let mut first = BTreeMap::new();
    let mut axes = BTreeSet::new();
    for record in entries.iter().map(|entry| &entry.record) {
        for (name, value) in &record.case.0 {
            if *first.entry((&record.workload, name)).or_insert(value) != value {
                axes.insert(name.as_str());
            }
        }
    }
    axes
}
