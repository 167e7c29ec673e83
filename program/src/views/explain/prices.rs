//! What one fault of a kind costs, from the records of the same run.
//!
//! The one idea: a price is what would be gone if the fault had not happened: the mean of the
//! measured faults that nothing interrupted, less the same touch of a page that is present. The
//! mean, because only means add up to seconds.

use std::collections::BTreeMap;

use pagelab_record::{
    Measured,
    stats::{Estimate, Samples},
};

use super::{WORKLOAD, cell, priced::Walks};
use pagelab_fault::{
    FAULT_IN, latency::NAME as LATENCY, release_per_page, throughput::NAME as THROUGHPUT,
};
use pagelab_record::vocabulary::{
    arm::{CONTROL, OURS},
    parameter, series,
};
use pagelab_report::{Entry, Quantity, Time, Unit, cases::is_parallel, clock_of, cpu, elapsed};

/// What a fault of one kind and page costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Price {
    /// One fault, in nanoseconds.
    pub(crate) fault: Quantity,
    /// What a fault costs more that also allocates a page of page table.
    pub(crate) table: Option<Quantity>,
}

/// The prices of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prices {
    faults: BTreeMap<(String, String), Price>,
    /// One fault where the program's own memory fills the caches, and what the program then waits
    /// for because of it, nanoseconds.
    cold: BTreeMap<(String, String), [f64; 2]>,
    /// One fault of the program itself, from its exception to its end, with what watching it took,
    /// nanoseconds.
    seen: BTreeMap<(String, String), f64>,
    /// CPU time of one fault of a kind and page in so many threads at once.
    crowds: BTreeMap<(String, String), BTreeMap<u64, Quantity>>,
    /// One page by a populating call.
    pub(crate) populate: Option<Quantity>,
    /// Giving back one page of a size.
    releases: BTreeMap<String, Quantity>,
    /// Page walks.
    pub(crate) walks: Walks,
}

impl Prices {
    /// Of all valid records.
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let mut prices = Self { walks: Walks::of(entries), ..Self::default() };
        for entry in entries.iter().filter(|entry| entry.is_valid()) {
            let Some(measured) = entry.measured() else { continue };
            if entry.record.workload == THROUGHPUT && !is_parallel(entry.case()) && is_plain(entry)
            {
                let release = release_per_page(entry);
                let page = entry.value(parameter::PAGE).to_owned();
                release.map(|release| prices.releases.entry(page).or_insert(release));
            }
            match entry.record.workload.as_str() {
                LATENCY => {
                    let key = (entry.value(parameter::KIND), entry.value(parameter::PAGE));
                    let key = (key.0.to_owned(), key.1.to_owned());
                    if let Some(price) = price(measured)
                        && entry.value(parameter::CACHES) == "cold"
                    {
                        let cold = [price.fault.high, pushed_out(measured).unwrap_or(0.0)];
                        prices.cold.entry(key).or_insert(cold);
                    } else if let Some(price) = price(measured) {
                        // Of several cases of one kind the plainest comes first.
                        prices.faults.entry(key).or_insert(price);
                    }
                }
                WORKLOAD => prices.see(measured),
                THROUGHPUT
                    if entry.value(parameter::POPULATE) == "madvise-populate"
                        && entry.value(parameter::PAGE) == "4k"
                        && !is_parallel(entry.case()) =>
                {
                    let at = elapsed(OURS, FAULT_IN);
                    let touch = entry.numbers.get(elapsed(OURS, "touch"), "p50");
                    let all = entry.numbers.get(at, "per_page");
                    // The touch would come anyway.
                    let net = all.zip(touch).map(|(all, touch)| minus(all, touch));
                    prices.populate = prices.populate.or(net.or(all));
                }
                THROUGHPUT if is_crowd(entry) => {
                    let key = (entry.value(parameter::KIND), entry.value(parameter::PAGE));
                    let threads = entry.value(parameter::THREADS).parse().unwrap_or(1);
                    // Threads that wait for each other in a fault spin, and time on the CPU does
                    // not count what else runs on the machine.
                    if let Some(each) = entry.numbers.get(cpu(OURS, "touch"), "per_fault") {
                        let crowds =
                            prices.crowds.entry((key.0.to_owned(), key.1.to_owned())).or_default();
                        crowds.entry(threads).or_insert(each);
                    }
                }
                _ => (),
            }
        }
        prices
    }

    /// What the faults of a program took while it was watched, by kind and page.
    fn see(&mut self, measured: &Measured) {
        for table in &measured.tables {
            let name = table.name.strip_prefix("fault/").unwrap_or_default();
            let mut parts = name.split('/').map(str::to_owned);
            let (Some(kind), Some(page)) = (parts.next(), parts.next()) else { continue };
            let of = |column| cell(table, column).unwrap_or(0.0);
            if of("timed") > 0.0 {
                let each = of("seen_ns") / of("timed");
                let most = self.seen.entry((kind, page)).or_insert(each);
                *most = most.max(each);
            }
        }
    }

    /// What a fault on a file in the page cache costs where at most this share of the pages looked
    /// at is in large folios. It is measured over base pages; over a large folio a fault costs a
    /// fraction of it, nobody knows which, so the interval reaches down by that share, and to
    /// nothing where nobody looked.
    pub(crate) fn of_file(&self, in_folios: Option<f64>) -> Option<Price> {
        let base = self.get("file-minor", "4k")?;
        let low = base.fault.low * (1.0 - in_folios.unwrap_or(1.0));
        Some(Price { fault: Quantity { low, ..base.fault }, table: base.table })
    }

    /// What a fault of a kind and page costs more while `crowd` threads are in one at once, and how
    /// many threads that was measured with.
    pub(crate) fn crowding(&self, kind: &str, page: &str, crowd: f64) -> Option<(Quantity, u64)> {
        let crowds = self.crowds.get(&(kind.to_owned(), page.to_owned()))?;
        let alone = crowds.get(&1)?;
        let distance = |threads: u64| (threads as f64 - crowd).abs();
        let several = crowds.iter().filter(|(threads, _)| **threads > 1);
        let (threads, each) = several.min_by(|a, b| distance(*a.0).total_cmp(&distance(*b.0)))?;
        Some((minus(*each, *alone), *threads))
    }

    /// What giving back one page of a size costs, where it was measured.
    pub(crate) fn release(&self, page: &str) -> Option<Quantity> {
        self.releases.get(page).copied()
    }

    /// What a fault of this kind and page costs, where it was measured: as in a loop that does
    /// nothing else, and up to what it costs where the program's memory fills the caches, and is
    /// pushed out of them by the fault. Itself it cost no more than it took while it was watched.
    pub(crate) fn get(&self, kind: &str, page: &str) -> Option<Price> {
        let key = (kind.to_owned(), page.to_owned());
        let Price { fault, table } = *self.faults.get(&key)?;
        let high = self.cold.get(&key).map_or(fault.high, |[cold, after]| {
            let seen = self.seen.get(&key).copied().unwrap_or(f64::INFINITY);
            cold.min(seen).max(fault.high) + after
        });
        Some(Price { fault: Quantity { high, ..fault }, table })
    }
}

