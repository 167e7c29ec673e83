//! What a workload is: a row of the table, and the trials it prepares.

use std::fmt;

use pagelab_record::{Case, LeftOut, vocabulary::arm::OURS};
use pagelab_sys::{SysError, memtype::DeviceError};

use crate::{
    grid::unique,
    inputs::{Inputs, Supplied},
    meter::{Meter, Witness},
    need::Needed,
    params::Param,
    refusal::{Refusal, Refuses, listed, refuse},
};

/// What is known of a workload without a case.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// `collection/workload`.
    pub name: &'static str,
    /// One line: what it answers.
    pub summary: &'static str,
    /// Its parameters, in the order that help shows them.
    pub params: &'static [Param],
    /// The smallest case that still measures: what `check` runs.
    pub smallest: &'static [(&'static str, &'static str)],
    /// Whether one pass says it all: no warm-up, no repetition, no second process, and no limits of
    /// the machine beside it, because it is not about time.
    pub is_one_pass: bool,
    /// Whether a machine is measured; not by a model, and not by counts in a trace, which may run
    /// beside others, in any process.
    pub is_measured: bool,
    /// Whether its numbers are those of a model, of no machine.
    pub is_simulated: bool,
    /// Whether its numbers are counts of a machine that it emulates.
    pub is_emulated: bool,
    /// Whether its numbers are ceilings of the machine, which others are shares of.
    pub is_limit: bool,
}

/// One kind of measurement. It has no state of its own.
pub trait Workload: Sync {
    /// What is known of it without a case.
    fn about(&self) -> About;

    /// `collection/workload`.
    fn name(&self) -> &'static str {
        self.about().name
    }

    /// Its parameters, in the order that help shows them.
    fn params(&self) -> &'static [Param] {
        self.about().params
    }

    /// Replaces every `auto` by a value, so that the case is complete.
    fn resolve(&self, case: Case) -> Case;

    /// Reads a complete case.
    fn read(&self, case: &Case) -> Box<dyn Experiment>;

    /// Reads a complete case, unless it would measure something else than it says.
    ///
    /// # Errors
    /// A sentence that says what it would measure instead, and what to ask for.
    fn accept(&self, case: &Case) -> Result<Box<dyn Experiment>, String>;

    /// The combinations that [`Workload::accept`] turns away, as sentences for `list`.
    fn refusals(&self) -> Vec<(&'static str, &'static str)>;
}

/// A workload as data: what is known of it, and how its cases are read into a type of their own.
#[derive(Debug)]
pub struct Described<A: 'static> {
    /// What is known of it without a case.
    pub about: About,
    /// Replaces every `auto` by a value.
    pub resolve: fn(Case) -> Case,
    /// Reads a complete case.
    pub read: fn(&Case) -> A,
    /// Turns away, before all else, what no row tells.
    pub refuse: fn(&A) -> Result<(), String>,
    /// What it turns away.
    pub refusals: &'static [Refusal<A>],
    /// What it turns away for a part of what is asked.
    pub parts: &'static [&'static dyn Refuses<A>],
    /// What `list` says of [`Self::refuse`].
    pub refuses: &'static [(&'static str, &'static str)],
}

impl<A> Described<A> {
    /// One that takes every case as it is, and measures this machine in as many repetitions as it
    /// takes.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        params: &'static [Param],
        smallest: &'static [(&'static str, &'static str)],
        read: fn(&Case) -> A,
    ) -> Self {
        let about = About {
            name,
            summary,
            params,
            smallest,
            is_one_pass: false,
            is_measured: true,
            is_simulated: false,
            is_emulated: false,
            is_limit: false,
        };
        let (resolve, refuse) = (|case| case, |_: &A| Ok(()));
        Self { about, resolve, read, refuse, refusals: &[], parts: &[], refuses: &[] }
    }

    /// The same as a ceiling of the machine.
    #[must_use]
    pub const fn limit(mut self) -> Self {
        self.about.is_limit = true;
        self
    }

    /// The same as a model, of no machine: one pass says it all.
    #[must_use]
    pub const fn model(mut self) -> Self {
        self.about.is_simulated = true;
        self.unmeasured()
    }

    /// The same of no machine: one pass says it all.
    #[must_use]
    pub const fn unmeasured(mut self) -> Self {
        self.about.is_measured = false;
        self.one_pass()
    }

    /// The same about a machine that it emulates: one pass says it all.
    #[must_use]
    pub const fn emulated(mut self) -> Self {
        self.about.is_emulated = true;
        self.one_pass()
    }

    /// The same in one pass.
    #[must_use]
    pub const fn one_pass(mut self) -> Self {
        self.about.is_one_pass = true;
        self
    }
}

