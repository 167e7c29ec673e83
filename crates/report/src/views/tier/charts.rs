//! What the page draws of simulated tiers.
//!
//! The one idea: every arm of a case is a series of the same two charts, tier shares over time and
//! what became of the promotions; regret is one grid over all cases. Points stand in the record,
//! totals in the tables.

use pagelab_record::Measured;
use serde::Serialize;
use serde_json::{Value, json};

use super::{RUN, WORKLOAD, arms, count, policies, table, title, titles, with_regret};
use crate::{
    document::{Block, ChartPlace},
    entry::Entry,
    numbers::elapsed,
    run::Run,
};

/// What is drawn of the simulations of a run.
pub(crate) fn charts(run: &Run) -> Vec<(&'static str, Value)> {
    vec![("tier", json!(TierCharts::of(&run.valid(WORKLOAD))))]
}

/// Everything that is drawn of simulations.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct TierCharts {
    /// Each valid case, in the order of the section.
    cases: Vec<Simulated>,
    /// Regret by case and policy.
    heat: Option<Heat>,
}

#[derive(Debug, Clone, Serialize)]
struct Simulated {
    title: String,
    shares: Vec<Shares>,
    promotions: Vec<Promotions>,
}

/// How much of the memory lies in the fast tiers, over time.
#[derive(Debug, Clone, Serialize)]
struct Shares {
    label: String,
    /// Nanoseconds and share.
    points: Vec<(f64, f64)>,
}

/// What became of an arm's promotions, in pages.
#[derive(Debug, Clone, Serialize)]
struct Promotions {
    label: String,
    useful: u64,
    wasted: u64,
    demoted: u64,
}

#[derive(Debug, Clone, Serialize)]
struct Heat {
    rows: Vec<String>,
    columns: Vec<String>,
    /// A row of cells for each case; nothing where a case lacks the policy.
    cells: Vec<Vec<Option<f64>>>,
}

impl TierCharts {
    /// Of some simulations.
    pub(super) fn of(mine: &[&Entry]) -> Self {
        let simulated = |entry: &&Entry| {
            let measured = entry.measured()?;
            let arms = arms(measured);
            Some(Simulated {
                title: title(entry.case()),
                shares: arms.iter().filter_map(|arm| shares(measured, arm)).collect(),
                promotions: arms.iter().filter_map(|arm| promotions(measured, arm)).collect(),
            })
        };
        Self { cases: mine.iter().filter_map(simulated).collect(), heat: heat(mine) }
    }

    /// Where the charts of a case stand.
    pub(super) fn places(&self, nth: usize) -> Vec<Block> {
        let Some(case) = self.cases.get(nth) else { return Vec::new() };
        let place = |id, title: &str, caption: &str| {
            let (title, caption) = (title.to_owned(), caption.to_owned());
            Block::Chart(ChartPlace { id, nth, title, caption })
        };
        let moves = case.shares.iter().any(|arm| {
            arm.points.first().map(|point| point.1) != arm.points.last().map(|point| point.1)
        });
        let promotes = case.promotions.iter().any(|arm| arm.useful + arm.wasted > 0);
        let shares = moves.then(|| {
            place(
                "tier-shares",
                "Memory in the fast tier over time",
                "Share of all pages. A line ends where its run does.",
            )
        });
        let promotions = promotes.then(|| {
            place(
                "tier-promotions",
                "Promotions and waste",
                "Pages, by what became of them, and pages demoted.",
            )
        });
        shares.into_iter().chain(promotions).collect()
    }

    /// Where the grid of regrets stands.
    pub(super) fn heat_place(&self) -> Option<Block> {
        self.heat.as_ref().map(|_| {
            Block::Chart(ChartPlace {
                id: "tier-heat",
                nth: 0,
                title: "Regret of each policy on each workload".to_owned(),
                caption: "Time above the oracle's. The scale is logarithmic; the redder, the \
                          worse. The same numbers stand in the table."
                    .to_owned(),
            })
        })
    }
}

fn shares(measured: &Measured, arm: &str) -> Option<Shares> {
    let table = table(measured, "shares", arm)?;
    let nodes = table.columns.iter().filter(|column| column.name.starts_with("node")).count();
    let slow = (nodes >= 2).then_some(nodes)?;
    let point = |row: &Vec<i64>| {
        let pages = row.get(1..=slow)?;
        // Not as whole numbers: a foreign journal may say anything, and its sum need not be one.
        let sum = |pages: &[i64]| pages.iter().map(|pages| *pages as f64).sum::<f64>();
        // The last tier is the slowest; everything above it is fast.
        let (all, fast) = (sum(pages), sum(&pages[..pages.len() - 1]));
        (all > 0.0).then(|| (row[0] as f64, fast / all))
    };
    let points: Vec<_> = table.rows.iter().filter_map(point).collect();
    (!points.is_empty()).then(|| Shares { label: arm.to_owned(), points })
}

fn promotions(measured: &Measured, arm: &str) -> Option<Promotions> {
    let promoted = count(measured, "pgpromote_success", arm)?;
    let wasted = count(measured, "wasted_promotions", arm).unwrap_or(0).min(promoted);
    let demoted = count(measured, "pgdemote", arm).unwrap_or(0);
    Some(Promotions { label: arm.to_owned(), useful: promoted - wasted, wasted, demoted })
}

fn heat(mine: &[&Entry]) -> Option<Heat> {
    let with = with_regret(mine);
    if with.len() < 2 {
        return None;
    }
    let columns = policies(&with);
    let cell = |entry: &Entry, policy: &str| {
        entry.numbers.get(elapsed(policy, RUN), "regret").map(|regret| regret.value)
    };
    let row = |entry: &&Entry| columns.iter().map(|policy| cell(entry, policy)).collect();
    Some(Heat {
        rows: titles(&with),
        cells: with.iter().map(row).collect(),
        columns: columns.into_iter().map(ToOwned::to_owned).collect(),
    })
}
