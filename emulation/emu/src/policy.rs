//! The decisions that an emulated memory leaves to its user.

use crate::memory::{Fault, Kind};

/// What an access does that reaches over the end of the 2^64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Edge {
    /// It faults; fast-mem's way.
    #[default]
    Trap,
    /// It goes on at address 0.
    Wrap,
}

impl Edge {
    /// Refuses what reaches over the end of the space, where the policy is to trap.
    pub(crate) fn check(self, addr: u64, bytes: u64, kind: Kind) -> Result<(), Fault> {
        let over = bytes > 0 && addr.checked_add(bytes - 1).is_none();
        if over && self == Self::Trap {
            return Err(Fault::OutOfRange { addr, bytes, kind });
        }
        Ok(())
    }
}

/// What a load of memory gives that nothing was ever stored to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Absent {
    /// Zero, without making a page; fast-mem's way.
    #[default]
    Zero,
    /// Zero, of a page that exists from then on. A memory without a map of pages makes none: what
    /// loads say is the same.
    Make,
    /// A fault.
    Fault,
}

/// Every policy of a memory; the default is fast-mem's behaviour without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Policy {
    /// The end of the address space.
    pub edge: Edge,
    /// Loads of absent memory.
    pub absent: Absent,
    /// Most bytes of pages that exist at once.
    pub page_limit: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { edge: Edge::default(), absent: Absent::default(), page_limit: u64::MAX }
    }
}

/// What may be done with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permissions {
    /// It may be loaded from.
    pub load: bool,
    /// It may be stored to.
    pub store: bool,
    /// It may be fetched from.
    pub fetch: bool,
}

impl Permissions {
    /// Everything is allowed: what a page has unless somebody says otherwise.
    pub const ALL: Self = Self { load: true, store: true, fetch: true };
    /// Nothing is.
    pub const NONE: Self = Self { load: false, store: false, fetch: false };
    /// Data that is only read.
    pub const READ: Self = Self { load: true, store: false, fetch: false };
    /// Data.
    pub const READ_WRITE: Self = Self { load: true, store: true, fetch: false };
    /// Code, and the constants in it.
    pub const READ_EXECUTE: Self = Self { load: true, store: false, fetch: true };

    /// Whether an access of this kind is allowed.
    pub const fn allow(self, kind: Kind) -> bool {
        match kind {
            Kind::Load => self.load,
            Kind::Store => self.store,
            Kind::Fetch => self.fetch,
        }
    }
}

/// Why a backend cannot be made: what it lacks here, and what to use instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub String);
