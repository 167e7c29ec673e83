//! The decisions that an emulated memory leaves to its user.

/// What an access does that reaches over the end of the 2^64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Edge {
    /// It faults; the seed's way.
    #[default]
    Trap,
    /// It goes on at address 0.
    Wrap,
}

/// What a load of memory gives that nothing was ever stored to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Absent {
    /// Zero, without making a page; the seed's way.
    #[default]
    Zero,
    /// A fault.
    Fault,
}

/// Every policy of a memory; the default is the seed's behaviour without a limit.
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
