//! Which units are worth it: most of the gain for little memory.
//!
//! The one idea: the least memory that holds so much gain is a knapsack; taken by gain for each
//! byte, best first, it is solved but for one unit, and where that one could be cut, what is held
//! would be the least that any choice can do: so the bound is told with the choice. What comes is
//! less than what is promised now and then, so whatever else fits into little memory is taken too.

use pagelab_record::units::whole;

/// What a unit promises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Promise {
    /// Time that would be saved; what is lost is below 0.
    pub gain_ns: f64,
    /// Bytes that would be held and never touched.
    pub extra: u64,
    /// Bytes that would be held in huge pages and are touched.
    pub touched: u64,
}

/// What was chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// The units, by number, in their order.
    pub chosen: Vec<usize>,
    /// Every unit that gains.
    pub gains: Vec<usize>,
    /// No choice of as much gain as was to be had holds less than this for nothing.
    pub bound: u64,
}

/// The share of the gain that is to be had.
pub const SHARE: f64 = 0.9;
/// Of what all that gain would hold for nothing, so much is little, where it brings a hundredth of
/// the gain and more.
const LITTLE: f64 = 0.4;
const WORTH: f64 = 0.01;
/// One of so many bytes for nothing is as good as none.
const FREE: u64 = 64;

/// Chooses units that have so much of all gain for the least memory.
pub fn choose(promises: &[Promise], share: f64) -> Choice {
    let of = |at: usize| promises[at];
    let gains: Vec<usize> = (0..promises.len()).filter(|at| of(*at).gain_ns > 0.0).collect();
    let all: f64 = gains.iter().map(|at| of(*at).gain_ns).sum();
    let wanted = all * share;
    let mut best = gains.clone();
    let rate = |at: usize| of(at).gain_ns / (of(at).extra as f64).max(1e-9);
    best.sort_by(|one, other| rate(*other).total_cmp(&rate(*one)));
    let (mut had, mut bound, mut chosen) = (0.0, 0.0, Vec::new());
    for at in &best {
        if had >= wanted {
            break;
        }
        let Promise { gain_ns, extra, .. } = of(*at);
        bound += extra as f64 * ((wanted - had) / gain_ns).min(1.0);
        had += gain_ns;
        chosen.push(*at);
    }
    // The last one may have made an earlier one needless.
    for at in chosen.clone().into_iter().rev() {
        if had - of(at).gain_ns >= wanted {
            had -= of(at).gain_ns;
            chosen.retain(|other| *other != at);
        }
    }
    let held = |units: &[usize]| units.iter().map(|at| of(*at).extra).sum::<u64>();
    let (mut taken, held_by_all) = (held(&chosen), held(&gains));
    for at in best.into_iter().filter(|at| !chosen.contains(at)).collect::<Vec<_>>() {
        let Promise { extra, touched, gain_ns } = of(at);
        let is_free = extra <= touched / FREE;
        let is_little = (taken + extra) as f64 <= held_by_all as f64 * LITTLE;
        if is_free || is_little && gain_ns >= all * WORTH {
            taken += extra;
            chosen.push(at);
        }
    }
    chosen.sort_unstable();
    Choice { chosen, gains, bound: whole(bound.floor()) }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn promise((gain, extra): (i32, u32)) -> Promise {
        Promise { gain_ns: gain.into(), extra: extra.into(), touched: 0 }
    }

    #[test]
    fn the_dense_ones_are_chosen_and_the_sparse_one_is_not() {
        let all = [(900, 0), (60, 1 << 20), (40, 1 << 24), (-5, 1 << 26)].map(promise);
        let choice = choose(&all, SHARE);
        assert_eq!((choice.chosen, choice.gains), (vec![0, 1], vec![0, 1, 2]), "1 of 17 is little");
        assert_eq!(choice.bound, 0);
    }

    #[test]
    fn what_costs_nothing_is_taken_too() {
        let mut all = [(900, 0), (60, 100), (40, 100)].map(promise);
        all[2].touched = 6400;
        assert_eq!(choose(&all, SHARE).chosen, [0, 2]);
        assert_eq!(choose(&[], SHARE), Choice::default());
    }

    #[test]
    fn what_fits_into_little_memory_is_taken_too() {
        let all = [(950, 100), (30, 100), (15, 100), (5, 300)].map(promise);
        assert_eq!(choose(&all, SHARE).chosen, [0, 1], "200 of 600 are little, 300 are not");
        let all = [(950, 100), (5, 10), (45, 900)].map(promise);
        assert_eq!(choose(&all, SHARE).chosen, [0], "what brings nothing is not worth little");
    }

    fn sums(all: &[Promise], chosen: &[usize]) -> (f64, u64) {
        let gain = chosen.iter().map(|at| all[*at].gain_ns).sum();
        (gain, chosen.iter().map(|at| all[*at].extra).sum())
    }

    proptest! {
        #[test]
        fn a_choice_has_its_gain_and_no_choice_is_below_the_bound(
            all in vec((-50_i32..1000, 0_u32..1000), 1..9),
            percent in 1_u32..=100,
        ) {
            let all: Vec<Promise> = all.into_iter().map(promise).collect();
            let share = f64::from(percent) / 100.0;
            let choice = choose(&all, share);
            prop_assert!(choice.chosen.iter().all(|at| choice.gains.contains(at)));
            let (whole, _) = sums(&all, &choice.gains);
            let (gain, extra) = sums(&all, &choice.chosen);
            prop_assert!(gain >= whole * share - 1e-6);
            // Of every other choice of as much gain: none is cheaper than the bound.
            let subsets = 0_u32..1 << all.len();
            let least = subsets.filter_map(|set| {
                let chosen: Vec<usize> = (0..all.len()).filter(|at| set >> at & 1 == 1).collect();
                let (gain, extra) = sums(&all, &chosen);
                (gain >= whole * share).then_some(extra)
            });
            let least = least.min().unwrap_or(0);
            prop_assert!(choice.bound <= least && least <= extra, "{choice:?} {least} {extra}");
        }
    }
}
