//! The memory that is accessed, placed on the slow node, and the cold memory that fills the fast
//! one.
//!
//! The one idea: memory is placed by a binding, found by asking the kernel for the node of every
//! page, and released from the binding at the last moment: what is bound is not moved.

use pagelab_bench::Error;
use pagelab_sys::{
    Area,
    files::scratch::Scratch,
    machine::{FreeMemory, Tree},
    memory::{Advice, Backing, Layout, Residency, Scanner},
};

use super::asked::{Asked, Lie, Memory};
use pagelab_mappings::populate::EACH;

const BOUNDARY: usize = 2 << 20;

/// Free memory that filling a node leaves: this part of the hot memory, so that it does not fit.
const ROOM: u64 = 4;
/// And this part of the node, so that filling it wakes nobody.
const MARGIN: u64 = 32;

/// The memory that is accessed, and what lies beside it.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) area: Area,
    /// What fills the fast node.
    cold: Option<Area>,
    /// Behind memory of a file.
    _scratch: Option<Scratch>,
}

impl Ground {
    /// Lays it, bound to `slow` where there is such a node.
    ///
    /// # Errors
    /// When memory or the disk is short.
    pub(super) fn lay(
        asked: &Asked,
        near: Option<usize>,
        slow: Option<usize>,
    ) -> Result<Self, Error> {
        let layout = Layout::contiguous(asked.drawn.bytes());
        let scratch = match asked.memory {
            Memory::Anon => None,
            Memory::File => {
                let scratch = Scratch::in_directory(&asked.directory, asked.drawn.bytes())?;
                scratch.fill()?;
                Some(scratch)
            }
        };
        let backing = scratch.as_ref().map_or(Backing::Anonymous, |scratch| scratch.backing(true));
        let area = Area::mapped(layout, backing, BOUNDARY)?;
        let node = if asked.lie == Lie::Near { near } else { slow };
        if let Some(node) = node {
            area.bind(node)?;
        }
        if scratch.is_some() {
            area.read(EACH);
            // The page cache is filled by whoever writes, wherever that runs.
            node.map_or(Ok(()), |node| area.gather(node))?;
        } else {
            area.advise(if asked.is_huge { Advice::HugePage } else { Advice::NoHugePage })?;
            area.touch(0, asked.drawn.bytes(), EACH);
        }
        let cold = match near {
            Some(near) if asked.is_full => fill(near, asked.drawn.size)?,
            _ => None,
        };
        Ok(Self { area, cold, _scratch: scratch })
    }

    /// Base pages on a node.
    ///
    /// # Errors
    /// When the kernel was built without NUMA.
    pub(super) fn on(&self, node: usize) -> Result<u64, Error> {
        on(&self.area, node)
    }

    /// Cold base pages, and those of them on a node.
    ///
    /// # Errors
    /// As [`Ground::on`].
    pub(super) fn cold_on(&self, node: usize) -> Result<Option<(u64, u64)>, Error> {
        let of = |cold: &Area| Ok((cold.layout().bytes() as u64 / 4096, on(cold, node)?));
        self.cold.as_ref().map(of).transpose()
    }

    /// What the page table says of the memory.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn look(&self, scanner: &Scanner) -> Result<Residency, Error> {
        Ok(scanner.scan(&self.area)?)
    }
}

fn on(area: &Area, node: usize) -> Result<u64, Error> {
    Ok(area.ranges().pages_on(i32::try_from(node).unwrap_or(-1))?)
}

/// Takes the free memory of a node, but for less than the hot memory needs; nobody touches it
/// again.
fn fill(node: usize, hot: u64) -> Result<Option<Area>, Error> {
    let Some(free) = FreeMemory::of(&Tree::machine(), node) else { return Ok(None) };
    let room = hot / ROOM + free.bytes() / MARGIN;
    let pages = free.bytes().saturating_sub(room) / BOUNDARY as u64;
    if pages == 0 {
        return Ok(None);
    }
    let bytes = usize::try_from(pages).unwrap_or(0) * BOUNDARY;
    let area = Area::mapped(Layout::contiguous(bytes), Backing::Anonymous, BOUNDARY)?;
    area.advise(Advice::NoHugePage)?;
    area.bind(node)?;
    area.touch(0, bytes, EACH);
    area.unbind()?;
    // Having been filled a moment ago it would look as warm as what is hot.
    area.advise(Advice::Cold)?;
    Ok(Some(area))
}
