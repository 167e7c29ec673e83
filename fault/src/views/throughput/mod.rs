//! `fault/throughput`: how fast fresh memory can be had.
//!
//! The one idea: what a user waits for is map + populate + touch, whichever of the three the faults
//! hide in; so bandwidth and its share of the clear limit are taken over their sum, and the cost of
//! one fault only where it is the touches that fault. Release is a row of its own, never inside.
//! What the host may have had to back first is in series that end in `-cold`: a column of its own.

mod charts;

use pagelab_record::{
    Case, Clock, Measured, Series,
    stats::Samples,
    vocabulary::{
        arm, counter,
        series::{MAP, POPULATE, RELEASE, TOUCH},
    },
};

use crate::views::workers::ALONE;
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    At, Cell, Entry, Grid, Headline, Limits, Numbers, Quantity, Run, Section, Table, Time, Tone,
    Unit, all_rows, base_cases,
    cases::{is_parallel, touches_fault},
    clock_of, columns, cpu, elapsed, fault, headline,
    limits::{OF_CLEAR, over_limit, share_cell},
    numbers::summed,
    parameters, ratio,
};

pub(crate) use pagelab_record::vocabulary::{arm::OURS as ARM, series::COLD, series::TOUCH_COLD};
/// The name of map, populate and touch taken together.
pub const FAULT_IN: &str = "fault-in";
pub(crate) use crate::throughput::NAME as WORKLOAD;
use pagelab_record::vocabulary::{arm::TWIN, series::CYCLE};
/// The arms that are other tools' loops, and the numbers that say how ours compares.
const PEERS: [(&str, &str, &str); 2] = [
    (arm::PAGE_FAULT1, "ratio_to_page_fault1", "vs page_fault1"),
    (arm::PFT, "ratio_to_pft", "vs pft"),
];

/// Adds what a throughput case implies: costs per fault and per page, rates, shares, the C ratio.
pub(crate) fn derive(case: &Case, measured: &Measured, limits: &Limits, numbers: &mut Numbers) {
    let faults = measured.counter(counter::FAULTS_PER_REPETITION).unwrap_or_default() as f64;
    for arm in [ARM, TWIN, PEERS[0].0, PEERS[1].0, ALONE] {
        for time in [Time::Elapsed, Time::Cpu] {
            let Some(clock) = clock_of(&measured.series, TOUCH, arm, time) else { continue };
            let Some((ops, bytes)) = lap(&measured.series, arm, clock) else { continue };
            let at = At { arm, series: TOUCH, time };
            if faults > 0.0 && touches_fault(case) {
                let touches_per_fault = ops as f64 / faults;
                let per_fault =
                    numbers.get(at, "p50").map(|q| q.times(touches_per_fault, Unit::Ns));
                let rate = per_fault.and_then(|per_fault| per_fault.under(1e9, Unit::PerSecond));
                numbers.add(at, "per_fault", per_fault);
                numbers.add(at, "faults_per_second", rate);
            }
            if PEERS.iter().any(|(peer, ..)| *peer == arm) {
                continue;
            }
            // Other kinds find memory prepared, off the clock: touching it provides none.
            if case.get(parameter::KIND).is_some_and(|kind| kind != "write") {
                continue;
            }
            let whole = summed(&measured.series, &[MAP, POPULATE], TOUCH, arm, clock);
            let at = At { arm, series: FAULT_IN, time };
            let Some(per_touch) = Samples::of(&whole, TOUCH, arm, clock).estimate(0.5) else {
                continue;
            };
            let total = Quantity::of(&per_touch, Unit::Ns).times(ops as f64, Unit::Ns);
            numbers.add(at, "p50", Some(total));
            if let Some(page) = case.get(parameter::PAGE).and_then(parameters::page_bytes) {
                let pages = bytes as f64 / page as f64;
                let per_page = (pages > 0.0).then(|| total.times(1.0 / pages, Unit::Ns));
                numbers.add(at, "per_page", per_page);
            }
            if time == Time::Elapsed && bytes > 0 {
                let bandwidth = total.under(bytes as f64 * 1e9, Unit::BytesPerSecond);
                numbers.add(at, "bandwidth", bandwidth);
                // The limit is one thread's: of several together it would be no limit.
                if !is_parallel(case) {
                    limits.add_share_of_clear(at, bandwidth, numbers);
                }
            }
        }
    }
    numbers.add(elapsed(ARM, TOUCH_COLD), "per_page", cold_page(case, measured));
    let series = &measured.series;
    let of_twin = ratio::of_times(series, TOUCH, Time::Elapsed, [ARM, TWIN]);
    numbers.add(elapsed(ARM, TOUCH), "ratio_to_c", of_twin);
    for time in [Time::Elapsed, Time::Cpu] {
        let Some(clock) = clock_of(series, TOUCH, ARM, time) else { continue };
        for (peer, statistic, _) in PEERS {
            let ratio = ratio::of_arms(series, TOUCH, clock, [ARM, peer]);
            numbers.add(At { arm: ARM, series: TOUCH, time }, statistic, ratio);
        }
        // Threads of ours share one mapping, those of page_fault1 do not: their cycles differ.
        if case.get(parameter::THREADS).is_none_or(|threads| threads == "1") {
            let ratio = ratio_of_cycles(series, clock);
            numbers.add(At { arm: ARM, series: CYCLE, time }, PEERS[0].1, ratio);
        }
    }
}

