//! Why a knob cannot be had, as errors that a person can act on.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::SysError;

/// What can go wrong with the machine's knobs.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// Another run holds the lock; `pid` is 0 when it has not said yet who it is.
    #[error("another pagelab run (pid {pid}, {run}) holds the machine's settings")]
    Held {
        /// The process that holds it. If it is gone, its watchdog is putting the knobs back.
        pid: u32,
        /// The name of its run.
        run: String,
    },
    /// The user may not do this.
    #[error("{path}: permission denied; changing the machine needs root (try sudo)")]
    Denied {
        /// The knob, or the directory of lock and journal.
        path: PathBuf,
    },
    /// The directory of lock and journal could have been prepared by somebody else.
    #[error("{path} {why}; remove it and try again")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The path is not a setting of the machine.
    #[error("{path} is not a file below {roots}")]
    OutOfBounds {
        /// The path.
        path: PathBuf,
        /// Where knobs may lie.
        roots: String,
    },
    /// The path is somebody else's.
    #[error("{path} is DAMON's, which pagelab never writes to; leave it to whoever runs DAMON")]
    Forbidden {
        /// The path.
        path: PathBuf,
    },
    /// The kernel does not take the value.
    #[error("the kernel does not accept {value:?} for {path}: {source}")]
    Rejected {
        /// The knob.
        path: PathBuf,
        /// The value.
        value: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// What is there does not do for what is to be made.
    #[error("{path}: {why}")]
    Unsuitable {
        /// The device, directory or file system.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// Without the process that restores after SIGKILL nothing is changed.
    #[error("the watchdog of the knobs {why}")]
    Watchdog {
        /// What happened to it.
        why: String,
    },
    /// Any other call that failed.
    #[error(transparent)]
    System(#[from] SysError),
}

impl KnobError {
    /// The kernel's answer to a value that was written.
    pub(super) fn rejected(path: &Path, value: &str) -> impl FnOnce(io::Error) -> Self {
        let (path, value) = (path.to_owned(), value.to_owned());
        move |source| match Self::of("write", &path)(source) {
            Self::System(SysError { source, .. }) => Self::Rejected { path, value, source },
            denied => denied,
        }
    }

    /// An error of `call` on `path`; a missing permission is a variant of its own.
    pub(super) fn of(call: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Denied { path }
            }
            _ => Self::System(SysError::new(call, path.display().to_string(), source)),
        }
    }
}
