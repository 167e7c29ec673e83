//! How much memory may be taken now.
//!
//! One idea: the smallest of what the kernel calls available and what each cgroup on the way up
//! leaves. Page cache that can be dropped is room on both sides: `MemAvailable` counts it, so the
//! inactive file pages of a group are subtracted from its usage too.

use std::path::Path;

use super::{Tree, cgroup};

/// From here on a version 1 limit means "none" (the kernel prints `LONG_MAX` in whole pages).
const UNLIMITED: u64 = 1 << 62;

/// Memory that can be taken now, and why it is not more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Bytes.
    pub bytes: u64,
    /// `MemAvailable`, or the cgroup file that limits it.
    pub limited_by: String,
}

/// The budget of this process.
pub(super) fn budget(tree: &Tree) -> MemoryBudget {
    let meminfo = |key| tree.field_number("proc/meminfo", key);
    let (kilobytes, limited_by) = match (meminfo("MemAvailable"), meminfo("MemFree")) {
        (Some(available), _) => (available, "MemAvailable"),
        (None, Some(free)) => (free, "MemFree"),
        (None, None) => (0, "/proc/meminfo, which cannot be read"),
    };
    let mut budget = MemoryBudget { bytes: kilobytes << 10, limited_by: limited_by.to_owned() };
    for (limit, room) in rooms(tree) {
        if room < budget.bytes {
            budget = MemoryBudget { bytes: room, limited_by: limit };
        }
    }
    budget
}

/// The lowest memory limit of any cgroup on the way up, in bytes; `None` when there is none.
pub(crate) fn lowest_limit(tree: &Tree) -> Option<u64> {
    limits(tree).into_iter().map(|limit| limit.bytes).min()
}

/// One limit of one group.
struct Limit {
    file: String,
    bytes: u64,
    usage: u64,
}

/// Each limit's file, and the room that it leaves.
fn rooms(tree: &Tree) -> Vec<(String, u64)> {
    let room = |limit: Limit| (limit.file, limit.bytes.saturating_sub(limit.usage));
    limits(tree).into_iter().map(room).collect()
}

fn limits(tree: &Tree) -> Vec<Limit> {
    let Some(group) = cgroup::find(tree, "memory") else { return Vec::new() };
    // `memory.high` does not kill but throttles to a crawl: no room for a measurement above it.
    let (limits, usage, cache): (&[&str], _, _) = if group.unified {
        (&["memory.max", "memory.high"], "memory.current", "inactive_file")
    } else {
        (&["memory.limit_in_bytes"], "memory.usage_in_bytes", "total_inactive_file")
    };
    let of_directory = |directory: &Path| {
        let cached = tree.field_number(directory.join("memory.stat"), cache).unwrap_or(0);
        let used = tree.number::<u64>(directory.join(usage)).unwrap_or(0).saturating_sub(cached);
        let limit = |name: &&str| {
            let file = directory.join(name);
            // `max` is no number, and that is right.
            let bytes = tree.number::<u64>(&file).filter(|bytes| *bytes < UNLIMITED)?;
            Some(Limit { file: file.display().to_string(), bytes, usage: used })
        };
        limits.iter().filter_map(limit).collect::<Vec<_>>()
    };
    group.path.iter().flat_map(|directory| of_directory(directory)).collect()
}
