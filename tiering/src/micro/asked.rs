//! A case of `tier/micro`, read, and what it needs of the host.

use std::path::PathBuf;

use pagelab_bench::{
    Experiment, Need, Needed, PageSize, Read, Refusal,
    needs::{self, Node, Transparent, near_node},
    words,
};
use pagelab_record::Case;
use pagelab_sys::{
    files::scratch,
    machine::{FreeMemory, Tree, thp::Policy},
};

use super::{
    super::drawn::Drawn,
    mode::{Mode, Tuned},
};
use pagelab_mappings::needs::Room;

words! {
    /// What the memory is.
    pub enum Memory {
        /// Anonymous; every second access is a store.
        Anon = "anon",
        /// A mapped file, of which there are only loads.
        File = "file",
    }

    /// What is done against what the case says.
    pub enum Lie {
        /// Nothing.
        None = "none",
        /// The memory is placed on the fast node.
        Near = "near",
        /// Every thread makes two accesses less.
        Fewer = "fewer",
    }
}

/// A case, read.
#[derive(Debug, Clone)]
pub struct Asked {
    pub(super) mode: Mode,
    pub(super) memory: Memory,
    pub(super) is_huge: bool,
    pub(super) drawn: Drawn,
    pub(super) is_full: bool,
    pub(super) tuned: Tuned,
    pub(super) rounds: Option<u32>,
    pub(super) directory: PathBuf,
    pub(super) lie: Lie,
}

pub(super) const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.memory == Memory::File && asked.is_huge,
        "kind=file with page=2m",
        "the page cache of most file systems has no such pages; use kind=anon",
    ),
    Refusal::new(
        |asked| asked.mode == Mode::Ours && asked.memory == Memory::File,
        "mode=ours with kind=file",
        "it sees stores, and there are none; use kind=anon",
    ),
    Refusal::new(
        |asked| {
            matches!(asked.mode, Mode::None | Mode::Ours | Mode::Damon) && asked.tuned.is_hurried
        },
        "mode=none|ours|damon with scan=hurried",
        "nothing is scanned; use mode=numab2",
    ),
    Refusal::new(
        |asked| asked.tuned.window_ms.is_some() && !asked.mode.is_pghot(),
        "window without mode=pghot|pghot-hwhints",
        "it is pghot's; use window=auto",
    ),
];

impl Asked {
    pub(super) fn of(case: &Case) -> Self {
        let directory = case.text("dir").filter(|dir| *dir != "auto").map(PathBuf::from);
        Self {
            mode: case.word("mode"),
            memory: case.word("kind"),
            is_huge: case.is("page", "2m"),
            drawn: Drawn::of(case),
            is_full: case.is("fast", "full"),
            tuned: Tuned {
                is_hurried: case.is("scan", "hurried"),
                window_ms: case.count("window"),
            },
            rounds: case.count("rounds").and_then(|rounds| u32::try_from(rounds).ok()),
            directory: directory.unwrap_or_else(scratch::default_directory),
            lie: case.word("lie"),
        }
    }

    pub(super) fn needed(&self) -> Vec<Needed> {
        let mut needs = vec![needs::Memory(self.footprint()).needed()];
        needs.extend(self.drawn.cpus.needs());
        if self.is_huge {
            needs.push(Transparent { page: PageSize::Thp, to: Policy::Madvise }.needed());
        }
        if self.memory == Memory::File {
            needs.push(Room { directory: self.directory.clone(), bytes: self.drawn.size }.needed());
        }
        if self.is_full || self.lie == Lie::Near {
            needs.push(Node::Far.needed());
        }
        for need in self.mode.needs(self.tuned) {
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
        needs
    }

    /// Memory, what fills the fast node, and the words that the proof compares with.
    pub(super) fn peak(&self) -> u64 {
        let free = || FreeMemory::of(&Tree::machine(), near_node()?);
        let cold = if self.is_full { free().map_or(0, |free| free.bytes()) } else { 0 };
        self.drawn.size + self.drawn.size / 512 + cold
    }
}
