//! What is told of a process that ran already: before beside after, and what that cannot show.
//!
//! The one idea: there was no turn about, so what else changed with time is in the difference; how
//! much the loads before changed by themselves says how much that may be.

use std::collections::BTreeMap;

use pagelab_record::{Clock, stats, verdict::Ratio, vocabulary::tried::AS_SET_UP};

use super::{Row, Tried, change, values};
use pagelab_report::{Block, Entry};

pub(super) const LEGEND: &str = "\
Beside as-set-up: the time or first score of the loads after over that of the loads before, all of \
one side against all of the other, with its 95 % interval. Peak and more: what the process and \
those below it held at most at one look of a load, hugetlb pages included. CPU time and faults: of \
those of them that were there from its beginning to its end. In large pages: the most at one look, \
those that it had before included.";

/// All of one side over all of the other.
pub(super) fn ratio(after: &Row<'_>, before: &Entry, name: &str, clock: Clock) -> Option<Ratio> {
    let units = |values: BTreeMap<u32, f64>| -> Vec<Vec<f64>> {
        values.into_values().map(|value| vec![value]).collect()
    };
    Ratio::of(&units(values(before, name, clock)), &units(after.values(name, clock)))
}

/// What the order of the loads did not rule out.
pub(super) fn caveat(tried: &Tried<'_>) -> Option<Block> {
    tried.pid?;
    let text = "What was collapsed nobody splits again, so there was no turn about: all loads \
                before it were first, all after it last, and what else changed meanwhile (a cache \
                that filled, a neighbour) is in the difference.";
    let drift = drift(tried).map(|drift| {
        format!(
            " By themselves the loads before changed by {} from their first half to their second: \
             a difference of that size shows nothing.",
            change(drift)
        )
    });
    let twice = " The process runs on, collapsed: to try it again, start it anew.";
    Some(Block::Text(format!("{text}{}{twice}", drift.unwrap_or_default())))
}

/// The second half of the loads before over the first.
fn drift(tried: &Tried<'_>) -> Option<f64> {
    let before = tried.named(AS_SET_UP)?;
    let goal = tried.goals.first()?;
    let values: BTreeMap<u32, f64> = values(before.entry, &goal.series, Clock::Wall);
    let all: Vec<f64> = values.into_values().collect();
    let (first, second) = all.split_at(all.len() / 2);
    let is_enough = first.len() >= 2;
    is_enough.then(|| stats::median(second.to_vec()) / stats::median(first.to_vec()))
}
