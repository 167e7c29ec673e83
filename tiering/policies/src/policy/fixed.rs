//! Policies that observe nothing: none, everything at once, interleaving, and the oracle.
//!
//! The one idea: the ends of the scale. What observes should do better than the first three and
//! cannot do better than the last.

use super::{Move, Moved, Policy, PolicySpec, Setting, World, Young};
use crate::random::mix;

/// Moves nothing.
#[derive(Debug)]
struct Idle;

impl Policy for Idle {}

pub(super) fn none(_: &PolicySpec, _: &Setting<'_>) -> Box<dyn Policy> {
    Box::new(Idle)
}

/// Moves pages to their places once, in order of page.
#[derive(Debug)]
struct Once {
    /// Weights of the top tier and of the others; none: as much as fits.
    weights: Option<(u64, u64)>,
    decided: bool,
}

pub(super) fn all_at_once(_: &PolicySpec, _: &Setting<'_>) -> Box<dyn Policy> {
    Box::new(Once { weights: None, decided: false })
}

pub(super) fn interleave(spec: &PolicySpec, _: &Setting<'_>) -> Box<dyn Policy> {
    Box::new(Once { weights: Some((spec.count("top"), spec.count("lower"))), decided: false })
}

impl Policy for Once {
    fn decide(&mut self, world: &World<'_>, _: &mut Young<'_>, moves: &mut Vec<Move>) {
        if std::mem::replace(&mut self.decided, true) {
            return;
        }
        let mut room = world.free.to_vec();
        let mut take = |tier_is_top: bool| {
            let fits = |&node: &usize| (world.nodes[node].tier == 0) == tier_is_top;
            let nodes = (0..room.len()).filter(fits);
            // The emptiest node of the next tier with room.
            let best = nodes
                .filter(|&node| room[node] > 0)
                .min_by_key(|&node| (world.nodes[node].tier, u64::MAX - room[node]))?;
            room[best] -= 1;
            u8::try_from(best).ok()
        };
        for (page, index) in (0..).zip(0..world.place.len() as u64) {
            let wants_top = match self.weights {
                None | Some((0, 0)) => true,
                Some((top, lower)) => index % (top + lower) < top,
            };
            if world.is_top(page) != wants_top
                && let Some(to) = take(wants_top)
            {
                moves.push(Move { page, to });
            }
        }
    }
}

/// Places the pages with the most accesses to come in the top tier.
///
/// The first placement is the simulator's gift: pages are born there. Later ones, when the pattern
/// changes, go through the mover like anybody's, if they save more than they cost.
#[derive(Debug)]
struct Oracle {
    phase: Option<u64>,
}

pub(super) fn oracle(_: &PolicySpec, _: &Setting<'_>) -> Box<dyn Policy> {
    Box::new(Oracle { phase: None })
}

impl Policy for Oracle {
    fn decide(&mut self, world: &World<'_>, _: &mut Young<'_>, moves: &mut Vec<Move>) {
        let Some(future) = world.future.filter(|future| self.phase != Some(future.phase())) else {
            return;
        };
        let first = self.phase.replace(future.phase()).is_none();
        // Needs that differ by less than a percent are equal: a sequence cut off inside a lap would
        // otherwise make its first pages the best ones, side by side.
        let rough = |need: f64| f64::from_bits(need.to_bits() & !((1 << 45) - 1));
        let accesses: Vec<f64> = future.accesses().into_iter().map(rough).collect();
        let by_need = |pages: &mut Vec<u32>| {
            // Ties in a scattered order: what is accessed in turn should not be fast and slow in
            // turn.
            pages.sort_by(|&left, &right| {
                let (left_need, right_need) = (accesses[left as usize], accesses[right as usize]);
                let scattered = mix(left.into()).cmp(&mix(right.into()));
                right_need.total_cmp(&left_need).then(scattered)
            });
        };
        let mut inside: Vec<u32> = world.pages(true).collect();
        let mut outside: Vec<u32> = world.pages(false).collect();
        by_need(&mut inside);
        by_need(&mut outside);
        let mut room = world.free_top();
        let cost = if first { 0.0 } else { world.prices.move_ns };
        for page in outside {
            let need = accesses[page as usize];
            if room > 0 {
                if need <= 0.0 || need * world.prices.saved_ns < cost {
                    return;
                }
                room -= 1;
                moves.push(Move { page, to: world.target(world.place[page as usize]) });
                continue;
            }
            let Some(victim) = inside.pop() else { return };
            let gain = (need - accesses[victim as usize]) * world.prices.saved_ns;
            if gain <= 2.0 * cost || gain <= 0.0 {
                return;
            }
            // The next lower tier takes what the top tier gives: the victim's place is free before
            // the batch is over.
            let to = world.below(world.place[victim as usize]);
            let to = to.unwrap_or(world.place[page as usize]);
            moves.push(Move { page: victim, to });
            moves.push(Move { page, to: world.place[victim as usize] });
        }
    }

    fn moved(&mut self, _: u32, how: Moved, _: bool) {
        if how != Moved::Done {
            // Look again: what has not moved may be tried once more.
            self.phase = self.phase.map(|_| u64::MAX);
        }
    }
}
