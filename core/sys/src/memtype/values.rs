//! What the words must hold: word `i` of round `k` holds `i + k`, wrapping.
//!
//! Every word differs from its neighbours and from itself a round earlier, so that a store that did
//! not happen, or that is still under way, shows. Sums are known in closed form; they say that
//! something is wrong, and [`wrong_words`] says how much. All of this stays outside the clock.

use super::{Plot, share::Share};

/// The sum of `words` words in `round`, without the one that is skipped.
pub fn expected_sum(words: u64, round: u64, skip: Option<u64>) -> u64 {
    let all = triangle(words).wrapping_add(words.wrapping_mul(round));
    match skip {
        Some(word) if word < words => all.wrapping_sub(word.wrapping_add(round)),
        _ => all,
    }
}

/// The sum that `reads` passes over the words of `round` give, when word `skip.0` holds `skip.1`.
pub fn expected_read_sum(words: u64, round: u64, reads: u64, skip: Option<(u64, u64)>) -> u64 {
    let pass = expected_sum(words, round, skip.map(|(word, _)| word));
    let pass = match skip {
        Some((word, value)) if word < words => pass.wrapping_add(value),
        _ => pass,
    };
    pass.wrapping_mul(reads)
}

/// `0 + 1 + … + (words - 1)`; the even one of the factors is halved first, so that wrapping is
/// exact.
fn triangle(words: u64) -> u64 {
    match words {
        0 => 0,
        _ if words.is_multiple_of(2) => (words / 2).wrapping_mul(words - 1),
        _ => words.wrapping_mul((words - 1) / 2),
    }
}

/// Words of a plot that do not hold what `round` stored there.
///
/// # Panics
/// When the word to be skipped lies outside the plot.
pub fn wrong_words(plot: &Plot, round: u64, skip: Option<u64>) -> u64 {
    Share::of(plot, 0, 1, skip).wrong_words(round)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn brute(words: u64, round: u64, skip: Option<u64>) -> u64 {
        let words = (0..words).filter(|word| Some(*word) != skip);
        words.fold(0, |sum, word| sum.wrapping_add(word.wrapping_add(round)))
    }

    proptest! {
        #[test]
        fn sums_agree_with_adding_up(
            words in 0_u64..3000,
            round in any::<u64>(),
            skip in proptest::option::of(0_u64..3000),
            value in any::<u64>(),
            reads in 0_u64..60,
        ) {
            prop_assert_eq!(expected_sum(words, round, skip), brute(words, round, skip));
            let held = skip.filter(|word| *word < words).map_or(0, |_| value);
            let pass = brute(words, round, skip).wrapping_add(held);
            let sum = (0..reads).fold(0_u64, |sum, _| sum.wrapping_add(pass));
            let skip = skip.map(|word| (word, value));
            prop_assert_eq!(expected_read_sum(words, round, reads, skip), sum);
        }
    }

    #[test]
    fn the_triangle_wraps_as_adding_up_would() {
        // n (n - 1) / 2 mod 2^64 from the exact value.
        for words in [1_u64 << 33, (1 << 33) + 1, (1 << 40) - 1] {
            let exact = u128::from(words) * u128::from(words - 1) / 2;
            assert_eq!(u128::from(triangle(words)), exact % (1 << 64));
        }
    }

    /// The published log: 16 MiB, 50 rounds, and a read sum that starts from the last verification.
    #[test]
    fn the_published_read_sums_are_these() {
        let words = (16 << 20) / 8;
        let sum = |skip: Option<(u64, u64)>| {
            expected_sum(words, 49, skip.map(|(word, _)| word))
                .wrapping_add(expected_read_sum(words, 49, 50, skip))
        };
        assert_eq!(sum(None), 0x6601_3530_0000);
        assert_eq!(sum(Some((511, 49))), 0x6601_352f_9a02);
    }
}
