//! A policy on a machine that is told to it: what a live engine drives, and what replays its log.
//!
//! The one idea: whatever the policy sees comes in as an [`Event`], and nothing else does. Who
//! writes the events down as they come can feed them to another driver later, on any machine, and
//! must get the same decisions: there is nothing else that they could depend on.

use crate::{
    policy::{Move, Moved, Node, PageSet, Policy, PolicySpec, Prices, Scan, Setting, World},
    spec::Row,
};

/// What a driver begins with.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The policy and its parameters, complete.
    pub policy: String,
    /// Pages that there may be.
    pub pages: u32,
    /// The nodes of the machine, without that of pages that are nowhere.
    pub nodes: Vec<Node>,
}

/// Pages that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// What happened, in the order in which it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Free pages of each node at a time.
    World {
        /// Nanoseconds since the start.
        now: u64,
        /// Free pages.
        free: Vec<u64>,
    },
    /// Pages that were found on a node; without one, they are no more.
    Placed {
        /// Which.
        pages: Run,
        /// Where.
        node: Option<u8>,
    },
    /// A pass over written or accessed bits.
    Scan {
        /// Pages that were seen.
        pages: Vec<Run>,
        /// Written bits instead of accessed bits.
        writes: bool,
        /// Nanoseconds that the bits had to be set in.
        window: u64,
    },
    /// The policy is asked.
    Decide,
    /// How the move of a page went, and the node that it is on now.
    Moved {
        /// Which.
        page: u32,
        /// How.
        how: Moved,
        /// Where it is.
        node: u8,
    },
}

/// What a log says that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Impossible(pub String);

/// Nobody promises anything of a machine that runs: what is not known costs nothing.
const PRICES: Prices =
    Prices { saved_ns: 0.0, move_ns: 0.0, busy_ns: 0.0, sample_ns: 0.0, latency_ns: [0.0; 4] };

/// A policy and what it knows.
#[derive(Debug)]
pub struct Driver {
    policy: Box<dyn Policy>,
    /// Those of the machine, and one for pages that are nowhere.
    nodes: Vec<Node>,
    place: Vec<u8>,
    /// Which of them are not in the top tier.
    below: PageSet,
    free: Vec<u64>,
    now: u64,
    ticked: u64,
    /// Pages of the last pass, for policies that ask.
    seen: Vec<bool>,
}

impl Driver {
    /// # Errors
    /// A sentence that says what of the start makes no sense.
    pub fn new(start: &Start) -> Result<Self, Impossible> {
        let spec = PolicySpec::parse(&start.policy).map_err(Impossible)?;
        if spec.row().needs == crate::policy::Needs::Future {
            let name = spec.row().name();
            return Err(Impossible(format!(
                "`{name}` knows the future: only the simulator has it"
            )));
        }
        if start.nodes.is_empty() || start.nodes.len() > 255 {
            return Err(Impossible(format!("{} nodes", start.nodes.len())));
        }
        let mut nodes = start.nodes.clone();
        nodes.push(Node { tier: u8::MAX, pages: 0, cpus: false });
        let setting = Setting { pages: start.pages, nodes: &nodes, periods: (0, 0) };
        let nowhere = u8::try_from(start.nodes.len()).unwrap_or(u8::MAX);
        Ok(Self {
            policy: spec.build(&setting),
            place: vec![nowhere; start.pages as usize],
            below: PageSet::new(start.pages as usize, true),
            free: vec![0; nodes.len()],
            seen: vec![false; start.pages as usize],
            nodes,
            now: 0,
            ticked: 0,
        })
    }

    /// The node that a page is known to be on.
    pub fn node(&self, page: u32) -> Option<u8> {
        let node = *self.place.get(page as usize)?;
        (usize::from(node) + 1 < self.nodes.len()).then_some(node)
    }

    /// Whether the policy exchanges nothing for a while, since that did not pay.
    pub fn rests(&self) -> bool {
        self.policy.rests()
    }

    /// Takes what happened; the moves that it led to, for [`Event::Decide`] only.
    ///
    /// # Errors
    /// When it speaks of pages or nodes that there are not.
    pub fn apply(&mut self, event: &Event) -> Result<Vec<Move>, Impossible> {
        match event {
            Event::World { now, free } => {
                if free.len() + 1 != self.nodes.len() {
                    let nodes = self.nodes.len() - 1;
                    return Err(Impossible(format!("{} of {nodes} nodes", free.len())));
                }
                self.now = self.now.max(*now);
                self.free[..free.len()].copy_from_slice(free);
            }
            Event::Placed { pages, node } => {
                let nowhere = u8::try_from(self.nodes.len() - 1).unwrap_or(u8::MAX);
                let node = node.map_or(Ok(nowhere), |node| self.known(node))?;
                self.put(*pages, node)?;
            }
            Event::Scan { pages, writes, window } => self.scan(pages, *writes, *window)?,
            Event::Decide => return Ok(self.decide()),
            Event::Moved { page, how, node } => {
                let node = self.known(*node)?;
                self.put(Run { first: *page, count: 1 }, node)?;
                self.policy.moved(*page, *how, !self.below.has(*page));
            }
        }
        Ok(Vec::new())
    }

