//! A fleet for programs: JSON, and CSV with a line for each host in each cell.

use std::fmt::Display;

use serde_json::{Value, json};

use super::{Cell, Fleet, rule::quantile};

/// Which quantiles over the hosts are told.
const QUANTILES: [(&str, f64); 7] = [
    ("min", 0.0),
    ("p5", 0.05),
    ("p25", 0.25),
    ("p50", 0.5),
    ("p75", 0.75),
    ("p95", 0.95),
    ("max", 1.0),
];

/// `{"schema", "hosts", "delta", "groups", "cells", "outliers", "left_out"}`; a group is its place.
pub(super) fn value(fleet: &Fleet) -> Value {
    let name = |host: &usize| fleet.names[*host].as_str();
    let groups = fleet.groups.iter().map(|group| {
        let hosts: Vec<&str> = group.hosts.iter().map(name).collect();
        json!({ "machine": group.machine, "hosts": hosts, "identity": *group.identity })
    });
    let cell = |cell: &Cell| {
        let (workload, case) = &fleet.cases[cell.case];
        let numbers = cell.numbers();
        let mut value = json!({
            "group": cell.group + 1,
            "workload": workload,
            "case": case,
            "metric": cell.metric,
            "unit": cell.unit,
            "hosts": numbers.len(),
            "spread": cell.spread.deviation.exp_m1(),
        });
        for (name, q) in QUANTILES {
            value[name] = quantile(&numbers, q).into();
        }
        value
    };
    let outliers = fleet.outlying.iter().map(|one| {
        let cells: Vec<Value> = one
            .cells
            .iter()
            .map(|(at, value)| {
                let (workload, case) = &fleet.cases[fleet.cells[*at].case];
                json!({
                    "workload": workload,
                    "case": case,
                    "metric": fleet.cells[*at].metric,
                    "value": value.number,
                    "ratio": value.ratio,
                    // Infinite where all the others are equal.
                    "score": value.score.is_finite().then_some(value.score),
                })
            })
            .collect();
        let apart: Vec<Value> = one
            .apart
            .iter()
            .map(|fact| {
                let [usual, alike] = fact.others.unwrap_or_default();
                let hosts = fact.others.map(|_| json!({ "usual": usual, "alike": alike }));
                json!({ "fact": fact.key, "here": fact.here, "usual": fact.usual, "hosts": hosts })
            })
            .collect();
        json!({ "host": name(&one.host), "group": one.group + 1, "cells": cells, "apart": apart })
    });
    let left = fleet.left.iter().map(|((case, standing), left)| {
        let (workload, case) = &fleet.cases[*case];
        let hosts: Vec<&str> = left.hosts.iter().map(name).collect();
        let standing = standing.name();
        json!({
            "workload": workload, "case": case, "standing": standing, "hosts": hosts,
            "why": left.why,
        })
    });
    json!({
        "schema": "pagelab.hosts/1",
        "hosts": fleet.names.len(),
        "delta": fleet.delta,
        "groups": groups.collect::<Vec<_>>(),
        "cells": fleet.cells.iter().map(cell).collect::<Vec<_>>(),
        "outliers": outliers.collect::<Vec<_>>(),
        "left_out": left.collect::<Vec<_>>(),
    })
}

/// A row for each host in each cell, tidy.
pub(super) fn rows(fleet: &Fleet) -> Vec<Vec<String>> {
    let names = "group,host,workload,case,metric,value,unit,ratio,score,outlier";
    let mut rows = vec![names.split(',').map(str::to_owned).collect()];
    for cell in &fleet.cells {
        let ((workload, case), metric) = (&fleet.cases[cell.case], &cell.metric);
        let (group, unit) = (cell.group + 1, cell.unit.name());
        for super::Value { host, number, ratio, score, is_outlier } in &cell.values {
            let host = &fleet.names[*host];
            let fields: [&dyn Display; 10] =
                [&group, host, workload, case, metric, number, &unit, ratio, score, is_outlier];
            rows.push(fields.map(ToString::to_string).to_vec());
        }
    }
    rows
}
