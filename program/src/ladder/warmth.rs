//! Memory that the host backs, for a run to have.
//!
//! The one idea: a guest that reports its free pages gives them back to the host, and whoever
//! touches one next waits for it, on no clock but his own. Huge pages come from the largest free
//! blocks, which are those that are reported, so this falls on some rungs and not on others, and on
//! some rounds. As much as the program holds, or held on a rung before where that is more, is
//! touched and freed before each run: the kernel hands out first what was freed last. Every
//! processor touches a part, as each waits for the host by itself: two took half the time of one.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use pagelab_sys::{
    counts::reports_free_pages,
    machine::Topology,
    memory::{Advice, Area, Backing, Layout},
    process::{crew, stack::is_memory_limited},
    time::monotonic_raw_ns,
};

/// So much more is touched than the program was seen to hold, as what it gives back and takes again
/// need not be the same.
const MARGIN: u64 = 4;
const SPARE: u64 = 32 << 20;
/// It is touched in pages of this size, where there are some.
const PIECE: usize = 2 << 20;
/// Processors that touch, at most.
const WORKERS_MAX: usize = 8;
/// A host that takes longer than the program itself, and a second, is not waited for.
const PATIENCE_NS: u64 = 1_000_000_000;

/// What was touched ahead of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Warmed {
    pub(super) bytes: u64,
    /// Whether it is all that should be.
    pub(super) is_whole: bool,
}

/// Touches and frees what a program of so many bytes takes, and usually so many nanoseconds; `None`
/// where nothing is given back to a host, or nothing can be touched ahead.
pub(super) fn warmed(peak: u64, usual_ns: u64) -> Option<Warmed> {
    if !reports_free_pages() || is_memory_limited() {
        return None;
    }
    let room = Topology::machine().memory_budget().bytes / 2;
    let bytes = usize::try_from((peak + peak / MARGIN + SPARE).min(room)).ok()? / PIECE * PIECE;
    let area = Area::mapped(Layout::contiguous(bytes), Backing::Anonymous, PIECE).ok()?;
    // Where there are none, base pages do.
    let _ = area.advise(Advice::HugePage);
    let until = monotonic_raw_ns() + usual_ns + PATIENCE_NS;
    let (begun, touched) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let workers = thread::available_parallelism().map_or(1, |all| all.get().min(WORKERS_MAX));
    let done = crew::threads(workers, |_| {
        while monotonic_raw_ns() < until {
            let from = begun.fetch_add(PIECE, Ordering::Relaxed);
            if from >= bytes {
                break;
            }
            area.populate_write_part(from, from + PIECE).ok()?;
            touched.fetch_add(PIECE, Ordering::Relaxed);
        }
        Some(())
    });
    done.ok()?.into_iter().collect::<Option<()>>()?;
    let touched = touched.into_inner();
    Some(Warmed { bytes: touched as u64, is_whole: touched == bytes })
}
