//! A chain of multiplications: work that touches no memory and enters no kernel.
//!
//! Each turn waits for the one before it, so that what a turn takes hangs on the processor alone.

use std::hint::black_box;

/// So many turns.
#[inline(never)]
pub fn turn(turns: u64) {
    let mut word = turns | 1;
    for _ in 0..turns {
        // Opaque, so that no turn is left out or done beforehand.
        word = black_box(word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    }
    black_box(word);
}