    fn scan(&mut self, runs: &[Run], writes: bool, window: u64) -> Result<(), Impossible> {
        self.seen.fill(false);
        let mut pages = Vec::new();
        for run in runs {
            let range = self.range(*run)?;
            if pages.last().is_some_and(|last| *last >= run.first) {
                return Err(Impossible(format!("page {} is out of order", run.first)));
            }
            self.seen[range].fill(true);
            pages.extend(run.first..run.first + run.count);
        }
        let Self { policy, nodes, place, below, free, now, .. } = self;
        let scan = Scan { pages: &pages, writes, window };
        policy.scanned(scan, &world(nodes, place, below, free, *now));
        Ok(())
    }

    fn decide(&mut self) -> Vec<Move> {
        let Self { policy, nodes, place, below, free, now, seen, ticked } = self;
        let world = world(nodes, place, below, free, *now);
        let mut young = |page: u32| std::mem::take(&mut seen[page as usize]);
        let interval = policy.interval();
        if interval > 0 && *now >= *ticked + interval {
            *ticked = *now;
            policy.tick(&world, &mut young);
        }
        let mut moves = Vec::new();
        policy.decide(&world, &mut young, &mut moves);
        // What is nowhere cannot go anywhere.
        let nowhere = nodes.len() - 1;
        moves.retain(|step| {
            usize::from(place[step.page as usize]) < nowhere && usize::from(step.to) < nowhere
        });
        moves
    }

    /// Notes that pages are on a node, which is known.
    fn put(&mut self, pages: Run, node: u8) -> Result<(), Impossible> {
        let range = self.range(pages)?;
        self.place[range].fill(node);
        let is_below = self.nodes[usize::from(node)].tier > 0;
        for page in pages.first..pages.first + pages.count {
            self.below.set(page, is_below);
        }
        Ok(())
    }

    fn known(&self, node: u8) -> Result<u8, Impossible> {
        let nodes = self.nodes.len() - 1;
        let known = usize::from(node) < nodes;
        known.then_some(node).ok_or_else(|| Impossible(format!("node {node} of {nodes}")))
    }

    fn range(&self, run: Run) -> Result<std::ops::Range<usize>, Impossible> {
        let (first, pages) = (run.first as usize, self.place.len());
        let end = first.checked_add(run.count as usize).filter(|end| *end <= pages);
        let end = end.ok_or_else(|| {
            Impossible(format!("pages {first} and {} more of {pages}", run.count))
        })?;
        Ok(first..end)
    }
}

fn world<'a>(
    nodes: &'a [Node],
    place: &'a [u8],
    below: &'a PageSet,
    free: &'a [u64],
    now: u64,
) -> World<'a> {
    World { now, nodes, place, below, free, prices: &PRICES, period: 0, future: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{POLICIES, policy::Needs};

    fn start(policy: &str) -> Start {
        let node = |tier, cpus| Node { tier, pages: 1000, cpus };
        Start { policy: policy.into(), pages: 1024, nodes: vec![node(0, true), node(1, false)] }
    }

    fn pass(first: u32) -> [Event; 3] {
        [
            Event::World { now: u64::from(first) * 1_000_000_000, free: vec![900, 100] },
            Event::Scan { pages: vec![Run { first, count: 8 }], writes: true, window: 1 },
            Event::Decide,
        ]
    }

    #[test]
    fn every_policy_without_the_future_decides_again_as_it_did() {
        for row in POLICIES.iter().filter(|row| row.needs != Needs::Future) {
            let all = Run { first: 0, count: 1024 };
            let mut events = vec![Event::Placed { pages: all, node: Some(1) }];
            events.extend((0..20).flat_map(|turn| pass(turn % 3 * 16 + 64)));
            let run = || {
                let mut driver = Driver::new(&start(row.name)).unwrap();
                events.iter().map(|event| driver.apply(event).unwrap()).collect::<Vec<_>>()
            };
            assert_eq!(run(), run(), "{}", row.name);
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut driver = Driver::new(&start("history")).unwrap();
        let far = Run { first: 1000, count: 25 };
        for event in [
            Event::World { now: 0, free: vec![1] },
            Event::Placed { pages: far, node: Some(0) },
            Event::Placed { pages: Run { first: u32::MAX, count: u32::MAX }, node: None },
            Event::Placed { pages: Run { first: 0, count: 1 }, node: Some(2) },
            Event::Scan { pages: vec![far], writes: true, window: 1 },
            Event::Moved { page: 1024, how: Moved::Done, node: 0 },
            Event::Scan {
                pages: vec![Run { first: 8, count: 2 }, Run { first: 9, count: 1 }],
                writes: true,
                window: 1,
            },
        ] {
            assert!(driver.apply(&event).is_err(), "{event:?}");
        }
        assert!(Driver::new(&start("oracle")).is_err());
        assert!(Driver::new(&start("nonsense")).is_err());
    }

    #[test]
    fn a_page_that_is_nowhere_does_not_move() {
        let mut driver = Driver::new(&start("history:hot=1")).unwrap();
        driver.apply(&Event::Placed { pages: Run { first: 64, count: 4 }, node: Some(1) }).unwrap();
        let moves = pass(64).map(|event| driver.apply(&event).unwrap()).concat();
        let pages: Vec<u32> = moves.iter().map(|step| step.page).collect();
        assert_eq!(pages, [64, 65, 66, 67]);
    }
}
