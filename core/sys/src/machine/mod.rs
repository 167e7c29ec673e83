//! The machine as it is: its shape, its settings, its rights.
//!
//! The one idea: files below `/sys` and `/proc` are read through a [`topology::Tree`], so that a
//! test has a machine of its own. Nothing here changes anything: that is [`crate::knobs`].

mod blocks;
pub mod environment;
pub mod frequency;
pub mod proc;
pub mod rights;
pub mod thp;
pub mod tiers;
pub mod tlb;
pub(crate) mod topology;
pub(crate) mod value;

pub use blocks::FreeMemory;
pub use topology::{Topology, Tree, format_list, parse_list};
pub use value::selected;

/// Bytes of memory that this machine has.
pub fn memory_bytes() -> u64 {
    let about = rustix::system::sysinfo();
    about.totalram.saturating_mul(about.mem_unit.into())
}