/// Touches and bytes of a whole repetition of an arm, whichever names its touches have.
fn lap(series: &[Series], arm: &str, clock: Clock) -> Option<(u64, u64)> {
    let touches = |s: &&Series| {
        s.arm == arm && s.clock == clock && matches!(s.name.as_str(), TOUCH | TOUCH_COLD)
    };
    let first = series.iter().find(touches)?;
    let same = |s: &&Series| (s.process, s.repetition) == (first.process, first.repetition);
    let whole = series.iter().filter(touches).filter(same);
    Some(whole.fold((0, 0), |(ops, bytes), s| (ops + s.ops, bytes + s.bytes)))
}

/// What a page costs that the host may have had to back first.
fn cold_page(case: &Case, measured: &Measured) -> Option<Quantity> {
    let series = &measured.series;
    let clock = clock_of(series, TOUCH_COLD, ARM, Time::Elapsed)?;
    let (ops, bytes) = lap(series, ARM, clock)?;
    let calls = [format!("map{COLD}"), format!("populate{COLD}")];
    let whole = summed(series, &[&calls[0], &calls[1]], TOUCH_COLD, ARM, clock);
    let per_touch = Samples::of(&whole, TOUCH_COLD, ARM, clock).estimate(0.5)?;
    let page = case.get(parameter::PAGE).and_then(parameters::page_bytes)?;
    let touches_per_page = ops as f64 * page as f64 / bytes.max(1) as f64;
    Some(Quantity::of(&per_touch, Unit::Ns).times(touches_per_page, Unit::Ns))
}

/// Map, touch and release of ours, taken together, over one pass of the loop of `page_fault1`.
fn ratio_of_cycles(series: &[Series], clock: Clock) -> Option<Quantity> {
    let mut both = summed(series, &[MAP, RELEASE], TOUCH, ARM, clock);
    let theirs = series.iter().filter(|s| (s.name.as_str(), s.arm.as_str()) == (CYCLE, PEERS[0].0));
    both.extend(theirs.map(|s| Series { name: TOUCH.into(), ..s.clone() }));
    ratio::of_arms(&both, TOUCH, clock, [ARM, PEERS[0].0])
}

/// How ours compares with another tool's loop: over all that the tool times.
fn ratio_to_peer(entry: &Entry, statistic: &str) -> Option<Quantity> {
    let of = |series| entry.numbers.get(elapsed(ARM, series), statistic);
    of(CYCLE).or_else(|| of(TOUCH))
}

/// The rate of each kind that was asked for, and the page size that comes closest to clearing.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let of = |entry: &Entry, at, statistic| entry.numbers.get(at, statistic);
    let found = base_cases(&run.entries, WORKLOAD, (elapsed(ARM, TOUCH), "faults_per_second"));
    let told = |(entry, rate): (&Entry, Quantity)| {
        let each = of(entry, elapsed(ARM, TOUCH), "per_fault");
        let each = each.map(|each| format!("{} each, page tables included", each.display()));
        let bandwidth = of(entry, elapsed(ARM, FAULT_IN), "bandwidth").map(Quantity::display);
        headline(rate, format!("{}s a second, in bulk", fault(entry)), &[each, bandwidth])
    };
    found.into_iter().map(told).chain(best_page(&run.entries)).collect()
}

/// The page size that comes closest to the clear limit.
fn best_page(entries: &[Entry]) -> Option<Headline> {
    let at = elapsed(ARM, FAULT_IN);
    let share = |entry: &Entry| entry.numbers.get(at, OF_CLEAR);
    let mine = entries.iter().filter(|entry| entry.record.workload == WORKLOAD);
    let candidates = mine.filter_map(|entry| Some((entry, share(entry)?)));
    let (best, most) = candidates.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))?;
    let base = base_cases(entries, WORKLOAD, (at, OF_CLEAR)).into_iter().next();
    let base = base.filter(|(entry, _)| entry.case() != best.case());
    let against = base.map(|(entry, share)| {
        format!("{} pages {}", entry.value(parameter::PAGE), share.display())
    });
    let label = format!("of the clear limit with {} pages", best.value(parameter::PAGE));
    Some(Headline { tone: Tone::Plain, ..headline(most, label, &[against]) })
}

