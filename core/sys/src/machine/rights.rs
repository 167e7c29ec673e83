//! What this process may do: privileges and limits that a case may need.

use std::os::fd::AsFd;

use rustix::process::{Resource, geteuid, getrlimit};

use super::Tree;

/// `CAP_IPC_LOCK` of the UAPI's `capability.h`.
const CAP_IPC_LOCK: u32 = 14;
/// `CAP_SYS_NICE`.
const CAP_SYS_NICE: u32 = 23;

/// Whether the effective user is root.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Bytes that may be locked; `None` without a limit.
pub fn lockable_bytes() -> Option<u64> {
    if has_capability(CAP_IPC_LOCK) { None } else { getrlimit(Resource::Memlock).current }
}

/// Whether `SCHED_FIFO` may be entered.
pub fn may_use_fifo() -> bool {
    let limit = getrlimit(Resource::Rtprio).current;
    has_capability(CAP_SYS_NICE) || limit.is_none_or(|priority| priority > 0)
}

/// Whether memory of other processes may be advised (`process_madvise(2)`: `CAP_SYS_NICE`).
pub fn may_advise_others() -> bool {
    has_capability(CAP_SYS_NICE)
}

fn has_capability(capability: u32) -> bool {
    let effective = Tree::machine().field("proc/self/status", "CapEff");
    let effective = effective.and_then(|set| u64::from_str_radix(&set, 16).ok());
    effective.is_some_and(|set| set & (1 << capability) != 0)
}

/// Columns of the terminal behind a stream; `None` where it is none.
pub fn terminal_columns(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
