//! The hotness map: one byte for each page, or four, and nothing else that grows with memory.
//!
//! The one idea: a record holds the epoch of its oldest counted access, modulo a small number, and
//! a sweep clears every record before its epoch could be taken for a newer one. So no access that
//! is older than the window ever counts, and no record is ready for longer than that.
//!
//! An epoch is a fraction of the window. An access counts while its epoch is less than
//! [`Layout::WINDOW`] epochs old, so for at most the window and for at least all but the last epoch
//! of it. Counting starts again with the access that comes after that. The sweep goes through the
//! whole map once in [`Layout::SWEEP`] epochs, a slice for each. It may be behind by
//! [`Layout::SLACK`] epochs; an access that finds it further behind is dropped, never miscounted.
//!
//! What it relies on: a thread is not suspended inside [`HotMap::record_access`] for as long as a
//! window while its page's record stays the same. This map is not pghot's: [`pghot`] is.

mod cells;
pub mod kmigrated;
pub(crate) mod limit;
pub mod pghot;

use std::{
    fmt,
    marker::PhantomData,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use self::cells::Cells;

/// Which bits of a record mean what.
pub trait Layout: fmt::Debug + Send + Sync + 'static {
    /// Bits of a record: 8 or 32.
    const BITS: u32;
    /// Bits of the node, from bit 0 on; 0 where there is none.
    const NODE_BITS: u32;
    /// Bits of the frequency, above the node.
    const FREQUENCY_BITS: u32;
    /// Bits of the epoch, above the frequency.
    const EPOCH_BITS: u32;
    /// Epochs in which an access counts.
    const WINDOW: u64;
    /// Epochs in which the sweep comes round once.
    const SWEEP: u64;
    /// Epochs that the sweep may be behind.
    const SLACK: u64;
}

/// One byte: frequency (2 bits), epoch (5 bits), ready.
#[derive(Debug, Clone, Copy)]
pub struct Default8;

impl Layout for Default8 {
    const BITS: u32 = 8;
    const NODE_BITS: u32 = 0;
    const FREQUENCY_BITS: u32 = 2;
    const EPOCH_BITS: u32 = 5;
    const WINDOW: u64 = 16;
    const SWEEP: u64 = 10;
    const SLACK: u64 = 4;
}

/// Four bytes: node (10 bits), frequency (3 bits), epoch (14 bits), four unused, ready.
#[derive(Debug, Clone, Copy)]
pub struct Precision32;

impl Layout for Precision32 {
    const BITS: u32 = 32;
    const NODE_BITS: u32 = 10;
    const FREQUENCY_BITS: u32 = 3;
    const EPOCH_BITS: u32 = 14;
    const WINDOW: u64 = 4096;
    const SWEEP: u64 = 8192;
    const SLACK: u64 = 2048;
}

/// A time in epochs of a map, from [`HotMap::epoch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(u64);

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The node of the last accessor; 0 where the layout has none.
    pub node: u16,
    /// Accesses that count, up to the largest number that fits.
    pub frequency: u8,
    /// Whether it reached the threshold.
    pub ready: bool,
}

/// What became of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It counts; so many do now.
    Counted(u8),
    /// It counts, and with it the threshold is reached.
    Ready,
    /// The page was ready before.
    Again,
    /// It is too old, or the sweep is too far behind.
    Dropped,
}

/// A record for each page.
pub struct HotMap<L: Layout> {
    cells: Cells,
    epoch_ns: u64,
    /// The epoch that the sweep has been done for.
    swept: AtomicU64,
    sweeping: AtomicBool,
    layout: PhantomData<L>,
}

impl<L: Layout> fmt::Debug for HotMap<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HotMap")
            .field("pages", &self.cells.len())
            .field("epoch_ns", &self.epoch_ns)
            .finish_non_exhaustive()
    }
}

impl<L: Layout> HotMap<L> {
    const FREQUENCY_MAX: u64 = (1 << L::FREQUENCY_BITS) - 1;
    const EPOCH_SHIFT: u32 = L::NODE_BITS + L::FREQUENCY_BITS;
    const EPOCH_MASK: u64 = (1 << L::EPOCH_BITS) - 1;
    const READY: u64 = 1 << (L::BITS - 1);
    // A record may be as old as the window and a sweep, or ahead of the sweep by the slack, and
    // all of these must look different.
    const FITS: () = assert!(L::WINDOW + L::SWEEP + L::SLACK < 1 << L::EPOCH_BITS);

    /// A map in which no page was accessed. The window is at least 1 ns for each epoch.
    pub fn new(pages: usize, window_ns: u64) -> Self {
        let () = Self::FITS;
        Self {
            cells: Cells::new(pages, L::BITS),
            epoch_ns: (window_ns / L::WINDOW).max(1),
            swept: AtomicU64::new(0),
            sweeping: AtomicBool::new(false),
            layout: PhantomData,
        }
    }

    /// Pages.
    pub fn pages(&self) -> usize {
        self.cells.len()
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.cells.bytes()
    }

    /// The largest frequency.
    pub const fn frequency_max() -> u8 {
        // At most 3 bits.
        Self::FREQUENCY_MAX.to_le_bytes()[0]
    }

    /// The epoch of a time, and the sweep that is due by then. One call serves many accesses.
    pub fn epoch(&self, now_ns: u64) -> Epoch {
        let epoch = now_ns / self.epoch_ns;
        if epoch > self.swept.load(Ordering::Acquire) {
            self.sweep(epoch);
        }
        Epoch(epoch)
    }

    /// When an epoch is over: until then, one call of [`Self::epoch`] is enough.
    pub const fn end_ns(&self, epoch: Epoch) -> u64 {
        (epoch.0 + 1) * self.epoch_ns
    }

