//! What a page fault costs: how many a second, and how long one takes.
//!
//! What faults are measured on is `pagelab-mappings`: address space, kinds, rounds. The two
//! workloads differ in where they read the clock.

mod arms;
mod ballast;
mod c_loop;
pub mod latency;
mod note;
pub mod path;
mod peers;
mod refused;
mod samples;
pub mod stages;
pub mod stalls;
pub mod throughput;
pub mod userfaultfd;
