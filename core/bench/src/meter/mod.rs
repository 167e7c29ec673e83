//! What a trial hands its observations and its proof to.
//!
//! The one idea: a repetition is kept whole or thrown away whole, so a trial writes into a draft
//! and the loop decides. Nothing here runs while a clock does.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use pagelab_record::{
    Claim, Data, Measured, Series, Signed, Table, Unit, latency, schema,
    vocabulary::{Said, series::PLANTED},
};
use pagelab_sys::{
    loops::marks::say,
    time::{Clock, usage},
};
use serde_json::json;

use crate::{partial::append, planted::Planted};

/// How the name of a series ends whose memory the host may have had to back first.
pub(crate) use pagelab_record::vocabulary::series::COLD;

/// Collects the observations of a case in one process.
#[derive(Debug)]
pub struct Meter {
    clock: Clock,
    process: u32,
    arm: String,
    repetition: Option<u32>,
    planted: Option<Planted>,
    draft: Vec<Series>,
    kept: Vec<Series>,
}

impl Meter {
    /// A meter for one process of a case.
    pub fn new(clock: Clock, process: u32) -> Self {
        let (draft, kept) = (Vec::with_capacity(64), Vec::with_capacity(4096));
        let (arm, repetition, planted) = (String::new(), None, None);
        Self { clock, process, arm, repetition, planted, draft, kept }
    }

    /// Makes every body that [`Meter::time`] times slower by this much, or none.
    pub(crate) fn plant(&mut self, planted: Option<Planted>) {
        self.planted = planted;
    }

    /// The clock that trials read.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether this repetition only warms up. What would slow down a measured one (an open
    /// perf event costs each fault about a tenth) is done here.
    pub fn is_warm_up(&self) -> bool {
        self.repetition.is_none()
    }

    /// Whether it is the first that is kept, or the warm-up before it.
    pub fn is_first(&self) -> bool {
        self.repetition.is_none_or(|repetition| repetition == 0)
    }

    /// How elapsed time is filed.
    pub fn elapsed(&self) -> schema::Clock {
        match self.clock {
            Clock::Tsc(_) => schema::Clock::Tsc,
            Clock::Raw { .. } => schema::Clock::Wall,
            Clock::Scripted { .. } => schema::Clock::Scripted,
        }
    }

    /// Times one body of `ops` operations on `bytes` bytes; returns the minor faults that it took.
    pub fn time(&mut self, name: &str, ops: u64, bytes: u64, body: impl FnOnce()) -> u64 {
        let Some(planted) = self.planted else {
            let before = usage::thread();
            let span = self.clock.span(body);
            // Counted before anything is filed: filing allocates, and may fault.
            let faults = usage::thread().since(before).minor_faults;
            let ns = self.clock.elapsed_ns(span);
            self.observe(name, self.elapsed(), ops, bytes, ns);
            return faults;
        };
        let (before, mut more) = (usage::thread(), None);
        let span = self.clock.span(|| {
            body();
            more = Some(self.clock.span(|| planted.run()));
        });
        let faults = usage::thread().since(before).minor_faults;
        let ns = [Some(span), more].map(|span| span.map_or(0, |span| self.clock.elapsed_ns(span)));
        self.observe(name, self.elapsed(), ops, bytes, ns[0]);
        self.observe(PLANTED, self.elapsed(), 1, 0, ns[1]);
        faults
    }

    /// Files one observation that was timed elsewhere.
    pub fn observe(&mut self, name: &str, clock: schema::Clock, ops: u64, bytes: u64, ns: u64) {
        self.file(name, clock, Unit::Ns, (ops, bytes), Data::Values(vec![ns]));
    }

    /// Files a number that belongs to the repetition as a whole.
    pub fn count(&mut self, name: &str, value: u64) {
        self.file(name, self.elapsed(), Unit::Count, (1, 0), Data::Values(vec![value]));
    }

    /// Files several observations of one operation each.
    pub fn observe_all(&mut self, name: &str, unit: Unit, values: Vec<u64>) {
        self.file(name, self.elapsed(), unit, (1, 0), Data::Values(values));
    }

    /// Files one observation for each round of a repetition, each of `ops` operations on `bytes`
    /// bytes.
    pub fn observe_rounds(&mut self, name: &str, ops: u64, bytes: u64, values: Vec<u64>) {
        self.file(name, self.elapsed(), Unit::Ns, (ops, bytes), Data::Values(values));
    }

    /// Files a distribution; an empty one is left out.
    pub fn distribution(&mut self, name: &str, unit: Unit, bytes: u64, of: &Histogram<u64>) {
        self.distribution_by(name, self.elapsed(), unit, bytes, of);
    }

    /// The same of one that was timed by another clock than the meter's.
    pub fn distribution_by(
        &mut self,
        name: &str,
        clock: schema::Clock,
        unit: Unit,
        bytes: u64,
        of: &Histogram<u64>,
    ) {
        if !of.is_empty() {
            let data = Data::Histogram(latency::encode(of));
            self.file(name, clock, unit, (1, bytes), data);
        }
    }

    fn file(
        &mut self,
        name: &str,
        clock: schema::Clock,
        unit: Unit,
        (ops, bytes): (u64, u64),
        data: Data,
    ) {
        self.draft.push(Series {
            name: name.to_owned(),
            arm: self.arm.clone(),
            process: self.process,
            repetition: self.repetition.unwrap_or(0),
            clock,
            unit,
            ops,
            bytes,
            data,
        });
    }

