//! What a page fault costs: how many a second, and how long one takes.
//!
//! [`space`] turns a case into address space and says what the page table must look like
//! afterwards; [`round`] maps, touches and releases it once, in one worker or many. The two
//! workloads differ in where they read the clock.

pub mod latency;
pub mod round;
mod rounds;
mod samples;
pub mod space;
pub mod throughput;
