//! The hotness map: four bytes for each page, and nothing else that grows with memory.
//!
//! The one idea: a record holds the epoch of its oldest counted access, modulo a small number, and
//! a sweep clears every record before its epoch could be taken for a newer one. So no access that
//! is older than the window ever counts, and no record is ready for longer than that.
//!
//! An epoch is a fraction of the window. An access counts while its epoch is less than `WINDOW`
//! epochs old, so for at most the window and for at least all but the last epoch of it. Counting
//! starts again with the access that comes after that. The sweep goes through the whole map once in
//! `SWEEP` epochs, a slice for each. It may be behind by `SLACK` epochs; an access that finds
//! it further behind is dropped, never miscounted. This map is not pghot's: [`pghot`] is.

mod cells;
pub mod kmigrated;
pub(crate) mod limit;
pub mod pghot;

// A record: node (10 bits), frequency (3 bits), epoch (14 bits), four unused, ready.
const NODE_MASK: u32 = (1 << 10) - 1;
const FREQUENCY_SHIFT: u32 = 10;
const FREQUENCY_MASK: u32 = (1 << 3) - 1;
const FREQUENCY_MAX: u8 = 7;
const EPOCH_SHIFT: u32 = 13;
const EPOCH_MASK: u64 = (1 << 14) - 1;
const READY: u32 = 1 << 31;
/// Epochs in which an access counts.
const WINDOW: u64 = 4096;
/// Epochs in which the sweep comes round once.
const SWEEP: u64 = 8192;
/// Epochs that the sweep may be behind.
const SLACK: u64 = 2048;
// A record may be as old as the window and a sweep, or ahead of the sweep by the slack, and all of
// these must look different.
const _: () = assert!(WINDOW + SWEEP + SLACK < EPOCH_MASK + 1);

/// A time in epochs of a map, from [`HotMap::epoch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(u64);

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The node of the last accessor.
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
#[derive(Debug)]
pub struct HotMap {
    records: Vec<u32>,
    epoch_ns: u64,
    /// The epoch that the sweep has been done for.
    swept: u64,
}

impl HotMap {
    /// A map in which no page was accessed. The window is at least 1 ns for each epoch.
    pub fn new(pages: usize, window_ns: u64) -> Self {
        Self { records: vec![0; pages], epoch_ns: (window_ns / WINDOW).max(1), swept: 0 }
    }

    /// The epoch of a time, and the sweep that is due by then. One call serves many accesses.
    pub fn epoch(&mut self, now_ns: u64) -> Epoch {
        let epoch = now_ns / self.epoch_ns;
        if epoch > self.swept {
            self.sweep(epoch);
        }
        Epoch(epoch)
    }

    /// When an epoch is over: until then, one call of [`Self::epoch`] is enough.
    pub const fn end_ns(&self, epoch: Epoch) -> u64 {
        (epoch.0 + 1) * self.epoch_ns
    }

    /// Clears what is older than the window, slice by slice.
    #[cold]
    fn sweep(&mut self, to: u64) {
        if to > self.swept + WINDOW + SLACK {
            // Nothing was recorded for longer than the window.
            self.records.fill(0);
        } else {
            let pages = self.records.len() as u64;
            for epoch in self.swept + 1..=to {
                let end = |slice: u64| (pages * slice / SWEEP) as usize;
                let slice = end(epoch % SWEEP)..end(epoch % SWEEP + 1);
                for record in self.records[slice].iter_mut().filter(|record| **record != 0) {
                    if age(*record, epoch) >= WINDOW + SLACK {
                        *record = 0;
                    }
                }
            }
        }
        self.swept = to;
    }

    /// Brings the records of pages near that are about to be recorded, all at once: a walk over
    /// records that lie anywhere would otherwise wait for one after the other. Only a hint, which
    /// changes nothing.
    #[inline]
    pub fn warm(&self, pages: impl Iterator<Item = usize>) {
        let records = pages.map(|page| self.records[page]);
        std::hint::black_box(records.fold(0, |sum, record| sum ^ record));
    }

    /// Records an access: a page is ready when so many count as `threshold` says.
    #[inline]
    pub fn record_access(&mut self, page: usize, node: u16, at: Epoch, threshold: u8) -> Recorded {
        // Ages are counted from the sweep: only from there do they all look different.
        let swept = self.swept;
        if at.0 > swept + SLACK || at.0 + SLACK < swept {
            return Recorded::Dropped;
        }
        let record = &mut self.records[page];
        let (new_age, old_age) = (swept + SLACK - at.0, age(*record, swept));
        let fresh = frequency(*record) == 0 || old_age >= new_age + WINDOW;
        let was_ready = !fresh && *record & READY != 0;
        let frequency = if fresh { 1 } else { (frequency(*record) + 1).min(FREQUENCY_MAX) };
        // The record keeps the older of both: nothing that counts is older than it says.
        let age = if fresh { new_age } else { old_age.max(new_age) };
        let epoch = ((swept + SLACK).wrapping_sub(age) & EPOCH_MASK) as u32;
        let is_ready = was_ready || frequency >= threshold;
        let ready = if is_ready { READY } else { 0 };
        let node = u32::from(node) & NODE_MASK;
        *record = node | u32::from(frequency) << FREQUENCY_SHIFT | epoch << EPOCH_SHIFT | ready;
        match (was_ready, is_ready) {
            (true, _) => Recorded::Again,
            (false, true) => Recorded::Ready,
            (false, false) => Recorded::Counted(frequency),
        }
    }

    /// What is known of a page, if anything that counts.
    #[inline]
    pub fn get(&self, page: usize, at: Epoch) -> Option<Record> {
        self.decode(self.records[page], at)
    }

    /// Takes what is known of a page out of the map.
    pub fn take(&mut self, page: usize, at: Epoch) -> Option<Record> {
        let record = std::mem::take(&mut self.records[page]);
        self.decode(record, at)
    }

    fn decode(&self, record: u32, at: Epoch) -> Option<Record> {
        let since = at.0.saturating_sub(self.swept);
        let counts = frequency(record) != 0 && age(record, self.swept) + since < WINDOW + SLACK;
        counts.then_some(Record {
            node: (record & NODE_MASK) as u16,
            frequency: frequency(record),
            ready: record & READY != 0,
        })
    }
}

/// Accesses that a record counted; 0 where nothing is known of its page.
const fn frequency(record: u32) -> u8 {
    (record >> FREQUENCY_SHIFT & FREQUENCY_MASK) as u8
}

/// Epochs from a record to `epoch`, and the slack, by which records may be ahead.
const fn age(record: u32, epoch: u64) -> u64 {
    (epoch + SLACK).wrapping_sub((record >> EPOCH_SHIFT) as u64) & EPOCH_MASK
}

#[cfg(test)]
mod tests;
