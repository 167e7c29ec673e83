//! Where every page is, and what share of the traffic goes where.
//!
//! The one idea: shares change by one page's weight when one page moves, so they are kept, not
//! counted. A share is of a class: own top-tier memory, each lower tier, top-tier memory of other
//! processors.

use super::{
    scenario::{Placement, Tiers},
    work::Pattern,
};
use crate::{
    policy::{Node, PageSet},
    random::Random,
};

/// The node of each page, and sums over all of them.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) place: Vec<u8>,
    /// Which of them are in a lower tier.
    pub(super) below: PageSet,
    pub(super) nodes: Vec<Node>,
    pub(super) free: Vec<u64>,
    shares: Vec<f64>,
    /// Nodes whose processors run the program.
    accessors: Vec<u8>,
    locality: f64,
}

impl Places {
    pub(super) fn new(tiers: &Tiers, pages: u32) -> Self {
        let nodes = tiers.nodes.clone();
        let mut free: Vec<u64> = nodes.iter().map(|node| node.pages).collect();
        let order = turns(&tiers.start, nodes.len());
        let mut turn = order.iter().cycle();
        let mut place: Vec<u8> = Vec::with_capacity(pages as usize);
        while place.len() < pages as usize {
            let wanted = usize::from(*turn.next().unwrap_or(&0));
            let mut from_wanted = (wanted..nodes.len()).chain(0..wanted);
            let node = from_wanted.find(|&node| free[node] > 0).unwrap_or(wanted);
            // Where nobody else has a turn, a node gets all that it has room for.
            let most = if order.len() == 1 { free[node].max(1) } else { 1 };
            let run = most.min(u64::from(pages) - place.len() as u64);
            free[node] = free[node].saturating_sub(run);
            place.extend((0..run).map(|_| u8::try_from(node).unwrap_or(u8::MAX)));
        }
        let below = place.iter().map(|&node| nodes[usize::from(node)].tier > 0).collect();
        let lowest = nodes.iter().map(|node| node.tier).max().unwrap_or(0);
        let shares = vec![0.0; usize::from(lowest) + 2];
        let accessors = (0..).zip(&nodes).filter(|(_, node)| node.cpus).map(|(at, _)| at).collect();
        Self { place, below, nodes, free, shares, accessors, locality: tiers.locality }
    }

    /// Adds up all shares, by the weights of the present stretch.
    pub(super) fn recount(&mut self, pattern: &Pattern) {
        let mut shares = vec![0.0; self.shares.len()];
        for (page, &node) in (0..).zip(&self.place) {
            self.spread(page, node, pattern.weight(page), &mut shares);
        }
        self.shares = shares;
    }

    /// Shares of the traffic by class.
    pub(super) fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Adds `weight` of a page on a node to the classes that it counts for.
    #[inline]
    pub(super) fn spread(&self, page: u32, node: u8, weight: f64, shares: &mut [f64]) {
        add(shares, self.class(page, node), weight);
    }

    /// The class of a page on a node, and the part of its accesses that is of that class; the rest
    /// is remote.
    #[inline]
    fn class(&self, page: u32, node: u8) -> (usize, f64) {
        let Node { tier, cpus, .. } = self.nodes[usize::from(node)];
        let own = match self.accessors.as_slice() {
            _ if tier > 0 => 1.0,
            [] => 1.0,
            [only] => f64::from(u8::from(*only == node)),
            _ if self.home(page) == node => self.locality,
            all if cpus => (1.0 - self.locality) / (all.len() - 1) as f64,
            _ => 0.0,
        };
        (usize::from(tier), own)
    }

    /// Moves a page that has this weight; the target has room.
    #[inline]
    pub(super) fn move_page(&mut self, page: u32, to: u8, weight: f64) {
        let from = self.place[page as usize];
        let (left, entered) = (self.class(page, from), self.class(page, to));
        add(&mut self.shares, left, -weight);
        add(&mut self.shares, entered, weight);
        self.free[usize::from(from)] += 1;
        self.free[usize::from(to)] -= 1;
        self.place[page as usize] = to;
        self.below.set(page, self.nodes[usize::from(to)].tier > 0);
    }

