//! Which widths of loads and stores this processor has.
//!
//! A width that is missing is a refusal with the name of what is missing, never a narrower store
//! under the same label.

use crate::arch;

listed! {
    /// Bytes that one load or store moves, ascending.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Width {
        /// A general register.
        Bytes8,
        /// An SSE register.
        Bytes16,
        /// An AVX register.
        Bytes32,
        /// An AVX-512 register, a whole cache line.
        Bytes64,
    }
}

impl Width {
    /// How many bytes.
    pub fn bytes(self) -> u64 {
        8 << self as u32
    }

    /// The width of so many bytes.
    pub fn of_bytes(bytes: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|width| width.bytes() == bytes)
    }

    /// The widest of these stores that this processor has.
    pub fn widest(stores: Stores) -> Self {
        let mut widths = Self::ALL.into_iter().rev();
        widths.find(|width| stores.has(*width)).unwrap_or(Self::Bytes8)
    }
}

/// How a store goes to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stores {
    /// `mov` and its vector forms.
    Plain,
    /// `movnti`, `movntdq` and its wider forms: around the caches, in no order.
    NonTemporal,
}

/// How a load comes from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Loads {
    /// `mov` and its vector forms.
    Plain,
    /// `movntdqa`: a whole line at once from WC memory, an ordinary load anywhere else.
    NonTemporal,
}

impl Stores {
    /// Whether this processor has such stores.
    pub fn has(self, width: Width) -> bool {
        self.lack(width).is_none()
    }

    /// What the processor lacks for such stores.
    pub fn lack(self, width: Width) -> Option<&'static str> {
        let nt = self == Self::NonTemporal;
        if nt && !arch::HAS_NT_WORDS { Some("non-temporal stores") } else { lack_of(width) }
    }
}

impl Loads {
    /// Whether this processor has such loads.
    pub fn has(self, width: Width) -> bool {
        self.lack(width).is_none()
    }

    /// What the processor lacks for such loads.
    pub fn lack(self, width: Width) -> Option<&'static str> {
        match (self, width) {
            (Self::NonTemporal, Width::Bytes8) => Some("movntdqa of 8 bytes, which no x86 has"),
            (Self::NonTemporal, _) if !arch::has_nt_loads() => Some("sse4.1"),
            _ => lack_of(width),
        }
    }
}

/// The loops count in vectors of integers, so 32 bytes need AVX2 where a bare store needs AVX.
fn lack_of(width: Width) -> Option<&'static str> {
    let feature = match width {
        Width::Bytes8 => return None,
        Width::Bytes16 => "sse2",
        Width::Bytes32 => "avx2",
        Width::Bytes64 => "avx512f",
    };
    (!arch::has_words(width.bytes())).then_some(feature)
}
