//! A record, what it is worth, and every number that may be quoted from it.
//!
//! The one idea: whether a number may be shown is decided here and nowhere else. A record whose
//! witness does not hold, or whose times come from an emulated machine, has no numbers at all, so
//! no table, chart or file can show one by mistake.

use std::collections::BTreeSet;

use pagelab_record::{Case, Claim, Measured, Nature, Outcome, Record};

use crate::{At, Cell, Note, Numbers, Time, Tone, parameters::display};

pagelab_record::named! {
    /// What a record is worth.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Standing {
        /// Every claim holds.
        Valid = "valid",
        /// A claim does not hold: the thing measured is not the thing named.
        Invalid = "invalid",
        /// From an emulated machine: its states hold, its times mean nothing.
        Emulated = "emulated",
        /// The host lacks something.
        Skipped = "skipped",
        /// It died, hung, or could not be set up.
        Failed = "failed",
    }
}

impl Standing {
    /// What a table shows in place of a number.
    pub fn cell(self) -> Cell {
        match self {
            Self::Valid => Cell::none(),
            Self::Invalid => Cell::toned("INVALID", Tone::Bad),
            Self::Emulated => Cell::toned("EMULATED", Tone::Warn),
            Self::Skipped => Cell::toned("skipped", Tone::Quiet),
            Self::Failed => Cell::toned("FAILED", Tone::Bad),
        }
    }

    /// That of a record.
    pub fn of(record: &Record) -> Self {
        match &record.outcome {
            Outcome::Skipped { .. } => Self::Skipped,
            Outcome::Failed { .. } => Self::Failed,
            Outcome::Measured(measured) if !measured.is_valid() => Self::Invalid,
            Outcome::Measured(_) if record.nature == Nature::Emulated => Self::Emulated,
            Outcome::Measured(_) => Self::Valid,
        }
    }
}

/// A record with what was made of it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The record.
    pub record: Record,
    /// What to call it among others of its run.
    pub short: String,
    /// Parameters that are not what they are when nobody asks.
    pub set: BTreeSet<String>,
    /// The series and the time of the number that it is compared by, where its view names one.
    pub main: Option<(&'static str, Time)>,
    /// What it is worth.
    pub standing: Standing,
    /// What may be quoted: nothing unless it is valid.
    pub numbers: Numbers,
}

impl Entry {
    /// What the series of every record imply, whatever was timed.
    pub fn of(record: &Record) -> Self {
        let standing = Standing::of(record);
        let numbers = match &record.outcome {
            Outcome::Measured(measured) if standing == Standing::Valid => Numbers::of(measured),
            _ => Numbers::default(),
        };
        let short = format!("{} {}", record.workload, record.case);
        let set = record.case.0.keys().map(ToString::to_string).collect();
        Self { record: record.clone(), short, set, main: None, standing, numbers }
    }

    /// Adds what else a record implies, where its numbers may be quoted.
    pub fn derive(&mut self, derive: impl FnOnce(&Case, &Measured, &mut Numbers)) {
        if let (Standing::Valid, Some(measured)) = (self.standing, self.record.measured()) {
            derive(&self.record.case, measured, &mut self.numbers);
        }
    }

    /// The cell of a parameter.
    pub fn parameter_cell(&self, name: &str) -> Cell {
        Cell::maybe(self.case().get(name).map(|value| display(name, value)))
    }

    /// The case of its record.
    pub fn case(&self) -> &Case {
        &self.record.case
    }

    /// The value of a parameter, empty where the case has none.
    pub fn value(&self, name: &str) -> &str {
        self.record.case.get(name).unwrap_or_default()
    }

    /// The observations, whatever they are worth.
    pub fn measured(&self) -> Option<&Measured> {
        self.record.measured()
    }

    /// What was counted under a name; `None` where nobody counted it.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.measured()?.counter(name)
    }

    /// Whether its numbers may be quoted.
    pub fn is_valid(&self) -> bool {
        self.standing == Standing::Valid
    }

    /// Whether it ran at all: such a case has a row in its workload's table.
    pub fn has_row(&self) -> bool {
        self.measured().is_some()
    }

    /// The last cell of its row: how much of the proof holds.
    pub fn proof(&self) -> Cell {
        let claims = self.claims();
        let holding = claims.iter().filter(|claim| claim.holds).count();
        match self.standing {
            Standing::Valid if claims.is_empty() => Cell::toned("no claims", Tone::Quiet),
            Standing::Valid => Cell::toned(format!("{holding}/{}", claims.len()), Tone::Good),
            Standing::Skipped | Standing::Failed => Cell::none(),
            invalid => invalid.cell(),
        }
    }

    /// `3×5`: processes, and repetitions in each.
    pub fn counts(&self, at: At<'_>) -> Cell {
        let of = |statistic| self.numbers.get(at, statistic).map(|count| count.value);
        let (Some(processes), Some(repetitions)) = (of("processes"), of("repetitions")) else {
            return Cell::none();
        };
        let each = repetitions / processes;
        let digits = usize::from(each.fract() > 0.0 && each < 10.0);
        Cell::toned(format!("{processes:.0}×{each:.digits$}"), Tone::Quiet)
    }

    /// The claims of its witness, whatever they are worth.
    pub fn claims(&self) -> &[Claim] {
        self.measured().map_or(&[][..], |measured| &measured.witness)
    }

    /// Why its numbers are withheld: each claim that does not hold.
    pub fn failed_claims(&self) -> impl Iterator<Item = &Claim> {
        self.claims().iter().filter(|claim| !claim.holds)
    }

    /// What stands below a table about its row: each claim that does not hold. The head of the
    /// report says of all of them what is emulated, and so does the last cell of each.
    pub fn notes(&self) -> impl Iterator<Item = Note> {
        let invalid = self.failed_claims().filter(|_| self.standing == Standing::Invalid);
        invalid.map(|claim| {
            let text = format!("{}: {}", self.short, display_claim(claim));
            Note::bad("INVALID", text, "")
        })
    }
}

/// A claim that does not hold, as a sentence.
pub fn display_claim(claim: &Claim) -> String {
    let arm = if claim.arm.is_empty() { String::new() } else { format!(" (arm {})", claim.arm) };
    let tolerance = match claim.tolerance {
        0 => String::new(),
        tolerance => format!(", tolerance {tolerance}"),
    };
    format!(
        "{}{arm}: expected {}, observed {}{tolerance}",
        claim.claim, claim.expected, claim.observed
    )
}
