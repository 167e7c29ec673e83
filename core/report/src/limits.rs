//! The machine's own ceilings, against which every result is a share.
//!
//! The one idea: a limit is the best of the arms that tried, because a ceiling that a better
//! instruction breaks was none. Only valid limits of the same run count; without them a share is
//! left out, never guessed.

use pagelab_record::vocabulary::counter;

use crate::{At, Cell, Entry, Note, Numbers, Quantity, Tone, Unit, elapsed, parameter};

/// A share of what cannot be exceeded that is above this is no result: something is not what it is
/// called. The rest above 1 is what two measurements scatter.
pub const SHARE_MAX: f64 = 1.05;
/// The statistic of a share of the clear limit.
pub const OF_CLEAR: &str = "share_of_clear";
/// The statistic of a share of the read limit.
pub const OF_READ: &str = "share_of_read";
/// The statistic that such a share has instead when it is above [`SHARE_MAX`].
pub const OVER: &str = "over_limit";

/// Levels of the memory hierarchy, nearest first.
const LEVELS: [&str; 4] = ["l1", "l2", "llc", "dram"];
/// What the timer or the harness costs: workload, series, name, and what it means.
pub type Cost = (&'static str, &'static str, &'static str, &'static str);

/// The workloads whose results are ceilings.
#[derive(Debug)]
pub struct Ceilings {
    /// Clearing, copying and reading: workload, series, and heading.
    pub operations: [(&'static str, &'static str, &'static str); 3],
    /// What measuring costs.
    pub costs: &'static [Cost],
}

/// A ceiling and what reached it.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The arm.
    pub arm: String,
    /// Its bandwidth.
    pub bandwidth: Quantity,
}

/// One level of the hierarchy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Level {
    /// Its name, as in the case.
    pub name: String,
    /// Bytes that were worked on.
    pub buffer_bytes: u64,
    /// Clear, copy and read, in the order of [`Ceilings`].
    pub best: [Option<Best>; 3],
}

/// Every ceiling of a run.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// The levels that were measured.
    pub levels: Vec<Level>,
    /// The timer and the harness: name, value, and what it means.
    pub costs: Vec<(&'static str, Quantity, &'static str)>,
    /// Ticks of the time stamp counter a second.
    pub tsc_hz: Option<f64>,
    /// The workload that clears.
    pub clears: &'static str,
}

impl Limits {
    /// Gathers the limits among the entries of a run.
    pub fn of(entries: &[Entry], ceilings: &Ceilings) -> Self {
        let levels = LEVELS.iter().filter_map(|name| level(entries, ceilings, name)).collect();
        let tsc_hz =
            entries.iter().filter_map(|entry| entry.counter(counter::TSC_HZ)).find(|hz| *hz > 0);
        let tsc_hz = tsc_hz.map(|hz| hz as f64);
        let costs = costs(entries, ceilings, tsc_hz);
        Self { levels, costs, tsc_hz, clears: ceilings.operations[0].0 }
    }

    /// Bandwidth of clearing memory that no cache holds: what bounds a fault that must clear.
    pub fn clear(&self) -> Option<Quantity> {
        let dram = self.levels.iter().find(|level| level.name == "dram")?;
        dram.best[0].as_ref().map(|best| best.bandwidth)
    }

    /// What [`Limits::clear`] is of: the workload, the level, and the arm that reached it.
    pub fn clear_by(&self) -> Option<[&str; 3]> {
        let dram = self.levels.iter().find(|level| level.name == "dram")?;
        Some([self.clears, &dram.name, &dram.best[0].as_ref()?.arm])
    }

    /// Bandwidth of reading memory that no cache holds.
    pub fn read(&self) -> Option<Quantity> {
        let dram = self.levels.iter().find(|level| level.name == "dram")?;
        dram.best[2].as_ref().map(|best| best.bandwidth)
    }

    /// A bandwidth as a share of [`Limits::clear`].
    pub fn share_of_clear(&self, bandwidth: Option<Quantity>) -> Option<Quantity> {
        bandwidth?.over(self.clear()?, Unit::Share)
    }

    /// Adds that share; one that is no result under the name of [`OVER`].
    pub fn add_share_of_clear(
        &self,
        at: At<'_>,
        bandwidth: Option<Quantity>,
        numbers: &mut Numbers,
    ) {
        add_share(at, OF_CLEAR, self.share_of_clear(bandwidth), numbers);
    }
}

/// Adds a share of a limit under its name, or under that of [`OVER`].
pub fn add_share(at: At<'_>, name: &'static str, share: Option<Quantity>, numbers: &mut Numbers) {
    let name = if share.is_some_and(is_over) { OVER } else { name };
    numbers.add(at, name, share);
}

