//! Demotion by age and watermark, as reclaim does it.
//!
//! The one idea: a clock. When a top-tier node has less free than its low watermark, a hand goes
//! over its pages; who was accessed since the hand was here stays, who was not goes to the next
//! lower tier, until the high watermark is met. Where nearly everything is young, pressure takes
//! what the hand meets.

use super::{Move, World, Young};
use crate::{spec::Parameter, whole};

/// The switch that policies of the kernel have.
pub(super) const DEMOTE: Parameter =
    Parameter::flag("demote", "1: reclaim demotes, as with numa/demotion_enabled", 1.0);

/// Pages that are looked at for each that is wanted, before young ones are taken too.
const EFFORT: u64 = 4;

/// The hand of the clock.
#[derive(Debug, Clone)]
pub(super) struct Reclaim {
    /// Watermarks as shares of a node.
    low: f64,
    high: f64,
    hand: u32,
    on: bool,
}

impl Reclaim {
    pub(super) const fn new(low: f64, high: f64, on: bool) -> Self {
        Self { low, high, hand: 0, on }
    }

    /// The kernel's scale: a half and one percent of a node.
    pub(super) const fn kernel(on: bool) -> Self {
        Self::new(0.005, 0.01, on)
    }

    /// Adds demotions where a node has too little free, so that `wanted` more pages fit.
    pub(super) fn run(
        &mut self,
        world: &World<'_>,
        wanted: u64,
        young: &mut Young<'_>,
        moves: &mut Vec<Move>,
    ) {
        if !self.on || world.place.is_empty() {
            return;
        }
        for node in (0..world.nodes.len()).filter(|&node| world.nodes[node].tier == 0) {
            let free = world.free[node];
            let total = world.nodes[node].pages;
            let part = |share: f64| whole(total as f64 * share);
            if free >= part(self.low) + wanted {
                continue;
            }
            let Ok(node) = u8::try_from(node) else { continue };
            let need = (part(self.high) + wanted).saturating_sub(free);
            self.demote(node, need.min(total), world, young, moves);
        }
    }

    fn demote(
        &mut self,
        node: u8,
        need: u64,
        world: &World<'_>,
        young: &mut Young<'_>,
        moves: &mut Vec<Move>,
    ) {
        let Some(to) = world.below(node) else { return };
        let pages = world.place.len() as u64;
        let (mut left, mut looked, mut passed) = (need.min(world.free[usize::from(to)]), 0, 0);
        while left > 0 && passed < pages {
            let page = self.hand;
            self.hand = if u64::from(page) + 1 == pages { 0 } else { page + 1 };
            passed += 1;
            if world.place[page as usize] != node {
                continue;
            }
            looked += 1;
            if looked <= EFFORT * need && young(page) {
                continue;
            }
            left -= 1;
            moves.push(Move { page, to });
        }
    }
}
