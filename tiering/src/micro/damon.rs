//! DAMON's `migrate_hot` as a mode: a monitor of its own over the frames of the slow node.
//!
//! The one idea: it is made for the case and taken away after it, where nobody has one; what it is
//! made of, and what becomes of one of somebody else, is [`pagelab_sys::knobs::monitor`]'s. A
//! region is hot or not as a whole, and its pages are looked at once more before they move: those
//! that nobody has accessed since stay. `migrate_hot` is of Linux 6.11.

use std::ops::Range;

use pagelab_bench::{
    Need, Remedy,
    needs::{far_node, near_node},
};
use pagelab_sys::{
    knobs::{Belonging, monitor},
    machine::Tree,
};

/// A monitor of the slow node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Monitor;

impl Need for Monitor {
    fn name(&self) -> String {
        "DAMON that nobody uses".to_owned()
    }

    fn check(&self) -> bool {
        let tree = Tree::machine();
        monitor::is_free(&tree) && far_node().is_some_and(|node| frames(&tree, node).is_some())
    }

    fn cure(&self) -> String {
        "use Linux 6.11 or later with CONFIG_DAMON_SYSFS and CONFIG_DAMON_PADDR, as root; where \
         somebody has a monitor wait until it is gone, it is never taken away"
            .to_owned()
    }

    fn remedy(&self) -> Option<Remedy> {
        let frames = frames(&Tree::machine(), far_node()?)?;
        Some(Remedy::Create(Belonging::Monitor { frames, target: near_node()? }))
    }
}

/// The addresses of a node, from its first block of memory to its last.
fn frames(tree: &Tree, node: usize) -> Option<Range<u64>> {
    let bytes = tree.text("sys/devices/system/memory/block_size_bytes")?;
    let bytes = u64::from_str_radix(bytes.trim(), 16).ok()?;
    let blocks = tree.numbered(format!("sys/devices/system/node/node{node}"), "memory");
    let (first, last) = (*blocks.iter().min()? as u64, *blocks.iter().max()? as u64);
    Some(first.checked_mul(bytes)?..(last + 1).checked_mul(bytes)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn frames_of_a_node_are_those_of_its_blocks() {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::at(root.path());
        assert_eq!(frames(&tree, 1), None);
        let memory = root.path().join("sys/devices/system/memory");
        fs::create_dir_all(&memory).unwrap();
        fs::write(memory.join("block_size_bytes"), "8000000\n").unwrap();
        assert_eq!(frames(&tree, 1), None);
        for block in [32, 33, 39] {
            let node = root.path().join(format!("sys/devices/system/node/node1/memory{block}"));
            fs::create_dir_all(node).unwrap();
        }
        assert_eq!(frames(&tree, 1), Some(4 << 30..5 << 30));
    }
}
