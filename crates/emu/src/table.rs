//! Every backend, in one visible table.
//!
//! The one idea: a row is a name and a way to make an empty memory; commands, parameters and tests
//! are views of the table. A backend that cannot be had here is a sentence, not a missing row.

use crate::{
    Flat, Memory, Policy, Tlb, Unfit,
    noop::Noop,
    paged::{Paged, PagedCache, PagedCacheNeg, PagedFx, PagedLast, PagedSip, Pages},
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
    paged("paged-sip", "a map of pages, the standard library's hasher", make::<PagedSip>),
    #[cfg(feature = "hashers")]
    paged("paged-ahash", "a map of pages, AHash", make::<crate::paged::PagedAhash>),
    paged("paged-fx", "a map of pages, FxHash", make::<PagedFx>),
    #[cfg(feature = "hashers")]
    paged(
        "paged-nohash",
        "a map of pages, hashed by their number",
        make::<crate::paged::PagedNohash>,
    ),
    paged("paged-last", "paged-fx behind the last page", make::<PagedLast>),
    paged("paged-cache-4", "paged-fx behind 4 pages, direct-mapped", make::<PagedCache<4>>),
    paged("paged-cache-8", "paged-fx behind 8 pages, direct-mapped", make::<PagedCache<8>>),
    paged("paged-cache-16", "paged-fx behind 16 pages, direct-mapped", make::<PagedCache<16>>),
    paged("paged-cache-32", "paged-fx behind 32 pages, direct-mapped", make::<PagedCache<32>>),
    paged("paged-cache-4-neg", "paged-cache-4, and 4 absent pages", make::<PagedCacheNeg<4>>),
    paged("paged-cache-8-neg", "paged-cache-8, and 8 absent pages", make::<PagedCacheNeg<8>>),
    paged("paged-cache-16-neg", "paged-cache-16, and 16 absent pages", make::<PagedCacheNeg<16>>),
    paged(BASE, "paged-cache-32, and 32 absent pages: fast-mem's best", make::<PagedCacheNeg<32>>),
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

type Make = fn(&Policy) -> Result<Box<dyn Replay>, Unfit>;

/// A row of fast-mem's kind.
const fn paged(name: &'static str, summary: &'static str, make: Make) -> Backend {
    Backend { name, summary, remembers: true, make }
}

/// An empty memory of that type, to be replayed into.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a row")]
fn make<M: FromPolicy + Memory + 'static>(policy: &Policy) -> Result<Box<dyn Replay>, Unfit> {
    Ok(playing(M::from_policy(policy)))
}

fn playing<M: Memory + 'static>(memory: M) -> Box<dyn Replay> {
    Box::new(Player::new(memory))
}

/// A memory that is made from its policies and nothing else.
trait FromPolicy {
    fn from_policy(policy: &Policy) -> Self;
}

impl<P: Pages + Default> FromPolicy for Paged<P> {
    fn from_policy(policy: &Policy) -> Self {
        Self::new(policy)
    }
}
