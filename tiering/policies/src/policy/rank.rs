//! Swapping: what policies with a score for each page have in common.
//!
//! The one idea: candidates come in falling order of score, victims in rising order, and a
//! candidate moves when there is room or when it beats its victim by a margin.

use super::{Move, World};

/// Adds moves for candidates of lower tiers, each into free room or against a victim.
///
/// `beats` says whether a candidate is worth its victim; the first that is not ends it.
pub(super) fn swap(
    candidates: &[u32],
    victims: &[u32],
    keep_free: u64,
    world: &World<'_>,
    mut beats: impl FnMut(u32, u32) -> bool,
    moves: &mut Vec<Move>,
) {
    let mut room = world.free.to_vec();
    let mut victims = victims.iter();
    for &page in candidates {
        let best = world.emptiest_top(&room);
        if room[best] > keep_free {
            room[best] -= 1;
            moves.push(Move { page, to: u8::try_from(best).unwrap_or(0) });
            continue;
        }
        let Some(&victim) = victims.next() else { return };
        if !beats(page, victim) {
            return;
        }
        let from = world.place[page as usize];
        let to = world.place[victim as usize];
        // The lower tier has the room that the candidate leaves, if no other.
        moves.push(Move { page: victim, to: world.below(to).unwrap_or(from) });
        moves.push(Move { page, to });
    }
}
