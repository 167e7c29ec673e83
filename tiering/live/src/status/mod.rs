//! What is where: tiers, the share of each that processes and groups have, and why nothing moves.
//!
//! The one idea: it only reads, and through a [`Tree`], so that a test has a machine with tiers.
//! What a kernel does not count is absent, never 0.

use std::collections::{BTreeMap, BTreeSet};

use pagelab_sys::machine::{
    Tree, parse_list,
    proc::{counts, group, placements},
    tiers::{MemoryNode, free_pages, memory_nodes},
};
use serde::Serialize;

use crate::{
    PAGE,
    board::{Promoting, promoting},
    reason::Reason,
    source::{Region, damon},
    target::allows,
};

/// A node with memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeStatus {
    /// The kernel's number of it.
    pub node: usize,
    /// Its tier; 0 is the fastest.
    pub tier: usize,
    /// Bytes.
    pub bytes: u64,
    /// Bytes free above its high watermarks.
    pub free: u64,
}

/// Bytes that somebody has in each tier.
pub type Tiers = BTreeMap<usize, u64>;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessStatus {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its group of version 2.
    pub group: String,
    /// Bytes by tier.
    pub tiers: Tiers,
    /// Bytes in lower tiers that stay there: by their policy, and in hugetlb pages.
    pub bound: u64,
    /// See `bound`.
    pub hugetlb: u64,
    /// The nodes that it may have memory on, where none of the top tier is among them and some of
    /// its memory lies lower.
    pub kept_off: Option<String>,
}

/// A reason, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Why {
    /// Which.
    #[serde(flatten)]
    pub reason: Reason,
    /// The same as a sentence.
    pub says: String,
    /// What to do.
    pub cure: String,
}

impl From<Reason> for Why {
    fn from(reason: Reason) -> Self {
        Self { says: reason.to_string(), cure: reason.cure().to_owned(), reason }
    }
}

/// A range that somebody who watches calls hot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HotRegion {
    /// The process; absent where addresses are those of the machine.
    pub pid: Option<u32>,
    /// Its addresses.
    pub start: u64,
    /// See `start`.
    pub end: u64,
    /// What was counted.
    pub accesses: u64,
    /// Who says so.
    pub by: &'static str,
    /// What is told apart: a hot region need not be hot in every page.
    pub granularity: &'static str,
}

/// Regions that are shown, at most.
const REGIONS: usize = 16;

/// The machine at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The nodes.
    pub nodes: Vec<NodeStatus>,
    /// Processes, those with most in lower tiers first.
    pub processes: Vec<ProcessStatus>,
    /// Bytes of each group by tier.
    pub groups: BTreeMap<String, Tiers>,
    /// Pages that the kernel moved since boot, by the names of `/proc/vmstat`.
    pub moved: BTreeMap<String, u64>,
    /// Processes that a pagelab promotes now.
    pub promoting: Vec<Promoting>,
    /// The hottest ranges, by whoever watches already; nobody is made to.
    pub hottest: Vec<HotRegion>,
    /// Why nothing moves.
    pub reasons: Vec<Why>,
}

/// The hottest regions of monitors that somebody runs.
fn hottest(tree: &Tree) -> Vec<HotRegion> {
    let mut found = Vec::new();
    for monitor in damon::monitors(tree) {
        // With several targets nobody says whose a region is.
        let pid = match monitor.targets.as_slice() {
            [pid] if monitor.operations.ends_with("vaddr") => Some(*pid),
            _ if monitor.operations == "paddr" => None,
            _ => continue,
        };
        let region = |region: Region| HotRegion {
            pid,
            start: region.range.start,
            end: region.range.end,
            accesses: region.accesses,
            by: "damon",
            granularity: "regions",
        };
        found.extend(monitor.regions.into_iter().filter(|one| one.accesses > 0).map(region));
    }
    found.sort_by_key(|one| (std::cmp::Reverse(one.accesses), one.start));
    found.truncate(REGIONS);
    found
}

/// Why nothing moves by itself: what is true of the machine, and what of processes with memory in
/// lower tiers. Those are asked only where there is a lower tier.
pub fn reasons(tree: &Tree) -> Vec<Reason> {
    let nodes = memory_nodes(tree);
    let has_lower = nodes.iter().any(|node| node.tier > 0);
    let processes = if has_lower { processes(tree, &nodes) } else { Vec::new() };
    reasons_of(tree, &nodes, &processes)
}

