//! The engine of one process: passes over it, decisions, moves.
//!
//! The one idea: everything that is found out becomes a line of the log before the policy hears of
//! it. Where a page is, is asked of the kernel: when it appears, after a move, and for an eighth of
//! all pages in each pass, since others may move them too.

mod kernel;
mod why;

use std::{fmt, io, io::Write};

use pagelab_sys::{
    machine::{
        Tree,
        tiers::{MemoryNode, free_pages},
    },
    memory::places,
    time::monotonic_raw_ns,
};
use pagelab_tier::{
    Start,
    policy::{Move, Node},
};

use self::kernel::Kernel;
pub use self::kernel::wait_until;
use crate::{
    heat::{Heat, HotRange},
    large::{Large, Splits},
    log::{Header, Line, Recorder, SCHEMA},
    mover::{Mover, Order, Tally, Went},
    source::{Pages, Sees, Shared, Source},
    space::{Space, Unit},
    target::{self, Memory, Refused},
};

/// One of so many parts of all pages is looked for again in each pass, where any was used.
const PARTS: u32 = 8;
/// And no more pages than so many: a question takes a fifth of a microsecond.
const AGAIN: u64 = 65_536;
/// Units that are asked after in one call.
const ASKED: usize = 16_384;

/// What an engine is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// The policy, complete.
    pub policy: String,
    /// Bytes a second that are moved, at most.
    pub limit: Option<u64>,
    /// What becomes of large pages.
    pub large: Large,
    /// The nodes, top tier first or not, as [`memory_nodes`] gives them.
    ///
    /// [`memory_nodes`]: pagelab_sys::machine::tiers::memory_nodes
    pub nodes: Vec<MemoryNode>,
}

/// What a pass did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pass {
    /// Pages that are there.
    pub present: u64,
    /// Pages that were used since the last pass.
    pub used: u64,
    /// Pages that moved to the top tier, and away from it.
    pub promoted: u64,
    /// See `promoted`.
    pub demoted: u64,
    /// Pages that were to be promoted.
    pub wanted: u64,
    /// Looks at all pages that ended in this pass, 0 or 1.
    pub looks: u64,
}

