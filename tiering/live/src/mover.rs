//! Who moves pages: in batches, no faster than it may, and with a look at where they are then.
//!
//! The one idea: all that the outside world is to a mover is [`Hands`]: a clock, a wait, and two
//! calls. A test has a machine and a clock of its own. Between the first batch and the last there
//! is one call that moves and one that looks for each, and nothing else.
//!
//! A large folio moves whole, by its first address; who wants it split does that before.

use std::{collections::BTreeMap, io};

use pagelab_sys::memory::UNANSWERED;
use pagelab_tier::policy::{Bucket, Moved};

use crate::PAGE;

/// Base pages that a call moves at least, where so many are to be moved: each call empties the
/// batches of all CPUs first.
pub const BATCH: u64 = 4096;
/// A batch ends after the unit that fills it, which may be a huge page.
const OVERHANG: u64 = 511;

/// What a mover needs of a machine.
pub trait Hands {
    /// Nanoseconds since some moment.
    fn now(&self) -> u64;
    /// Waits until then; `false` when whoever runs this was interrupted.
    fn wait_until(&mut self, then: u64) -> bool;
    /// As [`pagelab_sys::memory::move_pages`] of the target.
    ///
    /// # Errors
    /// The kernel's.
    fn move_pages(
        &mut self,
        addresses: &[u64],
        nodes: &[i32],
        status: &mut [i32],
    ) -> io::Result<()>;
    /// As [`pagelab_sys::memory::places`] of the target.
    ///
    /// # Errors
    /// The kernel's.
    fn places(&mut self, addresses: &[u64], nodes: &mut [i32]) -> io::Result<()>;
}

/// A page or a large folio that is to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Its first page, by the number that the policy has for it.
    pub first: u32,
    /// Its base pages.
    pub pages: u32,
    /// Its address.
    pub address: u64,
    /// The kernel's number of the node that it goes to.
    pub to: i32,
}

/// How an order went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Went {
    /// What the policy is told.
    pub how: Moved,
    /// The node that it is on now; `None` when it is not there any more.
    pub node: Option<i32>,
}

/// What was done so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls that moved.
    pub calls: u64,
    /// Base pages that arrived.
    pub moved: u64,
    /// Base pages that did not, by errno; 0 where the kernel named none.
    pub failed: BTreeMap<i32, u64>,
    /// Nanoseconds that were waited for the limit.
    pub waited_ns: u64,
    /// Nanoseconds in the calls that moved.
    pub moving_ns: u64,
    /// Nanoseconds in all, without waits: what is beside the calls that moved is ours.
    pub run_ns: u64,
}

/// A budget, and what was done with it.
#[derive(Debug)]
pub struct Mover {
    bucket: Option<Bucket>,
    tally: Tally,
}

impl Mover {
    /// One that moves so many bytes a second; without a limit as fast as the kernel does.
    pub fn new(limit: Option<u64>) -> Self {
        let burst = (BATCH + OVERHANG) * PAGE;
        let bucket = limit.map(|limit| Bucket::new(limit.max(1), burst.max(limit / 10)));
        Self { bucket, tally: Tally::default() }
    }

