//! What a case's process gets from its parent, beside the case: a trace, a page to count on, and
//! the names of what was made on the machine for it.
//!
//! The one idea: what is slow to make (decompressing, generating) is made once by the parent and
//! inherited by every process, so that a process measures and does nothing else. [`Supply`] is what
//! a workload asks for, [`Inputs`] what its trials are made from; `trace::load` is in between.

use std::{fs::File, rc::Rc};

use pagelab_sys::{
    SysError,
    knobs::{Obtained, memcg::MemoryGroup, swap::SwapSpace},
    process::{child, pulse::Pulse},
};
use serde::{Deserialize, Serialize};

use crate::{
    trace::{Source, Tally},
    workload::Error,
};

/// A trace that a case needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Supply {
    /// Where it comes from.
    pub source: Source,
    /// How many operations; `None` is all.
    pub ops: Option<u64>,
    /// The seed of a generator.
    pub seed: u64,
    /// What is in memory before the first operation: the value of the parameter `image`.
    pub image: String,
    /// Where a trace goes that has to be made.
    pub medium: Medium,
}

/// Where a trace goes that is generated or decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Medium {
    /// A sealed file in memory.
    Memory,
    /// A file without a name in the temporary directory, so that there is a page cache to speak of.
    File,
}

/// What is known about a trace that was supplied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Its path or generator.
    pub name: String,
    /// Operations, bytes of their records, and their digest.
    pub tally: Tally,
    /// Bytes after the last complete record.
    pub trailing: u64,
    /// The kernel's number for the file system that it is read from.
    pub file_system: u64,
    /// What may disturb results, each with what to do about it.
    pub warnings: Vec<String>,
    /// Where the pieces of the image go: address and bytes of each, in the image's order.
    pub image: Vec<(u64, u64)>,
}

/// The part of a request that says what was handed down, by descriptor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Handed {
    pub(crate) pulse: i32,
    pub(crate) trace: Option<HandedTrace>,
    pub(crate) belongings: Vec<Obtained>,
}

/// A trace that was handed down.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HandedTrace {
    pub(crate) file: i32,
    pub(crate) image: Option<i32>,
    pub(crate) facts: Facts,
}

/// What a workload makes its trials from.
#[derive(Debug)]
pub struct Inputs {
    /// Where operations are counted for whoever watches.
    pub pulse: Rc<Pulse>,
    /// The trace that was asked for.
    pub trace: Option<Rc<Trace>>,
    /// What was made on the machine for this case.
    pub belongings: Vec<Obtained>,
}

/// A supplied trace, in the process of the case.
#[derive(Debug)]
pub struct Trace {
    /// Its records, plain, from the start of the file; its offset is shared with other processes.
    pub file: File,
    /// The bytes of the image, its pieces end to end.
    pub image: Option<File>,
    /// What is known about it.
    pub facts: Facts,
}

impl Inputs {
    /// No trace, and nobody watches.
    ///
    /// # Errors
    /// When there is no memory for a page.
    pub fn none() -> Result<Self, SysError> {
        Ok(Self { pulse: Rc::new(Pulse::new()?), trace: None, belongings: Vec::new() })
    }

    /// In the process of a case: takes what was handed down.
    ///
    /// # Errors
    /// When it was not.
    pub(crate) fn take(handed: Handed) -> Result<Self, String> {
        let take = |number| child::inherited(number).map_err(|error| error.to_string());
        let pulse = Pulse::of(take(handed.pulse)?).map_err(|error| error.to_string())?;
        let trace = match handed.trace {
            None => None,
            Some(HandedTrace { file, image, facts }) => {
                let image = image.map(take).transpose()?;
                Some(Rc::new(Trace { file: take(file)?, image, facts }))
            }
        };
        Ok(Self { pulse: Rc::new(pulse), trace, belongings: handed.belongings })
    }

    /// The swap space that was made for this case.
    pub fn swap(&self) -> Option<&SwapSpace> {
        self.belongings.iter().find_map(|one| match one {
            Obtained::Swap(swap) => Some(swap),
            Obtained::Group(_) => None,
        })
    }

    /// The memory cgroup that was made for this case, in which its process runs.
    pub fn group(&self) -> Option<&MemoryGroup> {
        self.belongings.iter().find_map(|one| match one {
            Obtained::Group(group) => Some(group),
            Obtained::Swap(_) => None,
        })
    }

    /// The trace that the workload asked for.
    ///
    /// # Errors
    /// When nobody supplied one.
    pub fn trace(&self) -> Result<&Rc<Trace>, Error> {
        self.trace.as_ref().ok_or_else(|| Error::Case("no trace was supplied".to_owned()))
    }
}