    /// Files all times of this repetition as those of memory that the host may have had to back.
    pub fn all_cold(&mut self) {
        for series in self.draft.iter_mut().filter(|series| series.unit == Unit::Ns) {
            series.name.push_str(COLD);
        }
    }

    /// Takes back what this repetition has filed under a name.
    pub fn withdraw(&mut self, name: &str) {
        self.draft.retain(|series| series.name != name);
    }

    /// Starts a repetition of an arm (`None` warms up); what was drafted before is thrown away.
    pub(crate) fn begin(&mut self, arm: &str, repetition: Option<u32>) {
        arm.clone_into(&mut self.arm);
        self.repetition = repetition;
        self.draft.clear();
        if matches!(self.clock, Clock::Scripted { .. }) {
            // To whoever emulates this machine and looks at what is marked.
            let begins = json!({ "repetition": { "arm": arm, "number": repetition } });
            say(begins.to_string().as_bytes());
        }
    }

    /// Keeps what the repetition observed.
    pub(crate) fn keep(&mut self) {
        self.kept.append(&mut self.draft);
    }

    /// Every observation kept so far.
    pub(crate) fn kept(&self) -> &[Series] {
        &self.kept
    }

    pub(crate) fn finish(self) -> Vec<Series> {
        self.kept
    }
}

/// Collects the proof of a case in one process.
#[derive(Debug, Default)]
pub struct Witness {
    arm: String,
    /// Of the repetition so far.
    draft: Measured,
    lasting: Vec<Claim>,
    latest: BTreeMap<String, u64>,
    kept: Measured,
    /// The counters of what is kept that do not add up.
    kept_latest: BTreeMap<String, u64>,
}

impl Witness {
    /// Claims that two numbers are equal.
    pub fn expect<'s>(&mut self, said: impl Into<Said<'s>>, expected: u64, observed: u64) {
        let claim = Claim::check(said, &self.arm, expected.signed(), observed.signed(), 0);
        self.draft.witness.push(claim);
    }

    /// Takes over what another case proved, for this arm.
    pub fn hand_on(&mut self, claim: &Claim) {
        let arm = self.arm.clone();
        self.draft.witness.push(Claim { arm, checks: 1, ..claim.clone() });
    }

    /// Claims that two digests are equal. A claim holds numbers below 2^63; the lowest 63 bits say
    /// as much.
    pub fn expect_digest<'s>(&mut self, said: impl Into<Said<'s>>, expected: u64, observed: u64) {
        self.expect(said, expected << 1 >> 1, observed << 1 >> 1);
    }

    /// Claims that two numbers are equal, also when the repetition is thrown away.
    pub fn expect_lasting<'s>(&mut self, said: impl Into<Said<'s>>, expected: u64, observed: u64) {
        self.expect(said, expected, observed);
        self.lasting.extend(self.draft.witness.pop());
    }

    /// Claims that a machine-wide count moved by at least this much: others may move it too.
    pub fn expect_at_least<'s>(&mut self, said: impl Into<Said<'s>>, expected: u64, observed: u64) {
        self.expect(said, expected, observed.min(expected));
    }

    /// Adds to a counter of the case.
    pub fn count(&mut self, name: &str, by: u64) {
        *self.draft.counters.entry(name.to_owned()).or_default() += by;
    }

    /// Sets a counter that does not add up over repetitions.
    pub fn set(&mut self, name: &str, value: u64) {
        self.latest.insert(name.to_owned(), value);
    }

    /// Leaves a table in the record, in place of an earlier one of its name.
    pub fn table(&mut self, table: Table) {
        self.draft.tables.retain(|earlier| earlier.name != table.name);
        self.draft.tables.push(table);
    }

    /// Notes something that may have disturbed the result, and what to do about it.
    pub fn warn(&mut self, warning: String) {
        self.draft.warnings.push(warning);
    }

    /// The claims of the repetition so far.
    pub fn drafted(&self) -> &[Claim] {
        &self.draft.witness
    }

    /// Whether every claim of the repetition so far holds.
    pub(crate) fn holds(&self) -> bool {
        self.draft.witness.iter().chain(&self.lasting).all(|claim| claim.holds)
    }

    pub(crate) fn begin(&mut self, arm: &str) {
        arm.clone_into(&mut self.arm);
        self.draft = Measured::default();
        self.lasting.clear();
        self.latest.clear();
    }

    /// Keeps what stands whatever becomes of the repetition.
    pub(crate) fn keep_lasting(&mut self) {
        for claim in self.lasting.drain(..) {
            claim.fold_into(&mut self.kept.witness);
        }
    }

    pub(crate) fn keep(&mut self) {
        self.keep_lasting();
        let draft = std::mem::take(&mut self.draft);
        let is_new = |kept: &Table| draft.tables.iter().all(|table| table.name != kept.name);
        self.kept.tables.retain(is_new);
        append(&mut self.kept, draft);
        self.kept_latest.append(&mut self.latest);
    }

    /// The case as this process saw it, and the counters that do not add up over processes.
    pub(crate) fn finish(self, series: Vec<Series>) -> (Measured, BTreeMap<String, u64>) {
        (Measured { series, ..self.kept }, self.kept_latest)
    }
}

#[cfg(test)]
mod tests;
