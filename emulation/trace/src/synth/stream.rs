//! A generated trace as bytes of the raw format, a piece at a time.

use super::{
    Spec,
    machine::{Cut, Limit, Machine},
};
use crate::file::Encoder;

/// Bytes of a piece, about: whole records, and whole steps of the generator.
const PIECE_BYTES: usize = 1 << 20;

/// The bytes of a trace. Pull them as pieces, by [`Stream::next_into`] or the iterator.
#[derive(Debug)]
pub struct Stream {
    machine: Machine,
    left: u64,
}

impl Stream {
    pub(super) fn new(spec: &Spec) -> Self {
        Self { machine: Machine::new(spec), left: spec.ops }
    }

    /// Replaces what is in `to` by the next piece: about a MiB of whole records. False, and
    /// nothing in it, at the end.
    pub fn next_into(&mut self, to: &mut Vec<u8>) -> bool {
        let mut encoder = Encoder::new(std::mem::take(to));
        encoder.clear();
        while self.left > 0 && encoder.bytes().len() < PIECE_BYTES {
            let mut limit = Limit::new(self.left, &mut encoder);
            match self.machine.step(&mut limit) {
                Ok(()) | Err(Cut::Full) => self.left = limit.left(),
                Err(Cut::Stop(never)) => match never {},
            }
        }
        *to = encoder.into_bytes();
        !to.is_empty()
    }
}

impl Iterator for Stream {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut piece = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
        self.next_into(&mut piece).then_some(piece)
    }
}
