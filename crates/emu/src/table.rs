//! Every backend, in one visible table.
//!
//! The one idea: a row is a name and a way to make an empty memory; commands, parameters and tests
//! are views of the table. A backend that cannot be had here is a sentence, not a missing row.

use std::collections::hash_map::RandomState;

use rustc_hash::FxBuildHasher;

use crate::{
    Flat, Memory, Policy, Tlb, Unfit,
    noop::Noop,
    paged::{PageCache, PageMap, Paged, Pages},
    raw::{flat::WINDOW_BITS, tlb::SLOTS},
    replay::{Player, Replay},
};

/// A row of [`MEMORIES`].
#[derive(Debug, Clone, Copy)]
pub struct Backend {
    /// Its name, as an arm of a replay.
    pub name: &'static str,
    /// One line: how it works.
    pub summary: &'static str,
    /// Whether loads return what was stored; `noop` only decodes.
    pub remembers: bool,
    /// Makes an empty one.
    pub make: fn(&Policy) -> Result<Box<dyn Replay>, Unfit>,
}

/// fast-mem's best configuration, decoded as fast-mem does: what others are compared with.
pub const BASE: &str = "paged-cache-32-neg";

/// Every backend, in the order that `pagelab list` prints them.
pub const MEMORIES: &[Backend] = &[
    Backend {
        name: "noop",
        summary: "decodes and forgets: what replaying costs without a memory",
        remembers: false,
        make: |_| Ok(playing(Noop::default())),
    },
    paged::<PageMap<RandomState>>("paged-sip", "a map of pages, the standard library's hasher"),
    #[cfg(feature = "hashers")]
    paged::<crate::paged::AhashMap>("paged-ahash", "a map of pages, AHash"),
    paged::<PageMap<FxBuildHasher>>("paged-fx", "a map of pages, FxHash"),
    #[cfg(feature = "hashers")]
    paged::<crate::paged::NohashMap>("paged-nohash", "a map of pages, hashed by their number"),
    paged::<PageCache<1, false>>("paged-last", "paged-fx behind the last page"),
    paged::<PageCache<4, false>>("paged-cache-4", "paged-fx behind 4 pages, direct-mapped"),
    paged::<PageCache<8, false>>("paged-cache-8", "paged-fx behind 8 pages, direct-mapped"),
    paged::<PageCache<16, false>>("paged-cache-16", "paged-fx behind 16 pages, direct-mapped"),
    paged::<PageCache<32, false>>("paged-cache-32", "paged-fx behind 32 pages, direct-mapped"),
    paged::<PageCache<4, true>>("paged-cache-4-neg", "paged-cache-4, and 4 absent pages"),
    paged::<PageCache<8, true>>("paged-cache-8-neg", "paged-cache-8, and 8 absent pages"),
    paged::<PageCache<16, true>>("paged-cache-16-neg", "paged-cache-16, and 16 absent pages"),
    paged::<PageCache<32, true>>(BASE, "paged-cache-32, and 32 absent pages: fast-mem's best"),
    Backend {
        name: "tlb",
        summary: "a software TLB in front of a page table: the default",
        remembers: true,
        make: |policy| Ok(playing(Tlb::<SLOTS>::new(*policy, true))),
    },
    Backend {
        name: "flat",
        summary: "a window of reserved address space that the host translates",
        remembers: true,
        make: |policy| Ok(playing(Flat::new(*policy, WINDOW_BITS)?)),
    },
    #[cfg(all(unix, feature = "peers"))]
    Backend {
        name: "peer-vm-memory",
        summary: "the crate vm-memory: one reserved region of 2^45 bytes, \
                  an object for each access",
        remembers: true,
        make: |policy| Ok(playing(crate::peers::VmMemory::new(policy)?)),
    },
];

/// The backend of that name.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn backend(name: &str) -> Result<&'static Backend, String> {
    MEMORIES.iter().find(|backend| backend.name == name).ok_or_else(|| {
        let names: Vec<&str> = MEMORIES.iter().map(|backend| backend.name).collect();
        format!("no backend is called `{name}`; there are {}", names.join(", "))
    })
}

/// A row of fast-mem's kind.
const fn paged<P: Pages + Default + 'static>(name: &'static str, summary: &'static str) -> Backend {
    Backend { name, summary, remembers: true, make: |policy| Ok(playing(Paged::<P>::new(policy))) }
}

/// An empty memory, to be replayed into.
fn playing<M: Memory + 'static>(memory: M) -> Box<dyn Replay> {
    Box::new(Player::new(memory))
}
