//! Who touches: threads of one address space, or processes with one each, and in which mappings.
//!
//! The one idea: a worker's share is made here, together with the stage that brings its memory into
//! the kind's state, before anything is forked or started; threads and processes then differ in the
//! address space and in nothing else.

use std::{cell::RefCell, rc::Rc};

use pagelab_bench::{Error, Inputs, Kind, Param};
use pagelab_sys::{loops::TouchList, memory::Layout};

use super::{Asked, Space, Stage, page_bytes, pressure};

/// Threads of one address space.
pub const THREADS: Param = Param::axis("threads", Kind::Count { max: 4096, auto: false }, "1")
    .asks(&["2"])
    .help("threads that touch one mapping, each its share");

/// Processes.
pub const PROCESSES: Param = Param::axis("processes", Kind::Count { max: 4096, auto: false }, "1")
    .help("processes that each map and touch their share, all at once");

/// Mappings of the threads.
pub const VMAS: Param = Param::axis("vmas", Kind::Choice(&["one", "each"]), "one")
    .help("threads share one mapping, or each has one of its own with a gap to the next");

/// One worker's space, and the stage that brings its memory into the kind's state.
#[derive(Debug)]
pub struct Staged {
    /// Where it touches.
    pub space: Space,
    /// What brings it there.
    pub stage: Box<dyn Stage>,
}

/// Those of all workers; the arms of a case share them. A forked worker uses its own copy.
pub type SharedStages = Rc<RefCell<Vec<Staged>>>;

/// A space and a stage for each process; the threads of one share theirs.
pub fn stages(asked: &Asked, inputs: &Inputs) -> Result<SharedStages, Error> {
    let one = |_| {
        let mut space = asked.space(asked.processes as u64);
        let stage = (asked.kind.stage)(asked, &mut space, inputs)?;
        if asked.divides {
            let layout = space.layout;
            if layout.windows > 1 {
                let why = "vmas=each: this kind has mappings of its own; use vmas=one";
                return Err(Error::Case(why.to_owned()));
            }
            let page = page_bytes(space.page);
            space.layout = Layout::shared(layout.bytes(), asked.threads, page.max(2 << 20));
        }
        let stage = pressure::under(asked, &mut space, stage, inputs)?;
        Ok(Staged { space, stage })
    };
    let staged: Result<Vec<Staged>, Error> = (0..asked.processes).map(one).collect();
    Ok(Rc::new(RefCell::new(staged?)))
}

/// Every step of a space, pages in a random order that is the same in every run.
pub fn random_list(space: &Space, step: usize) -> TouchList {
    let page = page_bytes(space.page);
    let bytes = space.layout.bytes();
    let unit = page.max(step);
    let mut units: Vec<usize> = (0..bytes / unit).collect();
    fastrand::Rng::with_seed(0x7061_6765).shuffle(&mut units);
    let steps = units
        .into_iter()
        .flat_map(|unit_index| (0..unit / step).map(move |index| unit_index * unit + index * step));
    TouchList::new(steps.map(|at| (space.layout.offset(at), false)))
}