    /// What was done so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Moves what was ordered, in that order; hands on how each went. `false` when it was
    /// interrupted before the end.
    ///
    /// # Errors
    /// When the kernel refuses a batch as a whole: the process has ended, or may not have memory
    /// there.
    pub fn run(
        &mut self,
        hands: &mut dyn Hands,
        orders: &[Order],
        went: &mut dyn FnMut(&Order, Went),
    ) -> io::Result<bool> {
        let (mut nodes, mut status, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let mut left = orders;
        while !left.is_empty() {
            let (count, pages) = batch(left);
            let (now_due, rest) = left.split_at(count);
            left = rest;
            if let Some(bucket) = &mut self.bucket {
                let now = hands.now();
                let then = bucket.take_when(now, pages * PAGE);
                self.tally.waited_ns += then.saturating_sub(now);
                if then > now && !hands.wait_until(then) {
                    return Ok(false);
                }
            }
            let begin = hands.now();
            let addresses: Vec<u64> = now_due.iter().map(|order| order.address).collect();
            nodes.clear();
            nodes.extend(now_due.iter().map(|order| order.to));
            status.clear();
            status.resize(count, UNANSWERED);
            places.clear();
            places.resize(count, UNANSWERED);
            let before = hands.now();
            hands.move_pages(&addresses, &nodes, &mut status)?;
            self.tally.moving_ns += hands.now().saturating_sub(before);
            hands.places(&addresses, &mut places)?;
            self.tally.calls += 1;
            for (order, (status, place)) in now_due.iter().zip(status.iter().zip(&places)) {
                went(order, self.judge(order, *status, *place));
            }
            self.tally.run_ns += hands.now().saturating_sub(begin);
        }
        Ok(true)
    }

    /// What it was in the end, whatever was said before.
    fn judge(&mut self, order: &Order, status: i32, place: i32) -> Went {
        let node = (place >= 0).then_some(place);
        if node == Some(order.to) {
            self.tally.moved += u64::from(order.pages);
            return Went { how: Moved::Done, node };
        }
        let errno = if status < 0 && status != UNANSWERED { -status } else { 0 };
        *self.tally.failed.entry(errno).or_default() += u64::from(order.pages);
        let how = if errno == ENOMEM { Moved::Full } else { Moved::Failed };
        Went { how, node }
    }
}

/// `ENOMEM`: the node has nothing free.
const ENOMEM: i32 = 12;

/// Orders of the next batch, and their base pages.
fn batch(orders: &[Order]) -> (usize, u64) {
    let (mut count, mut pages) = (0, 0);
    for order in orders {
        if pages >= BATCH {
            break;
        }
        count += 1;
        pages += u64::from(order.pages);
    }
    (count, pages)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A machine of one process and a clock that goes when it is waited for.
    #[derive(Debug, Default)]
    struct Scripted {
        now: u64,
        /// When each call was made, and for how many base pages.
        calls: Vec<(u64, u64)>,
        /// Calls of any kind.
        all: u64,
        waits: u64,
        refuses: Vec<(u64, i32)>,
        huge: bool,
        stop_at: Option<u64>,
    }

    impl Hands for Scripted {
        fn now(&self) -> u64 {
            self.now
        }

        fn wait_until(&mut self, then: u64) -> bool {
            self.waits += 1;
            self.now = then;
            self.stop_at.is_none_or(|stop| then < stop)
        }

        fn move_pages(
            &mut self,
            addresses: &[u64],
            nodes: &[i32],
            status: &mut [i32],
        ) -> io::Result<()> {
            self.all += 1;
            let unit = if self.huge { 512 } else { 1 };
            self.calls.push((self.now, addresses.len() as u64 * unit));
            for ((address, node), status) in addresses.iter().zip(nodes).zip(status) {
                let refused = self.refuses.iter().find(|(at, _)| at == address);
                *status = refused.map_or(*node, |(_, errno)| -errno);
            }
            Ok(())
        }

        fn places(&mut self, addresses: &[u64], nodes: &mut [i32]) -> io::Result<()> {
            self.all += 1;
            for (address, node) in addresses.iter().zip(nodes) {
                *node = i32::from(self.refuses.iter().any(|(at, _)| at == address));
            }
            Ok(())
        }
    }

    fn orders(count: u32, pages: u32) -> Vec<Order> {
        let order = |at| Order { first: at * pages, pages, address: u64::from(at) << 21, to: 0 };
        (0..count).map(order).collect()
    }

    #[test]
    fn a_batch_has_4096_pages_and_two_calls_and_nothing_beside() {
        let mut hands = Scripted::default();
        let mut mover = Mover::new(None);
        assert!(mover.run(&mut hands, &orders(10_000, 1), &mut |_, _| ()).unwrap());
        let sizes: Vec<u64> = hands.calls.iter().map(|(_, pages)| *pages).collect();
        assert_eq!(sizes, [4096, 4096, 10_000 - 8192]);
        assert_eq!((hands.all, hands.waits), (6, 0));
        let mut huge = Scripted { huge: true, ..Scripted::default() };
        assert!(mover.run(&mut huge, &orders(9, 512), &mut |_, _| ()).unwrap());
        assert_eq!(huge.calls[0].1, 4096);
        assert_eq!(mover.tally().moved, 10_000 + 9 * 512);
    }

    #[test]
    fn what_failed_is_counted_by_errno_and_what_was_said_is_not_believed() {
        let refuses = vec![(0, 12), (1 << 21, 16), (2 << 21, 0), (3 << 21, 16)];
        let mut hands = Scripted { refuses, ..Scripted::default() };
        let mut mover = Mover::new(None);
        let mut how = Vec::new();
        mover.run(&mut hands, &orders(5, 1), &mut |_, went| how.push(went.how)).unwrap();
        assert_eq!(how[..3], [Moved::Full, Moved::Failed, Moved::Failed]);
        assert_eq!(how[4], Moved::Done);
        let failed: Vec<_> = mover.tally().failed.clone().into_iter().collect();
        assert_eq!(failed, [(0, 1), (12, 1), (16, 2)]);
    }

    #[test]
    fn an_interrupt_ends_the_wait_and_moves_nothing_more() {
        let mut hands = Scripted { stop_at: Some(0), ..Scripted::default() };
        let mut mover = Mover::new(Some(1 << 20));
        assert!(!mover.run(&mut hands, &orders(8192, 1), &mut |_, _| ()).unwrap());
        assert_eq!(hands.calls, []);
    }

    proptest! {
        #[test]
        fn the_budget_is_kept_exactly(
            limit in 1_u64..10_000_000_000,
            rounds in prop::collection::vec((1_u32..20_000, 0_u64..3 * SECOND), 1..8),
        ) {
            let mut hands = Scripted::default();
            let mut mover = Mover::new(Some(limit));
            for (count, pause) in rounds {
                hands.now += pause;
                mover.run(&mut hands, &orders(count, 1), &mut |_, _| ()).unwrap();
            }
            let burst = u128::from(((BATCH + OVERHANG) * PAGE).max(limit / 10));
            for from in 0..hands.calls.len() {
                let mut bytes = 0_u128;
                for (at, pages) in &hands.calls[from..] {
                    bytes += u128::from(pages * PAGE);
                    let passed = u128::from(at - hands.calls[from].0);
                    let most = passed * u128::from(limit) / u128::from(SECOND) + burst + 1;
                    prop_assert!(bytes <= most, "{bytes} of {most}");
                }
            }
            // It waits no longer than it must: who waited until a moment had nothing left over.
            let last = hands.calls.last().unwrap().0;
            let bytes: u64 = hands.calls.iter().map(|(_, pages)| pages * PAGE).sum();
            if mover.tally().waited_ns == last && last > 0 {
                let due = u128::from(bytes) * u128::from(SECOND) / u128::from(limit);
                prop_assert!(u128::from(last) <= due + 1, "{last} after {due}");
            }
        }
    }
}
