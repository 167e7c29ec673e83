//! What a process holds in pages larger than the base page, by the fields of `smaps` and
//! `smaps_rollup`.

/// What processes hold in pages larger than the base page, in bytes, by [`Holding::KINDS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Holding([u64; 4]);

impl Holding {
    /// The kinds, as a table names them: what a PMD maps of anonymous memory, of shared memory and
    /// of files, and what is of hugetlb pools.
    pub const KINDS: [&str; 4] = ["anonymous_huge", "shared_huge", "file_huge", "hugetlb"];

    /// What a process holds by `smaps_rollup`; `None` where nobody may look, or it is ending.
    pub fn of(pid: u32) -> Option<Self> {
        let text = super::text(pid, "smaps_rollup").ok()?;
        let mut holding = Self::default();
        let mut is_told = false;
        for (field, bytes) in super::sizes(&text) {
            holding.add(field, bytes);
            is_told = true;
        }
        is_told.then_some(holding)
    }

    /// By kind.
    pub fn kinds(&self) -> [u64; 4] {
        self.0
    }

    /// All that is in pages larger than the base page, as far as page tables say.
    pub fn large(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds a field of a mapping, where it is about large pages.
    pub fn add(&mut self, field: &str, bytes: u64) {
        let kind = match field {
            "AnonHugePages" => 0,
            "ShmemPmdMapped" => 1,
            "FilePmdMapped" => 2,
            "Shared_Hugetlb" | "Private_Hugetlb" => 3,
            _ => return,
        };
        self.0[kind] += bytes;
    }

    /// The sum.
    pub fn join(&mut self, other: Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}
