//! What a case's process gets from its parent, beside the case: what a workload asked for, a page
//! to count on, and the names of what was made on the machine for it.
//!
//! The one idea: what is slow to make (decompressing, generating) is made once by the parent and
//! inherited by every process, so that a process measures and does nothing else. [`Supply`] is what
//! a workload asks for, [`Inputs`] what its trials are made from.

use std::{fs::File, io, rc::Rc};

use pagelab_record::LeftOut;
use pagelab_sys::{
    SysError,
    knobs::{MemoryGroup, Obtained, OwnMonitor, SwapSpace},
    process::{Beat, Heirloom, Pulse, child},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::same::{Same, same};

/// What a case needs made before any of its processes starts. Equal ones are made once.
pub trait Supply: Same {
    /// Makes it; `watch` is told how far that has come.
    ///
    /// # Errors
    /// When it cannot be had, or the user interrupts.
    fn load(&self, watch: &mut dyn FnMut(Beat)) -> Result<Loaded, Stopped>;
}

same!(dyn Supply);

/// As a case holds it.
pub type Supplied = Rc<dyn Supply>;

/// Why there is nothing to hand down.
#[derive(Debug)]
pub enum Stopped {
    /// The user interrupted.
    Interrupted,
    /// Why, in a sentence that names the file and what to do.
    Failed(String),
}

impl From<String> for Stopped {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// What was made, ready to be handed down to any number of processes.
#[derive(Debug)]
pub struct Loaded {
    /// The files that a process inherits.
    pub files: Vec<Heirloom>,
    /// What is known about them: who asked for them understands it.
    pub facts: Value,
    /// What may disturb results, each with what to do about it.
    pub warnings: Vec<String>,
}

/// The part of a request that says what was handed down, by descriptor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Handed {
    pulse: i32,
    files: Vec<i32>,
    facts: Value,
    belongings: Vec<Obtained>,
    spent_ns: u64,
}

impl Handed {
    pub(crate) fn new(
        loaded: Option<&Loaded>,
        pulse: &Heirloom,
        belongings: Vec<Obtained>,
        spent_ns: u64,
    ) -> Self {
        let files = loaded.into_iter().flat_map(|loaded| &loaded.files);
        Self {
            pulse: pulse.number(),
            files: files.map(Heirloom::number).collect(),
            facts: loaded.map_or(Value::Null, |loaded| loaded.facts.clone()),
            belongings,
            spent_ns,
        }
    }
}

/// What a workload makes its trials from.
#[derive(Debug)]
pub struct Inputs {
    /// Where operations are counted for whoever watches.
    pub pulse: Rc<Pulse>,
    /// The files of what was asked for.
    pub files: Vec<File>,
    /// What is known about them.
    pub facts: Value,
    /// CPU time that its parent's changes to the machine's settings took.
    pub spent_ns: u64,
    /// The arms that cannot run here.
    pub left_out: Vec<LeftOut>,
    belongings: Vec<Obtained>,
}

impl Inputs {
    /// In the process of a case: takes what was handed down.
    ///
    /// # Errors
    /// When it was not.
    pub(crate) fn take(handed: Handed) -> Result<Self, String> {
        let take = |number| child::inherited(number).map_err(|error| error.to_string());
        let Handed { pulse, files, facts, belongings, spent_ns } = handed;
        let pulse = Pulse::of(take(pulse)?).map_err(|error| error.to_string())?;
        let files: Result<Vec<File>, String> = files.into_iter().map(take).collect();
        let pulse = Rc::new(pulse);
        Ok(Self { pulse, files: files?, facts, spent_ns, left_out: Vec::new(), belongings })
    }

    /// What was made, in the process that made it; nobody watches.
    ///
    /// # Errors
    /// When there are too many descriptors, or there is no memory for a page.
    pub(crate) fn here(loaded: Option<&Loaded>) -> Result<Self, String> {
        let none = Self::none().map_err(|error| error.to_string())?;
        let Some(loaded) = loaded else { return Ok(none) };
        let files: io::Result<Vec<File>> = loaded.files.iter().map(Heirloom::file).collect();
        let files = files.map_err(|error| error.to_string())?;
        Ok(Self { files, facts: loaded.facts.clone(), ..none })
    }

    /// Nothing, and nobody watches.
    ///
    /// # Errors
    /// When there is no memory for a page.
    pub fn none() -> Result<Self, SysError> {
        let (files, belongings, left_out) = (Vec::new(), Vec::new(), Vec::new());
        let (pulse, facts) = (Rc::new(Pulse::new()?), Value::Null);
        Ok(Self { pulse, files, facts, spent_ns: 0, left_out, belongings })
    }

    /// Whether an arm can run here.
    pub fn has(&self, arm: &str) -> bool {
        self.left_out.iter().all(|left_out| left_out.arm != arm)
    }

    /// The swap space that was made for this case.
    pub fn swap(&self) -> Option<&SwapSpace> {
        self.belonging(|one| if let Obtained::Swap(swap) = one { Some(swap) } else { None })
    }

    /// The memory cgroup that was made for this case, in which its process runs.
    pub fn group(&self) -> Option<&MemoryGroup> {
        self.belonging(|one| if let Obtained::Group(group) = one { Some(group) } else { None })
    }

    /// The monitor of DAMON that was made for this case, off until it is started.
    pub fn monitor(&self) -> Option<&OwnMonitor> {
        self.belonging(|one| if let Obtained::Monitor(one) = one { Some(one) } else { None })
    }

    fn belonging<T>(&self, is: fn(&Obtained) -> Option<&T>) -> Option<&T> {
        self.belongings.iter().find_map(is)
    }
}
