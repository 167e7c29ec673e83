//! Shared memory (a memfd): pages that are allocated for the file, and pages that it has already.

use pagelab_bench::workload::Error;
use pagelab_record::Case;
use pagelab_sys::files::scratch::Scratch;

use super::{
    backed::{self, Backed, Before, Mapping},
    kind::{FaultKind, Stage},
};
use crate::fault::space::Space;

/// Shared memory of a case behind its space.
fn backed(case: &Case, space: &mut Space, before: Before) -> Result<Box<dyn Stage>, Error> {
    let scratch = Scratch::in_memory(space.layout.bytes())?;
    Ok(Box::new(Backed::new(case, space, scratch, (before, Mapping::Shared))?))
}

/// The first store to a page of shared memory that nobody has.
#[derive(Debug)]
pub(super) struct Write;

impl FaultKind for Write {
    fn name(&self) -> &'static str {
        "shmem-write"
    }

    fn help(&self) -> &'static str {
        "first store to shared memory: allocates, clears, and adds the page to the page cache"
    }

    fn lies(&self) -> &'static [&'static str] {
        &["cached"]
    }

    fn cannot_tell(&self, case: &Case) -> bool {
        backed::cannot_tell(case, Mapping::Shared)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        backed::refuse(self, case)
    }

    fn stage(&self, case: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error> {
        backed(case, space, Before::Empty)
    }
}

/// The first store through a new mapping to a page that the shared memory has.
#[derive(Debug)]
pub(super) struct Minor;

impl FaultKind for Minor {
    fn name(&self) -> &'static str {
        "shmem-minor"
    }

    fn help(&self) -> &'static str {
        "store through a new mapping to shared memory that is there: maps the page"
    }

    fn takes_fresh_memory(&self) -> bool {
        false
    }

    fn cannot_tell(&self, case: &Case) -> bool {
        backed::cannot_tell(case, Mapping::Shared)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        backed::refuse(self, case)
    }

    fn stage(&self, case: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error> {
        backed(case, space, Before::Cached)
    }
}
