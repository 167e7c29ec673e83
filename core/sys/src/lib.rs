//! The system room: every syscall, all asm, all unsafe that meets the operating system.
//!
//! Of ours it imports `interpose` alone, and it knows no workload, no case and no record: it hands
//! out safe, named pieces (an area of memory, a clock, a measured loop, a count, a knob) from which
//! the benchmarks are built. No `pub unsafe fn` leaves it.

#[macro_use(listed)]
extern crate pagelab_interpose;

pub mod arch;
pub mod counts;
mod error;
pub mod files;
pub mod knobs;
pub mod loops;
pub mod machine;
pub mod memory;
pub mod memtype;
pub mod process;
pub mod time;
pub mod uffd;
pub mod vm;

pub use error::SysError;
pub(crate) use error::{Called, checked};
pub use memory::Area;

/// Held by tests that count this process's faults, start children or wait for them: a fork makes
/// pages of every thread fault once more, and some waits take any child of the process. It keeps
/// threads of one process apart (`cargo test`); another process (`cargo nextest`) is in nobody's
/// way.
#[cfg(test)]
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Counts again where the kernel moved or reclaimed pages meanwhile: one of them may have been a
/// test's, which is absent for a moment and whose touch faults once more.
#[cfg(test)]
#[track_caller]
fn counted<T: Copy + PartialEq + std::fmt::Debug>(expected: T, mut count: impl FnMut() -> T) {
    // Code that runs for the first time may fault itself, where its file is not in the page cache.
    let _ = count();
    let end = time::monotonic_raw_ns() + 600_000_000_000;
    loop {
        let before = pages_taken();
        let found = count();
        if found == expected {
            return;
        }
        // A batch of pages is counted after all of them were moved: by a thread that may have to
        // wait for a processor.
        let is_disturbed = (0..6000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            pages_taken() != before
        });
        let is_open = is_disturbed && time::monotonic_raw_ns() < end;
        assert!(is_open, "{found:?}, and {expected:?} was expected");
    }
}

/// Pages of the machine that the kernel took from a page table by itself so far.
#[cfg(test)]
fn pages_taken() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let starts = ["pgmigrate_", "compact_isolated", "pgsteal_", "pswpout"];
    let is_one = |name: &str| starts.iter().any(|start| name.starts_with(start));
    machine::proc::counts(&text).filter(|(name, _)| is_one(name)).map(|(_, count)| count).sum()
}

/// Waits for a state, for so long that only a state that never comes is missed.
#[cfg(test)]
#[track_caller]
fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let end = time::monotonic_raw_ns() + 600_000_000_000;
    while !reached() {
        assert!(time::monotonic_raw_ns() < end, "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
