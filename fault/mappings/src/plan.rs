//! Everything that a round needs to know, and the touch that all of its threads make.

use pagelab_sys::{
    Area,
    loops::{Access, Stride, TouchList},
};

use super::{Populate, Space};

/// Everything that a round needs to know.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where.
    pub space: Space,
    /// How memory comes to be present.
    pub populate: Populate,
    /// What is touched where.
    pub stride: Stride,
    /// Whether a touch stores or loads.
    pub access: Access,
    /// Random order, as a list of touches; ascending without.
    pub list: Option<TouchList>,
    /// Run under `SCHED_FIFO`.
    pub fifo: bool,
    /// Count faults by a perf event too, which makes each of them dearer.
    pub by_perf: bool,
    /// Workers that share one mapping; 1 for all other cases.
    pub threads: usize,
    /// CPU of each worker, and of the thread beside them.
    pub cpus: Vec<Option<usize>>,
}

/// The touch loop over a part of the area; a list is touched whole, unless the part is empty.
pub(super) fn touch_share(plan: &Plan, area: &Area, from: usize, to: usize) {
    match (&plan.list, plan.access) {
        _ if from == to => (),
        (None, Access::Write) => area.touch(from, to, plan.stride),
        (None, Access::Read) => area.load(from, to, plan.stride.step),
        (Some(list), Access::Write) => area.touch_listed(list, plan.stride),
        (Some(list), Access::Read) => area.load_listed(list),
    }
}
