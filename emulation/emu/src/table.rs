//! Every backend, in one visible table.
//!
//! The one idea: a row is a name and a way to make an empty memory; commands, parameters and tests
//! are views of the table. A backend that cannot be had here is a sentence, not a missing row.

use std::{collections::hash_map::RandomState, hash::BuildHasher};

use rustc_hash::FxBuildHasher;

#[cfg(feature = "hashers")]
use crate::paged::{Ahash, Nohash};
use crate::{
    Absent, Flat, Memory, Policy, Tlb, Unfit,
    noop::Noop,
    paged::{PageCache, PageMap, Paged, Pages, Sliced},
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
    /// Makes an empty one that counts what its cache of pages knew, where it has one: slower.
    pub counting: Option<Counting>,
}

/// Makes an empty memory that counts.
pub type Counting = fn(&Policy) -> Box<dyn Replay>;

/// fast-mem's best configuration, decoded as fast-mem does: what others are compared with.
pub const BASE: &str = "paged-cache-32-neg";

/// Every backend, in the order that `pagelab list` prints them.
pub const MEMORIES: &[Backend] = &[
    Backend {
        name: "noop",
        summary: "decodes and forgets: what replaying costs without a memory",
        remembers: false,
        make: |_| Ok(playing(Noop::default())),
        counting: None,
    },
    paged::<PageMap<RandomState>>("paged-sip", "a map of pages, the standard library's hasher"),
    #[cfg(feature = "hashers")]
    paged::<crate::paged::AhashMap>("paged-ahash", "a map of pages, AHash"),
    paged::<PageMap<FxBuildHasher>>("paged-fx", "a map of pages, FxHash"),
    #[cfg(feature = "hashers")]
    paged::<crate::paged::NohashMap>("paged-nohash", "a map of pages, hashed by their number"),
    cached::<1, false, FxBuildHasher>("paged-last", "paged-fx behind the last page"),
    cached::<1, false, RandomState>("paged-last-sip", "paged-sip behind the last page"),
    #[cfg(feature = "hashers")]
    cached::<1, false, Ahash>("paged-last-ahash", "paged-ahash behind the last page"),
    #[cfg(feature = "hashers")]
    cached::<1, false, Nohash>("paged-last-nohash", "paged-nohash behind the last page"),
    cached::<4, false, FxBuildHasher>("paged-cache-4", "paged-fx behind 4 pages, direct-mapped"),
    cached::<8, false, FxBuildHasher>("paged-cache-8", "paged-fx behind 8 pages, direct-mapped"),
    cached::<16, false, FxBuildHasher>("paged-cache-16", "paged-fx behind 16 pages, direct-mapped"),
    cached::<32, false, FxBuildHasher>("paged-cache-32", "paged-fx behind 32 pages, direct-mapped"),
    cached::<4, true, FxBuildHasher>("paged-cache-4-neg", "paged-cache-4, and 4 absent pages"),
    cached::<8, true, FxBuildHasher>("paged-cache-8-neg", "paged-cache-8, and 8 absent pages"),
    cached::<16, true, FxBuildHasher>("paged-cache-16-neg", "paged-cache-16, and 16 absent pages"),
    cached::<32, true, FxBuildHasher>(BASE, "paged-cache-32, and 32 absent pages: fast-mem's best"),
    sliced::<PageMap<RandomState>>("paged-sip:any-width", "paged-sip, all by slices: the first"),
    #[cfg(feature = "hashers")]
    sliced::<crate::paged::AhashMap>("paged-ahash:any-width", "paged-ahash, all by slices"),
    sliced::<PageMap<FxBuildHasher>>("paged-fx:any-width", "paged-fx, all by slices"),
    #[cfg(feature = "hashers")]
    sliced::<crate::paged::NohashMap>("paged-nohash:any-width", "paged-nohash, all by slices"),
    last_sliced::<FxBuildHasher>("paged-last:any-width", "paged-last, all by slices"),
    last_sliced::<RandomState>("paged-last-sip:any-width", "paged-last-sip, all by slices"),
    #[cfg(feature = "hashers")]
    last_sliced::<Ahash>("paged-last-ahash:any-width", "paged-last-ahash, all by slices"),
    #[cfg(feature = "hashers")]
    last_sliced::<Nohash>("paged-last-nohash:any-width", "paged-last-nohash, all by slices"),
    Backend {
        name: "paged-last:any-width-creating",
        summary: "paged-last:any-width, where a load makes an absent page",
        remembers: true,
        make: |policy| Ok(playing(Sliced::<PageCache<1, false>>::new(&making(policy)))),
        counting: Some(|policy| {
            playing(Sliced::<PageCache<1, false, FxBuildHasher, true>>::new(&making(policy)))
        }),
    },
    Backend {
        name: "tlb",
        summary: "a software TLB in front of a page table: the default",
        remembers: true,
        make: |policy| Ok(playing(Tlb::<SLOTS>::new(*policy, true))),
        counting: None,
    },
    Backend {
        name: "flat",
        summary: "a window of reserved address space that the host translates",
        remembers: true,
        make: |policy| Ok(playing(Flat::new(*policy, WINDOW_BITS)?)),
        counting: None,
    },
    #[cfg(all(unix, feature = "peers"))]
    Backend {
        name: "peer-vm-memory",
        summary: "the crate vm-memory: one reserved region of 2^45 bytes, \
                  an object for each access",
        remembers: true,
        make: |policy| Ok(playing(crate::peers::VmMemory::new(policy)?)),
        counting: None,
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
    Backend {
        name,
        summary,
        remembers: true,
        make: |policy| Ok(playing(Paged::<P>::new(policy))),
        counting: None,
    }
}

/// The same behind a cache of pages.
const fn cached<const N: usize, const NEGATIVE: bool, S: Hasher>(
    name: &'static str,
    summary: &'static str,
) -> Backend {
    Backend {
        counting: Some(|policy| playing(Paged::<PageCache<N, NEGATIVE, S, true>>::new(policy))),
        ..paged::<PageCache<N, NEGATIVE, S>>(name, summary)
    }
}

/// The same, slice by slice.
const fn sliced<P: Pages + Default + 'static>(
    name: &'static str,
    summary: &'static str,
) -> Backend {
    Backend { make: |policy| Ok(playing(Sliced::<P>::new(policy))), ..paged::<P>(name, summary) }
}

/// The same behind the last page, slice by slice.
const fn last_sliced<S: Hasher>(name: &'static str, summary: &'static str) -> Backend {
    Backend {
        counting: Some(|policy| playing(Sliced::<PageCache<1, false, S, true>>::new(policy))),
        ..sliced::<PageCache<1, false, S>>(name, summary)
    }
}

/// A hasher of page numbers.
trait Hasher: BuildHasher + Default + Send + 'static {}

impl<S: BuildHasher + Default + Send + 'static> Hasher for S {}

/// The policy by which a load makes an absent page.
fn making(policy: &Policy) -> Policy {
    Policy { absent: Absent::Make, ..*policy }
}

/// An empty memory, to be replayed into.
fn playing<M: Memory + 'static>(memory: M) -> Box<dyn Replay> {
    Box::new(Player::new(memory))
}
