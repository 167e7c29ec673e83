//! Ranks by Zipf's law, for any number of items: rank `k` is drawn in proportion to `1 / k^s`.
//!
//! The one idea: the first ranks have a bin each; behind them a bin spans so few ranks that their
//! weights differ by less than a half percent (of `s` = 1), so that a table of some thousand bins
//! serves 2^52 items. Powers are computed in whole numbers: what the standard library gives for
//! `powf` differs between machines.
#![expect(clippy::cast_possible_truncation, reason = "shifted into range, as the comments say")]

use super::random::Random;

/// Ranks that have a bin of their own.
const EXACT: u64 = 1024;
/// Behind those, a bin spans so small a part of its first rank.
const SPAN: u64 = 256;
/// The parts of one of an exponent.
const MILLION: u64 = 1_000_000;

/// A table to draw ranks from, by Walker's alias method.
#[derive(Debug, Clone)]
pub(super) struct Zipf {
    bins: Vec<Bin>,
}

#[derive(Debug, Clone, Copy)]
struct Bin {
    first: u64,
    count: u64,
    /// This bin is kept when a random number is below it.
    keep: u64,
    /// The bin that is taken otherwise.
    alias: usize,
}

impl Zipf {
    /// A table for ranks `0..items`; `items` is not 0, the exponent is in millionths.
    pub(super) fn new(items: u64, exponent: u64) -> Self {
        let mut bins = Vec::new();
        let mut weights = Vec::new();
        let mut first = 0;
        while first < items {
            let span = if first < EXACT { 1 } else { first / SPAN };
            let count = span.min(items - first);
            let middle = first + count.div_ceil(2);
            weights.push(u128::from(count) * u128::from(power(middle, exponent)));
            bins.push(Bin { first, count, keep: u64::MAX, alias: bins.len() });
            first += count;
        }
        fill(&mut bins, &weights);
        Self { bins }
    }

    /// A rank; 0 is the most frequent one.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let at = random.below(self.bins.len() as u64);
        let mut bin = &self.bins[usize::try_from(at).unwrap_or(0)];
        if random.next() >= bin.keep {
            bin = &self.bins[bin.alias];
        }
        if bin.count == 1 { bin.first } else { bin.first + random.below(bin.count) }
    }
}

/// Vose's way of filling an alias table.
fn fill(bins: &mut [Bin], weights: &[u128]) {
    let total: u128 = weights.iter().sum();
    // What follows multiplies by the number of bins and by 2^64: 64 bits of weight are enough.
    let shift = (u128::BITS - total.leading_zeros()).saturating_sub(48);
    let one: u128 = weights.iter().map(|weight| weight >> shift).sum();
    let parts = bins.len() as u128;
    let mut left: Vec<u128> = weights.iter().map(|weight| (weight >> shift) * parts).collect();
    let (mut poor, mut rich): (Vec<usize>, Vec<usize>) =
        (0..bins.len()).partition(|&at| left[at] < one);
    while let (Some(needy), Some(&giver)) = (poor.pop(), rich.last()) {
        bins[needy].keep = u64::try_from((left[needy] << 64) / one).unwrap_or(u64::MAX);
        bins[needy].alias = giver;
        left[giver] -= one - left[needy];
        if left[giver] < one {
            rich.pop();
            poor.push(giver);
        }
    }
}

/// `2^62 / rank^exponent`, the exponent in millionths; `rank` is not 0.
fn power(rank: u64, exponent: u64) -> u64 {
    // In parts of 2^40: log2 of the rank, times the exponent.
    let scaled = u128::from(log2(rank)) * u128::from(exponent) / u128::from(MILLION);
    let (whole, part) = ((scaled >> 40) as u64, (scaled & ((1 << 40) - 1)) as u64);
    if whole >= 62 {
        return 0;
    }
    // 2^-(whole + part) = 2^(1 - part) / 2^(whole + 1), and 1 - part is in 0..=1.
    exp2((1 << 40) - part) >> (whole + 1)
}

/// log2 of a rank in parts of 2^40: the bits behind the point come from repeated squaring.
fn log2(rank: u64) -> u64 {
    let whole = u64::from(rank.ilog2());
    let mut value = rank << rank.leading_zeros(); // in parts of 2^63, from 1 to below 2
    let mut part = 0;
    for _ in 0..40 {
        let square = u128::from(value) * u128::from(value);
        let carry = (square >> 127) as u64;
        value = (square >> (63 + carry)) as u64;
        part = part << 1 | carry;
    }
    whole << 40 | part
}

/// 2 to a power from 0 to 1 in parts of 2^40; the result is in parts of 2^62.
fn exp2(power: u64) -> u64 {
    let mut result: u128 = 1 << 62;
    let mut factor: u128 = 1 << 63; // 2^1, then 2^(1/2), 2^(1/4)... in parts of 2^62
    for bit in (0..=40).rev() {
        if power >> bit & 1 == 1 {
            result = (result * factor) >> 62;
        }
        factor = (factor << 62).isqrt();
    }
    result as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_those_of_the_library() {
        for (rank, exponent) in [(1, 990_000), (2, 990_000), (7, 500_000), (1 << 40, 1_200_000)] {
            let expected = (rank as f64).powf(-(exponent as f64) / 1e6);
            let got = power(rank, exponent) as f64 / (1_u64 << 62) as f64;
            assert!((got / expected - 1.0).abs() < 1e-6, "{rank}^-{exponent}: {got} {expected}");
        }
        assert_eq!(power(1, 990_000), 1 << 62);
        assert_eq!(power(1 << 60, 4_000_000), 0);
    }

    #[test]
    fn ranks_are_drawn_by_their_law() {
        const DRAWS: u64 = 1 << 18;
        for (items, exponent) in [(10, 0), (100, 990_000), (5000, 1_200_000)] {
            let zipf = Zipf::new(items, exponent);
            let mut random = Random::new(1);
            let mut counts = vec![0_u64; usize::try_from(items).unwrap()];
            for _ in 0..DRAWS {
                counts[usize::try_from(zipf.draw(&mut random)).unwrap()] += 1;
            }
            let weight = |rank: u64| ((rank + 1) as f64).powf(-(exponent as f64) / 1e6);
            let total: f64 = (0..items).map(weight).sum();
            for rank in [0, 1, 4, 9] {
                let expected = weight(rank) / total * DRAWS as f64;
                let got = counts[usize::try_from(rank).unwrap()] as f64;
                let error = (got - expected).abs() / expected.sqrt();
                assert!(error < 5.0, "{items} {exponent} rank {rank}: {got} for {expected}");
            }
        }
    }

    #[test]
    fn many_items_take_a_small_table() {
        let zipf = Zipf::new(1 << 52, 990_000);
        assert!(zipf.bins.len() < 10_000);
        let last = zipf.bins.last().unwrap();
        assert_eq!(last.first + last.count, 1 << 52);
        assert!(zipf.bins.windows(2).all(|pair| pair[0].first + pair[0].count == pair[1].first));
    }
}
