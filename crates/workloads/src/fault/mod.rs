//! What a page fault costs: how many a second, and how long one takes.
//!
//! [`space`] turns a case into address space and says what the page table must look like
//! afterwards; [`round`] maps, touches and releases it once, in one worker or many. The two
//! workloads differ in where they read the clock.

mod arms;
mod asked;
mod ballast;
pub mod beside;
mod c_loop;
mod choices;
pub mod kinds;
pub mod latency;
pub mod needs;
mod note;
pub mod outcome;
pub mod path;
mod peers;
mod pieces;
mod plan;
pub mod populate;
mod pressure;
mod refused;
pub mod round;
mod rounds;
mod said;
mod samples;
mod sorted;
pub mod space;
mod stage;
pub mod stages;
pub mod stalls;
pub mod throughput;
pub mod userfaultfd;
mod workers;

pub use asked::{Asked, FaultKind};
pub use choices::{Arm, Lie, Place, Pressure};
pub use plan::Plan;
pub use populate::Populate;
pub use pressure::BrokenUp;
pub(crate) use rounds::Rounds;
pub use space::{Expectation, Space, page_bytes};
pub use stage::{Called, Calls, Stage};
pub(crate) use workers::stages as stages_of;

use pagelab_sys::loops::Unmarking;

/// Keeps NUMA balancing, which is on by default where there are two nodes, from marking the memory
/// of a case's process: hint faults would fall into what is counted. Where a page is allocated
/// stays the same. The process ends with the case; a kernel that refuses knows no nodes.
pub(crate) fn leave_unmarked() {
    std::mem::forget(Unmarking::begin());
}
