//! Who runs when, within a round and from round to round.
//!
//! The one idea: a drift hits everybody alike, and nobody always follows the same one. As many
//! rounds as there are rungs make a Latin square, whose rows, columns and names are drawn: each
//! rung stands once in every place. It is a function of a seed, so that a run that is resumed goes
//! on with it.

/// The order of a round of so many rungs, by their numbers.
pub fn of(seed: u64, round: u32, rungs: usize) -> Vec<usize> {
    let Ok(count) = u32::try_from(rungs.max(1)) else { return (0..rungs).collect() };
    let mixed = seed
        ^ u64::from(count).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ u64::from(round / count).wrapping_mul(0xd134_2543_de82_ef95);
    let mut drawn = fastrand::Rng::with_seed(mixed);
    let mut shuffled = || {
        let mut all: Vec<usize> = (0..rungs).collect();
        drawn.shuffle(&mut all);
        all
    };
    let [names, rows, columns] = [shuffled(), shuffled(), shuffled()];
    let row = rows.get((round % count) as usize).copied().unwrap_or(0);
    columns.iter().map(|column| names[(row + column) % rungs]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_stands_once_in_every_place(seed: u64, rungs in 1_usize..12, square in 0_u32..9) {
            let count = u32::try_from(rungs).unwrap();
            let rounds = (square * count..(square + 1) * count).map(|round| of(seed, round, rungs));
            let rounds: Vec<Vec<usize>> = rounds.collect();
            for place in 0..rungs {
                let mut there: Vec<usize> = rounds.iter().map(|round| round[place]).collect();
                there.sort_unstable();
                prop_assert_eq!(there, (0..rungs).collect::<Vec<_>>());
            }
            for mut round in rounds {
                round.sort_unstable();
                prop_assert_eq!(round, (0..rungs).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn nobody_always_follows_the_same_one() {
        let mut pairs = std::collections::BTreeMap::new();
        for round in 0..4000 {
            for pair in of(7, round, 4).windows(2) {
                *pairs.entry((pair[0], pair[1])).or_insert(0) += 1;
            }
        }
        // 12 ordered pairs, 3 neighbours a round: 1,000 each.
        assert!(pairs.len() == 12 && pairs.values().all(|n| (850..1150).contains(n)), "{pairs:?}");
    }
}
