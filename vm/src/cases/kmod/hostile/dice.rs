//! Numbers that look random and are the same for the same seed.

use fastrand::Rng;

/// What a sequence of numbers decides.
pub(super) trait Dice {
    /// True once in `times`.
    fn once_in(&mut self, times: usize) -> bool;

    /// One of them, each as likely.
    fn one_of<T: Copy>(&mut self, values: &[T]) -> T;
}

impl Dice for Rng {
    fn once_in(&mut self, times: usize) -> bool {
        self.usize(..times) == 0
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.usize(..values.len())]
    }
}