    /// Clears what is older than the window, slice by slice; whoever comes second does not wait.
    #[cold]
    fn sweep(&self, to: u64) {
        if self.sweeping.swap(true, Ordering::Acquire) {
            return;
        }
        let from = self.swept.load(Ordering::Acquire);
        let words = self.cells.words();
        if to > from + L::WINDOW + L::SLACK {
            // Nothing was recorded for longer than the window.
            self.cells.clear();
        } else {
            for epoch in from + 1..=to {
                let slice = usize::try_from(epoch % L::SWEEP).unwrap_or(0);
                let parts = usize::try_from(L::SWEEP).unwrap_or(1);
                let (start, end) = (words * slice / parts, words * (slice + 1) / parts);
                self.cells.retain(start, end, |record| !Self::is_old(record, epoch));
            }
        }
        if to > from {
            self.swept.store(to, Ordering::Release);
        }
        self.sweeping.store(false, Ordering::Release);
    }

    /// Epochs from a record to `epoch`, and the slack, by which records may be ahead.
    #[inline]
    fn age(record: u64, epoch: u64) -> u64 {
        (epoch + L::SLACK).wrapping_sub(record >> Self::EPOCH_SHIFT) & Self::EPOCH_MASK
    }

    /// Whether a record's access is too old to count.
    #[inline]
    fn is_old(record: u64, epoch: u64) -> bool {
        Self::age(record, epoch) >= L::WINDOW + L::SLACK
    }

    /// Records an access. No lock; a page is ready when so many accesses count as `threshold` says.
    #[inline]
    pub fn record_access(&self, page: usize, node: u16, at: Epoch, threshold: u8) -> Recorded {
        // Ages are counted from the sweep: only from there do they all look different.
        let swept = self.swept.load(Ordering::Acquire);
        if at.0 > swept + L::SLACK || at.0 + L::SLACK < swept {
            return Recorded::Dropped;
        }
        let mut how = Recorded::Dropped;
        self.cells.update_of(L::BITS, page, |old| {
            let (new, then) = Self::counted(old, node, swept, at, threshold);
            how = then;
            new
        });
        how
    }

    /// Brings the records of pages near that are about to be recorded, all at once. Only a hint.
    #[inline]
    pub fn warm(&self, pages: impl Iterator<Item = usize>) {
        self.cells.warm(pages);
    }

    /// The same for whoever has the map alone: no atomic operation.
    #[inline]
    pub fn record_alone(&mut self, page: usize, node: u16, at: Epoch, threshold: u8) -> Recorded {
        let swept = *self.swept.get_mut();
        if at.0 > swept + L::SLACK || at.0 + L::SLACK < swept {
            return Recorded::Dropped;
        }
        let mut how = Recorded::Dropped;
        self.cells.update_alone_of(L::BITS, page, |old| {
            let (new, then) = Self::counted(old, node, swept, at, threshold);
            how = then;
            new
        });
        how
    }

    /// A record with one access more.
    #[inline]
    fn counted(old: u64, node: u16, swept: u64, at: Epoch, threshold: u8) -> (u64, Recorded) {
        let new_age = swept + L::SLACK - at.0;
        let frequency = old >> L::NODE_BITS & Self::FREQUENCY_MAX;
        let old_age = Self::age(old, swept);
        let fresh = frequency == 0 || old_age >= new_age + L::WINDOW;
        let was_ready = !fresh && old & Self::READY != 0;
        let frequency = if fresh { 1 } else { (frequency + 1).min(Self::FREQUENCY_MAX) };
        // The record keeps the older of both: nothing that counts is older than it says.
        let age = if fresh { new_age } else { old_age.max(new_age) };
        let epoch = (swept + L::SLACK).wrapping_sub(age) & Self::EPOCH_MASK;
        let is_ready = was_ready || frequency >= u64::from(threshold);
        let how = match (was_ready, is_ready) {
            (true, _) => Recorded::Again,
            (false, true) => Recorded::Ready,
            (false, false) => Recorded::Counted(frequency.to_le_bytes()[0]),
        };
        let node = u64::from(node) & ((1 << L::NODE_BITS) - 1);
        let ready = if is_ready { Self::READY } else { 0 };
        (node | frequency << L::NODE_BITS | epoch << Self::EPOCH_SHIFT | ready, how)
    }

    /// What is known of a page, if anything that counts.
    #[inline]
    pub fn get(&self, page: usize, at: Epoch) -> Option<Record> {
        self.decode(self.cells.load(page), at)
    }

    fn decode(&self, record: u64, at: Epoch) -> Option<Record> {
        let frequency = record >> L::NODE_BITS & Self::FREQUENCY_MAX;
        let swept = self.swept.load(Ordering::Acquire);
        let since = at.0.saturating_sub(swept);
        if frequency == 0 || Self::age(record, swept) + since >= L::WINDOW + L::SLACK {
            return None;
        }
        let node = record & ((1 << L::NODE_BITS) - 1);
        let node = u16::try_from(node).unwrap_or(0);
        let ready = record & Self::READY != 0;
        Some(Record { node, frequency: frequency.to_le_bytes()[0], ready })
    }

    /// Takes what is known of a page out of the map.
    pub fn take(&self, page: usize, at: Epoch) -> Option<Record> {
        self.decode(self.cells.swap_zero(page), at)
    }

    /// [`Self::take`] for whoever has the map alone.
    pub fn take_alone(&mut self, page: usize, at: Epoch) -> Option<Record> {
        let record = self.cells.take_alone(page);
        self.decode(record, at)
    }
}

#[cfg(test)]
mod tests;
