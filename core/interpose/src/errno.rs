#![expect(unsafe_code, reason = "the place of errno; rules below")]
//! `errno` of the calling thread, and what C sees of a call.
//!
//! Rules for the unsafe blocks:
//! 1. The place of `errno` is the thread's own, for as long as the thread lives.

use std::ffi::{c_int, c_long, c_void};

/// An error number.
pub type Errno = c_int;

#[inline]
fn place_of_errno() -> *mut c_int {
    // SAFETY: rule 1.
    unsafe { libc::__errno_location() }
}

/// The error number of the last call that failed.
#[inline]
pub fn errno() -> Errno {
    // SAFETY: rule 1.
    unsafe { *place_of_errno() }
}

/// Sets the error number that the program is to see.
#[inline]
pub fn set_errno(errno: Errno) {
    // SAFETY: rule 1.
    unsafe { *place_of_errno() = errno };
}

/// What `errno` of this thread was at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Saved {
    place: *mut Errno,
    errno: Errno,
}

impl Saved {
    /// What it is now.
    #[inline]
    pub fn now() -> Self {
        let place = place_of_errno();
        // SAFETY: rule 1.
        Self { place, errno: unsafe { *place } }
    }

    /// Sets it to what it was.
    #[inline]
    pub fn put_back(self) {
        // A child of fork that writes what is there already copies a page for it.
        // SAFETY: rule 1; it is not sent to another thread.
        if unsafe { *self.place } != self.errno {
            // SAFETY: as above.
            unsafe { *self.place = self.errno };
        }
    }
}

/// Does something, and leaves `errno` as it was.
#[inline]
pub fn aside<T>(act: impl FnOnce() -> T) -> T {
    let saved = Saved::now();
    let came = act();
    saved.put_back();
    came
}

/// A number for this thread, which is never 0.
#[inline]
pub fn thread() -> usize {
    place_of_errno().addr()
}

/// The result of a system call that answered by `errno`.
///
/// # Errors
/// With the error number of the call.
#[inline]
pub fn checked(answer: c_long) -> Result<c_long, Errno> {
    if answer == -1 { Err(errno()) } else { Ok(answer) }
}

/// What C sees of a call that answers a number: -1, and `errno`, where it failed.
pub fn number<T: Into<c_int>>(came: Result<T, Errno>) -> c_int {
    answered(came.map(Into::into), -1)
}

/// What C sees of a call that answers an address.
pub fn place(came: Result<*mut c_void, Errno>) -> *mut c_void {
    answered(came, libc::MAP_FAILED)
}

/// What C sees of a call that answers nothing.
pub fn done(came: Result<(), Errno>) -> c_int {
    answered(came.map(|()| 0), -1)
}

fn answered<T>(came: Result<T, Errno>, failed: T) -> T {
    came.unwrap_or_else(|errno| {
        set_errno(errno);
        failed
    })
}
