//! What a call answers as C has it: a value, or one that says that `errno` has the reason.

use std::ffi::{c_int, c_void};

use pagelab_sys::process::preload::edge::{self, Errno};

/// What C sees of a call: -1, and why.
pub(crate) fn number<T: Into<c_int>>(came: Result<T, Errno>) -> c_int {
    came.map_or_else(
        |errno| {
            edge::set_errno(errno);
            -1
        },
        Into::into,
    )
}

/// What C sees of a map.
pub(crate) fn place(came: Result<*mut c_void, Errno>) -> *mut c_void {
    came.unwrap_or_else(|errno| {
        edge::set_errno(errno);
        libc::MAP_FAILED
    })
}

/// What C sees of a call that answers nothing.
pub(crate) fn done(came: Result<(), Errno>) -> c_int {
    number(came.map(|()| 0))
}
