//! All runs on a rung, as the one record that they leave.
//!
//! The one idea: a record holds what was counted, run by run, under the number of the round; what
//! it comes to beside the other rungs is for a report. What must be so for the times to be those
//! of the rung is a claim; that its pages came is none: that they did not is an answer.

use std::collections::BTreeMap;

use pagelab_interpose::preload::Counted;
use pagelab_record::{
    Case, Claim, Clock, Data, Measured, Outcome, Record, Series, Signed, Table, Unit,
    asked::Rung,
    units::whole,
    verdict::Better,
    vocabulary::{Check, tried},
};
use pagelab_sys::machine::proc::Holding;

use super::{
    load::Score,
    maps::{Mapped, Mappings, is_fuller},
    once::Once,
    rungs::{Offer, Proof},
    warmth::Warmed,
};
use crate::made;

/// What was seen on a rung so far.
#[derive(Debug, Default)]
pub struct Tally {
    pub(super) series: Vec<Series>,
    pub(super) pages: Vec<Vec<i64>>,
    pub(super) witness: Vec<Claim>,
    pub(super) counters: BTreeMap<String, u64>,
    pub(super) mappings: Mappings,
    pub(super) digest: Option<u64>,
    pub(super) elapsed_ns: Vec<(u32, u64)>,
    pub(super) goal: Vec<(u32, f64)>,
    /// Why no more is run of it.
    pub settled: Option<Outcome>,
    /// Why no more is run of it, though it has rounds, which stay.
    pub(super) stopped: Option<String>,
    /// How a run ended that did not end as set up, once: it is run again.
    pub(super) suspect: Option<u64>,
}

impl Tally {
    /// Notes that a run was ended after so many nanoseconds, because it took too long.
    pub(super) fn late(&mut self, ns: u64) {
        self.counters.insert(tried::LATE_NS.to_owned(), ns);
    }

    /// Notes that no more can be run of it from a round on; what has rounds keeps them.
    pub(super) fn settle(&mut self, round: u32, outcome: Outcome) {
        match &outcome {
            Outcome::Skipped { need, cure } if !self.elapsed_ns.is_empty() => {
                let since = round + 1;
                self.stopped =
                    Some(format!("not run from round {since} on, it needs {need}: {cure}"));
            }
            _ => self.settled = Some(outcome),
        }
    }

    /// Whether no more is run of it.
    pub fn is_over(&self) -> bool {
        let is_late = self.counters.contains_key(tried::LATE_NS);
        self.settled.is_some() || self.stopped.is_some() || is_late
    }

    /// Elapsed nanoseconds by round.
    pub fn elapsed(&self) -> &[(u32, u64)] {
        &self.elapsed_ns
    }

    /// By round what is to be small: the first score, where there is one, or else the time.
    pub fn goal(&self) -> &[(u32, f64)] {
        &self.goal
    }

    /// Rounds with what decides in them, without those in which the rung's pages did not come.
    pub fn rounds(&self, rung: &Rung, plain: &Self) -> Vec<(u32, f64)> {
        let [large, faults] = [tried::LARGE, tried::MINOR_FAULTS].map(|name| self.by_round(name));
        let plain = plain.by_round(tried::MINOR_FAULTS);
        let goal = self.goal.iter().copied();
        goal.filter(|(round, _)| {
            let [large, faults, plain] = [&large, &faults, &plain].map(|of| of.get(round).copied());
            rung.came(large, faults, plain)
        })
        .collect()
    }

    /// What there was of something in each round.
    fn by_round(&self, name: &str) -> BTreeMap<u32, f64> {
        let mine = self.series.iter().filter(|series| series.name == name);
        let value = mine.filter_map(|series| match &series.data {
            Data::Values(values) => Some((series.process, *values.first()? as f64)),
            Data::Histogram(_) | Data::Summary(_) => None,
        });
        value.collect()
    }

    /// The most bytes in the pages that its rung is about, of all runs; `None` where nobody could
    /// tell.
    pub fn obtained(&self) -> Option<u64> {
        self.most(tried::LARGE)
    }

    /// The most bytes that it held, of all runs; `None` where nobody could tell.
    pub fn peak(&self) -> Option<u64> {
        self.most(tried::PEAK)
    }

    fn most(&self, name: &str) -> Option<u64> {
        let mine = self.series.iter().filter(|series| series.name == name);
        let values = mine.filter_map(|series| match &series.data {
            Data::Values(values) => values.first().copied(),
            Data::Histogram(_) | Data::Summary(_) => None,
        });
        values.max()
    }

