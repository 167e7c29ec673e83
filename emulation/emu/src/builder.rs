//! Makes memories from policies.

use crate::{Absent, Edge, Flat, Policy, Tlb, Unfit};

/// Policies first, then the memory.
///
/// ```
/// use pagelab_emu::{Absent, Builder, Edge, Fault, Memory};
///
/// let mut memory = Builder::new().edge(Edge::Wrap).page_limit(8192).tlb();
/// memory.store_u16(u64::MAX, 0xbbaa)?; // the last byte and the first one
/// assert_eq!(memory.load_u8(0)?, 0xbb);
/// let full = memory.store_u8(0x5000, 1);
/// assert_eq!(full, Err(Fault::PageLimit { addr: 0x5000, limit: 8192 }));
///
/// let mut strict = Builder::new().absent(Absent::Fault).tlb();
/// assert!(strict.load_u8(0x5000).is_err());
/// # Ok::<(), Fault>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Builder {
    policy: Policy,
    huge: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self { policy: Policy::default(), huge: true }
    }
}

impl Builder {
    /// The default policies: trap at the end, absent memory is zero, no limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// What an access does that reaches over the end of the address space.
    #[must_use]
    pub fn edge(mut self, edge: Edge) -> Self {
        self.policy.edge = edge;
        self
    }

    /// What a load of absent memory does.
    #[must_use]
    pub fn absent(mut self, absent: Absent) -> Self {
        self.policy.absent = absent;
        self
    }

    /// Most bytes of pages that exist at once; a trace can ask for more than any host has.
    #[must_use]
    pub fn page_limit(mut self, bytes: u64) -> Self {
        self.policy.page_limit = bytes;
        self
    }

    /// Whether the host is asked for huge pages behind the emulated ones. It is by default: guests
    /// are dense. On a host that backs them lazily, a page touched may then cost 2 MiB.
    #[must_use]
    pub fn huge_pages(mut self, huge: bool) -> Self {
        self.huge = huge;
        self
    }

    /// The default memory.
    pub fn tlb(self) -> Tlb {
        Tlb::new(self.policy, self.huge)
    }

    /// The memory that the host translates: a window of 2^`bits` bytes.
    ///
    /// # Errors
    /// When the policy or the host refuses: use [`Builder::tlb`] then.
    ///
    /// ```
    /// use pagelab_emu::{Builder, Memory, Unfit};
    ///
    /// // Whoever can live with either falls back.
    /// fn load<M: Memory>(mut memory: M) -> u64 {
    ///     memory.load_u64(0x1000).unwrap_or(0)
    /// }
    /// let loaded = match Builder::new().flat(45) {
    ///     Ok(flat) => load(flat),
    ///     Err(Unfit(_)) => load(Builder::new().tlb()),
    /// };
    /// assert_eq!(loaded, 0);
    /// ```
    pub fn flat(self, bits: u32) -> Result<Flat, Unfit> {
        Flat::new(self.policy, bits)
    }
}
