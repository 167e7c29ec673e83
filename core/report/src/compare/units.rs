//! What is counted on either side, processes, blocks or boots, and how many a verdict takes.
//!
//! The one idea: what the units of a comparison share is no evidence; so where a side has several
//! boots they are what counts, and where each has one, what it brought is in the difference.

use std::collections::BTreeMap;

use pagelab_record::verdict::{PROCESSES_MAX, units_least};

use super::judged::{Against, Cell};
use crate::document::{Note, Tone};

/// What is counted on either side, and whether that is enough.
pub(super) fn alerts(against: &Against<'_>) -> Vec<Note> {
    let mut alerts = Vec::new();
    let several = |cell: &&Cell<'_>| cell.boots.iter().any(|boots| *boots > 1);
    let few = against.cells.iter().filter(|cell| is_few(cell)).count();
    if against.cells.iter().any(|cell| is_few(cell) && several(&cell)) {
        let text = format!(
            "{few} of {} cells have fewer than four boots on a side: so few have no 95 % \
             interval and no verdict",
            against.cells.len()
        );
        let cure = format!("{} boots of each", boots_least(against));
        alerts.push(Note::warn("few", text, &cure));
    } else if few > 0 && against.cells.iter().all(|cell| cell.pair.cell.is_some()) {
        let text = format!(
            "{few} of {} cells have fewer than six blocks: so few have no 95 % interval and no \
             verdict",
            against.cells.len()
        );
        alerts.push(Note::warn("few", text, "--forks 12, which is what a run of two arms has"));
    } else if few > 0 {
        let text = format!(
            "{few} of {} cells have fewer than four processes on a side: so few have no 95 % \
             interval and no verdict",
            against.cells.len()
        );
        alerts.push(Note::warn("few", text, "measure both with --forks 8"));
    }
    if let Some(cell) = against.cells.iter().find(several) {
        let [a, b] = cell.boots;
        let open = against.cells.iter().filter(|cell| cell.is_open()).map(|cell| cell.needs);
        let wanted = match open.reduce(|one, other| Some(one?.max(other?))) {
            None => "nothing is left open".to_owned(),
            Some(Some(boots)) => format!("{boots} of each would decide all that is open"),
            Some(None) => format!("what is open would take more than {PROCESSES_MAX} of each"),
        };
        let text = format!(
            "sides of {a} and {b} boots: the boot is what counts, by the median of its \
             processes, and \"to decide\" are boots of each side; {wanted}"
        );
        alerts.push(Note { tone: Tone::Plain, ..Note::warn("boots", text, "") });
    }
    if against.boots_differ {
        let text = format!(
            "each side is of one boot, and the two are not the same: what a boot brings is in the \
             difference; a verdict over boots takes {} of each or more",
            boots_least(against)
        );
        alerts.push(Note::warn("boots", text, ""));
    }
    alerts
}

/// The fewest boots of each side that can tell a difference of any cell from chance.
fn boots_least(against: &Against<'_>) -> u32 {
    let mut families: BTreeMap<&str, usize> = BTreeMap::new();
    for cell in against.cells.iter().filter(|cell| cell.ratio.is_some()) {
        *families.entry(&cell.pair.a.workload).or_default() += 1;
    }
    units_least(families.into_values().max().unwrap_or(1))
}

/// Whether it was measured, but too seldom.
fn is_few(cell: &Cell<'_>) -> bool {
    cell.ratio.is_some_and(|ratio| ratio.interval().is_none())
}
