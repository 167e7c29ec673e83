//! `--pressure`: first stores whose page is not simply there to be had.
//!
//! The one idea: memory is made short in one way before every repetition, off the clock, and the
//! touches pay for it in the fault. `memcg` fills a memory cgroup of the case's own, so that they
//! reclaim; `fragmented` breaks the free memory of a node into small blocks, so that they compact.
//!
//! A fault that cannot have the page under test gets a base page instead (it *falls back*). What
//! came out is read back from the page table page by page, and the two are never one distribution:
//! in `fault/latency` faults that fell back are a series of their own, in `fault/throughput`, where
//! one body holds both, they are counted.

mod fragmented;
mod memcg;
mod pieces;

pub use fragmented::BrokenUp;
use pagelab_bench::{
    Error, Inputs, Kind, Need, Needed, PageSize, Param, Witness, needs::Transparent,
};
use pagelab_sys::{Area, counts::Counters, machine::thp::Policy, memory::Residency};

use self::pieces::{Pieces, Shortage};
use super::{Asked, Expectation, Pressure, Space, Stage};

/// The parameter.
pub const PRESSURE: Param = Param::axis("pressure", Kind::Choice(Pressure::WORDS), "none")
    .help("memcg: a cgroup of the case's own is full; fragmented: no free block is a large page");

/// The size that `auto` becomes: what a disk reads, or the kernel compacts, in a moment.
pub fn automatic_size(size: u64) -> u64 {
    size.min(64 << 20)
}

/// What it needs of the host.
pub fn needs(asked: &Asked) -> Vec<Needed> {
    let page = asked.page;
    let mut needs = match asked.pressure {
        Pressure::None => return Vec::new(),
        Pressure::Fragmented => fragmented::needs(asked),
        Pressure::Memcg => memcg::needs(asked.size),
    };
    if page != PageSize::Base {
        // What falls back is a base page only where no other folio is on offer.
        let folios = PageSize::offered().into_iter();
        let others = folios.filter(|other| other.is_folio() && *other != page);
        needs.extend(others.map(|page| Transparent { page, to: Policy::Never }.needed()));
    }
    needs
}

/// The stage of a case, under pressure where the case says so. Binds the space to the node whose
/// memory is broken up, where there are several.
///
/// # Errors
/// When the scratch file cannot be written, or the group of the case was not made.
pub fn under(
    asked: &Asked,
    space: &mut Space,
    stage: Box<dyn Stage>,
    inputs: &Inputs,
) -> Result<Box<dyn Stage>, Error> {
    let shortage = match asked.pressure {
        Pressure::None => return Ok(stage),
        Pressure::Memcg => memcg::squeezed(asked, space, inputs)?,
        Pressure::Fragmented => fragmented::broken_up(asked, space),
    };
    let pieces = Pieces::new(space.page, space.bytes())?;
    Ok(Box::new(Pressed { stage, shortage, page: space.page, pieces, moved: Counters::default() }))
}

/// A stage whose touches take memory that is short.
#[derive(Debug)]
struct Pressed {
    stage: Box<dyn Stage>,
    shortage: Box<dyn Shortage>,
    page: PageSize,
    pieces: Pieces,
    /// What the kernel had counted before the touches, and then in them.
    moved: Counters,
}

impl Pressed {
    fn counted(&self) -> Counters {
        Counters::read(Some(self.page.bytes() / 1024))
    }
}

impl Stage for Pressed {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        self.stage.ready(area)?;
        self.shortage.begin()?;
        self.moved = self.counted();
        Ok(())
    }

    fn inspect(&mut self, area: &Area, found: &Residency) -> Result<(), Error> {
        self.moved = self.counted().since(&self.moved);
        self.shortage.end()?;
        self.pieces.read(area)?;
        self.stage.inspect(area, found)
    }

    fn done(&mut self) -> Result<(), Error> {
        self.stage.done()
    }

    fn expect(&self, first_touch: Expectation) -> Expectation {
        self.pieces.expect(self.stage.expect(first_touch))
    }

    fn fell_back(&self, at: usize) -> bool {
        self.pieces.fell_back(at)
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.stage.verify(witness)?;
        self.shortage.verify(&self.pieces, &self.moved, witness);
        self.pieces.testify(&self.moved, witness);
        Ok(())
    }
}
