//! How often a process may cut its segments.
//!
//! The one idea: each run of pages that has something of its own takes two mappings more, and a
//! process has `vm.max_map_count` of them, of which others need some, too.

use std::sync::atomic::{AtomicUsize, Ordering};

use pagelab_interpose::{Errno, kernel, segment::Backed};

use crate::count;

/// Runs that there are.
static SPLITS: AtomicUsize = AtomicUsize::new(0);
/// So many there may be; 0 before somebody asked the kernel.
static MOST: AtomicUsize = AtomicUsize::new(0);
/// Mappings that stay for libc and for the program's own: stacks of threads, libraries.
const SPARE: usize = 2048;

/// Whether there may be so many more runs.
pub(crate) fn may(more: usize) -> Result<(), Errno> {
    if more == 0 {
        return Ok(());
    }
    let most = match MOST.load(Ordering::Relaxed) {
        0 => {
            let maps = kernel::number_in(c"/proc/sys/vm/max_map_count").unwrap_or(65_530);
            let most = (maps.saturating_sub(SPARE) / 2).max(1);
            MOST.store(most, Ordering::Relaxed);
            most
        }
        most => most,
    };
    if SPLITS.load(Ordering::Relaxed) + more <= most {
        return Ok(());
    }
    count::add(Backed::Bounded, 1);
    // As the kernel answers a little later.
    Err(libc::ENOMEM)
}

/// So many runs became so many.
pub(crate) fn became(before: usize, after: usize) {
    if after >= before {
        SPLITS.fetch_add(after - before, Ordering::Relaxed);
    } else {
        SPLITS.fetch_sub(before - after, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_bounded_by_the_mappings_of_a_process() {
        MOST.store(2, Ordering::Relaxed);
        assert_eq!(may(1), Ok(()));
        became(0, 2);
        assert_eq!((may(0), may(1)), (Ok(()), Err(libc::ENOMEM)));
        became(2, 1);
        assert_eq!(may(1), Ok(()));
    }
}
