//! This run and the published one, asked for the same things.
//!
//! The one idea: whoever asks for a number gets it, or gets why there is none (no such case, no
//! module, no proof, an emulated machine) and the cure; an answer collects both.

use pagelab_record::Outcome;

use crate::{
    entry::{Entry, Standing},
    limits::Limits,
    memtype::{self, ARM, BANDWIDTH, LATENCY, OP, TEST},
    numbers::elapsed,
    quantity::{Quantity, Unit},
};

/// The arm of published records.
const PUBLISHED: &str = "published";
pub(super) const MIB: f64 = 1_048_576.0;

/// Why there is no number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lack {
    /// Of which memory type.
    memory_type: String,
    /// Of which test or operation.
    what: String,
    why: String,
    cure: String,
}

/// Tests and operations by memory type.
type Whats<'a> = Vec<(&'a str, Vec<&'a str>)>;

/// A number, or why there is none.
pub(super) type Found<T> = Result<T, Lack>;

/// What is said of a question, and what cannot be.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    /// Sentences.
    pub(super) said: Vec<String>,
    /// What is missing for more.
    lacks: Vec<Lack>,
}

impl Answer {
    pub(super) fn say(&mut self, sentence: impl Into<String>) {
        self.said.push(sentence.into());
    }

    /// The number, or nothing and a note of what is missing.
    pub(super) fn ask<T>(&mut self, found: Found<T>) -> Option<T> {
        match found {
            Ok(value) => Some(value),
            Err(lack) => {
                if !self.lacks.contains(&lack) {
                    self.lacks.push(lack);
                }
                None
            }
        }
    }

    pub(super) fn text(&self) -> String {
        let mut reasons: Vec<(&str, Whats<'_>)> = Vec::new();
        for Lack { memory_type, what, why, .. } in &self.lacks {
            let at = reasons.iter().position(|(other, _)| other == why).unwrap_or_else(|| {
                reasons.push((why, Vec::new()));
                reasons.len() - 1
            });
            let types = &mut reasons[at].1;
            match types.iter_mut().find(|(other, _)| other == memory_type) {
                Some((_, whats)) => whats.push(what),
                None => types.push((memory_type, vec![what])),
            }
        }
        let named = |(memory_type, whats): (&str, Vec<&str>)| {
            format!("{} {}", memory_type.to_uppercase(), whats.join(", "))
        };
        let lacking = reasons.into_iter().map(|(why, types)| {
            let types: Vec<String> = types.into_iter().map(named).collect();
            format!("{} ({why})", types.join("; "))
        });
        let lacking = lacking.collect::<Vec<_>>().join("; ");
        let said = self.said.join(" ");
        match (said.is_empty(), lacking.is_empty()) {
            (_, true) => said,
            (true, false) => format!("not answered: {lacking}."),
            (false, false) => format!("{said} Not said: {lacking}."),
        }
    }

    pub(super) fn cure(&self) -> String {
        let mut cures: Vec<&str> = self.lacks.iter().map(|lack| lack.cure.as_str()).collect();
        cures.retain(|cure| !cure.is_empty());
        cures.dedup();
        cures.truncate(1);
        cures.concat()
    }
}

/// This run, what was published, and the limits of this machine.
pub(super) struct Both<'a> {
    pub(super) entries: &'a [Entry],
    pub(super) published: &'a [Entry],
    pub(super) limits: &'a Limits,
}

