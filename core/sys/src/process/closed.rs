#![expect(unsafe_code, reason = "looked at before the runtime of Rust; rules below")]
//! Standard streams that were closed when this process was started.
//!
//! The runtime of Rust opens `/dev/null` in their place before `main`, and a program that is
//! started from here would inherit that: `cat` fails without an input and would not fail with this
//! one. So they are looked at before, and closed again in the child.
//!
//! Rules for the unsafe blocks:
//! 1. A number is only a number: the kernel knows whether it is a descriptor.
//! 2. Between fork and exec the child makes plain system calls only.

use std::{
    ffi::c_int,
    os::unix::process::CommandExt,
    process::Command,
    sync::atomic::{AtomicU8, Ordering},
};

/// A bit for each stream that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Called before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = {
    extern "C" fn look() {
        for stream in 0..=2 {
            // SAFETY: rule 1.
            if unsafe { libc::fcntl(stream, libc::F_GETFD) } == -1 {
                CLOSED.fetch_or(1 << stream, Ordering::Relaxed);
            }
        }
    }
    look
};

/// Starts a command without those of these streams that it inherits and that were closed.
pub fn leave_closed(command: &mut Command, inherited: &[c_int]) {
    let is_closed = |stream: &c_int| CLOSED.load(Ordering::Relaxed) & (1 << stream) != 0;
    let closed: Vec<c_int> = inherited.iter().copied().filter(is_closed).collect();
    if closed.is_empty() {
        return;
    }
    let close = move || {
        for stream in &closed {
            // SAFETY: rule 1.
            unsafe { libc::close(*stream) };
        }
        Ok(())
    };
    // SAFETY: rule 2.
    unsafe { command.pre_exec(close) };
}
