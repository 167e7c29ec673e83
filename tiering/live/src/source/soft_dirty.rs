//! Soft-dirty bits: which pages were stored to since the last pass.
//!
//! The one idea: a pass reads all bits, then clears them all. A store between the two is lost: to
//! a page that is hot it happens again. The first pass finds bits of nobody knows when, and calls
//! nothing used.

use std::ops::Range;

use pagelab_sys::{
    machine::{Tree, rights::is_root},
    memory::{Stretch, Walk, clear_written, notes_stores},
};

use super::{Lack, Pages};
use crate::target::Refused;

#[derive(Debug)]
struct SoftDirty {
    pid: u32,
    is_armed: bool,
}

pub(super) fn probe(_: &Tree) -> Result<(), Lack> {
    let config = "a kernel with CONFIG_MEM_SOFT_DIRTY";
    match notes_stores() {
        Ok(true) if is_root() => Ok(()),
        Ok(true) => Err(Lack::new("moving pages of other processes is for root", "sudo")),
        Ok(false) => Err(Lack::new("this kernel does not note stores in soft-dirty bits", config)),
        Err(why) => Err(Lack::new(format!("/proc/self/clear_refs: {why}"), config)),
    }
}

pub(super) fn open(_: &Tree, pid: u32) -> Box<dyn Pages> {
    Box::new(SoftDirty { pid, is_armed: false })
}

impl Pages for SoftDirty {
    fn pass(
        &mut self,
        mappings: &[Range<u64>],
        found: &mut dyn FnMut(Stretch),
    ) -> Result<(), Refused> {
        let refused = |why| Refused::of(self.pid, why);
        let mut walk = Walk::of(self.pid).map_err(refused)?;
        let is_armed = self.is_armed;
        for range in mappings {
            walk.each(range.clone(), &mut |stretch| {
                found(Stretch { written: stretch.written && is_armed, ..stretch });
            })
            .map_err(refused)?;
        }
        clear_written(self.pid).map_err(refused)?;
        self.is_armed = true;
        Ok(())
    }
}