/// Whether a share of what cannot be exceeded is no result.
pub fn is_over(share: Quantity) -> bool {
    share.value > SHARE_MAX
}

/// The cell of a share of a limit.
pub fn share_cell(numbers: &Numbers, at: At<'_>, name: &str) -> Cell {
    match numbers.get(at, OVER) {
        Some(_) => over_cell(),
        None => Cell::of(numbers.get(at, name)),
    }
}

/// What stands in place of a share that is no result.
pub fn over_cell() -> Cell {
    Cell::toned("> 105 %", Tone::Warn)
}

/// The warning about shares that are no results: whose they are, and why that may be.
pub fn over_note(shares: &[(String, Quantity)], why: &str, cure: &str) -> Option<Note> {
    let (name, most) = shares.iter().max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))?;
    let which = match shares.len() {
        1 => format!("{name} has {}", most.display()),
        many => format!("{many} are, the largest of {name} with {}", most.display()),
    };
    let text = format!("above 105 % is no result: {which}; {why}");
    Some(Note::warn("efficiency", text, cure))
}

/// The same about cases whose shares of a limit are added by [`add_share`].
pub fn over_limit(entries: &[&Entry]) -> Option<Note> {
    let shares = entries.iter().flat_map(|entry| {
        let over = entry.numbers.0.iter().filter(|number| number.statistic == OVER);
        over.map(|number| (entry.short.clone(), number.quantity))
    });
    over_limit_note(&shares.collect::<Vec<_>>())
}

/// The same about named shares of a limit.
pub fn over_limit_note(shares: &[(String, Quantity)]) -> Option<Note> {
    let why = "the limit was measured too low, or a cache held the memory";
    over_note(shares, why, "measure the limits again on a quiet machine")
}

fn level(entries: &[Entry], ceilings: &Ceilings, name: &str) -> Option<Level> {
    let mut level = Level { name: name.to_owned(), ..Level::default() };
    for (best, (workload, series, _)) in level.best.iter_mut().zip(ceilings.operations) {
        let mine = |entry: &&Entry| {
            entry.record.workload == workload && entry.value(parameter::LEVEL) == name
        };
        for entry in entries.iter().filter(mine) {
            level.buffer_bytes =
                level.buffer_bytes.max(entry.counter(counter::BUFFER_BYTES).unwrap_or(0));
            for arm in entry.numbers.arms(series) {
                let Some(bandwidth) = entry.numbers.get(elapsed(arm, series), "bandwidth") else {
                    continue;
                };
                if best.as_ref().is_none_or(|best| bandwidth.value > best.bandwidth.value) {
                    *best = Some(Best { arm: arm.to_owned(), bandwidth });
                }
            }
        }
    }
    level.best.iter().any(Option::is_some).then_some(level)
}

fn costs(
    entries: &[Entry],
    ceilings: &Ceilings,
    tsc_hz: Option<f64>,
) -> Vec<(&'static str, Quantity, &'static str)> {
    let cost = |&(workload, series, name, meaning): &Cost| {
        let entry = entries.iter().find(|entry| entry.record.workload == workload)?;
        let arm = entry.numbers.arms(series).into_iter().next()?;
        let median = entry.numbers.get(elapsed(arm, series), "p50")?;
        let median = match (median.unit, tsc_hz) {
            (Unit::Ticks, Some(hz)) => median.times(1e9 / hz, Unit::Ns),
            _ => median,
        };
        Some((name, median, meaning))
    };
    ceilings.costs.iter().filter_map(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(value: f64) -> Quantity {
        Quantity::exact(value, Unit::Share)
    }

    #[test]
    fn a_share_above_105_percent_is_a_warning_and_no_result() {
        let at = elapsed("pagelab", "touch");
        let cell = |value| {
            let mut numbers = Numbers::default();
            add_share(at, OF_CLEAR, Some(share(value)), &mut numbers);
            (share_cell(&numbers, at, OF_CLEAR), numbers.get(at, OF_CLEAR).is_some())
        };
        assert_eq!(cell(1.04), (Cell::of(Some(share(1.04))), true));
        assert_eq!(cell(1.34), (Cell::toned("> 105 %", Tone::Warn), false));
    }

    #[test]
    fn the_warning_names_the_largest_and_counts_the_others() {
        let shares = [("4k".to_owned(), share(1.2)), ("2m".to_owned(), share(1.34))];
        let text = |shares| over_note(shares, "why", "cure").map(|note| note.text);
        assert_eq!(text(&[]), None);
        let one = "above 105 % is no result: 4k has 120 %; why";
        assert_eq!(text(&shares[..1]).as_deref(), Some(one));
        let two = "above 105 % is no result: 2 are, the largest of 2m with 134 %; why";
        assert_eq!(text(&shares).as_deref(), Some(two));
    }
}
