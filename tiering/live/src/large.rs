//! What becomes of a large page that is to be promoted: a rule with a name.
//!
//! The one idea: a large page is seen as one by most sources, so that one of 2 MiB of which 4 KiB
//! are hot looks hot. By rule `whole` it moves as one. By rule `split` the kernel is asked to split
//! it first, and its base pages stay until whatever was seen of the whole is forgotten: then those
//! move that were used, each by itself. What the kernel does not split moves whole in the end.
//! A cold page is demoted whole by either.

use std::{collections::BTreeMap, fs::OpenOptions, io::Write, str::FromStr};

use pagelab_sys::machine::Tree;
use pagelab_tier::BLOCK_PAGES;

use crate::{PAGE, source::Lack, space::Unit};

/// Splits the large pages of a range of a process, for root (Linux 5.13).
const FILE: &str = "sys/kernel/debug/split_huge_pages";
/// Looks until nothing is remembered of the whole page, as the policies remember.
const LOOKS: u64 = 8;

/// The rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Large {
    /// It moves whole.
    #[default]
    Whole,
    /// It is split, and its base pages move once they were seen by themselves.
    Split,
}

impl FromStr for Large {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "whole" => Ok(Self::Whole),
            "split" => Ok(Self::Split),
            _ => Err("whole or split".to_owned()),
        }
    }
}

impl Large {
    /// Whether this machine can do it.
    ///
    /// # Errors
    /// What it lacks.
    pub fn probe(self, tree: &Tree) -> Result<(), Lack> {
        if self == Self::Whole || tree.path(FILE).is_file() {
            return Ok(());
        }
        let cure = "as root: mount -t debugfs none /sys/kernel/debug";
        Err(Lack::new(format!("there is no /{FILE} to split large pages"), cure))
    }
}

/// The large pages of a process that were split.
#[derive(Debug)]
pub(crate) struct Splits {
    rule: Large,
    tree: Tree,
    /// By the number of the block, the looks in which it was tried first and last.
    at: BTreeMap<u32, (u64, u64)>,
}

impl Splits {
    pub(crate) fn new(rule: Large, tree: Tree) -> Self {
        Self { rule, tree, at: BTreeMap::new() }
    }

    /// Another program has other pages.
    pub(crate) fn forget(&mut self) {
        self.at.clear();
    }

    /// Large pages that were split, or that it was asked for.
    pub(crate) fn count(&self) -> u64 {
        self.at.len() as u64
    }

    /// Whether a unit of a process may be promoted in this look: a large page is split instead. One
    /// that is busy is tried again, until it moves whole when the first try's time has come.
    pub(crate) fn may_move(&mut self, pid: u32, unit: Unit, look: u64) -> bool {
        let block = unit.first / BLOCK_PAGES;
        let tried = self.at.get(&block).copied();
        let is_large = unit.pages > 1;
        match tried {
            None if self.rule == Large::Whole || !is_large => return true,
            Some((_, last)) if !is_large => return look >= last + LOOKS,
            Some((first, _)) if look >= first + LOOKS => return true,
            _ => {}
        }
        self.at.insert(block, (tried.map_or(look, |(first, _)| first), look));
        // What the kernel does not do it does not say either: the next look shows it.
        let _ = self.split(pid, unit);
        false
    }

    fn split(&self, pid: u32, unit: Unit) -> std::io::Result<()> {
        let end = unit.address + u64::from(unit.pages) * PAGE;
        let order = format!("{pid},{:#x},{end:#x}", unit.address);
        OpenOptions::new().write(true).open(self.tree.path(FILE))?.write_all(order.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE: Unit = Unit { first: 512, pages: 512, address: 0x20_0000 };
    const SMALL: Unit = Unit { first: 515, pages: 1, address: 0x20_3000 };

    fn tree() -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::at(folder.path()).with([(FILE, "")]);
        (folder, tree)
    }

    #[test]
    fn a_large_page_is_split_once_and_its_pages_wait_until_the_whole_is_forgotten() {
        let (_folder, tree) = tree();
        let mut splits = Splits::new(Large::Split, tree.clone());
        assert!(!splits.may_move(7, HUGE, 3));
        assert_eq!(tree.text(FILE).unwrap(), "7,0x200000,0x400000");
        assert!(!splits.may_move(7, HUGE, 4), "it is one still: tried again");
        assert!(!splits.may_move(7, SMALL, 11));
        assert!(splits.may_move(7, SMALL, 12));
        assert!(splits.may_move(7, HUGE, 11), "it is one still: it moves whole");
        assert_eq!(splits.count(), 1);
        assert!(splits.may_move(7, Unit { first: 5, ..SMALL }, 3), "of another block");
        splits.forget();
        assert!(!splits.may_move(7, HUGE, 12));
    }

    #[test]
    fn by_the_other_rule_nothing_is_split_and_nothing_is_needed() {
        let mut splits = Splits::new(Large::Whole, Tree::at("/nowhere"));
        assert!(splits.may_move(7, HUGE, 0) && splits.count() == 0);
        assert_eq!(Large::Whole.probe(&Tree::at("/nowhere")), Ok(()));
        assert!(Large::Split.probe(&Tree::at("/nowhere")).unwrap_err().cure.contains("debugfs"));
        let (_folder, tree) = tree();
        assert_eq!(Large::Split.probe(&tree), Ok(()));
        assert_eq!(["whole", "split"].map(str::parse), [Ok(Large::Whole), Ok(Large::Split)]);
        assert!("half".parse::<Large>().is_err());
    }
}
