//! A fence, ready to be used: what the loops, the latency samples and the litmus end with.

use super::{
    Plot,
    spec::{FENCE_WORD, Fence, FenceWord},
};
use crate::arch::{self, Word};

/// A fence with the address of its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FenceAt<'plot> {
    None,
    Sfence,
    Mfence,
    Store(Word<'plot>),
    StoreLoad(Word<'plot>),
}

impl<'plot> FenceAt<'plot> {
    /// Resolves a fence of a test on `plot`.
    ///
    /// # Panics
    /// When the word overlaps the plot and is not skipped.
    pub(super) fn of(plot: &'plot Plot, fence: Fence<'plot>, skip: Option<u64>) -> Self {
        let at = |word: FenceWord<'plot>| {
            let of = match word {
                FenceWord::Own(own) => own,
                FenceWord::Overlap => {
                    assert_eq!(skip, Some(FENCE_WORD), "the loop skips its fence word");
                    plot
                }
            };
            of.at(511)
        };
        match fence {
            Fence::None => Self::None,
            Fence::Sfence => Self::Sfence,
            Fence::Mfence => Self::Mfence,
            Fence::UcStore(word) => Self::Store(at(word)),
            Fence::UcStoreLoad(word) => Self::StoreLoad(at(word)),
        }
    }
}

/// Runs `$body` with `$fence` bound to a closure for the fence's kind: one copy of the body for
/// each, so that no branch on the kind stands between two stamps.
macro_rules! with_fence {
    ($at:expr, $value:expr, |$fence:ident| $body:expr) => {
        match $at {
            $crate::memtype::fence::FenceAt::None => {
                let $fence = || ();
                $body
            }
            $crate::memtype::fence::FenceAt::Sfence => {
                let $fence = $crate::arch::sfence;
                $body
            }
            $crate::memtype::fence::FenceAt::Mfence => {
                let $fence = $crate::arch::mfence;
                $body
            }
            $crate::memtype::fence::FenceAt::Store(at) => {
                let $fence = || $crate::arch::store_word(at, $value);
                $body
            }
            $crate::memtype::fence::FenceAt::StoreLoad(at) => {
                let $fence = || $crate::memtype::fence::store_load(at, $value);
                $body
            }
        }
    };
}
pub(super) use with_fence;

/// Stores the word and loads it back.
#[inline(always)]
pub(super) fn store_load(at: Word<'_>, value: u64) {
    arch::store_word(at, value);
    std::hint::black_box(arch::load_word(at));
}
