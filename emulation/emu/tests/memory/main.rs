//! Every memory against the simplest one that is right.
//!
//! The one idea: a memory joins with one line in `list.rs`, and is then held to everything that
//! the other files say. Nothing here depends on how a memory works. Under Miri (`cargo +nightly
//! miri test -p pagelab-emu --test memory`, `MIRIFLAGS=-Zmiri-disable-isolation`) the list is that
//! of the memories that keep pointers, and cases are few.

mod branches;
mod fast_mem;
mod list;
mod model;
mod naive;
mod ops;
mod replay;
