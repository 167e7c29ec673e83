//! The machine, as the mover reaches it: its clock, a wait, and two calls.

use std::io;

use pagelab_sys::{
    memory::{move_pages, places},
    process::interrupted,
    time::monotonic_raw_ns,
};

use crate::mover::Hands;

/// How long a wait sleeps before it looks for an interrupt.
const NAP_NS: u64 = 20_000_000;

/// The machine, for a process.
pub(super) struct Kernel(pub(super) u32);

impl Hands for Kernel {
    fn now(&self) -> u64 {
        monotonic_raw_ns()
    }

    fn wait_until(&mut self, then: u64) -> bool {
        wait_until(then)
    }

    fn move_pages(
        &mut self,
        addresses: &[u64],
        nodes: &[i32],
        status: &mut [i32],
    ) -> io::Result<()> {
        move_pages(self.0, addresses, nodes, status)
    }

    fn places(&mut self, addresses: &[u64], nodes: &mut [i32]) -> io::Result<()> {
        places(self.0, addresses, nodes)
    }
}

/// Sleeps until then; `false` when somebody interrupted.
pub fn wait_until(then: u64) -> bool {
    loop {
        if interrupted() {
            return false;
        }
        let left = then.saturating_sub(monotonic_raw_ns());
        if left == 0 {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_nanos(left.min(NAP_NS)));
    }
}
