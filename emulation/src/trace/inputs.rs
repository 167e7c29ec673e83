//! A trace as an input of a case: what is asked for, what is known about it, what a process gets.

use std::{fs::File, rc::Rc};

use pagelab_bench::{Error, Inputs};
use serde::{Deserialize, Serialize};

use super::{source::Source, tally::Tally};

/// A trace that a case needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wanted {
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

impl Trace {
    /// The trace that the case asked for.
    ///
    /// # Errors
    /// When nobody supplied one.
    pub fn of(inputs: &Inputs) -> Result<Rc<Self>, Error> {
        let missing = || Error::Case("no trace was supplied".to_owned());
        let facts = serde_json::from_value(inputs.facts.clone()).map_err(|_| missing())?;
        let copy = |file: &File| file.try_clone().map_err(|error| Error::Case(error.to_string()));
        let file = copy(inputs.files.first().ok_or_else(missing)?)?;
        let image = inputs.files.get(1).map(copy).transpose()?;
        Ok(Rc::new(Self { file, image, facts }))
    }
}
