//! The machine's own ceilings, measured in the same run, so that every result is also a share of
//! what is possible.

pub mod bulk;
pub mod syscall;
pub mod timer;
