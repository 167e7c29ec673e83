//! The system room: every syscall, all asm, all unsafe that meets the operating system.
//!
//! It imports nothing of ours and knows no workload, no case and no record: it hands out safe,
//! named pieces (an area of memory, a clock, a measured loop, a count, a knob) from which the
//! benchmarks are built. No `pub unsafe fn` leaves it.

pub mod account;
pub mod arch;
pub mod area;
pub mod beside;
pub mod blocks;
pub mod bulk;
pub mod bytes;
pub mod calls;
pub mod child;
pub mod clock;
pub mod counters;
pub mod crew;
pub mod disturbance;
pub mod environment;
mod error;
pub mod filemap;
pub mod folder;
pub mod folios;
pub mod fork;
pub mod guest;
mod heap;
pub mod hints;
pub mod hostile;
pub mod knobs;
pub mod launch;
pub mod locked;
pub mod memfd;
pub mod memtype;
pub mod note;
pub mod pagecache;
pub mod peers;
pub mod perf;
mod populate;
pub mod pulse;
pub mod residency;
pub mod rights;
pub mod sched;
pub mod scratch;
pub mod shortage;
pub mod stamped;
pub mod topology;
pub mod touch;
pub mod twin;
pub mod uffd;
pub mod usage;

pub use area::Area;
pub use error::SysError;

/// Held by tests that count this process's faults, and by those that fork it: a fork makes pages of
/// every thread fault once more.
#[cfg(test)]
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