impl<'a> Both<'a> {
    /// The case of a test and a memory type that can say most.
    pub(super) fn case(&self, memory_type: &str, test: &str) -> Option<&'a Entry> {
        let is = |entry: &&Entry| {
            entry.record.workload == BANDWIDTH
                && entry.parameter("type") == memory_type
                && memtype::test_of(entry.case()) == test
                && entry.parameter("sum") != "accumulated"
                && entry.parameter("fence-word") != "overlap"
                && ["", "1"].contains(&entry.parameter("threads"))
        };
        // The suite has other sizes and widths of a test, too: the original's come first.
        let wide = test.starts_with("nt") || test.ends_with("movntdqa");
        self.entries.iter().filter(is).min_by_key(|entry| {
            let size = entry.parameter("size") != "16m";
            (rank(entry.standing), size, (entry.parameter("width") == "8") == wide)
        })
    }

    /// A statistic of a series of a test.
    pub(super) fn number(
        &self,
        [memory_type, test]: [&str; 2],
        series: &str,
        statistic: &str,
    ) -> Found<Quantity> {
        let entry = self.case(memory_type, test);
        quoted(entry, [memory_type, test], |entry| {
            entry.numbers.get(elapsed(ARM, series), statistic)
        })
    }

    /// Bytes a second of a test, to the end that it names.
    pub(super) fn rate(&self, memory_type: &str, test: &str) -> Found<Quantity> {
        self.number([memory_type, test], TEST, "bandwidth")
    }

    /// Nanoseconds of a round of a test.
    pub(super) fn round(&self, memory_type: &str, test: &str, series: &str) -> Found<Quantity> {
        self.number([memory_type, test], series, "round")
    }

    /// The median of one operation.
    pub(super) fn latency(&self, memory_type: &str, operation: &str) -> Found<Quantity> {
        let is = |entry: &&Entry| {
            entry.record.workload == LATENCY
                && entry.parameter("type") == memory_type
                && entry.parameter("op").split(',').any(|arm| arm == operation)
                && entry.parameter("state") != "flushed"
        };
        let entry = self.entries.iter().filter(is).min_by_key(|entry| rank(entry.standing));
        quoted(entry, [memory_type, operation], |entry| {
            entry.numbers.get(elapsed(operation, OP), "p50")
        })
    }

    /// The published record of a test.
    pub(super) fn log(&self, memory_type: &str, test: &str) -> Option<&'a Entry> {
        self.published.iter().find(|entry| {
            entry.parameter("part") == "log"
                && entry.parameter("type") == memory_type
                && entry.parameter("test") == test
        })
    }

    /// The published rate of a test, bytes a second.
    pub(super) fn published_rate(&self, memory_type: &str, test: &str) -> Option<Quantity> {
        self.log(memory_type, test)?.numbers.get(elapsed(PUBLISHED, TEST), "bandwidth")
    }

    /// Nanoseconds of a published round, from its rate.
    pub(super) fn published_round(&self, memory_type: &str, test: &str) -> Option<f64> {
        let entry = self.log(memory_type, test)?;
        entry.numbers.get(elapsed(PUBLISHED, TEST), "p50").map(|round| round.value)
    }

    /// One published rate over another.
    pub(super) fn published_ratio(&self, one: [&str; 2], other: [&str; 2]) -> Option<f64> {
        let of = |[memory_type, test]: [&str; 2]| self.published_rate(memory_type, test);
        Some(of(one)?.value / of(other)?.value)
    }
}

/// Which of several cases may speak.
fn rank(standing: Standing) -> u8 {
    match standing {
        Standing::Valid => 0,
        Standing::Invalid => 1,
        Standing::Emulated => 2,
        Standing::Failed => 3,
        Standing::Skipped => 4,
    }
}

/// A number of a case, or why it may not be quoted.
fn quoted(
    entry: Option<&Entry>,
    [memory_type, what]: [&str; 2],
    number: impl Fn(&Entry) -> Option<Quantity>,
) -> Found<Quantity> {
    let lack = |why: String, cure: &str| {
        let [memory_type, what, cure] = [memory_type, what, cure].map(str::to_owned);
        Lack { memory_type, what, why, cure }
    };
    let Some(entry) = entry else { return Err(lack("no such case ran".to_owned(), "")) };
    match (&entry.record.outcome, entry.standing) {
        (Outcome::Skipped { need, cure }, _) => Err(lack(need.clone(), cure)),
        (Outcome::Failed { reason }, _) => Err(lack(format!("failed: {reason}"), "")),
        (_, Standing::Invalid) => Err(lack("INVALID, see above".to_owned(), "")),
        (_, Standing::Emulated) => {
            Err(lack("an emulated machine: times mean nothing".to_owned(), ""))
        }
        _ => number(entry).ok_or_else(|| lack("the record has no such series".to_owned(), "")),
    }
}

/// One quantity over another of other processes.
pub(super) fn over(one: Quantity, other: Quantity) -> Quantity {
    let ratio = one.over(other, Unit::Ratio);
    ratio.unwrap_or_else(|| Quantity::exact(f64::NAN, Unit::Ratio))
}

/// A ratio with its interval: `1.30 (1.27–1.33)`.
pub(super) fn told(ratio: Quantity) -> String {
    if ratio.display_spread().is_empty() {
        return format!("{:.2}", ratio.value);
    }
    format!("{:.2} ({:.2}–{:.2})", ratio.value, ratio.low, ratio.high)
}

/// What was published of the same, in brackets.
pub(super) fn published(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!(" (published {value:.2})"))
}
