//! Which memory nodes are in which tier, and what each has free.
//!
//! The one idea: the kernel's own tiers decide (`memory_tiering`, Linux 6.1), the lowest number
//! being the fastest; without them a node without CPUs is below those that have some. Free is what
//! is left above the high watermarks of the node's zones: below them the kernel reclaims, and a
//! page that is moved there pushes another one out.

use super::{
    proc::zones,
    topology::{Topology, Tree},
};

const PAGE_KIB: u64 = 4;

/// A node that has memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryNode {
    /// The kernel's number of it.
    pub id: usize,
    /// Its tier: 0 is the fastest.
    pub tier: usize,
    /// Whether it has CPUs.
    pub cpus: bool,
    /// Its pages.
    pub pages: u64,
}

/// The nodes with memory, in the order of their numbers.
pub fn memory_nodes(tree: &Tree) -> Vec<MemoryNode> {
    let nodes = Topology::of(tree.clone()).nodes();
    let tiers = tiers(tree);
    let place = |id: usize, cpus: bool| {
        let known = tiers.iter().position(|(_, nodes)| nodes.contains(&id));
        known.unwrap_or(if tiers.is_empty() { usize::from(!cpus) } else { tiers.len() })
    };
    let with_memory = nodes.into_iter().filter(|node| node.memory > 0);
    let mut found: Vec<MemoryNode> = with_memory
        .map(|node| MemoryNode {
            id: node.id,
            tier: place(node.id, !node.cpus.is_empty()),
            cpus: !node.cpus.is_empty(),
            pages: node.memory / (PAGE_KIB << 10),
        })
        .collect();
    // A tier whose nodes have no memory is none.
    let mut used: Vec<usize> = found.iter().map(|node| node.tier).collect();
    used.sort_unstable();
    used.dedup();
    for node in &mut found {
        node.tier = used.iter().position(|tier| *tier == node.tier).unwrap_or(0);
    }
    found
}

/// The kernel's tiers with their nodes, the fastest first.
fn tiers(tree: &Tree) -> Vec<(usize, Vec<usize>)> {
    let folder = "sys/devices/virtual/memory_tiering";
    let numbers = tree.numbered(folder, "memory_tier").into_iter();
    let nodes = |number: usize| {
        let file = |name: &str| tree.list(format!("{folder}/memory_tier{number}/{name}"));
        let list = file("nodelist");
        (number, if list.is_empty() { file("nodes") } else { list })
    };
    let mut found: Vec<_> = numbers.map(nodes).collect();
    found.sort_unstable();
    found
}

/// Pages of a node that are free above its high watermarks; 0 for a node that is not there.
pub fn free_pages(tree: &Tree, node: usize) -> u64 {
    let text = tree.text("proc/zoneinfo").unwrap_or_default();
    free_in(&text, node)
}

/// The same of a text of `/proc/zoneinfo`.
fn free_in(text: &str, node: usize) -> u64 {
    let ours =
        |name| zones(text).filter(|zone| zone.node == node).map(|zone| zone.pages(name)).sum();
    u64::saturating_sub(ours("pages free"), ours("high"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::at(folder.path()).with(files.iter().copied());
        (folder, tree)
    }

    const NODES: [(&str, &str); 5] = [
        ("sys/devices/system/node/online", "0-1\n"),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 4000 kB\n"),
        ("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 8000 kB\n"),
        ("sys/devices/system/node/node0/cpulist", "0-1\n"),
        ("sys/devices/system/node/node1/cpulist", "\n"),
    ];

    #[test]
    fn the_kernels_tiers_decide_and_their_numbers_do_not_matter() {
        let tiers = [
            ("sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "1\n"),
            ("sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "0\n"),
        ];
        let (_folder, tree) = tree(&[&NODES[..], &tiers[..]].concat());
        let found: Vec<_> =
            memory_nodes(&tree).into_iter().map(|node| (node.id, node.tier, node.pages)).collect();
        assert_eq!(found, [(0, 1, 1000), (1, 0, 2000)]);
    }

    #[test]
    fn one_tier_is_one_and_without_any_cpus_decide() {
        let one = [("sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0-1\n")];
        let (_folder, same) = tree(&[&NODES[..], &one[..]].concat());
        assert!(memory_nodes(&same).iter().all(|node| node.tier == 0));
        let (_other, none) = tree(&NODES);
        let tiers: Vec<usize> = memory_nodes(&none).iter().map(|node| node.tier).collect();
        assert_eq!(tiers, [0, 1]);
    }

    #[test]
    fn free_is_what_is_above_the_high_watermarks_of_the_node() {
        let text = "\
            Node 0, zone DMA\n  pages free     30\n        min      1\n        high     10\n\
            Node 0, zone Normal\n  pages free     500\n        high     20\n  pagesets\n\
            cpu: 0\n              high:  63\nNode 1, zone Movable\n  pages free     7\n\
                    high     9\n";
        assert_eq!((free_in(text, 0), free_in(text, 1), free_in(text, 2)), (500, 0, 0));
    }
}
