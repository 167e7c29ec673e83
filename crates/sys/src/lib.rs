//! The system room: every syscall, all asm, all unsafe that meets the operating system.
//!
//! It imports nothing of ours and knows no workload, no case and no record: it hands out safe,
//! named pieces (an area of memory, a clock, a measured loop, a count, a knob) from which the
//! benchmarks are built. No `pub unsafe fn` leaves it.

/// An enum, and the list of all it can be.
macro_rules! listed {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident,)+ }) => {
        $(#[$about])*
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$(stringify!($variant)),+].len()] = [$(Self::$variant),+];
        }
    };
}

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

/// Held by tests that count this process's faults, and by those that fork it: a fork makes pages of
/// every thread fault once more.
#[cfg(test)]
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Counts again where the kernel moved pages meanwhile: one of them may have been a test's, whose
/// touch faults once more.
#[cfg(test)]
#[track_caller]
fn counted<T: Copy + PartialEq + std::fmt::Debug>(expected: T, mut count: impl FnMut() -> T) {
    const TRIES: usize = 20;
    for left in (0..TRIES).rev() {
        let before = counts::moved_pages();
        let found = count();
        if found == expected {
            return;
        }
        let is_moved = counts::moved_pages() != before;
        assert!(is_moved && left > 0, "{found:?}, and {expected:?} was expected");
    }
}