    /// Adds a run, with what its client says.
    pub fn add(&mut self, offer: &Offer, round: u32, once: &Once, scores: &[Score]) {
        let Once { seen, ended, .. } = once;
        self.elapsed_ns.push((round, once.elapsed_ns));
        let goal =
            scores.first().zip(once.scores.first()).map(|(score, said)| match score.better {
                Better::Less => *said,
                Better::More => 1.0 / said,
            });
        self.goal.push((round, goal.unwrap_or(once.elapsed_ns as f64)));
        for (score, said) in scores.iter().zip(&once.scores) {
            self.series.push(scored(score, round, *said));
        }
        let usage = ended.usage;
        let faults = usage.minor_faults.saturating_sub(once.before_exec);
        let times = [
            (tried::ELAPSED, Clock::Wall, once.elapsed_ns),
            (tried::CPU, Clock::Cpu, usage.user_ns + usage.system_ns),
        ];
        let counts = [
            (tried::MINOR_FAULTS, Unit::Count, faults),
            (tried::MAJOR_FAULTS, Unit::Count, usage.major_faults),
        ];
        let large = obtained(offer.start.proof, once);
        let memory = [
            (tried::PEAK, Some(seen.peak)),
            (tried::MEAN, Some(seen.mean())),
            (tried::LARGE, large),
        ];
        // Of a run that ended before the first look nothing is known, but what was counted.
        let is_counted = |name: &str| match name {
            tried::LARGE => offer.start.proof == Proof::Counted,
            // Both of the same rounds, so that no mean lies above its peak.
            tried::PEAK | tried::MEAN => seen.peak > 0,
            _ => false,
        };
        let memory = memory.into_iter().filter(|(name, _)| seen.looks > 0 || is_counted(name));
        let memory = memory.chain([(tried::GROUP_PEAK, once.group_peak)]);
        let memory = memory.filter_map(|(name, bytes)| Some((name, Unit::Bytes, bytes?)));
        self.series.extend(times.map(|(name, clock, ns)| series(name, round, clock, Unit::Ns, ns)));
        let others = counts.into_iter().chain(memory);
        let others = others.map(|(name, unit, n)| series(name, round, Clock::Wall, unit, n));
        self.series.extend(others);
        let row = [u64::from(round)].into_iter().chain(seen.most);
        self.pages.push(row.map(Signed::signed).collect());
        if is_fuller(&seen.mappings, &self.mappings) {
            self.mappings.clone_from(&seen.mappings);
        }
        self.claim(offer, once);
        self.count(once);
    }

    /// Notes what free memory was before a run: how many blocks there were, where they were broken
    /// up; how many bytes were touched, where a host may have taken them.
    pub(super) fn free_memory(&mut self, round: u32, blocks: Option<u64>, warmed: Option<Warmed>) {
        let noted = |name, unit| move |count| series(name, round, Clock::Wall, unit, count);
        self.series.extend(blocks.map(noted(tried::FREE_BLOCKS, Unit::Count)));
        let Some(Warmed { bytes, is_whole }) = warmed else { return };
        self.series.push(noted(tried::WARMED, Unit::Bytes)(bytes));
        *self.counters.entry(tried::WARMED_IN_PART.to_owned()).or_default() += u64::from(!is_whole);
    }

    fn claim(&mut self, offer: &Offer, once: &Once) {
        let seen = &once.seen;
        let mut claim = |check: Check, observed: u64| {
            Claim::check(check, tried::ARM, 0, observed.signed(), 0).fold_into(&mut self.witness);
        };
        if offer.start.thp.is_some() {
            claim(Check::PolicyInForce, seen.other_policy.len() as u64);
        }
        if offer.start.proof == Proof::BaseOnly {
            let large = seen.most[0] + seen.most[1];
            claim(Check::BasePagesOnly, large);
        }
    }

