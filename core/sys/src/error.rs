//! The one error of this room: which call failed, on what, and why.

use std::{fmt, io};

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
    pub fn new(call: &'static str, on: impl fmt::Display, source: impl Into<io::Error>) -> Self {
        Self { call, on: on.to_string(), source: source.into() }
    }

    /// Whether what was asked for is in use (`EBUSY`), so that it may be had later.
    pub fn is_busy(&self) -> bool {
        self.source.kind() == io::ErrorKind::ResourceBusy
    }

    /// The error that the last libc call left in `errno`.
    pub fn last(call: &'static str, on: impl fmt::Display) -> Self {
        Self::new(call, on, io::Error::last_os_error())
    }

    /// What a libc call gave, unless it is the -1 of a failure.
    pub(crate) fn checked(
        result: impl Into<i64>,
        call: &'static str,
        on: impl fmt::Display,
    ) -> Result<i64, Self> {
        checked(result).called(call, on)
    }
}

/// What a libc call gave, unless it is the -1 of a failure.
pub(crate) fn checked(result: impl Into<i64>) -> io::Result<i64> {
    let result = result.into();
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Says which call gave a result, and on what.
pub(crate) trait Called<T> {
    /// A failure is one of `call` on `on`.
    ///
    /// # Errors
    /// When it failed.
    fn called(self, call: &'static str, on: impl fmt::Display) -> Result<T, SysError>;
}

impl<T, E: Into<io::Error>> Called<T> for Result<T, E> {
    fn called(self, call: &'static str, on: impl fmt::Display) -> Result<T, SysError> {
        self.map_err(|error| SysError::new(call, on, error))
    }
}