impl<A: Experiment> Workload for Described<A> {
    fn about(&self) -> About {
        self.about
    }

    fn resolve(&self, case: Case) -> Case {
        (self.resolve)(case)
    }

    fn read(&self, case: &Case) -> Box<dyn Experiment> {
        Box::new((self.read)(case))
    }

    fn accept(&self, case: &Case) -> Result<Box<dyn Experiment>, String> {
        let asked = (self.read)(case);
        (self.refuse)(&asked)?;
        refuse(self.refusals, &asked)?;
        self.parts.iter().try_for_each(|part| part.refuse(&asked))?;
        Ok(Box::new(asked))
    }

    fn refusals(&self) -> Vec<(&'static str, &'static str)> {
        let parts = self.parts.iter().flat_map(|part| part.listed());
        listed(self.refusals).chain(parts).chain(self.refuses.iter().copied()).collect()
    }
}

/// A case as its workload reads it.
pub trait Experiment: fmt::Debug {
    /// What it needs of the host.
    fn needs(&self) -> Vec<Needed> {
        Vec::new()
    }

    /// What each arm needs of the host, where one that lacks something is left out. The first is
    /// what the others stand beside: [`Self::needs`] has what it needs, too.
    fn of_arms(&self) -> Vec<(&'static str, Vec<Needed>)> {
        Vec::new()
    }

    /// What it needs for arms that are left out where the host lacks it; met like a need, where
    /// that can be done.
    fn wishes(&self) -> Vec<Needed> {
        unique(self.of_arms().into_iter().skip(1).flat_map(|(_, needs)| needs))
    }

    /// The arms that cannot run here, each with what it lacks.
    fn left_out(&self) -> Vec<LeftOut> {
        let lacking = |(arm, needs): (&str, Vec<Needed>)| {
            let need = needs.into_iter().find(|need| !need.check())?;
            Some(LeftOut { arm: arm.to_owned(), need: need.name(), cure: need.cure() })
        };
        self.of_arms().into_iter().filter_map(lacking).collect()
    }

    /// Bytes of memory that it takes at its peak.
    fn footprint(&self) -> u64;

    /// Seconds that one repetition of all arms takes, roughly.
    fn seconds(&self) -> f64 {
        // First touch at 2 GB/s is typical.
        self.footprint() as f64 / 2e9 + 0.002
    }

    /// What the parent makes for it before any process starts.
    fn supply(&self) -> Option<Supplied> {
        None
    }

    /// A fixed number of repetitions that it asks for, instead of as many as it takes.
    fn repetitions(&self) -> Option<u32> {
        None
    }

    /// Makes one trial for each arm. Runs in the case's own process.
    ///
    /// # Errors
    /// When the machine refuses.
    fn prepare(&self, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error>;
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
    fn arm(&self) -> &str {
        OURS
    }

    /// Whether it touches memory for the first time, so that memory given back to the host in the
    /// meantime spoils it.
    fn is_first_touch(&self) -> bool {
        false
    }

    /// Whether its claims count faults, which a page that the kernel moves or the processor's
    /// chance adds to: only such a repetition is taken again over a claim. One value that is wrong,
    /// or out of order, is what the others look for.
    fn counts_faults(&self) -> bool {
        self.is_first_touch()
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
    /// Only its process could tell that something is missing.
    #[error("it needs {need}: {cure}")]
    Lacks {
        /// What is missing.
        need: String,
        /// How to get it.
        cure: String,
    },
}

impl From<DeviceError> for Error {
    /// What the module says, and the cure.
    fn from(error: DeviceError) -> Self {
        Self::Case(format!("{error} ({})", error.cure()))
    }
}
