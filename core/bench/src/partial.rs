//! What some processes of a case have measured, on its way to a record.
//!
//! The one idea: processes are the unit, so what several of them measured is put together by
//! appending series, folding claims and adding counts; all but the counters that are the same in
//! each. A command that measures in rounds keeps one of these for each case.

use std::collections::BTreeMap;

use pagelab_record::{Claim, Measured, vocabulary::counter::PROCESSES};

use crate::losses::KEPT_COLD;

/// What processes of one case answered so far.
#[derive(Debug, Clone, Default)]
pub struct Partial {
    all: Measured,
    constants: BTreeMap<String, u64>,
    processes: u64,
}

impl Partial {
    /// What processes of a record measured, for more of them to join.
    pub fn of(measured: Measured) -> Self {
        let processes = measured.counter(PROCESSES).unwrap_or_default();
        Self { all: measured, constants: BTreeMap::new(), processes }
    }

    /// Adds what one process measured; `constants` are counters that do not add up.
    pub fn add(&mut self, measured: Measured, constants: BTreeMap<String, u64>) {
        append(&mut self.all, measured);
        self.constants.extend(constants);
        self.processes += 1;
    }

    /// Adds what other processes of the same case measured.
    pub fn join(&mut self, other: Self) {
        append(&mut self.all, other.all);
        self.constants.extend(other.constants);
        self.processes += other.processes;
    }

    /// Adds warnings that are not there yet.
    pub fn warn(&mut self, warnings: &[String]) {
        add_new(&mut self.all.warnings, warnings.to_vec());
    }

    /// Adds a claim that the parent checked.
    pub(crate) fn prove(&mut self, claim: Claim) {
        claim.fold_into(&mut self.all.witness);
    }

    /// Whether the host took memory back during a repetition that was kept all the same.
    pub fn lost_memory(&self) -> bool {
        self.all.counters.get(KEPT_COLD).is_some_and(|count| *count > 0)
    }

    /// What was measured so far.
    pub fn measured(&self) -> &Measured {
        &self.all
    }

    /// Processes that answered.
    pub fn processes(&self) -> u64 {
        self.processes
    }

    /// What a record keeps of it.
    pub(crate) fn finish(self) -> Measured {
        let Self { mut all, mut constants, processes } = self;
        constants.insert(PROCESSES.to_owned(), processes);
        all.counters.extend(constants);
        all
    }
}

/// Adds what was measured beside it or after it.
pub(crate) fn append(all: &mut Measured, one: Measured) {
    all.series.extend(one.series);
    all.tables.extend(one.tables);
    for claim in one.witness {
        claim.fold_into(&mut all.witness);
    }
    for (name, value) in one.counters {
        *all.counters.entry(name).or_default() += value;
    }
    add_new(&mut all.warnings, one.warnings);
    add_new(&mut all.left_out, one.left_out);
}

/// Adds those that are not there yet.
fn add_new<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use pagelab_record::LeftOut;

    use pagelab_record::vocabulary::Check;

    use super::*;

    fn process(lost: u64) -> Partial {
        let mut partial = Partial::default();
        let measured = Measured {
            counters: BTreeMap::from([("faults".to_owned(), 5), (KEPT_COLD.to_owned(), lost)]),
            witness: vec![Claim::check(Check::MajorFaults, "", 0, 0, 0)],
            warnings: vec!["loud".to_owned()],
            left_out: vec![LeftOut {
                arm: "large".to_owned(),
                need: "a pool".to_owned(),
                cure: "fill it".to_owned(),
            }],
            ..Measured::default()
        };
        partial.add(measured, BTreeMap::from([("tsc_hz".to_owned(), 7)]));
        partial
    }

    #[test]
    fn counts_add_up_constants_do_not_and_a_warning_is_said_once() {
        let mut all = process(0);
        all.join(process(0));
        let measured = all.finish();
        let counter = |name: &str| measured.counters[name];
        assert_eq!(
            (counter("faults"), counter("tsc_hz"), counter("processes_measured")),
            (10, 7, 2)
        );
        assert_eq!((measured.warnings.len(), measured.witness[0].checks), (1, 2));
        assert_eq!(measured.left_out.len(), 1, "every process leaves the same out");
    }

    #[test]
    fn a_record_that_goes_on_is_as_one_that_never_stopped() {
        let (mut whole, mut part) = (process(0), process(0));
        whole.join(process(1));
        part = Partial::of(part.finish());
        part.join(process(1));
        assert_eq!(part.finish(), whole.finish());
    }

    #[test]
    fn what_was_measured_so_far_can_be_looked_at() {
        let mut all = process(0);
        all.join(process(0));
        all.warn(&["loud".to_owned(), "quiet".to_owned()]);
        assert_eq!((all.processes(), all.measured().counters["faults"]), (2, 10));
        assert_eq!(all.measured().warnings, ["loud", "quiet"]);
    }

    #[test]
    fn another_claim_that_does_not_hold_is_no_lost_memory() {
        let mut all = process(0);
        let witness = vec![Claim::check(Check::MajorFaults, "", 1, 2, 0)];
        all.add(Measured { witness, ..Measured::default() }, BTreeMap::new());
        assert!(!all.lost_memory());
    }

    #[test]
    fn memory_lost_to_the_host_is_seen_before_it_is_mixed_in() {
        assert!(process(1).lost_memory());
        assert!(!process(0).lost_memory());
    }
}
