//! A simulation as counters and tables of a record.
//!
//! The one idea: what the simulator counted gets the kernel's name where there is one, and the arm
//! after a slash. `compared/ARM` and `constants` hold the preset's side, so that a report needs no
//! file beside the record.

use pagelab_record::Table;
use pagelab_tier::Outcome;

use super::{
    compare::Row,
    constant::Constant,
    preset::{Preset, Run},
    scenario::whole,
};

/// Millionths, the unit of the cells of [`compared`].
const MICRO: f64 = 1e6;

/// The counters of an arm.
pub(super) fn counters(outcome: &Outcome, page: u64) -> Vec<(&'static str, u64)> {
    let moved = outcome.promoted + outcome.demoted + outcome.exchanged;
    let fast = outcome.top_share * outcome.accesses as f64;
    vec![
        ("accesses", outcome.accesses),
        ("fast_accesses", whole(fast)),
        ("pages", outcome.pages),
        ("pgpromote_success", outcome.promoted),
        ("pgdemote", outcome.demoted),
        ("exchanged", outcome.exchanged),
        ("pgmigrate_fail", outcome.failed),
        ("target_full", outcome.full),
        ("numa_pte_updates", outcome.pte_updates),
        ("numa_hint_faults", outcome.hint_faults),
        ("duplicate_faults", outcome.duplicate_faults),
        ("hwhint_total_events", outcome.hw_events),
        ("hwhint_dropped_events", outcome.hw_dropped),
        ("pghot_recorded_accesses", outcome.recorded),
        ("pghot_recorded_hintfaults", outcome.hot.by_source[0]),
        ("pghot_recorded_hwhints", outcome.hot.by_source[1]),
        ("hwhint_useful_events", outcome.hot.useful_hw),
        ("pgpromote_candidate", outcome.hot.candidates),
        ("pgpromote_candidate_nrl", outcome.hot.candidates_unlimited),
        ("kmigrated_flush_pages", outcome.hot.flush_pages),
        ("kmigrated_flushes", outcome.hot.flushes),
        ("pghot_map_bytes_per_tib", outcome.hot.map_bytes_per_tib),
        ("duplicates", outcome.duplicates),
        ("ping_pongs", outcome.ping_pongs),
        ("wasted_promotions", outcome.wasted),
        ("stall_ns", outcome.stall_ns),
        ("daemon_ns", outcome.daemon_ns),
        ("migrated_bytes", moved * page),
        ("period", outcome.period),
        ("digest", outcome.digest()),
    ]
}

/// How an arm went: pages of each node, and what was done so far, over time.
pub(super) fn shares(outcome: &Outcome, arm: &str) -> Table {
    let mut columns = vec![("t".to_owned(), "ns")];
    columns.extend((0..outcome.placed.len()).map(|node| (format!("node{node}"), "pages")));
    columns.extend(["promoted", "demoted", "wasted"].map(|name| (name.to_owned(), "pages")));
    let rows = outcome.series.iter().map(|row| {
        let moved = [row.promoted, row.demoted, row.wasted];
        [row.at_ns].into_iter().chain(row.placed.iter().copied()).chain(moved)
    });
    Table::new(format!("shares/{arm}"), columns, rows)
}

/// Published beside simulated, of one arm.
pub(super) fn compared(rows: &[Row], arm: &str) -> Table {
    let micro = |value: f64| round(value * MICRO);
    let maybe = |value: Option<f64>| value.map_or(-1, micro);
    let columns = rows.iter().map(|row| (row.metric.name, row.metric.unit));
    let cells: [&dyn Fn(&Row) -> i64; 5] = [
        &|row| maybe(row.published),
        &|row| micro(row.simulated),
        &|row| row.kind as i64,
        &|row| maybe(row.deviation),
        &|row| i64::from(row.runs),
    ];
    let rows = cells.iter().map(|cell| rows.iter().map(cell));
    Table::new(format!("compared/{arm}"), columns, rows)
}

/// Every number of the model that says where it comes from: those of the file once, then what a run
/// has otherwise, after its name.
pub(super) fn constants(preset: &Preset) -> Table {
    let mut named: Vec<(String, Constant)> = Vec::new();
    for run in &preset.runs {
        for (name, constant) in explained(run) {
            let shared = is_shared(preset, run, &name);
            let name = if shared { name } else { format!("{}.{name}", run.source) };
            if !named.iter().any(|(known, _)| *known == name) {
                named.push((name, constant));
            }
        }
    }
    let (digits, powers): (Vec<i64>, Vec<i64>) =
        named.iter().map(|(_, one)| scale(one.value)).unzip();
    let columns = named.into_iter().map(|(name, Constant { origin, .. })| {
        (name, format!("{}: {}", origin.word(), origin.text()))
    });
    Table::new("constants", columns, [digits, powers])
}

/// The numbers of a run that have an origin.
fn explained(run: &Run) -> Vec<(String, Constant)> {
    let mut all = run.constants();
    all.retain(|(_, constant)| constant.origin.word() != "given");
    all
}

/// Whether a number of a run is that of the file.
fn is_shared(preset: &Preset, run: &Run, name: &str) -> bool {
    let own = run.own.constants().iter().any(|(known, _)| known == name);
    !(own || name.starts_with("policy.") || preset.runs.is_empty())
}

/// A number as digits and the power of ten that they are times of.
fn scale(value: f64) -> (i64, i64) {
    if value.fract().abs() < f64::EPSILON && value.abs() < 9e18 {
        return (round(value), 0);
    }
    let power = if value < 1e-3 { 15 } else { 9 };
    (round(value * 10_f64.powi(power)), -i64::from(power))
}

#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn round(value: f64) -> i64 {
    value.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    #[test]
    fn constants_keep_their_digits_and_their_origin() {
        let preset = preset::load("pghot-v7/scan-1s").unwrap();
        let table = constants(&preset);
        let value = |name: &str| {
            let at = table.index(name).unwrap();
            let (digits, power) = (table.rows[0][at], table.rows[1][at]);
            let value = digits as f64 * 10_f64.powi(i32::try_from(power).unwrap());
            (value, table.columns[at].unit.clone())
        };
        let (walk, unit) = value("mover.walk");
        assert!((walk - 13e-9).abs() < 1e-20 && unit.starts_with("assumed: "), "{walk} {unit}");
        let (slow, unit) = value("HWHINTS.curve.slow");
        let published = preset.published["NUMAB0-pghot/time_s"].value;
        assert!((slow - published).abs() < 1e-9, "{slow}");
        assert_eq!(unit, "identity: NUMAB0-pghot/time_s");
    }

    #[test]
    fn a_number_is_digits_and_a_power() {
        assert_eq!(scale(3.0), (3, 0));
        assert_eq!(scale(0.5), (500_000_000, -9));
        assert_eq!(scale(13e-9), (13_000_000, -15));
    }
}
