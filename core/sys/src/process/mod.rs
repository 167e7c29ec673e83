//! Processes and threads: started, bound, watched, waited for.
//!
//! Nothing here measures.

pub mod child;
pub mod closed;
mod counter_page;
pub mod crew;
pub mod launch;
pub mod minder;
mod pulse;
pub mod relay;
pub(crate) mod sched;
pub mod stack;
pub mod tree;

pub use child::Heirloom;
pub use counter_page::CounterPage;
pub use crew::{Barrier, catch_interrupts, forget_interrupts, interrupt, interrupted};
pub use pulse::{Beat, Pulse};
pub use sched::{Fifo, Pinned, current_cpu, disable_thp, thread_id};
