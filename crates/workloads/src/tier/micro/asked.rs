//! A case of `tier/micro`, read, and what it needs of the host.

use std::path::PathBuf;

use pagelab_bench::{Experiment, Need, Needed, PageSize, Read, Refusal, words};
use pagelab_record::Case;
use pagelab_sys::{
    files::scratch,
    loops::draws::DRAWERS_MAX,
    machine::{FreeMemory, Topology, Tree, thp::Policy},
};

use super::mode::{Mode, Tuned};
use crate::{
    cpus::Chosen,
    fault::needs::Room,
    needs::{self, Node, Transparent, near_node},
};

words! {
    /// What the memory is.
    pub enum Memory {
        /// Anonymous; every second access is a store.
        Anon = "anon",
        /// A mapped file, of which there are only loads.
        File = "file",
    }
}

words! {
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
    pub(super) size: u64,
    pub(super) threads: usize,
    /// Of each thread; `None` where no end is named.
    pub(super) accesses: Option<u64>,
    pub(super) seed: u64,
    pub(super) is_full: bool,
    pub(super) tuned: Tuned,
    pub(super) cpus: Chosen,
    pub(super) rounds: Option<u32>,
    pub(super) directory: PathBuf,
    pub(super) lie: Lie,
}

pub(super) const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.size == 0 || !asked.size.is_multiple_of(2 << 20),
        "size not divisible by 2m",
        "memory is placed in whole pages of either size; use size=64m",
    ),
    Refusal::new(
        |asked| asked.size / 4096 > u64::from(u32::MAX),
        "size of 16t and more",
        "pages are drawn by 32 bits; use size=8g",
    ),
    Refusal::new(
        |asked| asked.accesses.is_none_or(|accesses| accesses < 4 || accesses % 2 == 1),
        "accesses=all|auto, an odd number, or less than 4",
        "every second access is a store; use accesses=1m",
    ),
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
        |asked| matches!(asked.mode, Mode::None | Mode::Ours) && asked.tuned.is_hurried,
        "mode=none|ours with scan=hurried",
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
        let threads = case.count("threads").unwrap_or(1);
        Self {
            mode: case.word("mode"),
            memory: case.word("kind"),
            is_huge: case.is("page", "2m"),
            size: case.bytes("size").unwrap_or(0),
            threads: usize::try_from(threads).unwrap_or(1).min(DRAWERS_MAX),
            accesses: case.count("accesses"),
            seed: case.count("seed").unwrap_or(1),
            is_full: case.is("fast", "full"),
            tuned: Tuned {
                is_hurried: case.is("scan", "hurried"),
                window_ms: case.count("window"),
            },
            cpus: Chosen::of(case, "cpu"),
            rounds: case.count("rounds").and_then(|rounds| u32::try_from(rounds).ok()),
            directory: directory.unwrap_or_else(scratch::default_directory),
            lie: case.word("lie"),
        }
    }

    /// As many threads as the fast node has CPUs, where nobody says.
    pub(super) fn resolve(case: Case) -> Case {
        if !case.is("threads", "auto") {
            return case;
        }
        let cpus = on_near(Chosen::of(&case, "cpu").all()).len();
        case.with("threads", &cpus.clamp(1, DRAWERS_MAX).to_string())
    }

    /// Bytes, as a distance of addresses.
    pub(super) fn bytes(&self) -> usize {
        usize::try_from(self.size).expect("addresses have 64 bits")
    }

    /// Base pages.
    pub(super) fn pages(&self) -> u32 {
        u32::try_from(self.size / 4096).unwrap_or(u32::MAX)
    }

    /// The CPU of each thread, all of the fast node.
    pub(super) fn places(&self) -> Vec<Option<usize>> {
        let cpus = on_near(self.cpus.all());
        (0..self.threads).map(|nth| cpus.get(nth % cpus.len().max(1)).copied()).collect()
    }

    pub(super) fn needed(&self) -> Vec<Needed> {
        let mut needs = vec![needs::Memory(self.footprint()).needed()];
        needs.extend(self.cpus.needs());
        if self.is_huge {
            needs.push(Transparent { page: PageSize::Thp, to: Policy::Madvise }.needed());
        }
        if self.memory == Memory::File {
            needs.push(Room { directory: self.directory.clone(), bytes: self.size }.needed());
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
        self.size + self.size / 512 + cold
    }
}

/// Those of these CPUs that are on the fast node; all where none is.
pub(in crate::tier) fn on_near(cpus: Vec<usize>) -> Vec<usize> {
    let nodes = Topology::machine().nodes();
    let near = near_node().and_then(|near| nodes.into_iter().find(|node| node.id == near));
    let Some(near) = near else { return cpus };
    let there: Vec<usize> = cpus.iter().copied().filter(|cpu| near.cpus.contains(cpu)).collect();
    if there.is_empty() { cpus } else { there }
}