/// The table of throughput cases, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.any(WORKLOAD)?;
    let mut section = Section::new("throughput", "Fault throughput");
    section.all(charts::bandwidth(run));
    let shown = columns(&mine, &["page", "backing", "populate"]);
    section.add(table(&mine, &shown));
    let mut said = all_rows(&mine, &shown);
    said.push_str(
        "Per fault: the time of all touches over the faults, so page tables and interruptions are \
         in it; mapping and release are not. ",
    );
    if let Some(clear) = run.limits.clear() {
        said.push_str(&format!("Clear limit in DRAM, one thread: {}. ", clear.display()));
    }
    if mine.iter().any(|entry| cold_page_of(entry).is_some()) {
        said.push_str(
            "A cold page is one that the host may have had to back first, because this kernel \
             had handed free memory back to it; it is in no other column.",
        );
    }
    section.add(said.trim_end().to_owned());
    section.all(over_limit(&mine));
    section.all(mine.iter().flat_map(|entry| entry.notes()));
    Some(section)
}

fn table(entries: &[&Entry], shown: &[String]) -> Table {
    let (touch, whole) = (elapsed(ARM, TOUCH), elapsed(ARM, FAULT_IN));
    // Where no call populates, a page costs what its fault does.
    let populated = entries.iter().any(|entry| !touches_fault(entry.case()));
    let per_page = |entry: &Entry| entry.numbers.get(whole, "per_page").filter(|_| populated);
    Grid::<&Entry>::new()
        .case(shown, |entry| entry)
        .number("per fault", 0, |e| Cell::spread(e.numbers.get(touch, "per_fault")).strong())
        .number("per page", 1, |entry| Cell::spread(per_page(entry)))
        .number("faults/s", 0, |entry| entry.numbers.get(touch, "faults_per_second"))
        .number("bandwidth", 0, |entry| entry.numbers.get(whole, "bandwidth"))
        .number("of clear", 0, |entry| share_cell(&entry.numbers, whole, OF_CLEAR))
        .number("cold page", 1, |entry| Cell::spread(cold_page_of(entry)))
        .number("CPU/fault", 3, |entry| entry.numbers.get(cpu(ARM, TOUCH), "per_fault"))
        .number("release/page", 5, |entry| release_per_page(entry))
        .number("vs C", 2, |entry| Cell::spread(entry.numbers.get(touch, "ratio_to_c")))
        .number(PEERS[0].2, 2, |entry| Cell::spread(ratio_to_peer(entry, PEERS[0].1)))
        .number(PEERS[1].2, 2, |entry| Cell::spread(ratio_to_peer(entry, PEERS[1].1)))
        .number("proc×rep", 4, |entry| entry.counts(touch))
        .words("witness", 0, |entry| entry.proof())
        .told(entries.iter().copied())
}

fn cold_page_of(entry: &Entry) -> Option<Quantity> {
    entry.numbers.get(elapsed(ARM, TOUCH_COLD), "per_page")
}

/// What giving back a page under test takes, in nanoseconds.
pub fn release_per_page(entry: &Entry) -> Option<Quantity> {
    let release = entry.numbers.get(elapsed(ARM, RELEASE), "p50")?;
    let series = entry.measured()?.series.iter().find(|s| s.name == RELEASE && s.arm == ARM)?;
    let (_, bytes) = lap(&entry.measured()?.series, ARM, series.clock)?;
    let page = parameters::page_bytes(entry.value(parameter::PAGE))? as f64;
    let pages = bytes as f64 / page;
    (pages > 0.0).then(|| release.times(series.ops as f64 / pages, Unit::Ns))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pagelab_record::schema;

    use super::*;

    #[test]
    fn what_the_host_had_to_back_is_a_number_of_its_own_and_in_no_other() {
        // A hundred pages in each repetition, at 100 ns where warm and at 500 where cold.
        let series = |name: &str, repetition: u32, pages: u64, ns: u64| Series {
            repetition,
            ops: pages,
            bytes: pages * 4096,
            ..Series::new(name, ARM, Clock::Wall, schema::Unit::Ns, vec![pages * ns])
        };
        let measured = Measured {
            series: vec![
                series("touch", 0, 75, 100),
                series(TOUCH_COLD, 0, 25, 500),
                series("touch", 1, 100, 100),
                series(TOUCH_COLD, 2, 100, 500),
            ],
            counters: BTreeMap::from([("faults_per_repetition".to_owned(), 100)]),
            ..Measured::default()
        };
        let case = Case::default().with("page", "4k").with("populate", "touch");
        let mut numbers = Numbers::of(&measured);
        derive(&case, &measured, &Limits::default(), &mut numbers);
        let is = |series, statistic, value: f64| {
            let got = numbers.get(elapsed(ARM, series), statistic).map(|q| q.value);
            assert!(got.is_some_and(|got| (got - value).abs() < 1e-6), "{statistic}: {got:?}");
        };
        is("touch", "per_fault", 100.0);
        is(FAULT_IN, "p50", 10_000.0);
        is(TOUCH_COLD, "per_page", 500.0);
    }
}
