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
