//! What the preloaded libraries (`preload`, `heat` and `segment`) share with each other, and with
//! the programs that start them: the words of both sides, in a module that has a library's name.
//!
//! Each of them defines functions of the C library, which the dynamic loader of glibc finds there
//! first (`LD_PRELOAD`). Such a function runs in a program that knows nothing of it: inside an
//! allocator, a signal handler, the child of a `fork` or a `vfork`, and before anything is set up.
//! So nothing that a library calls here allocates, prints or takes a lock, but for the first search
//! of the allocator behind. Calls go to the kernel by number, never by a name that such a library
//! has itself.
//!
//! Functions are `unsafe` where the program, or the library, has to keep what a call promises.

#[macro_use]
mod listed;

pub mod behind;
mod counter_page;
mod errno;
mod filter;
pub mod heat;
pub mod kernel;
mod map;
mod next;
pub mod preload;
pub mod proc_maps;
pub mod scan;
pub mod segment;
mod thread;
pub mod uapi;
pub mod userfaultfd;

pub use counter_page::{CounterPage, variable};
pub use errno::{Errno, Saved, aside, checked, done, errno, number, place, set_errno, thread};
pub use map::Map;
pub use next::Next;
pub use thread::{Run, gone, start};
