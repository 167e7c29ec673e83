//! What the page of a fleet draws: how many hosts are done by a time, for the cells that differ
//! most between hosts.

use super::Fleet;
use crate::{
    chart::{Axis, Curve, Mark, Plane, Scale, hue},
    document::{Document, Section},
    quantity::Unit,
};

/// Cells that are drawn.
const PLANES_MAX: usize = 12;
/// Groups that are drawn over each other.
const CURVES_MAX: usize = 8;
/// Points of a curve.
const POINTS_MAX: usize = 400;

/// Adds the drawings in front of the tables.
pub(super) fn add(fleet: &Fleet, document: &mut Document) {
    let mut wide: Vec<(usize, &str, f64)> = Vec::new();
    for cell in fleet.cells.iter().filter(|cell| cell.values.len() > 1) {
        let width = cell.values.last().zip(cell.values.first());
        let width = width.map_or(0.0, |(last, first)| last.number / first.number);
        match wide.iter_mut().find(|(case, name, _)| (*case, *name) == (cell.case, &cell.metric)) {
            Some((.., known)) => *known = known.max(width),
            None => wide.push((cell.case, &cell.metric, width)),
        }
    }
    wide.sort_by(|(.., a), (.., b)| b.total_cmp(a));
    let mut section = Section::new("drawn", "At a glance");
    section.page_only = true;
    for (case, name, _) in wide.into_iter().take(PLANES_MAX) {
        let mine = fleet.cells.iter().filter(|cell| (cell.case, &*cell.metric) == (case, name));
        let mine: Vec<_> = mine.take(CURVES_MAX).collect();
        let unit = mine.first().map_or(Unit::Count, |cell| cell.unit);
        let curves = mine.iter().map(|cell| {
            let numbers = cell.numbers();
            let step = numbers.len().div_ceil(POINTS_MAX).max(1);
            let all = numbers.len();
            let points = numbers.iter().enumerate();
            let kept = points.filter(|(nth, _)| (nth + 1) % step == 0 || nth + 1 == all);
            let points = kept.map(|(nth, number)| (*number, (nth + 1) as f64 / all as f64));
            let label = format!("group {}, {all} hosts", cell.group + 1);
            Curve::new(label, Some(hue(cell.group)), Mark::Steps, points.collect::<Vec<_>>())
        });
        let x = Axis::new(name, unit, Scale::Decades);
        let y = Axis::new("share of hosts", Unit::Share, Scale::Linear).between(0.0, 1.0);
        let title = format!("{}: {name}", fleet.shorts[case]);
        let plane =
            Plane::new(&title, "Hosts in the order of their number.", [x, y], curves.collect());
        section.all(plane.shown());
    }
    if !section.blocks.is_empty() {
        document.sections.insert(0, section);
    }
}
