//! Why nothing moves, or less than could, as far as one process is concerned.

use pagelab_sys::machine::{
    format_list,
    tiers::{MemoryNode, free_pages},
};

use super::{Engine, Pass};
use crate::{
    board::Shown,
    reason::Reason,
    target::{self, Memory},
};

/// Ranges that are shown of a process.
const RANGES: usize = 8;

impl Engine {
    /// What there is to say of this process now.
    pub fn shown(&self) -> Shown {
        let (hot, ranges) = self.hottest(RANGES);
        let Pass { present, used, .. } = self.last;
        let Pass { looks, promoted, demoted, .. } = self.sum;
        let (policy, source) = (self.options.policy.clone(), self.name.to_owned());
        let reasons = if looks > 0 { self.reasons(&self.last) } else { Vec::new() };
        let pid = self.pid;
        Shown { pid, policy, source, looks, present, used, promoted, demoted, hot, ranges, reasons }
    }

    /// Why nothing moves, as far as this process is concerned, after a pass.
    pub fn reasons(&self, pass: &Pass) -> Vec<Reason> {
        let mut found = Vec::new();
        let Memory { hugetlb, bound, .. } = self.memory;
        if bound > 0 {
            found.push(Reason::Bound { bytes: bound });
        }
        if hugetlb > 0 {
            found.push(Reason::Hugetlb { bytes: hugetlb });
        }
        match self.options.nodes.as_slice() {
            [_] => found.push(Reason::OneNode),
            nodes if nodes.iter().all(|node| node.tier == 0) => {
                found.push(Reason::SameTier { nodes: nodes.len() });
            }
            _ => {}
        }
        found.extend(cpuset(&target::allowed_nodes(self.pid), &self.options.nodes));
        if pass.wanted > pass.promoted {
            let top = self.options.nodes.iter().filter(|node| node.tier == 0);
            if top.map(|node| free_pages(&self.tree, node.id)).sum::<u64>() == 0 {
                found.push(Reason::NoFreeMemory);
            }
        }
        let waited_ns = self.tally().waited_ns;
        if waited_ns > 0 {
            found.push(Reason::RateLimit { waited_ns });
        }
        if self.recorder.rests() {
            found.push(Reason::NotWorthIt);
        }
        if found.is_empty() && pass.wanted == 0 {
            found.push(Reason::NothingHot);
        }
        found
    }
}

/// Whether a cpuset has no node of the top tier.
fn cpuset(allowed: &[usize], nodes: &[MemoryNode]) -> Option<Reason> {
    let is_allowed = |node: &&MemoryNode| target::allows(allowed, node.id);
    let has_top = nodes.iter().filter(is_allowed).any(|node| node.tier == 0);
    (!has_top).then(|| Reason::Cpuset { allowed: format_list(allowed) })
}