/// Whether a throughput case is one of those that say what crowding adds.
fn is_crowd(entry: &Entry) -> bool {
    ["touch", ""].contains(&entry.value(parameter::POPULATE)) && is_plain(entry)
}

/// Whether its memory comes and goes as that of any program.
fn is_plain(entry: &Entry) -> bool {
    let is = |name: &str, value: &str| [value, ""].contains(&entry.value(name));
    is("processes", "1")
        && is("beside", "none")
        && is("pressure", "none")
        && is("order", "ascending")
        && is("backing", "anon")
}

fn mean(measured: &Measured, series: &str, arm: &str) -> Option<Estimate> {
    let clock = clock_of(&measured.series, series, arm, Time::Elapsed)?;
    Samples::of(&measured.series, series, arm, clock).undisturbed_mean()
}

/// How much longer going over as much memory as a cache holds takes after a fault than after a
/// touch without one, in nanoseconds: what the kernel brought into the caches pushed something out.
fn pushed_out(measured: &Measured) -> Option<f64> {
    let walk = |arm| mean(measured, series::WALK, arm);
    Some((walk(OURS)?.value - walk(CONTROL)?.value).max(0.0))
}

fn price(measured: &Measured) -> Option<Price> {
    let mean = |series: &str, arm: &str| mean(measured, series, arm);
    let quantity = |estimate: &Estimate| Quantity::of(estimate, Unit::Ns);
    let fault = quantity(&mean(series::FAULT, OURS)?);
    let control = mean(series::FAULT, CONTROL).map(|estimate| quantity(&estimate));
    let table = mean(series::FAULT_PAGE_TABLE, OURS).map(|table| minus(quantity(&table), fault));
    Some(Price { fault: control.map_or(fault, |control| minus(fault, control)), table })
}

/// The difference, never below 0.
pub(crate) fn minus(a: Quantity, b: Quantity) -> Quantity {
    not_below_0(difference(a, b))
}

/// The quantity with its ends, where none of them can be less than nothing.
pub(crate) fn not_below_0(a: Quantity) -> Quantity {
    let [value, low, high] = [a.value, a.low, a.high].map(|end| end.max(0.0));
    Quantity { value, low, high, ..a }
}

/// The difference, as wide as the ends of both may lie apart.
pub(crate) fn difference(a: Quantity, b: Quantity) -> Quantity {
    Quantity {
        value: a.value - b.value,
        low: a.low - b.high,
        high: a.high - b.low,
        coverage: a.coverage.min(b.coverage),
        processes: a.processes.min(b.processes),
        unit: a.unit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_cost_no_more_than_it_took_while_watched_and_what_came_of_it() {
        let key = || ("write".to_owned(), "4k".to_owned());
        let high = |seen: Option<f64>| {
            let fault = Quantity { high: 1100.0, ..Quantity::exact(1000.0, Unit::Ns) };
            let prices = Prices {
                faults: [(key(), Price { fault, table: None })].into(),
                cold: [(key(), [3000.0, 500.0])].into(),
                seen: seen.map(|seen| (key(), seen)).into_iter().collect(),
                ..Prices::default()
            };
            format!("{:.0}", prices.get("write", "4k").unwrap().fault.high)
        };
        let highs = [None, Some(1400.0), Some(900.0), Some(9000.0)].map(high);
        assert_eq!(highs, ["3500", "1900", "1600", "3500"]);
    }
}
