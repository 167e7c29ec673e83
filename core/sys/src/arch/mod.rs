//! One file for each architecture, with the same names.
//!
//! What an architecture lacks is `None` or `false` here and becomes a need with a cure above, never
//! a compile error and never a slower stand-in under the same name.

mod word;

#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod imp;

#[cfg(not(target_arch = "x86_64"))]
#[path = "portable.rs"]
mod imp;

#[cfg(target_arch = "x86_64")]
#[path = "words_x86_64.rs"]
mod words;

#[cfg(not(target_arch = "x86_64"))]
#[path = "words_portable.rs"]
mod words;

pub use imp::{
    HAS_STEP_OVER, HAS_STRING_STORE, has_reliable_tsc, is_emulated, is_guest, vector_bytes,
};
pub(crate) use imp::{
    ROUTINE, clear_nt, clear_string, copy_nt, copy_string, load_words, mark_begin, mark_end,
    mark_rest, mark_say, mark_watch, marked_routine, read_all, step_over_store, store_or_step_over,
    store_words, ticks_end, ticks_plain, ticks_start,
};
pub(crate) use word::Word;
pub(crate) use words::{
    HAS_LINE_FLUSH, HAS_NT_WORDS, differing_words, flush_line, has_nt_loads, has_words, lfence,
    load_nt, load_word, mfence, sfence, store_counting, store_word, store_word_nt, sum_words,
};