    fn count(&mut self, once: &Once) {
        let seen = &once.seen;
        let fallbacks = |why: &str| {
            let names = ["thp", "anon"].map(|of| format!("{of}_fault_fallback{why}"));
            names.iter().filter_map(|name| once.counters.get(name)).sum::<u64>()
        };
        let joined = once.counters.get(COLLAPSES).unwrap_or(0);
        let added = [
            (tried::JOINED, joined),
            (tried::SAMPLES, seen.looks),
            (tried::BLIND, seen.blind),
            (tried::STRIPPED, seen.stripped.len() as u64),
            (tried::FALLBACKS, fallbacks("")),
            (tried::UNCHARGED, fallbacks("_charge")),
            (tried::LEFT, once.left as u64),
            (tried::COLLAPSED, once.collapsed.blocks),
            (tried::REFUSED, once.collapsed.refused),
        ];
        let preloaded = once.counts.map(|counts| {
            [
                (tried::PRELOADED, counts.get(Counted::Programs)),
                (tried::ASKED, counts.get(Counted::Asked)),
                (tried::REFUSED, counts.get(Counted::Refused)),
                (tried::UNLOADED, seen.unloaded.len() as u64),
            ]
        });
        for (name, count) in added.into_iter().chain(preloaded.into_iter().flatten()) {
            *self.counters.entry(name.to_owned()).or_default() += count;
        }
        let most = [
            (tried::PROCESSES, seen.processes.len() as u64),
            (tried::ELIGIBLE, seen.eligible()),
            (tried::EXIT, once.exit()),
            (tried::REFUSAL, once.collapsed.why.map_or(0, |why| u64::from(why.unsigned_abs()))),
            (tried::REFUSAL, once.counts.map_or(0, |counts| counts.get(Counted::Errno))),
        ];
        for (name, count) in most {
            let kept = self.counters.entry(name.to_owned()).or_default();
            *kept = (*kept).max(count);
        }
        let is_steady = self.digest.is_none_or(|digest| digest == once.digest);
        let steady = self.counters.entry(tried::OUTPUT_STEADY.to_owned()).or_insert(1);
        *steady &= u64::from(is_steady);
        self.digest.get_or_insert(once.digest);
    }

    /// A setting that was found otherwise than the rung has it, at either end of a run.
    pub fn setting(&mut self, path: &str, is_otherwise: bool) {
        let text = format!("readings of the rung's setting that are not its value: {path}");
        let claim =
            Claim::check((Check::SettingInForce, &text), tried::ARM, 0, i64::from(is_otherwise), 0);
        claim.fold_into(&mut self.witness);
    }

    /// The record of all that was seen so far; `looks` at the verdict.
    pub fn record(&self, run: &str, case: Case, looks: u32) -> Record {
        let seen = || Outcome::Measured(self.measured(looks));
        made::record(run, super::WORKLOAD, case, self.settled.clone().unwrap_or_else(seen))
    }

    fn measured(&self, looks: u32) -> Measured {
        let mut counters = self.counters.clone();
        counters.insert(tried::LOOKS.to_owned(), looks.into());
        counters.extend(self.digest.map(|digest| (tried::OUTPUT_DIGEST.to_owned(), digest)));
        let columns = [("round", "count")].into_iter();
        let columns = columns.chain(Holding::KINDS.map(|kind| (kind, "bytes")));
        let pages = Table::new(tried::PAGES, columns, self.pages.iter().cloned());
        let tables = [pages].into_iter().chain(self.mappings.iter().map(mapping)).collect();
        Measured {
            series: self.series.clone(),
            tables,
            counters,
            witness: self.witness.clone(),
            warnings: self.stopped.iter().cloned().collect(),
            ..Measured::default()
        }
    }
}

/// Pages of 2 MiB that the machine has joined of base pages, in `/proc/vmstat`.
const COLLAPSES: &str = "thp_collapse_alloc";
const HUGE: u64 = 2 << 20;

/// Bytes in the pages that a rung is about; `None` where nobody may see them.
fn obtained(proof: Proof, once: &Once) -> Option<u64> {
    match proof {
        Proof::None | Proof::BaseOnly => Some(once.seen.large),
        Proof::Kinds(kinds) => Some(kinds.iter().map(|kind| once.seen.most[*kind]).sum()),
        Proof::Folios(_) => once.seen.folios,
        // The machine's count has no process, and a process's pages do not say how they came.
        Proof::Joined => {
            let joined = once.counters.get(COLLAPSES)? * HUGE;
            Some(joined.min(once.seen.most[0]))
        }
        Proof::Counted => once.counts.map(|counts| counts.get(Counted::Bytes)),
    }
}

fn series(name: &str, round: u32, clock: Clock, unit: Unit, value: u64) -> Series {
    Series { process: round, ..Series::new(name, tried::ARM, clock, unit, vec![value]) }
}

/// A score in thousandths: a series holds whole numbers, each of so many operations.
fn scored(score: &Score, round: u32, said: f64) -> Series {
    let way = match score.better {
        Better::More => tried::MORE,
        Better::Less => tried::LESS,
    };
    let name = format!("{}{way}/{}", tried::SCORE, score.name);
    let thousandths = whole((said * 1000.0).round());
    Series { ops: 1000, ..series(&name, round, Clock::Wall, Unit::Count, thousandths.max(1)) }
}

fn mapping((name, mapped): (&String, &Mapped)) -> Table {
    let cells = [
        ("size", mapped.size),
        ("resident", mapped.resident),
        ("large", mapped.large),
        ("eligible", mapped.eligible),
    ];
    let columns = cells.map(|(name, _)| (name, "bytes"));
    Table::new(format!("{}{name}", tried::MAPPING), columns, [cells.map(|(_, bytes)| bytes)])
}
