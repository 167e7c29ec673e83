//! What calls of a process do to what is known of its memory.

use super::{super::calls::Call, Tally};

impl Tally {
    /// Does what a call does; how many pages that were there it gives back.
    pub(super) fn called(&mut self, pid: u32, call: Call) -> u64 {
        match call {
            Call::Advise(start, end, huge) => {
                self.places.advise(pid, start, end, huge);
                0
            }
            Call::Release(start, end) => self.blocks.take(pid, (start, end), None),
            Call::Unmap(start, end) => {
                let pages = self.blocks.take(pid, (start, end), Some(&self.places));
                self.places.unmap(pid, start, end);
                pages
            }
            Call::Break(end) => {
                let shrinks = self.places.heap_end(pid).filter(|old| *old > end);
                shrinks.map_or(0, |heap_end| self.called(pid, Call::Unmap(end, heap_end)))
            }
            Call::Thp(allowed) => {
                self.thp.insert(pid, allowed);
                0
            }
            // Of a thread, until it ends.
            Call::Stack | Call::Move(..) | Call::Moved(_) => 0,
        }
    }

    /// Memory lies at another address now, and may be longer or shorter.
    pub(super) fn moved(&mut self, pid: u32, (start, end, length): (u64, u64, u64), to: u64) {
        let kept = start.saturating_add(length).min(end);
        if kept < end {
            self.called(pid, Call::Unmap(kept, end));
        }
        let new = to..to.saturating_add(length);
        if to != start {
            self.called(pid, Call::Unmap(new.start, new.end));
            self.blocks.shift(pid, start..kept, to);
            self.blocks.take(pid, (start, kept), Some(&self.places));
        }
        self.places.relocate(pid, start..kept, new);
    }
}
