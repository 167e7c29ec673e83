//! Locking everything that a process maps, and reading back how much is locked.
//!
//! The one idea: `mlockall` has no range. With `MCL_CURRENT` it locks and populates every mapping
//! that there is, code and stacks too; with `MCL_FUTURE` every mapping that will be made, until
//! [`Everything`] is dropped. Locking a range is [`crate::Area::lock`].

use rustix::mm::{MlockAllFlags, mlockall, munlockall};

use super::account::number_in;
use crate::{Called, SysError};

/// What `mlockall` is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// `MCL_CURRENT`: what is mapped now.
    Current,
    /// `MCL_FUTURE`: what will be mapped.
    Future,
}

/// `mlockall` in force; dropping it is `munlockall`, which unlocks every range of the process.
#[derive(Debug)]
pub struct Everything(());

impl Everything {
    /// Calls `mlockall`.
    ///
    /// # Errors
    /// When the memlock limit is too low for all that is mapped.
    pub fn lock(which: Which) -> Result<Self, SysError> {
        let flags = match which {
            Which::Current => MlockAllFlags::CURRENT,
            Which::Future => MlockAllFlags::FUTURE,
        };
        mlockall(flags).called("mlockall", format_args!("{flags:?}"))?;
        Ok(Self(()))
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        // It needs no right; a process that cannot unlock ends with its locks.
        let _ = munlockall();
    }
}

/// Bytes of mappings of this process that are locked: `VmLck`, whether present or not.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn locked_bytes() -> Result<u64, SysError> {
    number_in("/proc/self/status", "VmLck").map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Locking is tested in processes of their own, end to end: here it would lock other tests.
    #[test]
    fn a_process_that_locked_nothing_has_nothing_locked() {
        assert_eq!(locked_bytes().unwrap(), 0);
    }
}
