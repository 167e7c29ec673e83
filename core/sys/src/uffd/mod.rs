//! Faults that user space resolves: userfaultfd (since Linux 4.3).
//!
//! The one idea: a fault in a registered range becomes a message or a signal, and one `ioctl`
//! ends it. [`Uffd`] is the descriptor, [`Ability`] what a kernel can do, found by asking it and
//! never by its version; [`Resolver`] is the `ioctl`, [`fn@serve`] the thread that waits for
//! messages, [`Armed`] the handler of the signal. What was resolved is counted where it happens
//! ([`Tally`]).
//!
//! [`Theirs`] is another process's, which registers that one's memory from outside.
//!
//! A descriptor is always non-blocking: `poll` of a blocking one reports `POLLERR` at once. It asks
//! for faults of user mode only, which needs no privilege since Linux 5.11.

mod content;
mod descriptor;
mod resolver;
mod serve;
mod sigbus;
mod tally;
#[cfg(test)]
mod tests;
mod theirs;

pub use content::{differing, fill, write_protected};
pub use descriptor::{Ability, Mode, Uffd};
pub use resolver::{Op, Resolver};
pub use serve::{Stop, Wait, serve};
pub use sigbus::Armed;
pub use tally::{Counts, Tally};
pub use theirs::Theirs;
