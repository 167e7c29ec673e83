//! Processes and threads: started, bound, watched, waited for.
//!
//! Nothing here measures.

pub mod child;
pub mod crew;
pub mod launch;
pub mod pulse;
pub mod sched;
