//! What the page draws of simulated tiers.
//!
//! The one idea: every arm of a case is drawn in the same two ways, its tier shares over time and
//! what became of its promotions. Points stand in the record, totals in the tables.

use pagelab_record::Measured;

use super::{arms, count, table};
use pagelab_report::{
    Axis, Block, Curve, Key, Lanes, Mark, Plane, Quantity, Scale, Unit, chart::Row, hue,
};

/// What is drawn of a simulation.
pub(super) fn blocks(measured: &Measured) -> impl Iterator<Item = Block> {
    [shares(measured), promotions(measured)].into_iter().flatten()
}

/// How much of the memory lies in the fast tiers, over time, where that changes.
fn shares(measured: &Measured) -> Option<Block> {
    let of = |arm: &str| {
        let table = table(measured, "shares", arm)?;
        let nodes = table.columns.iter().filter(|column| column.name.starts_with("node")).count();
        let slow = (nodes >= 2).then_some(nodes)?;
        let point = |row: &Vec<i64>| {
            let pages = row.get(1..=slow)?;
            // Not as whole numbers: a foreign journal may say anything, and a sum overflow.
            let sum = |pages: &[i64]| pages.iter().map(|pages| *pages as f64).sum::<f64>();
            // The last tier is the slowest; everything above it is fast.
            let (all, fast) = (sum(pages), sum(&pages[..pages.len() - 1]));
            (all > 0.0).then(|| (row[0] as f64, fast / all))
        };
        Some(table.rows.iter().filter_map(point).collect::<Vec<_>>())
    };
    let curves: Vec<(&str, Vec<(f64, f64)>)> =
        arms(measured).into_iter().filter_map(|arm| Some((arm, of(arm)?))).collect();
    let moves = |points: &[(f64, f64)]| points.first().map(|p| p.1) != points.last().map(|p| p.1);
    if !curves.iter().any(|(_, points)| moves(points)) {
        return None;
    }
    let end = curves.iter().flat_map(|(_, points)| points).map(|(t, _)| *t).fold(0.0, f64::max);
    let curve = |(nth, (arm, points)): (usize, (&str, Vec<_>))| {
        Curve::new(arm, Some(hue(nth)), Mark::Line, points)
    };
    Plane::new(
        "Memory in the fast tier over time",
        "Share of all pages. A line ends where its run does.",
        [
            Axis::new("simulated time", Unit::Ns, Scale::Linear).between(0.0, end * 1.01),
            Axis::new("share of pages in the fast tier", Unit::Share, Scale::Linear)
                .between(0.0, 1.02),
        ],
        curves.into_iter().enumerate().map(curve).collect(),
    )
    .shown()
    .map(Block::Plane)
}

/// What became of the promotions of each arm, where there were any.
fn promotions(measured: &Measured) -> Option<Block> {
    let row = |arm: &str| -> Option<Row> {
        let promoted = count(measured, "pgpromote_success", arm)?;
        let wasted = count(measured, "wasted_promotions", arm).unwrap_or(0).min(promoted);
        let demoted = count(measured, "pgdemote", arm).unwrap_or(0);
        let fates = [promoted - wasted, wasted, demoted].into_iter().enumerate();
        let fates = fates.filter(|_| promoted > 0 || demoted > 0);
        let bars = fates.map(|(key, n)| (key, Quantity::exact(n as f64, Unit::Count)));
        Some((arm.to_owned(), bars.collect()))
    };
    let rows: Vec<Row> = arms(measured).into_iter().filter_map(row).collect();
    let promotes = |(_, bars): &Row| bars.iter().take(2).any(|(_, pages)| pages.value > 0.0);
    let keys = vec![
        Key::new("promoted, worth it", Some(hue(2))),
        Key::new("promoted, wasted", Some(hue(1))),
        Key::new("demoted", None),
    ];
    let title = ["Promotions and waste", "Pages, by what became of them, and pages demoted."];
    rows.iter()
        .any(promotes)
        .then(|| Lanes::bars(title, keys, rows, None).shown().map(Block::Lanes))?
}
