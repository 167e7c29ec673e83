//! A node's free memory by the size of its blocks: what a large page can be made of at once.
//!
//! The one idea: memory that is free but lies in small blocks is no large page until the kernel has
//! compacted it. How many blocks there are is in `/proc/buddyinfo`; which zones an allocation of
//! user memory may take them from follows from `/proc/zoneinfo`: none whose free pages are not
//! above its `min` watermark and its reserve for lower zones (`__zone_watermark_ok` of
//! `mm/page_alloc.c`). Pages in a CPU's own lists are in neither.

use crate::machine::{Tree, proc};

/// Bytes of a base page: a block of order 0.
const PAGE: u64 = 4096;

/// One zone of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Zone {
    /// Free pages.
    free: u64,
    /// Pages that an ordinary allocation leaves.
    kept: u64,
    /// Free blocks of each order.
    blocks: Vec<u64>,
}

/// The free memory of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeMemory {
    zones: Vec<Zone>,
}

impl FreeMemory {
    /// That of a node; `None` where the kernel does not tell.
    pub fn of(tree: &Tree, node: usize) -> Option<Self> {
        let (info, zones) = (tree.text("proc/buddyinfo")?, tree.text("proc/zoneinfo")?);
        let ours = |zone: &proc::Zone<'_>| zone.node == node;
        let kept: Vec<_> = proc::zones(&zones).filter(ours).collect();
        let zones = proc::zones(&info).filter(ours).map(|zone| {
            let blocks: Vec<u64> = zone.blocks().collect();
            let free = blocks.iter().zip(0..).map(|(count, order)| count << order).sum();
            let kept = kept.iter().find(|other| other.name == zone.name);
            Zone { free, kept: kept.map_or(0, proc::Zone::kept), blocks }
        });
        let zones: Vec<Zone> = zones.collect();
        (!zones.is_empty()).then_some(Self { zones })
    }

    /// Free bytes, all zones.
    pub fn bytes(&self) -> u64 {
        self.zones.iter().map(|zone| zone.free * PAGE).sum()
    }

    /// Free blocks of `bytes` (a power of two) in zones within reach; a larger one counts as many.
    pub fn blocks(&self, bytes: u64) -> u64 {
        let order = (bytes / PAGE).ilog2();
        let in_reach = |zone: &&Zone| zone.free.saturating_sub((1 << order) - 1) > zone.kept;
        let of = |zone: &Zone| -> u64 {
            let large = zone.blocks.iter().zip(0..).skip(order as usize);
            large.map(|(count, larger): (&u64, u32)| count << (larger - order)).sum()
        };
        self.zones.iter().filter(in_reach).map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const BUDDY: &str = "\
Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3
Node 0, zone    DMA32      1      2      0      0      5      0      0      0      0      1      2
Node 1, zone   Normal    100      0      0      0      0      0      0      0      0      0      0
";

    fn tree(protection: u64) -> (tempfile::TempDir, Tree) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        let zones = format!(
            "Node 0, zone      DMA\n  pages free     3840\n        min      13\n        \
             protection: (0, {protection}, {protection})\nNode 0, zone    DMA32\n        \
             min      44\n        protection: (0, 0, 0)\n      nr_free_pages 9\nNode 1, zone   \
             Normal\n        min      1000\n        protection: (0, 0, 0)\n"
        );
        fs::write(root.path().join("proc/buddyinfo"), BUDDY).unwrap();
        fs::write(root.path().join("proc/zoneinfo"), zones).unwrap();
        let tree = Tree::at(root.path());
        (root, tree)
    }

    #[test]
    fn a_larger_block_counts_as_many_as_it_holds() {
        let (_root, tree) = tree(900);
        let memory = FreeMemory::of(&tree, 0).unwrap();
        assert_eq!(memory.blocks(2 << 20), (1 + 2 * 3) + (1 + 2 * 2));
        assert_eq!(memory.blocks(4 << 20), 3 + 2);
        let dma32 = 1 + 2 * 2 + 5 * 16 + 512 + 2 * 1024;
        assert_eq!(memory.bytes(), (256 + 512 + 3 * 1024 + dma32) * 4096);
    }

    #[test]
    fn a_zone_that_is_kept_for_others_has_no_block_to_give() {
        let (_root, tree) = tree(3900);
        let memory = FreeMemory::of(&tree, 0).unwrap();
        assert_eq!(memory.blocks(2 << 20), 1 + 2 * 2);
        assert_eq!(FreeMemory::of(&tree, 1).unwrap().blocks(4096), 0, "below its watermark");
        assert_eq!(FreeMemory::of(&tree, 2), None);
    }

    #[test]
    fn this_machine_tells() {
        let memory = FreeMemory::of(&Tree::machine(), 0).unwrap();
        assert!(memory.bytes() > 0 && memory.blocks(4096) <= memory.bytes() / 4096);
    }
}
