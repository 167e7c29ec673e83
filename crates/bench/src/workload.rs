//! What a workload is: a row of the table, and the trials it prepares.

use std::fmt;

use pagelab_record::Case;
use pagelab_sys::{SysError, memtype::DeviceError};

use crate::{
    inputs::{Inputs, Supplied},
    meter::{Meter, Witness},
    need::Needed,
    params::Param,
};

/// One kind of measurement. A workload is whole in one file and has no state of its own.
pub trait Workload: Sync {
    /// `collection/workload`.
    fn name(&self) -> &'static str;

    /// One line: what it answers.
    fn summary(&self) -> &'static str;

    /// Its parameters, in the order that help shows them.
    fn params(&self) -> &'static [Param];

    /// Replaces every `auto` by a value, so that the case is complete.
    fn resolve(&self, case: Case) -> Case {
        case
    }

    /// Refuses a combination that would measure something else than it says.
    ///
    /// # Errors
    /// A sentence that says what it would measure instead, and what to ask for.
    fn refuse(&self, case: &Case) -> Result<(), String> {
        let _ = case;
        Ok(())
    }

    /// The combinations that [`Workload::refuse`] turns away, as sentences for `list`.
    fn refusals(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// What the case needs of the host.
    fn needs(&self, case: &Case) -> Vec<Needed>;

    /// Bytes of memory that the case takes at its peak.
    fn footprint(&self, case: &Case) -> u64;

    /// Seconds that one repetition of all arms takes, roughly.
    fn seconds(&self, case: &Case) -> f64 {
        // First touch at 2 GB/s is typical.
        self.footprint(case) as f64 / 2e9 + 0.002
    }

    /// Whether one pass says it all: no warm-up, no repetition, no second process, and no limits of
    /// the machine beside it, because it is not about time.
    fn is_one_pass(&self) -> bool {
        false
    }

    /// Whether its numbers are those of a model, of no machine.
    fn is_simulated(&self) -> bool {
        false
    }

    /// Whether its numbers are ceilings of the machine, which others are shares of.
    fn is_limit(&self) -> bool {
        false
    }

    /// What the parent makes for the case before any process starts.
    fn supply(&self, case: &Case) -> Option<Supplied> {
        let _ = case;
        None
    }

    /// A fixed number of repetitions that the case asks for, instead of as many as it takes.
    fn repetitions(&self, case: &Case) -> Option<u32> {
        let _ = case;
        None
    }

    /// The smallest case that still measures: what `check` runs.
    fn smallest(&self) -> &'static [(&'static str, &'static str)];

    /// Makes one trial for each arm. Runs in the case's own process.
    ///
    /// # Errors
    /// When the machine refuses.
    fn prepare(&self, case: &Case, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error>;
}

impl fmt::Debug for dyn Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for dyn Workload {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// A row of a table of workloads.
pub type Row = &'static dyn Workload;

/// Every workload that a program has.
pub type Table = &'static [Row];

/// The workload of that name.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn find(table: Table, name: &str) -> Result<Row, String> {
    table.iter().copied().find(|workload| workload.name() == name).ok_or_else(|| {
        let names: Vec<&str> = table.iter().map(|workload| workload.name()).collect();
        format!("no workload is called `{name}`; there are {}", names.join(", "))
    })
}

/// One arm of a case, ready to run. Dropping it returns what it took.
pub trait Trial {
    /// The arm that its series and claims are filed under.
    fn arm(&self) -> &str;

    /// Whether it touches memory for the first time, so that memory given back to the host in the
    /// meantime spoils it.
    fn is_first_touch(&self) -> bool {
        false
    }

    /// Files what the host had to back first under names of its own, after `run`: the host took
    /// memory back meanwhile, and the repetition is kept. All of it, where a trial cannot tell.
    fn set_cold_apart(&mut self, meter: &mut Meter) {
        meter.all_cold();
    }

    /// Whether somebody else reclaimed what the touches were to find in memory; asked after each
    /// repetition, which is then thrown away and taken again.
    fn was_reclaimed(&mut self) -> bool {
        false
    }

    /// Prepares one repetition. Not measured.
    ///
    /// # Errors
    /// When the machine refuses.
    fn reset(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// One repetition: what is handed to the meter's clock is measured, nothing else.
    ///
    /// # Errors
    /// When the machine refuses.
    fn run(&mut self, meter: &mut Meter) -> Result<(), Error>;

    /// Proves that the repetition was what it claims to be. Not measured.
    ///
    /// # Errors
    /// When the proof cannot be taken; a proof that fails is a claim that does not hold.
    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error>;
}

/// Why a case cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The case makes no sense here.
    #[error("{0}")]
    Case(String),
}

impl From<DeviceError> for Error {
    /// What the module says, and the cure.
    fn from(error: DeviceError) -> Self {
        Self::Case(format!("{error} ({})", error.cure()))
    }
}
