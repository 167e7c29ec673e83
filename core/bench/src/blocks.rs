//! Blocks of two arms: who comes first in each, and which cells get more of them.
//!
//! The one idea: a block is one process of each arm, in an order that is drawn. Of every four
//! blocks of a cell two begin with the one arm and two with the other, in one of the six ways: so
//! a drift hits both alike, whatever comes back after some time finds no rhythm to fall in with,
//! and nobody is always the first. The order is a function of a seed, the cell and the number of
//! the block, so that a run that is resumed goes on with it.
//!
//! After a screen of all cells, [`round`] gives more blocks to those that are open. It knows no
//! clock and no verdict: it is told what is left of the time and what each cell needs.

/// So many blocks are balanced.
pub const BALANCED: u32 = 4;

/// The ways to have two blocks of four begin with the second arm.
const WAYS: [[usize; BALANCED as usize]; 6] =
    [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0]];

/// Which of two arms is the first in a block of a cell.
pub fn first(seed: u64, cell: u32, block: u32) -> usize {
    // Far apart, so that neighbours draw from streams that have nothing in common.
    let mixed = seed
        ^ u64::from(cell).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ u64::from(block / BALANCED).wrapping_mul(0xd134_2543_de82_ef95);
    let mut drawn = fastrand::Rng::with_seed(mixed);
    WAYS[drawn.usize(..WAYS.len())][(block % BALANCED) as usize]
}

/// A cell between two rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Blocks that it has.
    pub blocks: u32,
    /// Nanoseconds that one more takes.
    pub block_ns: u64,
    /// Blocks that it needs in all until it is decided; `None` where it is, or never will be.
    pub needs: Option<u32>,
}

/// How many more blocks each cell gets within so much time, the one that is decided soonest first:
/// as many again as it has, whatever it is said to need. What that is, is not known well while it
/// has few; and where nobody chooses when to look by what was seen, looking again costs what
/// [`pagelab_record::verdict::judge`] takes for it, and no more.
pub fn round(cells: &[Cell], left_ns: u64) -> Vec<(usize, u32)> {
    let wanted = |cell: &Cell| Some(cell.needs?.saturating_sub(cell.blocks).max(1));
    let mut open: Vec<(u64, usize)> = cells
        .iter()
        .enumerate()
        .filter_map(|(index, cell)| {
            let wanted = wanted(cell)?;
            Some((cell.block_ns.saturating_mul(wanted.into()), index))
        })
        .collect();
    open.sort_unstable();
    let mut left_ns = left_ns;
    let mut round = Vec::new();
    for (_, index) in open {
        let Cell { blocks, block_ns, .. } = cells[index];
        let affordable = u32::try_from(left_ns / block_ns.max(1)).unwrap_or(u32::MAX);
        let affordable = affordable - affordable % BALANCED;
        let more = blocks.max(1).next_multiple_of(BALANCED).min(affordable);
        if more > 0 {
            left_ns -= block_ns.saturating_mul(more.into());
            round.push((index, more));
        }
    }
    round
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Who is the first in each block.
    fn firsts(seed: u64, cell: u32, blocks: u32) -> Vec<usize> {
        (0..blocks).map(|block| first(seed, cell, block)).collect()
    }

    proptest! {
        #[test]
        fn of_every_four_two_begin_with_each_arm(seed: u64, cell: u32, blocks in 1_u32..200) {
            let firsts = firsts(seed, cell, blocks);
            for four in firsts.chunks_exact(BALANCED as usize) {
                prop_assert_eq!(four.iter().sum::<usize>(), 2);
            }
            let second = firsts.iter().sum::<usize>();
            prop_assert!(second.abs_diff(firsts.len() - second) <= 2);
        }

        #[test]
        fn the_order_is_that_of_the_seed_wherever_a_run_goes_on(seed: u64, cell: u32, from: u32) {
            let from = from % 1000;
            let again = (from..from + 9).map(|block| first(seed, cell, block));
            let again: Vec<usize> = again.collect();
            prop_assert_eq!(&firsts(seed, cell, from + 9)[from as usize..], &again);
        }

        #[test]
        fn a_round_keeps_within_the_time_and_gives_nothing_to_what_is_decided(
            cells in prop::collection::vec(
                (4_u32..200, 1_u64..1000, prop::option::of(1_u32..9999)),
                0..20,
            ),
            left in 0_u64..100_000,
        ) {
            let cell = |&(blocks, block_ns, needs)| Cell { blocks, block_ns, needs };
            let cells: Vec<Cell> = cells.iter().map(cell).collect();
            let round = round(&cells, left);
            let costs = round.iter().map(|&(at, more)| cells[at].block_ns * u64::from(more));
            let cost: u64 = costs.sum();
            prop_assert!(cost <= left);
            for &(at, more) in &round {
                prop_assert!(cells[at].needs.is_some() && more > 0 && more % BALANCED == 0);
                prop_assert!(more <= cells[at].blocks.next_multiple_of(BALANCED));
            }
        }
    }

    #[test]
    fn every_way_comes_as_often_and_nothing_repeats() {
        // Three standard deviations of 600 draws of one in six are 27.
        for of in [|n| first(n, 0, 0), |n| first(7, u32::try_from(n).unwrap(), 0)] {
            let second = (0..600_u64).filter(|n| of(*n) == 1).count();
            assert!((263..=337).contains(&second), "{second}");
        }
        let mut ways = std::collections::BTreeMap::new();
        for four in firsts(7, 3, 2400).chunks_exact(4) {
            *ways.entry(four.to_vec()).or_insert(0) += 1;
        }
        assert!(
            ways.len() == 6 && ways.values().all(|count| (70..=130).contains(count)),
            "{ways:?}"
        );
        // No arm has a rhythm: the first of a block says nothing of the first of any later one but
        // those of its own four.
        let firsts = firsts(11, 0, 4000);
        for lag in 4..40 {
            let same =
                firsts.iter().zip(&firsts[lag..]).filter(|(one, other)| one == other).count();
            let share = same as f64 / (firsts.len() - lag) as f64;
            assert!((0.46..0.54).contains(&share), "after {lag}: {share}");
        }
    }
}
