#![expect(unsafe_code, reason = "mbind has no safe wrapper")]
//! Which memory node the pages of an area lie on: bound, gathered there, or left to the kernel.
//!
//! The one idea: a binding decides where pages are allocated, and while it lasts the kernel neither
//! marks them for hint faults nor moves them; so memory that is to be moved is placed by a binding
//! that is then taken back.
//!
//! Rule: these calls change where memory lies and nothing about its contents.

use super::Area;
use crate::SysError;

/// Of the UAPI's `mempolicy.h`, which linux-raw-sys keeps behind another feature.
const MPOL_DEFAULT: i32 = 0;
const MPOL_BIND: i32 = 2;
const MPOL_MF_MOVE: i32 = 2;

impl Area {
    /// Binds pages that are yet to be allocated to a memory node.
    ///
    /// # Errors
    /// When the node does not exist or has no memory.
    pub fn bind(&self, node: usize) -> Result<(), SysError> {
        self.bind_with(node, 0)
    }

    /// The same, and moves there what lies elsewhere and only this process has mapped.
    ///
    /// # Errors
    /// As [`Area::bind`].
    pub fn gather(&self, node: usize) -> Result<(), SysError> {
        self.bind_with(node, MPOL_MF_MOVE)
    }

    fn bind_with(&self, node: usize, flags: i32) -> Result<(), SysError> {
        let mask = node_mask(node);
        let bits = mask.len() * 64 + 1;
        let on = format_args!("node {node}, flags {flags}");
        self.each_window("mbind", on, |at, bytes| {
            let mask = mask.as_ptr();
            // SAFETY: the mask outlives the call and has as many bits as are announced.
            unsafe { libc::syscall(libc::SYS_mbind, at, bytes, MPOL_BIND, mask, bits, flags) }
        })
    }

    /// Takes a binding back: pages stay where they are, and the kernel may mark and move them.
    ///
    /// # Errors
    /// When the kernel was built without NUMA.
    pub fn unbind(&self) -> Result<(), SysError> {
        let none = std::ptr::null::<libc::c_ulong>();
        self.each_window("mbind", format_args!("no policy"), |at, bytes| {
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
