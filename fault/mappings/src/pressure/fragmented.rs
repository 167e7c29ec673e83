//! `pressure=fragmented`: faults whose page the kernel must put together first.
//!
//! The one idea: take every free block of the page under test, as one such page; split it, and give
//! it back but for one base page in each 64 KiB (less where the page is smaller). Then most of the
//! node is free and no block is large enough, until the touches move what is in the way: direct
//! compaction in the fault, or a fallback to a base page. Memory is taken 64 MiB at a time, so that
//! the machine is never short of it; what is kept is a sixteenth of what was free, and goes with
//! the process however that ends.
//!
//! What was moved away by one repetition is broken up before the next. The kernel's own compaction
//! in the background is off meanwhile (`compaction_proactiveness`), and faults compact because the
//! case asks for huge pages (`defrag` at `madvise`).

use pagelab_bench::{
    Error, Need, Needed, PageSize, Witness,
    needs::{Memory, Node, Setting},
};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    Area,
    counts::Counters,
    machine::{FreeMemory, Topology, Tree},
    memory::{Advice, Backing, Layout},
    process::Pinned,
};

use super::pieces::{Pieces, Shortage};
use crate::{Asked, Lie, Space, needs::SmallNode, page_bytes};

/// The most free memory that a node may have: all of it is broken up, for everybody.
const FREE_MAX: u64 = 2 << 30;

/// Taken at once.
const PORTION: u64 = 64 << 20;

/// One base page is kept in each so many bytes.
const PIECE: u64 = 64 << 10;

/// Portions that may leave as many blocks as there were: what others free meanwhile, and what is in
/// this CPU's list.
const PATIENCE: u32 = 64;

/// How often all is broken up at most, until no block is there right before the touches.
const BEGINNINGS: u32 = 8;

/// What it needs of the host.
pub(super) fn needs(asked: &Asked) -> Vec<Needed> {
    let setting = |path, value| Setting::new(path, value).needed();
    vec![
        SmallNode { node: node_of(asked), bytes: FREE_MAX }.needed(),
        Memory(asked.size + 2 * PORTION).needed(),
        setting("/sys/kernel/mm/transparent_hugepage/defrag", "madvise"),
        setting("/proc/sys/vm/compaction_proactiveness", "0"),
    ]
}

/// The node whose memory is broken up: the one that is named, or that of the first CPU.
fn node_of(asked: &Asked) -> usize {
    let nodes = Topology::machine().nodes();
    let named = asked.mem_node.and_then(Node::number);
    let cpu = asked.cpus.of_workers(1)[0].or_else(|| Topology::machine().default_cpu());
    let near = || nodes.iter().find(|node| cpu.is_some_and(|cpu| node.cpus.contains(&cpu)));
    named.or_else(|| near().map(|node| node.id)).unwrap_or(0)
}

/// A node whose free memory is broken up.
pub(super) fn broken_up(asked: &Asked, space: &mut Space) -> Box<dyn Shortage> {
    let node = node_of(asked);
    if Topology::machine().nodes().len() > 1 {
        // Elsewhere there may be as many blocks as before.
        space.mem_node = Some(node);
    }
    Box::new(WithoutBlocks {
        memory: BrokenUp::of(node, space.page, space.mem_node.is_some()),
        lies: asked.lie == Lie::Unfragmented,
        blocks: 0,
    })
}

/// The free memory of a node, broken up as long as this lives.
#[derive(Debug)]
pub struct BrokenUp {
    page: PageSize,
    node: usize,
    is_bound: bool,
    /// What is kept of the blocks.
    kept: Vec<Area>,
    kept_bytes: u64,
}

impl BrokenUp {
    /// Nothing yet of a node, about blocks for a page; bound to it where there are several.
    pub fn of(node: usize, page: PageSize, is_bound: bool) -> Self {
        Self { page, node, is_bound, kept: Vec::new(), kept_bytes: 0 }
    }

