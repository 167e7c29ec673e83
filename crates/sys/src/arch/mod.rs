//! One file for each architecture, with the same names.
//!
//! What an architecture lacks is `None` or `false` here and becomes a need with a cure above, never
//! a compile error and never a slower stand-in under the same name.

#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod imp;

#[cfg(not(target_arch = "x86_64"))]
#[path = "portable.rs"]
mod imp;

pub use imp::{HAS_STRING_STORE, has_reliable_tsc, is_emulated, vector_bytes};
pub(crate) use imp::{
    clear_nt, clear_string, copy_nt, copy_string, read_all, store_words, ticks_end, ticks_plain,
    ticks_start,
};
