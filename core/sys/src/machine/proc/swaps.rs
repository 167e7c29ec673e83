//! `/proc/swaps`: the devices and files that the kernel swaps to.

use std::path::PathBuf;

use super::unescape;
use crate::machine::Tree;

/// A line of `/proc/swaps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InUse {
    /// The device or file.
    pub path: PathBuf,
    /// `partition` or `file`.
    pub kind: String,
    /// KiB that fit.
    pub size_kib: u64,
    /// KiB that are in use.
    pub used_kib: u64,
    /// The higher, the earlier it is used; negative unless somebody chose.
    pub priority: i32,
}

/// All swap that is on.
pub fn in_use(tree: &Tree) -> Vec<InUse> {
    in_text(&tree.text("proc/swaps").unwrap_or_default())
}

fn in_text(text: &str) -> Vec<InUse> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        Some(InUse {
            path: unescape(words.next()?),
            kind: words.next()?.to_owned(),
            size_kib: words.next()?.parse().ok()?,
            used_kib: words.next()?.parse().ok()?,
            priority: words.next()?.parse().ok()?,
        })
    };
    text.lines().skip(1).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_proc_swaps_are_read_with_their_escapes() {
        let found = in_text(
            "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
             /dev/zram1                              partition\t65532\t\t12\t\t32767\n\
             /a\\040b\\134                          file\t\t8\t\t0\t\t-2\n",
        );
        let of = |path: &str, kind: &str, size_kib, used_kib, priority| InUse {
            path: path.into(),
            kind: kind.into(),
            size_kib,
            used_kib,
            priority,
        };
        let zram = of("/dev/zram1", "partition", 65532, 12, 32767);
        assert_eq!(found, [zram, of("/a b\\", "file", 8, 0, -2)]);
    }
}
