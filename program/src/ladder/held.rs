//! What a run on a rung needs of the machine, held while it lasts and put back after it.
//!
//! The one idea: settings, a pool and a memory cgroup are one thing to whoever climbs: they are had
//! all together, or the rung is skipped with what is missing. Free memory that is broken up stays
//! so from run to run.

use std::path::PathBuf;

use pagelab_bench::{Error, PageSize};
use pagelab_mappings::BrokenUp;
use pagelab_record::{
    Outcome,
    units::{display_bytes, whole},
};
use pagelab_sys::{
    knobs::{Belonging, BelongingGuard, KnobError, KnobGuard, Knobs, MemoryGroup, Obtained},
    machine::{Topology, Tree},
};

use super::rungs::Start;

/// A pool is made so much larger than what the program was seen to hold.
const POOL_MARGIN: f64 = 1.25;
/// And by so many bytes more: allocators round up by the page.
const POOL_SPARE: u64 = 64 << 20;

/// What is held for a run.
pub(super) struct Held<'k> {
    group: Option<BelongingGuard<'k>>,
    _settings: Vec<KnobGuard<'k>>,
}

impl<'k> Held<'k> {
    /// Makes what a rung needs for a program that holds so many bytes at most, under a limit.
    pub(super) fn of(
        knobs: Option<&'k Knobs>,
        start: &Start,
        peak: u64,
        limit: Option<u64>,
    ) -> Result<Self, Outcome> {
        let settings = settings(knobs, start, peak)?;
        Ok(Self { group: group(knobs, limit)?, _settings: settings })
    }

    /// The memory cgroup.
    pub(super) fn group(&self) -> Option<&MemoryGroup> {
        match self.group.as_ref()?.obtained() {
            Obtained::Group(group) => Some(group),
            Obtained::Swap(_) | Obtained::Monitor(_) => None,
        }
    }
}

/// Sets what a rung needs of the machine.
fn settings<'k>(
    knobs: Option<&'k Knobs>,
    start: &Start,
    peak: u64,
) -> Result<Vec<KnobGuard<'k>>, Outcome> {
    let mut settings = start.settings.clone();
    let mut wanted = None;
    if let Some((size, path)) = &start.pool {
        let held = Tree::machine().number::<u64>(path).unwrap_or(0);
        let bytes = whole(peak as f64 * POOL_MARGIN).saturating_add(POOL_SPARE);
        // The kernel would give the pool all that there is: a program may map far more than that.
        if bytes > Topology::machine().memory_budget().bytes {
            let need = format!("{} of free memory for the pool", display_bytes(bytes as f64));
            let cure = "a machine with as much, or less memory that the program shares".to_owned();
            return Err(Outcome::Skipped { need, cure });
        }
        let pages = held + bytes.div_ceil(*size);
        wanted = Some((path.clone(), pages));
        settings.push((path.clone(), pages.to_string()));
    }
    if settings.is_empty() {
        return Ok(Vec::new());
    }
    let skipped = |need: String, cure: &str| Outcome::Skipped { need, cure: cure.to_owned() };
    let Some(knobs) = knobs else {
        return Err(skipped("the right to change settings".to_owned(), "sudo pagelab try"));
    };
    let set = |(path, value): &(_, String)| knobs.set(path, value);
    let guards: Result<Vec<_>, KnobError> = settings.iter().map(set).collect();
    let guards = guards.map_err(|error| skipped(error.to_string(), "pagelab doctor"))?;
    if let Some((path, pages)) = wanted {
        let found = Tree::machine().number::<u64>(&path).unwrap_or(0);
        if found < pages {
            let need = format!("{pages} pages in {}: the kernel found {found}", path.display());
            return Err(skipped(need, "echo 1 | sudo tee /proc/sys/vm/compact_memory"));
        }
    }
    Ok(guards)
}

/// The memory cgroup of a run, where there is a limit.
fn group(knobs: Option<&Knobs>, limit: Option<u64>) -> Result<Option<BelongingGuard<'_>>, Outcome> {
    let Some(limit) = limit else { return Ok(None) };
    let skipped = |need: String| Outcome::Skipped { need, cure: "sudo pagelab try".to_owned() };
    let knobs = knobs.ok_or_else(|| skipped("the right to make a memory cgroup".to_owned()))?;
    let made = knobs.create(&Belonging::MemoryGroup { limit });
    made.map(Some).map_err(|error| skipped(error.to_string()))
}

/// The settings of a rung that hold something else.
pub(super) fn wrong(start: &Start) -> Vec<String> {
    let is_wrong = |(path, value): &&(PathBuf, String)| {
        Tree::machine().choice(path).is_none_or(|found| found != *value)
    };
    start.settings.iter().filter(is_wrong).map(|(path, _)| path.display().to_string()).collect()
}

/// The free memory of every node, to be broken up.
pub(super) fn fragments() -> Vec<BrokenUp> {
    let nodes = Topology::machine().nodes();
    let several = nodes.len() > 1;
    nodes.iter().map(|node| BrokenUp::of(node.id, PageSize::Thp, several)).collect()
}

/// Breaks it up once more; the blocks of 2 MiB that are left, `None` where that was not asked.
pub(super) fn broken_up(fragments: &mut [BrokenUp]) -> Result<Option<u64>, Error> {
    let left = fragments.iter_mut().map(BrokenUp::break_up).sum::<Result<u64, _>>()?;
    Ok((!fragments.is_empty()).then_some(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pool_is_made_for_more_than_the_machine_has() {
        let pool = Some((2 << 20, PathBuf::from("/proc/no/such/knob")));
        let start = Start { pool, ..Start::default() };
        let need = |peak| match settings(None, &start, peak) {
            Err(Outcome::Skipped { need, .. }) => need,
            _ => panic!("nobody may set anything"),
        };
        assert!(need(u64::MAX / 2).contains("free memory for the pool"));
        assert!(need(1 << 20).contains("the right to change settings"));
    }
}
