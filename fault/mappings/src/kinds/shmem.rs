//! Shared memory (a memfd): pages that are allocated for the file, and pages that it has already.

use pagelab_bench::Error;
use pagelab_sys::files::scratch::Scratch;

use super::backed::{self, Backed, Before, Mapping};
use crate::{Asked, FaultKind, Lie, Space, Stage};

/// Shared memory of a case behind its space.
fn backed(asked: &Asked, space: &mut Space, before: Before) -> Result<Box<dyn Stage>, Error> {
    let scratch = Scratch::in_memory(space.layout.bytes())?;
    Ok(Box::new(Backed::new(asked, space, scratch, (before, Mapping::Shared))?))
}

/// The first store to a page of shared memory that nobody has.
pub(super) const WRITE: FaultKind = FaultKind {
    name: "shmem-write",
    help: "first store to shared memory: allocates, clears, and adds the page to the page cache",
    lies: &[Lie::Cached],
    cannot_tell: |asked| backed::cannot_tell(asked, Mapping::Shared),
    refuse: backed::refuse,
    stage: |asked, space, _| backed(asked, space, Before::Empty),
    ..FaultKind::PLAIN
};

/// The first store through a new mapping to a page that the shared memory has.
pub(super) const MINOR: FaultKind = FaultKind {
    name: "shmem-minor",
    help: "store through a new mapping to shared memory that is there: maps the page",
    takes_fresh_memory: false,
    cannot_tell: |asked| backed::cannot_tell(asked, Mapping::Shared),
    refuse: backed::refuse,
    stage: |asked, space, _| backed(asked, space, Before::Cached),
    ..FaultKind::PLAIN
};