fn reasons_of(tree: &Tree, nodes: &[MemoryNode], processes: &[ProcessStatus]) -> Vec<Reason> {
    let mut found = Vec::new();
    if nodes.len() < 2 {
        found.push(Reason::OneNode);
    } else if nodes.iter().all(|node| node.tier == 0) {
        found.push(Reason::SameTier { nodes: nodes.len() });
    } else {
        let top = nodes.iter().filter(|node| node.tier == 0);
        if top.map(|node| free_pages(tree, node.id)).sum::<u64>() == 0 {
            found.push(Reason::NoFreeMemory);
        }
        let mode = tree.number::<u64>("proc/sys/kernel/numa_balancing").unwrap_or(0);
        // Bit 1 is NUMA_BALANCING_MEMORY_TIERING (Linux 5.18).
        if mode & 2 == 0 {
            found.push(Reason::ModeOff);
        }
    }
    let sum = |of: fn(&ProcessStatus) -> u64| processes.iter().map(of).sum::<u64>();
    let (bound, hugetlb) = (sum(|one| one.bound), sum(|one| one.hugetlb));
    if bound > 0 {
        found.push(Reason::Bound { bytes: bound });
    }
    if hugetlb > 0 {
        found.push(Reason::Hugetlb { bytes: hugetlb });
    }
    // One for each list, however many processes have it.
    let lists: BTreeSet<&String> =
        processes.iter().filter_map(|one| one.kept_off.as_ref()).collect();
    found.extend(lists.into_iter().map(|allowed| Reason::Cpuset { allowed: allowed.clone() }));
    let kdamonds = tree.number("sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds").unwrap_or(0);
    if kdamonds > 0 {
        found.push(Reason::AnotherMonitor { kdamonds });
    }
    found
}

/// Who else looks or moves while an engine of ours does.
pub fn others(tree: &Tree) -> Vec<Reason> {
    let mut found: Vec<Reason> = reasons_of(tree, &memory_nodes(tree), &[])
        .into_iter()
        .filter(|reason| matches!(reason, Reason::AnotherMonitor { .. }))
        .collect();
    if tree.number::<u64>("proc/sys/kernel/numa_balancing").unwrap_or(0) != 0 {
        found.push(Reason::AnotherMover { what: "NUMA balancing of the kernel".into() });
    }
    found
}

impl Status {
    /// What the files of a tree say.
    pub fn read(tree: &Tree) -> Self {
        let all = memory_nodes(tree);
        let mut processes = processes(tree, &all);
        let whole = |tiers: &Tiers| tiers.values().sum::<u64>();
        processes.sort_by_key(|one| std::cmp::Reverse((lower(&one.tiers), whole(&one.tiers))));
        let mut groups: BTreeMap<String, Tiers> = BTreeMap::new();
        for process in &processes {
            let group = groups.entry(process.group.clone()).or_default();
            for (tier, bytes) in &process.tiers {
                *group.entry(*tier).or_default() += bytes;
            }
        }
        let node = |node: &MemoryNode| NodeStatus {
            node: node.id,
            tier: node.tier,
            bytes: node.pages * PAGE,
            free: free_pages(tree, node.id) * PAGE,
        };
        Self {
            nodes: all.iter().map(node).collect(),
            reasons: reasons_of(tree, &all, &processes).into_iter().map(Why::from).collect(),
            processes,
            groups,
            moved: moved(&tree.text("proc/vmstat").unwrap_or_default()),
            promoting: promoting(tree),
            hottest: hottest(tree),
        }
    }
}

/// What the kernel counts of moves.
fn moved(vmstat: &str) -> BTreeMap<String, u64> {
    let is_one = |name: &str| name.starts_with("pgpromote_") || name.starts_with("pgdemote_");
    let moves = counts(vmstat).filter(|(name, _)| is_one(name));
    moves.map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Bytes in lower tiers.
fn lower(tiers: &Tiers) -> u64 {
    tiers.range(1..).map(|(_, bytes)| bytes).sum()
}

/// The processes that have memory and may be looked at.
fn processes(tree: &Tree, nodes: &[MemoryNode]) -> Vec<ProcessStatus> {
    let pids = tree.numbered("proc", "").into_iter();
    let found = pids.filter_map(|pid| process(tree, u32::try_from(pid).ok()?, nodes));
    found.filter(|process| !process.tiers.is_empty()).collect()
}

fn process(tree: &Tree, pid: u32, nodes: &[MemoryNode]) -> Option<ProcessStatus> {
    let tier = |id: usize| nodes.iter().find(|node| node.id == id).map(|node| node.tier);
    let mut tiers = Tiers::new();
    let (mut bound, mut hugetlb) = (0_u64, 0_u64);
    for placement in placements(&tree.text(format!("proc/{pid}/numa_maps"))?) {
        let (is_hugetlb, is_bound) = (placement.is_hugetlb(), placement.is_bound());
        for (node, bytes) in placement.bytes() {
            let tier = tier(node)?;
            *tiers.entry(tier).or_default() += bytes;
            if tier > 0 && is_hugetlb {
                hugetlb = hugetlb.saturating_add(bytes);
            } else if tier > 0 && is_bound {
                bound = bound.saturating_add(bytes);
            }
        }
    }
    let text = |name: &str| tree.text(format!("proc/{pid}/{name}")).unwrap_or_default();
    let group = group(&text("cgroup")).map_or(String::new(), |group| group.path.to_owned());
    let name = text("comm").trim().to_owned();
    let allowed = tree.field(format!("proc/{pid}/status"), "Mems_allowed_list");
    let is_kept = |list: &String| {
        let allowed = parse_list(list).unwrap_or_default();
        lower(&tiers) > 0 && !nodes.iter().any(|node| node.tier == 0 && allows(&allowed, node.id))
    };
    let kept_off = allowed.filter(is_kept);
    Some(ProcessStatus { pid, name, group, tiers, bound, hugetlb, kept_off })
}

#[cfg(test)]
mod tests;