    /// Free blocks for such a page.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn blocks(&self) -> Result<u64, Error> {
        Ok(self.free()?.blocks(self.page.bytes()))
    }

    fn free(&self) -> Result<FreeMemory, Error> {
        let why = "/proc/buddyinfo does not tell of the node: use a kernel with CONFIG_PROC_FS";
        FreeMemory::of(&Tree::machine(), self.node).ok_or_else(|| Error::Case(why.to_owned()))
    }

    /// Takes free blocks apart until there is none, or others free them as fast; the blocks left.
    ///
    /// # Errors
    /// When the kernel does not tell of free blocks, or gives no memory.
    pub fn break_up(&mut self) -> Result<u64, Error> {
        // What the kernel puts together meanwhile is broken up again.
        for _ in 0..BEGINNINGS {
            self.break_up_once()?;
            if self.blocks()? == 0 {
                break;
            }
        }
        self.blocks()
    }

    fn break_up_once(&mut self) -> Result<(), Error> {
        let free = self.free()?;
        // Compaction moves what is kept together, and more is kept after each repetition.
        if self.kept_bytes > free.bytes() / 4 {
            self.kept.clear();
            self.kept_bytes = 0;
        }
        let (mut least, mut patience) = (u64::MAX, PATIENCE);
        while patience > 0 {
            let blocks = self.free()?.blocks(self.page.bytes());
            // Putting that page together may have left blocks: they are looked for again.
            if blocks == 0 && !self.takes_a_listed_page()? {
                if self.free()?.blocks(self.page.bytes()) == 0 {
                    return Ok(());
                }
                patience -= 1;
                continue;
            }
            if blocks >= least {
                patience -= 1;
            }
            least = least.min(blocks.max(1));
            if blocks > 0 {
                self.take(blocks.min(PORTION / self.page.bytes()))?;
            }
        }
        Ok(())
    }

    /// Takes one page on each CPU and tells whether one was there all the same: since Linux 5.13 a
    /// CPU keeps huge pages that were freed in a list of its own, which comes before the free
    /// blocks, which `/proc/buddyinfo` does not count, and which becomes free blocks when the list
    /// grows or the CPU rests. One that had to be put together says that the list is empty.
    fn takes_a_listed_page(&mut self) -> Result<bool, Error> {
        if self.page != PageSize::Thp {
            return Ok(false);
        }
        let mut was_there = false;
        for cpu in &Topology::machine().cpus().allowed {
            // One that went offline meanwhile has given its list back.
            let Ok(_pinned) = Pinned::to(*cpu) else { continue };
            let before = Counters::read(None);
            self.take(1)?;
            let moved = Counters::read(None).since(&before);
            let had_to = ["compact_stall", "thp_fault_fallback"];
            was_there |= had_to.iter().all(|name| moved.get(name) == Some(0));
        }
        Ok(was_there)
    }

    /// Takes so many pages and gives most of each back.
    fn take(&mut self, pages: u64) -> Result<(), Error> {
        let bytes = usize::try_from(pages * self.page.bytes()).expect("a portion is small");
        let page = page_bytes(self.page);
        let layout = match self.page {
            PageSize::Thp => Layout::contiguous(bytes),
            _ => Layout::windowed(bytes.next_multiple_of(1 << 20)),
        };
        let mut area = Area::mapped(layout, Backing::Anonymous, 2 << 20)?;
        if self.is_bound {
            area.bind(self.node)?;
        }
        area.advise(Advice::HugePage)?;
        let piece = page.min(usize::try_from(PIECE).expect("a piece is small"));
        area.break_up(bytes, page, piece)?;
        self.kept_bytes += pages * self.page.bytes() * 4096 / piece as u64;
        self.kept.push(area);
        Ok(())
    }
}

/// A node without a free block of the page under test.
#[derive(Debug)]
struct WithoutBlocks {
    memory: BrokenUp,
    /// Whether to leave memory as it is, against what the case says.
    lies: bool,
    /// Blocks of the page under test right before the touches.
    blocks: u64,
}

impl Shortage for WithoutBlocks {
    fn begin(&mut self) -> Result<(), Error> {
        self.blocks = if self.lies { self.memory.blocks()? } else { self.memory.break_up()? };
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn verify(&mut self, pieces: &Pieces, moved: &Counters, witness: &mut Witness) {
        witness.expect(Check::FreeBlocks, 0, self.blocks);
        let of = |name| moved.get(name).unwrap_or(0);
        let stalls = of("compact_stall");
        witness.expect_at_least(Check::CompactionsOrFallbacks, 1, stalls + pieces.base());
        witness.count("compactions", stalls);
        witness.count("compactions_that_made_a_page", of("compact_success"));
        witness.set("kept_in_pieces_mib", self.memory.kept_bytes >> 20);
    }
}
