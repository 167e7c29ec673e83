//! A memory of 2^64 bytes, emulated at the speed of its trace.
//!
//! ```
//! use pagelab_emu::{Builder, Fault, Memory};
//!
//! let mut memory = Builder::new().page_limit(1 << 30).tlb();
//! memory.store_u64(0x7fff_fff8, 42)?;
//! assert_eq!(memory.load_u32(0x7fff_fff8)?, 42);
//! # Ok::<(), Fault>(())
//! ```
//!
//! The one idea: a [`Memory`] is its loads and stores, generic over the width and inlined into
//! whatever drives them; what an access may not do is decided where a page is missing, so that
//! policies, limits and faults cost nothing where it is there.
//!
//! - [`Builder`] makes the memories to use: [`Tlb`], the default, and [`Flat`].
//! - [`paged`] has what they are compared with, [`table`] names all of them.
//! - [`replay`] drives a memory with a trace; [`verify`] does so beside an [`oracle`].
//!
//! It knows no instructions, no devices and no clock, and needs no particular operating system.

pub mod builder;
pub mod memory;
pub mod noop;
pub mod oracle;
pub mod paged;
#[cfg(all(unix, feature = "peers"))]
pub mod peers;
pub mod policy;
mod raw;
pub mod replay;
pub mod table;
pub mod verify;

pub use builder::Builder;
pub use memory::{Fault, Kind, Memory};
pub use policy::{Absent, Edge, Permissions, Policy};
pub use raw::{
    flat::Flat,
    tlb::{Snapshot, Tlb},
};
