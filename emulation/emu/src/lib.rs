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
//! # Snapshots
//!
//! A snapshot copies no page: from then on the first store to a page does.
//!
//! ```
//! # use pagelab_emu::{Builder, Fault, Memory};
//! let mut memory = Builder::new().tlb();
//! memory.store_u8(0x1000, 1)?;
//! let before = memory.snapshot();
//! memory.fill(0x1000, 1 << 20, 2)?;
//! memory.restore(&before);
//! assert_eq!((memory.load_u8(0x1000)?, memory.load_u8(0x1001)?), (1, 0));
//! assert_eq!(memory.resident_bytes(), 4096);
//! # Ok::<(), Fault>(())
//! ```
//!
//! # Forks
//!
//! Two memories from one, each with what was there, and with its own stores from then on. They may
//! go to two threads.
//!
//! ```
//! # use pagelab_emu::{Builder, Fault, Memory};
//! let mut parent = Builder::new().tlb();
//! parent.store_u16(0x1000, 7)?;
//! let mut child = parent.fork();
//! let child = std::thread::spawn(move || child.store_u16(0x1000, 8).map(|()| child));
//! assert_eq!(parent.load_u16(0x1000)?, 7);
//! assert_eq!(child.join().expect("it does not panic")?.load_u16(0x1000)?, 8);
//! # Ok::<(), Fault>(())
//! ```
//!
//! # Permissions
//!
//! ```
//! # use pagelab_emu::{Builder, Fault, Kind, Memory, Permissions};
//! let mut memory = Builder::new().tlb();
//! memory.store_u32(0x8000_0000, 0x0000_0073)?; // a guest's code
//! memory.protect(0x8000_0000, 4096, Permissions::READ_EXECUTE);
//! assert_eq!(memory.fetch(0x8000_0000)?, [0x73, 0, 0, 0]);
//! let denied = memory.store_u8(0x8000_0002, 1);
//! assert_eq!(denied, Err(Fault::Denied { addr: 0x8000_0002, kind: Kind::Store }));
//! # Ok::<(), Fault>(())
//! ```
//!
//! # Dirty pages
//!
//! What was written since a mark, as a checkpoint or a migration asks; only the first access to a
//! page costs more.
//!
//! ```
//! # use pagelab_emu::{Builder, Fault, Memory};
//! let mut memory = Builder::new().tlb();
//! memory.store_u8(0x1000, 1)?;
//! memory.mark();
//! memory.load_u8(0x1000)?;
//! memory.store_u64(0x2ffc, 2)?; // over a page boundary
//! assert_eq!(memory.written_pages(), [2, 3]);
//! assert_eq!(memory.touched_pages(), [1, 2, 3]);
//! # Ok::<(), Fault>(())
//! ```
//!
//! # Speed
//!
//! [`Tlb`] is the default: a look-up in a small table, and an access. [`Flat`] compares with the
//! end of its window only, because the host translates; it knows no absent pages, and may be
//! refused. Keep either where it stays, and take it as a type, not as an object: a [`Memory`] is
//! inlined. Values that follow each other cost one look-up a page:
//!
//! ```
//! # use pagelab_emu::{Builder, Fault, Memory};
//! fn sum<M: Memory>(memory: &mut M, addr: u64, count: usize) -> Result<u64, Fault> {
//!     let mut sum = 0;
//!     memory.load_seq(addr, count, |values| {
//!         sum += values.iter().copied().map(u64::from_le_bytes).sum::<u64>();
//!     })?;
//!     Ok(sum)
//! }
//!
//! let mut memory = Box::new(Builder::new().tlb());
//! memory.store_u64(0x1ffc, 40)?;
//! memory.store_u64(0x2004, 2)?;
//! assert_eq!(sum(&mut *memory, 0xffc, 1024)?, 42);
//! # Ok::<(), Fault>(())
//! ```
//!
//! What that gives on a host is measured with a trace, here a generated one, after one pass that
//! makes the pages; `pagelab trace replay` does the same with everything that a measurement needs.
//!
//! ```
//! use pagelab_emu::{Builder, replay::{Decoder, Player, Replay}};
//! use pagelab_trace::synth::Spec;
//!
//! let spec = Spec::parse("exec-block")?.with_ops(10_000);
//! let trace: Vec<u8> = spec.stream().flatten().collect();
//! let mut player = Player::new(Builder::new().tlb());
//! player.replay(&trace, 0, Decoder::Fast)?;
//! let start = std::time::Instant::now();
//! let bytes = player.replay(&trace, 0, Decoder::Fast)?;
//! println!("{:.2} ns an operation", start.elapsed().as_secs_f64() * 1e9 / 10_000.0);
//! assert_eq!(bytes, trace.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What else there is
//!
//! - [`Builder`] makes the memories to use, from policies.
//! - [`paged`] has what they are compared with, [`table`] names all of them.
//! - [`replay`] drives a memory with a trace; [`verify`] does so beside an [`oracle`].
//! - `examples/incremental.rs` copies dirty pages.
//!
//! No feature is on by default: `hashers` and `peers` add memories to compare with. Images are read
//! from ELF files with the feature `elf` of `pagelab-trace`. It knows no instructions, no devices
//! and no clock, and needs no particular operating system.

pub mod builder;
mod find;
mod looked;
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
pub use policy::{Absent, Edge, Permissions, Policy, Unfit};
pub use raw::{
    flat::Flat,
    tlb::{Snapshot, Tlb},
};