    pub(super) fn tier(&self, page: u32) -> u8 {
        self.nodes[usize::from(self.place[page as usize])].tier
    }

    /// Whether a page is in the top tier.
    #[inline]
    pub(super) fn is_top(&self, page: u32) -> bool {
        !self.below.has(page)
    }

    /// Pages of each node.
    pub(super) fn placed(&self) -> Vec<u64> {
        self.nodes.iter().zip(&self.free).map(|(node, free)| node.pages - free).collect()
    }

    /// The node whose threads access a page most.
    fn home(&self, page: u32) -> u8 {
        let at = page as usize * self.accessors.len() / self.place.len();
        self.accessors[at]
    }

    /// The node that all accesses come from, where it is one.
    pub(super) fn only_accessor(&self) -> Option<u8> {
        match self.accessors.as_slice() {
            [] => Some(0),
            [only] => Some(*only),
            _ => None,
        }
    }

    /// The node that an access comes from.
    #[inline]
    pub(super) fn accessor(&self, page: u32, random: &mut Random) -> u8 {
        match self.accessors.as_slice() {
            [] => 0,
            [only] => *only,
            all => {
                let home = self.home(page);
                if random.chance(self.locality) {
                    return home;
                }
                let others = u32::try_from(all.len() - 1).unwrap_or(1);
                let other = all[random.below(others) as usize];
                if other == home { all[all.len() - 1] } else { other }
            }
        }
    }
}

/// Adds a weight to a class, by the part of it that is of that class, and the rest to the last.
#[inline]
fn add(shares: &mut [f64], (class, own): (usize, f64), weight: f64) {
    shares[class] += weight * own;
    if own < 1.0 {
        let last = shares.len() - 1;
        shares[last] += weight * (1.0 - own);
    }
}

/// The order in which nodes are tried.
fn turns(start: &Placement, nodes: usize) -> Vec<u8> {
    match start {
        Placement::Node(node) => vec![*node],
        Placement::Fill => vec![0],
        Placement::Weighted(weights) => {
            let nodes = u8::try_from(nodes).unwrap_or(u8::MAX);
            let turn = |(node, &weight): (u8, &u32)| (0..weight).map(move |_| node);
            (0..nodes).zip(weights).flat_map(turn).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::popularity::Popularity;

    fn tiers(start: Placement) -> Tiers {
        let node = |tier, pages, cpus| Node { tier, pages, cpus };
        let nodes = vec![node(0, 30, true), node(0, 30, true), node(1, 100, false)];
        Tiers { nodes, start, locality: 0.75 }
    }

    #[test]
    fn pages_start_where_they_are_told() {
        let placed = |start| Places::new(&tiers(start), 100).placed();
        assert_eq!(placed(Placement::Node(2)), [0, 0, 100]);
        assert_eq!(placed(Placement::Fill), [30, 30, 40]);
        assert_eq!(placed(Placement::Node(1)), [0, 30, 70]);
        assert_eq!(placed(Placement::Weighted(vec![1, 1, 2])), [25, 25, 50]);
    }

    #[test]
    fn shares_follow_moves_and_know_who_is_near() {
        let pattern = Pattern::Random(Popularity::uniform(100));
        let mut places = Places::new(&tiers(Placement::Node(2)), 100);
        places.recount(&pattern);
        assert_eq!(places.shares(), [0.0, 1.000_000_000_000_000_7, 0.0]);
        // The home of page 0 is node 0, that of page 99 node 1.
        places.move_page(0, 0, 0.01);
        places.move_page(99, 0, 0.01);
        let kept = places.shares().to_vec();
        places.recount(&pattern);
        for (left, right) in kept.iter().zip(places.shares()) {
            assert!((left - right).abs() < 1e-12);
        }
        assert!((kept[0] - 0.01).abs() < 1e-12 && (kept[2] - 0.01).abs() < 1e-12, "{kept:?}");
        assert_eq!(places.free, [28, 30, 2]);
    }
}
