//! Memory types: memory that is WB, UC-, WC or WT, the loops that measure it, and the litmus that
//! shows in which order another CPU sees its stores.
//!
//! The one idea: a [`Plot`] is memory with a known type, whether it is ordinary memory (WB, because
//! nobody changed it) or a mapping of the kernel module (the type as the page table has it); every
//! loop works on plots and knows nothing of where they come from. Without the module all of this
//! works on ordinary memory.
//!
//! It decides nothing about cases: which type, which fence, how often is the caller's.

mod capable;
pub mod device;
mod fence;
pub mod latency;
pub mod litmus;
mod loops;
mod owned;
mod plot;
mod share;
mod spec;
mod stamps;
pub mod state;
pub mod values;

pub use capable::{Loads, Stores, Width};
pub use device::{Device, DeviceError, Info, Leaf, LegacyNode, Refusal, Request};
pub use loops::{read_rounds, store_rounds};
pub use owned::Segment;
use pagelab_interpose::uapi;
pub use plot::Plot;
pub use spec::{
    Engine, FENCE_WORD, Fence, FenceWord, ReadRun, ReadSpec, StoreRound, StoreRun, StoreSpec,
    Verify,
};
pub use state::ModuleState;

listed! {
    /// A memory type, as the processor manual names it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u32)]
    pub enum MemoryType {
        /// Write-back.
        Wb = uapi::WB => "WB",
        /// Uncached minus: uncached, unless an MTRR says write-combining. What drivers call `uc`.
        UcMinus = uapi::UC_MINUS => "UC-",
        /// Write-combining.
        Wc = uapi::WC => "WC",
        /// Write-through.
        Wt = uapi::WT => "WT",
        /// Strong uncached; the module answers it and never gives it.
        Uc = uapi::UC => "UC",
        /// Write-protected; the module answers it and never gives it.
        Wp = uapi::WP => "WP",
    }
}

impl MemoryType {
    fn code(self) -> u32 {
        self as u32
    }

    fn of_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|memtype| memtype.code() == code)
    }
}

listed! {
    /// Where the frames of module memory come from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[repr(u32)]
    pub enum Frames {
        /// Single leaves, wherever they are free.
        Scattered = uapi::SCATTERED => "scattered",
        /// One physically contiguous run.
        Contiguous = uapi::CONTIGUOUS => "contiguous",
        /// The region that the module was given at load time.
        Reserved = uapi::RESERVED => "reserved",
    }
}

impl Frames {
    fn code(self) -> u32 {
        self as u32
    }
}
