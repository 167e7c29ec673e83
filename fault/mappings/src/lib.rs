//! What a page fault is measured on: address space, its state, and a round over it.
//!
//! [`space`] turns a case into address space and says what the page table must look like
//! afterwards; a kind ([`kinds`]) is the state of memory before it is touched; [`round`] maps,
//! touches and releases it once, in one worker or many. Workloads differ in where they read the
//! clock.

mod asked;
pub mod beside;
pub mod choices;
pub mod frequency;
pub mod kinds;
pub mod needs;
pub mod outcome;
pub mod pieces;
mod plan;
pub mod populate;
pub mod pressure;
pub mod round;
mod rounds;
mod said;
pub mod sorted;
pub mod space;
pub mod stage;
pub mod workers;

pub use asked::{Asked, FaultKind};
pub use choices::{Arm, Lie, Place, Pressure};
pub use plan::Plan;
pub use populate::Populate;
pub use pressure::BrokenUp;
pub use rounds::Rounds;
pub use space::{Expectation, Space, page_bytes};
pub use stage::{Called, Calls, Stage};

use pagelab_sys::loops::Unmarking;

/// Keeps NUMA balancing, which is on by default where there are two nodes, from marking the memory
/// of a case's process: hint faults would fall into what is counted. Where a page is allocated
/// stays the same. The process ends with the case; a kernel that refuses knows no nodes.
pub fn leave_unmarked() {
    std::mem::forget(Unmarking::begin());
}
