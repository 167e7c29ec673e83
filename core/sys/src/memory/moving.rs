#![expect(unsafe_code, reason = "move_pages is in no library")]
//! Pages of any process, moved to other memory nodes, and the node that each is on.
//!
//! The one idea: `move_pages` (Linux 2.6.18) takes a list of addresses and a node for each. For
//! another process it asks for what ptrace asks, and for `CAP_SYS_NICE` where it is another
//! user's. An address in a large folio moves the whole of it. What it says of a page it says before
//! the page has moved: where it is in the end is asked by a second call, without nodes.
//!
//! Rules for the unsafe blocks:
//! 1. The lists are as long as is announced and outlive the call; addresses are the other
//!    process's, and nothing of ours is written but the last list.

use std::io;

use crate::checked;

/// `MPOL_MF_MOVE` of the UAPI's `mempolicy.h`, which linux-raw-sys keeps behind another feature.
const MPOL_MF_MOVE: i32 = 2;

/// What stands in the answer for a page that the kernel did not come to.
pub const UNANSWERED: i32 = i32::MIN;

/// Asks the kernel to move each page to its node; `status` is the node, or a negative errno, or
/// [`UNANSWERED`]. Pages that other processes have too stay.
///
/// # Errors
/// `ESRCH` without such a process, `EPERM` without the right, `EACCES` for a node that its cpuset
/// lacks, `ENODEV` for one that there is not.
///
/// # Panics
/// When the lists differ in length.
pub fn move_pages(
    pid: u32,
    addresses: &[u64],
    nodes: &[i32],
    status: &mut [i32],
) -> io::Result<()> {
    assert_eq!(addresses.len(), nodes.len(), "a node for each page");
    assert_eq!(addresses.len(), status.len(), "an answer for each page");
    status.fill(UNANSWERED);
    let (count, pages, flag) = (addresses.len(), addresses.as_ptr(), MPOL_MF_MOVE);
    let (nodes, status) = (nodes.as_ptr(), status.as_mut_ptr());
    // SAFETY: rule 1.
    let left =
        unsafe { libc::syscall(libc::SYS_move_pages, pid, count, pages, nodes, status, flag) };
    checked(left).map(drop)
}

/// The node that each page of a process is on, or a negative errno: `ENOENT` for none.
///
/// # Errors
/// As [`move_pages`].
///
/// # Panics
/// When the lists differ in length.
pub fn places(pid: u32, addresses: &[u64], nodes: &mut [i32]) -> io::Result<()> {
    assert_eq!(addresses.len(), nodes.len(), "an answer for each page");
    nodes.fill(UNANSWERED);
    let (count, pages, none) = (addresses.len(), addresses.as_ptr(), std::ptr::null::<i32>());
    let nodes = nodes.as_mut_ptr();
    // SAFETY: rule 1; null target nodes only ask.
    let asked = unsafe { libc::syscall(libc::SYS_move_pages, pid, count, pages, none, nodes, 0) };
    checked(asked).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_process_are_where_they_were_moved_to() {
        let memory = std::hint::black_box(vec![7_u8; 16 << 12]);
        let start = (memory.as_ptr() as u64).next_multiple_of(4096);
        let addresses: Vec<u64> = (0..15).map(|page| start + page * 4096).collect();
        let pid = std::process::id();
        let (mut before, mut status) = ([0; 15], [0; 15]);
        crate::counted((true, true), || {
            places(pid, &addresses, &mut before).unwrap();
            let are_there = before.iter().all(|node| *node >= 0);
            let nodes = before.map(|node| node.max(0));
            move_pages(pid, &addresses, &nodes, &mut status).unwrap();
            (are_there, status == nodes)
        });
        assert!(memory.iter().all(|byte| *byte == 7));
        assert!(move_pages(pid, &addresses, &[4000; 15], &mut status).is_err(), "no such node");
        let nobody = places(u32::MAX >> 1, &addresses, &mut before).unwrap_err();
        assert_eq!(nobody.raw_os_error(), Some(libc::ESRCH));
    }
}
