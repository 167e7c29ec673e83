//! The one error of this room: which call failed, on what, and why.

use std::io;

/// A call into the operating system that failed.
///
/// Prints as `mmap(1073741824 bytes, anonymous): Cannot allocate memory`.
#[derive(Debug, thiserror::Error)]
#[error("{call}({on}): {source}")]
pub struct SysError {
    /// The system call or the kind of access.
    pub call: &'static str,
    /// What it was called on: a path, a length, a CPU.
    pub on: String,
    /// The kernel's answer.
    pub source: io::Error,
}

impl SysError {
    /// An error of `call` on `on`.
    pub fn new(call: &'static str, on: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self { call, on: on.into(), source: source.into() }
    }

    /// Whether what was asked for is in use (`EBUSY`), so that it may be had later.
    pub fn is_busy(&self) -> bool {
        self.source.kind() == io::ErrorKind::ResourceBusy
    }

    /// The error that the last libc call left in `errno`.
    pub fn last(call: &'static str, on: impl Into<String>) -> Self {
        Self::new(call, on, io::Error::last_os_error())
    }
}
