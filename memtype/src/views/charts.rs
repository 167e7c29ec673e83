//! What the page draws of memory types.
//!
//! The one idea: types differ by a factor of a hundred, so dots stand on a logarithmic scale, in a
//! lane for each test or operation, a colour for each type; the published run is hollow beside.

use super::{ARM, BANDWIDTH, LATENCY, OP, TEST, TESTS, TYPES, arms, mine, number};
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    Entry, Key, Lanes, Quantity, Run, cases::test_of, chart::Row, elapsed, hue,
    parameters::display_type,
};

/// Rates of the tests that have names, where this run has some.
pub(super) fn bandwidth(run: &Run) -> Option<Lanes> {
    let of = |entries: &[Entry], memory_type: &str, test: &str, arm: &str| {
        let mine = mine(entries, BANDWIDTH);
        let mut rates = mine.iter().filter_map(|entry| {
            let same = entry.value(parameter::TYPE) == memory_type && test_of(entry.case()) == test;
            same.then(|| entry.numbers.get(elapsed(arm, TEST), "bandwidth")).flatten()
        });
        rates.next()
    };
    let row = |test: &str| -> Row {
        let dots = TYPES.iter().enumerate().flat_map(|(nth, memory_type)| {
            let ours = of(&run.entries, memory_type, test, ARM).map(|q| (2 * nth, q));
            let theirs = of(&run.published, memory_type, test, "published");
            ours.into_iter().chain(theirs.map(|q| (2 * nth + 1, q)))
        });
        (test.to_owned(), dots.collect())
    };
    let rows: Vec<Row> = TESTS.iter().map(|test| row(test)).collect();
    let is_ours = |(key, _): &(usize, Quantity)| key.is_multiple_of(2);
    if !rows.iter().flat_map(|(_, dots)| dots).any(is_ours) {
        return None;
    }
    let keys = TYPES.iter().enumerate().flat_map(|(nth, memory_type)| {
        let name = display_type(memory_type);
        let ours = Key::new(name.clone(), Some(hue(nth)));
        [ours, Key::new(format!("{name}, published"), Some(hue(nth))).hollow(true)]
    });
    let title = "Rates by test and memory type";
    let caption = "To the end that the test names, on a logarithmic scale; whiskers are intervals. \
                   Hollow: published, of another machine.";
    Lanes::dots([title, caption], keys.collect(), rows).shown()
}

/// Medians of operations, by memory type and state.
pub(super) fn latency(run: &Run) -> Option<Lanes> {
    let mine = mine(&run.entries, LATENCY);
    let mut rows: Vec<Row> = Vec::new();
    let mut labels: Vec<String> = Vec::new();
    let mut keys: Vec<Key> = Vec::new();
    for entry in mine.iter().filter(|entry| entry.is_valid()) {
        let (memory_type, flushed) =
            (entry.value(parameter::TYPE), entry.value(parameter::STATE) == "flushed");
        let name = display_type(memory_type);
        let label = if flushed { format!("{name}, flushed") } else { name };
        if labels.contains(&label) {
            continue;
        }
        let key = Key::new(label.clone(), Some(hue(super::type_rank(memory_type))));
        keys.push(key.hollow(flushed));
        labels.push(label);
        for arm in arms(entry, "op") {
            let of = |statistic| number(entry, arm, OP, statistic);
            let Some(median) = of("p50") else { continue };
            let end = |statistic| of(statistic).unwrap_or(median).value;
            let dot = (keys.len() - 1, Quantity { low: end("min"), high: end("p99"), ..median });
            match rows.iter_mut().find(|(known, _)| known == arm) {
                Some((_, dots)) => dots.push(dot),
                None => rows.push((arm.to_owned(), vec![dot])),
            }
        }
    }
    let title = "Median of one operation by memory type";
    let caption = "On a logarithmic scale; whiskers reach from the minimum to p99.";
    Lanes::dots([title, caption], keys, rows).shown()
}
