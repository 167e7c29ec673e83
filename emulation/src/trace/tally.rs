//! What a trace is, in five numbers: how the copies of a trace are told to be the same one.
//!
//! The digest covers every field of every record in order, so that a trace that was read by another
//! way, or by another decoder, is known to be the same trace.

use pagelab_trace::{Halt, RecordError, Visit, op::wide, raw};
use serde::{Deserialize, Serialize};

/// Counts over the records of a trace so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Operations.
    pub ops: u64,
    /// Those that read.
    pub loads: u64,
    /// Those that write.
    pub stores: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Digest of operation, width, address and value of all of them.
    pub digest: u64,
}

/// An odd number without a pattern: 2^64 over the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Tally {
    #[inline]
    fn mix(&mut self, word: u64) {
        self.digest = (self.digest.rotate_left(5) ^ word).wrapping_mul(SPREAD);
    }

    #[inline]
    fn count(&mut self, is_store: bool, width: usize, addr: u64) {
        self.ops += 1;
        self.loads += u64::from(!is_store);
        self.stores += u64::from(is_store);
        self.bytes += raw::HEAD_BYTES as u64 + if is_store { width as u64 } else { 0 };
        // The kind stands in the high bits of a word of its own, so that no address imitates it.
        self.mix(addr ^ (1 + width as u64 + if is_store { 16 } else { 0 }) << 58);
    }
}

/// Why a tally ends before its trace does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("as many operations as were asked for")]
pub struct Enough;

/// A tally that stops in front of the record after the last one that is wanted.
#[derive(Debug)]
pub struct Counter {
    /// What was counted.
    pub tally: Tally,
    limit: u64,
}

impl Counter {
    /// Counts up to so many operations.
    pub fn up_to(limit: u64) -> Self {
        Self { tally: Tally::default(), limit }
    }

    /// Whether all that was asked for is there.
    pub fn is_full(&self) -> bool {
        self.tally.ops >= self.limit
    }

    fn room(&self) -> Result<(), Enough> {
        if self.is_full() { Err(Enough) } else { Ok(()) }
    }

    /// Counts the complete records of the next piece of a trace; returns the bytes that they take.
    ///
    /// # Errors
    /// At the first record that makes no sense.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, RecordError> {
        let start = self.tally.bytes;
        match raw::visit(bytes, start, self) {
            Ok(taken) => Ok(taken),
            // Whatever follows the last record that is wanted, it is not looked at.
            Err(Halt::Record(error)) if !self.is_full() => Err(error),
            // Nothing that was taken is longer than the piece.
            Err(_) => Ok(usize::try_from(self.tally.bytes - start).unwrap_or(bytes.len())),
        }
    }
}

impl Visit for Counter {
    type Stop = Enough;

    #[inline]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Enough> {
        self.room()?;
        self.tally.count(false, N, addr);
        Ok(())
    }

    #[inline]
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Enough> {
        self.room()?;
        self.tally.count(true, N, addr);
        self.tally.mix(wide(value));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pagelab_trace::{Op, Width, raw::encode};

    use super::*;

    fn bytes(ops: &[Op]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for op in ops {
            encode(*op, &mut bytes);
        }
        bytes
    }

    fn tally(ops: &[Op]) -> Tally {
        let mut counter = Counter::up_to(u64::MAX);
        let bytes = bytes(ops);
        assert_eq!(counter.take(&bytes), Ok(bytes.len()));
        counter.tally
    }

    #[test]
    fn every_field_of_a_record_changes_the_digest() {
        let ops = [
            Op::load(0x1000, Width::W2),
            Op::load(0x1002, Width::W2),
            Op::load(0x1000, Width::W4),
            Op::store(0x1000, Width::W2, 0),
            Op::store(0x1000, Width::W2, 1),
        ];
        let digests: std::collections::BTreeSet<u64> =
            ops.iter().map(|op| tally(&[*op]).digest).collect();
        assert_eq!(digests.len(), ops.len());
        let swapped = tally(&[ops[1], ops[0]]);
        assert_ne!(tally(&[ops[0], ops[1]]).digest, swapped.digest, "the order counts");
        assert_eq!((swapped.ops, swapped.loads, swapped.bytes), (2, 2, 20));
    }

    #[test]
    fn a_limit_ends_between_two_records() {
        let ops = [Op::load(1, Width::W1), Op::store(2, Width::W8, 3), Op::load(4, Width::W1)];
        let bytes = bytes(&ops);
        let mut counter = Counter::up_to(2);
        assert_eq!(counter.take(&bytes), Ok(28));
        assert!(counter.is_full());
        assert_eq!(counter.tally, tally(&ops[..2]));
        let mut counter = Counter::up_to(2);
        assert_eq!(counter.take(&[&bytes[..28], &[9; 10]].concat()), Ok(28));
    }

    #[test]
    fn a_bad_record_is_named_by_its_place_in_the_trace() {
        let mut counter = Counter::up_to(u64::MAX);
        let good = bytes(&[Op::load(1, Width::W1)]);
        counter.take(&good).unwrap();
        let error = counter.take(&[9; 10]).unwrap_err();
        assert_eq!(error, RecordError::Op { offset: 10, op: 9 });
    }
}
