//! What a process writes of itself when it forks and ends.
//!
//! It lies side by side: a child of fork copies one page for all of it, and its parent none.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

use pagelab_interpose::segment::WORDS;

/// Nothing of it lies on another page, as it is no longer than its alignment.
#[repr(align(1024))]
pub(crate) struct Own {
    /// Its number.
    pub(crate) process: AtomicU32,
    /// Whether it is a forked child.
    pub(crate) is_forked: AtomicBool,
    /// Whether a thread is telling what there is: another one may end the program meanwhile.
    pub(crate) is_telling: AtomicBool,
    /// How often its parent had taken memory of a segment when it was forked.
    pub(crate) taken_before: AtomicUsize,
    /// What it told before, by place.
    pub(crate) told: [AtomicU64; WORDS],
}

const _: () = assert!(size_of::<Own>() == align_of::<Own>(), "on one page");

pub(crate) static OWN: Own = Own {
    process: AtomicU32::new(0),
    is_forked: AtomicBool::new(false),
    is_telling: AtomicBool::new(false),
    taken_before: AtomicUsize::new(0),
    told: [const { AtomicU64::new(0) }; WORDS],
};