/// Why an engine ended.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The process ended, or was never there to be had.
    #[error(transparent)]
    Target(#[from] Refused),
    /// The log, the policy or a call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Source, driver and mover of one process.
pub struct Engine {
    pid: u32,
    source: Box<dyn Pages>,
    name: &'static str,
    sees: Sees,
    space: Space,
    heat: Heat,
    /// Blocks of the space that the log knows.
    logged: usize,
    recorder: Recorder,
    mover: Mover,
    splits: Splits,
    options: Options,
    tree: Tree,
    life: String,
    capacity: u64,
    began: u64,
    /// When the last pass ended; before the first there is no window.
    armed: Option<u64>,
    passes: u32,
    /// What the last whole pass did, and all of them together.
    last: Pass,
    sum: Pass,
    memory: Memory,
    /// Held as long as this is.
    _claim: std::fs::File,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine for a process.
    ///
    /// # Errors
    /// When it may not be the target, or the policy makes no sense.
    pub fn new(
        pid: u32,
        source: &Source,
        yard: Option<&Shared>,
        options: Options,
        log: Option<Box<dyn Write>>,
    ) -> Result<Self, Ended> {
        target::check(pid)?;
        let claim = target::claim(pid)?;
        let memory = target::memory(pid)?;
        let pages = source.open(pid, yard).ok_or_else(|| {
            let why = format!("`{}` says nothing of pages of process {pid}", source.name);
            Ended::Io(io::Error::other(why))
        })?;
        let capacity = 0;
        let header = Header {
            schema: SCHEMA.into(),
            pid,
            source: source.name.into(),
            nodes: options.nodes.iter().map(|node| node.id).collect(),
        };
        let recorder = Recorder::new(&header, &start(&options, capacity), log)?;
        Ok(Self {
            pid,
            source: pages,
            name: source.name,
            sees: source.sees,
            space: Space::default(),
            heat: Heat::default(),
            logged: 0,
            recorder,
            mover: Mover::new(options.limit),
            splits: Splits::new(options.large, Tree::machine()),
            options,
            tree: Tree::machine(),
            life: memory.life.clone(),
            capacity,
            began: monotonic_raw_ns(),
            armed: None,
            passes: 0,
            last: Pass::default(),
            sum: Pass::default(),
            memory,
            _claim: claim,
        })
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What the mover did so far.
    pub fn tally(&self) -> &Tally {
        self.mover.tally()
    }

    /// Large pages that were split instead of moved.
    pub fn split(&self) -> u64 {
        self.splits.count()
    }

    /// Looks, decides and moves once.
    ///
    /// # Errors
    /// When the process has ended, or the log cannot be written.
    pub fn pass(&mut self) -> Result<Pass, Ended> {
        self.memory = target::memory(self.pid)?;
        let is_another = std::mem::replace(&mut self.life, self.memory.life.clone()) != self.life;
        if is_another {
            (self.space, self.heat) = (Space::default(), Heat::default());
            (self.capacity, self.logged, self.armed) = (0, 0, None);
            self.splits.forget();
        }
        if !self.source.is_ready()? {
            return Ok(Pass::default());
        }
        self.space.begin();
        let space = &mut self.space;
        let looked = self.source.pass(&self.memory.mappings, &mut |found| space.note(found));
        if let Err(why) = looked {
            // A program that was replaced by another meanwhile is there at the next pass.
            target::check(self.pid)?;
            return match why {
                Refused::Other { .. } => Ok(Pass::default()),
                why => Err(why.into()),
            };
        }
        let now = monotonic_raw_ns();
        let window = self.armed.map(|before| now - before);
        self.armed = Some(now);
        self.grow()?;
        self.log_blocks()?;
        let used = self.space.used();
        self.place(!used.is_empty())?;
        let free = self.free();
        self.recorder.tell(&Line::World { now: now - self.began, free })?;
        let mut pass = Pass { present: self.space.present(), ..Pass::default() };
        if let Some(window) = window {
            pass.used = used.iter().map(|run| u64::from(run.count)).sum();
            self.heat.look(self.space.pages(), &used);
            let pages = used.iter().map(|run| (run.first, run.count)).collect();
            let writes = self.sees == Sees::Stores;
            self.recorder.tell(&Line::Scan { pages, writes, window })?;
            pass.looks = 1;
            let moves = self.recorder.decide()?;
            self.carry_out(&moves, &mut pass)?;
        }
        self.source.done()?;
        self.passes += 1;
        self.last = pass;
        self.sum.looks += pass.looks;
        self.sum.promoted += pass.promoted;
        self.sum.demoted += pass.demoted;
        self.recorder.flush()?;
        Ok(pass)
    }

    /// A driver with room for all pages: a new one where there are too many, or another program.
    fn grow(&mut self) -> io::Result<()> {
        let pages = self.space.pages();
        if pages <= self.capacity {
            return Ok(());
        }
        self.capacity = (pages + pages / 2).next_multiple_of(512);
        self.recorder.restart(&start(&self.options, self.capacity))?;
        // Nothing that was known counts any more.
        self.passes = 0;
        Ok(())
    }

    /// Free pages of each node; a node that the process may not have memory on has none.
    fn free(&self) -> Vec<u64> {
        let allowed = target::allowed_nodes(self.pid);
        let of = |node: &MemoryNode| {
            let is_allowed = target::allows(&allowed, node.id);
            if is_allowed { free_pages(&self.tree, node.id) } else { 0 }
        };
        self.options.nodes.iter().map(of).collect()
    }

    /// Where the blocks lie that came in this pass.
    fn log_blocks(&mut self) -> io::Result<()> {
        let starts = self.space.starts();
        let new = (0_u32..).zip(starts.iter().copied()).skip(self.logged).collect::<Vec<_>>();
        self.logged = starts.len();
        if new.is_empty() { Ok(()) } else { self.recorder.tell(&Line::Blocks(new)) }
    }

    /// Pages that are hot, and the ranges that have most of them, so many at most.
    pub fn hottest(&self, most: usize) -> (u64, Vec<HotRange>) {
        self.heat.hottest(&self.space.starts(), most)
    }

    /// Finds out where pages are: those that came, and some of the others, in case that somebody
    /// moved them; of a process that uses nothing that does not matter.
    fn place(&mut self, is_in_use: bool) -> Result<(), Ended> {
        let gone = self.space.gone();
        let is_first = self.passes == 0;
        let units = if is_first {
            self.space.fresh(0, 1)
        } else {
            let parts = u32::try_from(self.space.pages() / AGAIN).unwrap_or(PARTS).max(PARTS);
            // No part has the number of all of them.
            let part = if is_in_use { self.passes % parts } else { parts };
            self.space.fresh(part, parts)
        };
        let mut placed: Vec<(u32, u32, Option<u8>)> =
            gone.iter().map(|run| (run.first, run.count, None)).collect();
        let mut nodes = vec![0; ASKED];
        for some in units.chunks(ASKED) {
            let addresses: Vec<u64> = some.iter().map(|unit| unit.address).collect();
            let nodes = &mut nodes[..some.len()];
            places(self.pid, &addresses, nodes).map_err(|why| self.refused(why))?;
            for (unit, node) in some.iter().zip(nodes) {
                let node = self.index(*node);
                if self.recorder.node(unit.first) == node {
                    continue;
                }
                let follows = |(first, count, last): &&mut (u32, u32, Option<u8>)| {
                    *first + *count == unit.first && *last == node
                };
                match placed.last_mut().filter(follows) {
                    Some((_, count, _)) => *count += unit.pages,
                    None => placed.push((unit.first, unit.pages, node)),
                }
            }
        }
        if !placed.is_empty() {
            self.recorder.tell(&Line::Placed(placed))?;
        }
        Ok(())
    }

    /// What an error of a call about the process means: of one that has just ended it may be any.
    fn refused(&self, why: io::Error) -> Refused {
        target::check(self.pid).err().unwrap_or_else(|| Refused::of(self.pid, why))
    }

    /// The place of a node in the list that the policy knows.
    fn index(&self, node: i32) -> Option<u8> {
        let at = self.options.nodes.iter().position(|known| i32::try_from(known.id) == Ok(node))?;
        u8::try_from(at).ok()
    }

    fn carry_out(&mut self, moves: &[Move], pass: &mut Pass) -> Result<(), Ended> {
        let nodes = &self.options.nodes;
        let is_top = |node: u8| nodes.get(usize::from(node)).is_some_and(|node| node.tier == 0);
        let allowed = target::allowed_nodes(self.pid);
        let mut orders: Vec<Order> = Vec::with_capacity(moves.len());
        let mut taken = std::collections::BTreeSet::new();
        for &Move { page, to } in moves {
            let Some(Unit { first, pages, address }) = self.space.unit(page) else { continue };
            if pages > 1 && !taken.insert(first) {
                continue;
            }
            let Some(node) = nodes.get(usize::from(to)) else { continue };
            // A policy may ask for a node that has nothing free.
            if !target::allows(&allowed, node.id) {
                continue;
            }
            let to_node = i32::try_from(node.id).unwrap_or(-1);
            let unit = Unit { first, pages, address };
            if is_top(to) && !self.splits.may_move(self.pid, unit, self.sum.looks) {
                continue;
            }
            pass.wanted += if is_top(to) { u64::from(pages) } else { 0 };
            orders.push(Order { first, pages, address, to: to_node });
        }
        let mut went: Vec<(Order, Went)> = Vec::with_capacity(orders.len());
        let ran = self.mover.run(&mut Kernel(self.pid), &orders, &mut |order, how| {
            went.push((*order, how));
        });
        let mut told: Vec<(u32, u32, crate::log::How, u8)> = Vec::new();
        let mut gone = Vec::new();
        for (order, Went { how, node }) in went {
            let Some(node) = node.and_then(|node| self.index(node)) else {
                gone.push((order.first, order.pages, None));
                continue;
            };
            if how == pagelab_tier::policy::Moved::Done {
                let count = if is_top(node) { &mut pass.promoted } else { &mut pass.demoted };
                *count += u64::from(order.pages);
            }
            told.push((order.first, order.pages, how.into(), node));
        }
        if !told.is_empty() {
            self.recorder.tell(&Line::Moved(told))?;
        }
        if !gone.is_empty() {
            self.recorder.tell(&Line::Placed(gone))?;
        }
        match ran {
            // EACCES of the call as a whole is the cpuset: the next pass sees what has changed.
            Err(why) if why.raw_os_error() != Some(13) => Err(self.refused(why).into()),
            _ => Ok(()),
        }
    }
}

fn start(options: &Options, pages: u64) -> Start {
    let node = |node: &MemoryNode| Node {
        tier: u8::try_from(node.tier).unwrap_or(u8::MAX - 1),
        pages: node.pages,
        cpus: node.cpus,
    };
    Start {
        policy: options.policy.clone(),
        pages: u32::try_from(pages).unwrap_or(u32::MAX),
        nodes: options.nodes.iter().map(node).collect(),
    }
}
