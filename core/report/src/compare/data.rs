//! A comparison for programs: JSON and CSV, a cell each.

use std::collections::BTreeMap;

use pagelab_record::verdict::Position;
use serde_json::{Value, json};

use super::{
    Comparison,
    judged::{Against, Cell},
};
use crate::metric::Found;

/// `{"cells": […]}`; with more than one run against the first, each names its own. Of two arms of
/// one run, also what coming second in a block did.
pub(super) fn value(comparison: &Comparison<'_>) -> Value {
    let several = comparison.against.len() > 1;
    let cell = |against: &Against<'_>, cell: &Cell<'_>| {
        let ends = cell.ratio.and_then(|ratio| ratio.interval());
        let mut value = json!({
            "workload": cell.pair.a.workload,
            "case": cell.pair.case,
            "metric": cell.metric(),
            "ratio": cell.ratio.map(|ratio| ratio.value),
            "low": ends.map(|[low, _]| low),
            "high": ends.map(|[_, high]| high),
            "p": cell.ratio.map(|_| cell.p),
            "verdict": cell.verdict,
        });
        if several {
            value["run"] = against.name.clone().into();
        }
        value
    };
    let all = comparison.against.iter();
    let cells: Vec<Value> =
        all.flat_map(|against| against.cells.iter().map(move |c| cell(against, c))).collect();
    let mut whole = json!({ "cells": cells });
    let mut counts: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (counting, mine) in comparison.counts() {
        counts.entry(counting.name).or_default().extend(mine.json());
    }
    for (name, values) in counts {
        whole[name] = values.into();
    }
    if let Some(Position { value, p, blocks }) =
        comparison.against.iter().find_map(|against| against.position)
    {
        whole["position"] = json!({ "ratio": value, "p": p, "blocks": blocks });
    }
    whole
}

/// A row for each cell, tidy: `docs/csv.md` describes it.
pub(super) fn rows(comparison: &Comparison<'_>) -> Vec<Vec<String>> {
    let names = "base,run,workload,case,metric,a,b,unit,ratio,low,high,p,processes_a,processes_b,\
                 verdict,why";
    let mut rows = vec![names.split(',').map(str::to_owned).collect()];
    for against in &comparison.against {
        for cell in &against.cells {
            let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
            let side = |index: usize| cell.sides[index].as_ref();
            let ends = cell.ratio.and_then(|ratio| ratio.interval());
            let [a, b] = cell.counts();
            rows.push(vec![
                comparison.base_name.clone(),
                against.name.clone(),
                cell.pair.a.workload.clone(),
                cell.pair.case.to_string(),
                cell.metric(),
                number(side(0).map(Found::middle)),
                number(side(1).map(Found::middle)),
                side(0).map(|found| found.unit.name().to_owned()).unwrap_or_default(),
                number(cell.ratio.map(|ratio| ratio.value)),
                number(ends.map(|[low, _]| low)),
                number(ends.map(|[_, high]| high)),
                number(cell.ratio.map(|_| cell.p)),
                a.to_string(),
                b.to_string(),
                cell.verdict.name().to_owned(),
                cell.why.clone(),
            ]);
        }
    }
    rows
}
