#![expect(unsafe_code, reason = "mbind is in no library")]
//! Which memory node the pages of an area come from.
//!
//! The one idea: a binding says where pages are allocated and, while it lasts, that nobody moves
//! them. Taken back it leaves them where they are.

use super::Area;
use crate::SysError;

/// `MPOL_DEFAULT` of the UAPI's `mempolicy.h`, which linux-raw-sys keeps behind another feature.
const MPOL_DEFAULT: i32 = 0;
/// `MPOL_BIND`.
const MPOL_BIND: i32 = 2;

impl Area {
    /// Binds pages that are yet to be allocated to a memory node.
    ///
    /// # Errors
    /// When the node does not exist or has no memory.
    pub fn bind(&self, node: usize) -> Result<(), SysError> {
        let mask = node_mask(node);
        let bits = mask.len() * 64 + 1;
        self.each_window("mbind", format_args!("node {node}"), |at, bytes| {
            // SAFETY: the mask outlives the call and has as many bits as are announced.
            unsafe { libc::syscall(libc::SYS_mbind, at, bytes, MPOL_BIND, mask.as_ptr(), bits, 0) }
        })
    }

    /// Takes the binding back: pages stay where they are and may be moved.
    ///
    /// # Errors
    /// When the kernel refuses, which it has no reason to.
    pub fn unbind(&self) -> Result<(), SysError> {
        self.each_window("mbind", format_args!("no node"), |at, bytes| {
            let none = std::ptr::null::<u64>();
            // SAFETY: the default policy has no nodes, so that the kernel reads no mask.
            unsafe { libc::syscall(libc::SYS_mbind, at, bytes, MPOL_DEFAULT, none, 0_usize, 0) }
        })
    }
}

fn node_mask(node: usize) -> [u64; 16] {
    let mut mask = [0; 16];
    mask[node / 64 % 16] = 1 << (node % 64);
    mask
}
