//! `fib`: the published trace of fast-mem that has almost no information.
//!
//! Instruction fetches of one page, and one store to the stack as the third operation: so all
//! published figures come out, those of run lengths too: one of 1, one of 2 to 3, one of the rest.
//! Offsets inside the two pages, and the value, are not published.

use crate::op::Visit;

/// Code: first page, and the one after the last.
pub(super) const TEXT: (u64, u64) = (0x11, 0x12);
/// The first instruction: the frame is made, the return address stored.
const ENTRY: u64 = 0x1_1078;
/// Fetches before the store.
const PROLOGUE: u64 = 2;
/// Fetches before the loop.
const BEFORE_LOOP: u64 = 4;
/// Fetches of the loop.
const LOOP: u64 = 12;
/// Where the return address goes.
const FRAME: u64 = 0x07ff_fff8;

/// How far it has come: fetches so far.
#[derive(Debug, Default)]
pub(super) struct Fib {
    fetches: u64,
}

impl Fib {
    /// The code before the loop, or one pass of it.
    ///
    /// # Errors
    /// What the visitor says.
    pub(super) fn step<V: Visit>(&mut self, sink: &mut V) -> Result<(), V::Stop> {
        if self.fetches < BEFORE_LOOP {
            if self.fetches == PROLOGUE {
                sink.store(FRAME, ENTRY.to_le_bytes())?;
            }
            sink.load::<2>(ENTRY + 2 * self.fetches)?;
            self.fetches += 1;
            return Ok(());
        }
        let first = ENTRY + 2 * BEFORE_LOOP;
        for addr in (first..first + 2 * LOOP).step_by(2) {
            sink.load::<2>(addr)?;
        }
        Ok(())
    }
}
