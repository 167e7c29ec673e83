//! What another policy would have made of a program that was watched: its time, before it is run.
//!
//! The one idea: a program that runs with nothing moving leaves a log that says which pages each
//! look saw, and where they were. Another policy is told the same, and its moves are made on paper.
//! A look then takes as long as it took, times what its accesses would cost at the other placement
//! over what they cost at the one that was: C(u') / C(u), with the measured curve of the machine.
//!
//! What it does not know: how often a page was used between two looks, so each page seen weighs the
//! same; how much of the time the program waits for memory, so one that computes is affected less;
//! what looking and moving take from it. Large folios move page by page here. Looks stay where they
//! were in the program, though a faster one would be further by then.

use std::io::BufRead;

use pagelab_tier::{
    Driver, Event, Run,
    policy::{Bucket, Move, Moved},
};
use serde::Serialize;

use crate::{
    PAGE,
    log::{self, Line, LogError},
};

/// The time of all accesses by the share of them in lower tiers: measured points, straight lines
/// between.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// Of points with rising shares from 0 to 1, each with seconds above 0.
    ///
    /// # Errors
    /// A sentence that says what of it is no curve.
    pub fn new(points: Vec<(f64, f64)>) -> Result<Self, String> {
        let rises = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let is_one = |&(share, seconds): &(f64, f64)| {
            (0.0..=1.0).contains(&share) && seconds.is_finite() && seconds > 0.0
        };
        if points.is_empty() || !rises || !points.iter().all(is_one) {
            return Err("its points are not shares that rise from 0 to 1, each with a time".into());
        }
        Ok(Self(points))
    }

    /// Where memory costs the same wherever it is: a machine with one node.
    pub fn flat() -> Self {
        Self(vec![(0.0, 1.0)])
    }

    /// Seconds at a share; beyond the ends, those of the end.
    pub fn at(&self, share: f64) -> f64 {
        let behind = self.0.partition_point(|point| point.0 < share);
        match (behind.checked_sub(1).and_then(|at| self.0.get(at)), self.0.get(behind)) {
            (Some(&(left, low)), Some(&(right, high))) => {
                low + (high - low) * (share - left) / (right - left)
            }
            (Some(&(_, only)), None) | (None, Some(&(_, only))) => only,
            (None, None) => 1.0,
        }
    }
}

/// What is predicted of a policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predicted {
    /// Nanoseconds that the program takes.
    pub ns: u64,
    /// Pages that go to the top tier.
    pub promoted: u64,
    /// Pages that go to a lower one.
    pub demoted: u64,
    /// Share of the uses that lies in lower tiers, as it was watched.
    pub watched_share: f64,
    /// The same, as the policy would have it.
    pub share: f64,
    /// Looks that this is of.
    pub looks: u64,
}

/// What a policy, complete, would make of the program of a log; nothing had moved it, and it took
/// `whole_ns`. `limit` is in bytes a second: what is beyond it stays, and the policy is told so.
///
/// # Errors
/// With the number of the line that makes no sense.
pub fn predict(
    log: &mut dyn BufRead,
    policy: &str,
    curve: &Curve,
    whole_ns: u64,
    limit: Option<u64>,
) -> Result<Predicted, LogError> {
    let mut paper: Option<Paper> = None;
    let mut sum = Sum::default();
    let bucket = || limit.map(|limit| Bucket::new(limit, limit.max(PAGE)));
    log::each(log, &mut |_, line| {
        if let Line::Start { pages, nodes, .. } = line {
            let start = log::start_of(policy.to_owned(), pages, &nodes);
            paper = Some(Paper::new(log::begun(&start)?, &start, bucket()));
            return Ok(());
        }
        let paper = paper.as_mut().ok_or("nothing has started yet")?;
        paper.read(line, curve, &mut sum).map_err(|why| why.to_string())
    })?;
    let outside = whole_ns.saturating_sub(sum.watched_ns);
    let share = |slow: f64| if sum.uses > 0.0 { slow / sum.uses } else { 0.0 };
    Ok(Predicted {
        ns: outside.saturating_add(nanoseconds(sum.predicted_ns)),
        promoted: sum.promoted,
        demoted: sum.demoted,
        watched_share: share(sum.watched_slow),
        share: share(sum.slow),
        looks: sum.looks,
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
const fn nanoseconds(ns: f64) -> u64 {
    ns as u64
}

#[derive(Debug, Default)]
struct Sum {
    watched_ns: u64,
    predicted_ns: f64,
    uses: f64,
    watched_slow: f64,
    slow: f64,
    looks: u64,
    promoted: u64,
    demoted: u64,
}

/// The machine of the log, and the same with other placements.
#[derive(Debug)]
struct Paper {
    driver: Driver,
    tiers: Vec<u8>,
    /// The node of each page as watched, and on paper; none where it is not.
    was: Vec<Option<u8>>,
    is: Vec<Option<u8>>,
    /// Free pages as watched, and how many more there are on paper.
    free: Vec<u64>,
    more: Vec<i64>,
    now: u64,
    bucket: Option<Bucket>,
}

impl Paper {
    fn new(driver: Driver, start: &pagelab_tier::Start, bucket: Option<Bucket>) -> Self {
        let (pages, nodes) = (start.pages as usize, start.nodes.len());
        Self {
            driver,
            tiers: start.nodes.iter().map(|node| node.tier).collect(),
            was: vec![None; pages],
            is: vec![None; pages],
            free: vec![0; nodes],
            more: vec![0; nodes],
            now: 0,
            bucket,
        }
    }

    fn read(
        &mut self,
        line: Line,
        curve: &Curve,
        sum: &mut Sum,
    ) -> Result<(), pagelab_tier::Impossible> {
        match line {
            Line::Start { .. } | Line::Blocks(_) | Line::Moved(_) => {}
            Line::World { now, free } => {
                if free.len() != self.tiers.len() {
                    let nodes = self.tiers.len();
                    let says = format!("{} of {nodes} nodes", free.len());
                    return Err(pagelab_tier::Impossible(says));
                }
                (self.now, self.free) = (now, free);
                self.tell_world()?;
            }
            Line::Placed(placed) => {
                for (first, count, node) in placed {
                    let pages = Run { first, count };
                    self.driver.apply(&Event::Placed { pages, node })?;
                    // It passed the driver: such pages and such a node there are.
                    for page in first as usize..(first + count) as usize {
                        self.forget(page);
                        (self.was[page], self.is[page]) = (node, node);
                    }
                }
            }
            Line::Scan { pages, writes, window } => {
                let runs = pages.iter().map(|&(first, count)| Run { first, count }).collect();
                self.driver.apply(&Event::Scan { pages: runs, writes, window })?;
                let (uses, was) = self.slow(&pages, &self.was);
                let (_, is) = self.slow(&pages, &self.is);
                let share = |slow: u64| if uses > 0 { slow as f64 / uses as f64 } else { 0.0 };
                let ratio = curve.at(share(is)) / curve.at(share(was));
                sum.watched_ns = sum.watched_ns.saturating_add(window);
                sum.predicted_ns += window as f64 * ratio;
                sum.uses += uses as f64;
                sum.watched_slow += was as f64;
                sum.slow += is as f64;
                sum.looks += 1;
            }
            Line::Decided(_) => {
                for step in self.driver.apply(&Event::Decide)? {
                    self.carry_out(step, sum)?;
                }
            }
        }
        Ok(())
    }

    /// A page is elsewhere or no more: what its move made free, and took, counts no longer.
    fn forget(&mut self, page: usize) {
        if let (Some(was), Some(is)) = (self.was[page], self.is[page])
            && was != is
        {
            self.more[usize::from(is)] += 1;
            self.more[usize::from(was)] -= 1;
        }
    }

    /// How many pages were used, and how many of them lie in lower tiers.
    fn slow(&self, used: &[(u32, u32)], place: &[Option<u8>]) -> (u64, u64) {
        let pages = used
            .iter()
            .flat_map(|&(first, count)| &place[first as usize..(first + count) as usize]);
        pages.flatten().fold((0, 0), |(uses, slow), node| {
            (uses + 1, slow + u64::from(self.tiers[usize::from(*node)] > 0))
        })
    }

    fn free(&self, node: u8) -> u64 {
        let node = usize::from(node);
        self.free[node].saturating_add_signed(self.more[node])
    }

    fn tell_world(&mut self) -> Result<(), pagelab_tier::Impossible> {
        let nodes = 0..u8::try_from(self.tiers.len()).unwrap_or(u8::MAX);
        let free = nodes.map(|node| self.free(node)).collect();
        self.driver.apply(&Event::World { now: self.now, free }).map(|_| ())
    }

    fn carry_out(
        &mut self,
        Move { page, to }: Move,
        sum: &mut Sum,
    ) -> Result<(), pagelab_tier::Impossible> {
        let Some(from) = self.is[page as usize].filter(|from| *from != to) else { return Ok(()) };
        let is_within = self.bucket.as_mut().is_none_or(|bucket| bucket.take(self.now, PAGE));
        let how = match (is_within, self.free(to)) {
            (false, _) => Moved::Failed,
            (true, 0) => Moved::Full,
            (true, _) => Moved::Done,
        };
        let mut node = from;
        if how == Moved::Done {
            node = to;
            self.is[page as usize] = Some(to);
            self.more[usize::from(from)] += 1;
            self.more[usize::from(to)] -= 1;
            let tier = |node: u8| self.tiers[usize::from(node)];
            sum.promoted += u64::from(tier(to) < tier(from));
            sum.demoted += u64::from(tier(to) > tier(from));
        }
        self.driver.apply(&Event::Moved { page, how, node }).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use pagelab_tier::SECOND;

    use super::*;
    use crate::log::SCHEMA;

    /// Looks of a second at a program of 100 pages, of which the first ten are used in each.
    fn watched(looks: u64, free_top: u64, lower: u8) -> String {
        let mut text = format!(
            "{{\"schema\":\"{SCHEMA}\",\"pid\":7,\"source\":\"soft-dirty\",\"nodes\":[0,1]}}\n\
             {{\"start\":{{\"policy\":\"none\",\"pages\":512,\"nodes\":[\
             {{\"tier\":0,\"pages\":1000,\"cpus\":true}},\
             {{\"tier\":{lower},\"pages\":1000,\"cpus\":false}}]}}}}\n\
             {{\"placed\":[[0,100,1]]}}\n"
        );
        for look in 1..=looks {
            let now = look * SECOND;
            text.push_str(&format!(
                "{{\"world\":{{\"now\":{now},\"free\":[{free_top},900]}}}}\n\
                 {{\"scan\":{{\"pages\":[[0,10]],\"writes\":true,\"window\":{SECOND}}}}}\n\
                 {{\"decided\":[]}}\n"
            ));
        }
        text
    }

    fn of(log: &str, policy: &str, limit: Option<u64>) -> Predicted {
        let curve = Curve::new(vec![(0.0, 1.0), (0.5, 2.0), (1.0, 4.0)]).unwrap();
        predict(&mut log.as_bytes(), policy, &curve, 12 * SECOND, limit).unwrap()
    }

    #[test]
    fn a_curve_goes_through_its_points() {
        let curve = Curve::new(vec![(0.0, 1.0), (0.5, 2.0), (1.0, 4.0)]).unwrap();
        for (share, seconds) in [(0.0, 1.0), (0.25, 1.5), (0.5, 2.0), (0.75, 3.0), (1.0, 4.0)] {
            assert!((curve.at(share) - seconds).abs() < 1e-12, "{share}");
        }
        let part = Curve::new(vec![(0.2, 1.0), (0.4, 3.0)]).unwrap();
        assert!((part.at(0.0) - 1.0).abs() < 1e-12 && (part.at(1.0) - 3.0).abs() < 1e-12);
        assert!((Curve::flat().at(0.7) - 1.0).abs() < 1e-12);
        for bad in [vec![], vec![(0.0, 1.0), (0.0, 2.0)], vec![(0.0, 0.0)], vec![(1.5, 1.0)]] {
            assert!(Curve::new(bad).is_err());
        }
    }

    #[test]
    fn a_policy_that_moves_nothing_takes_what_was_watched() {
        let none = of(&watched(10, 900, 1), "none", None);
        assert_eq!((none.ns, none.promoted, none.looks), (12 * SECOND, 0, 10));
        assert!((none.share - 1.0).abs() < 1e-12 && (none.watched_share - 1.0).abs() < 1e-12);
    }

    #[test]
    fn pages_that_would_be_near_make_a_look_as_much_shorter_as_the_curve_says() {
        // Two looks make a page hot: the first two pass at C(1) = 4, eight more at C(0) = 1, and
        // two seconds are outside of all looks.
        let history = of(&watched(10, 900, 1), "history", None);
        assert_eq!((history.promoted, history.demoted), (10, 0));
        assert_eq!(history.ns, 2 * SECOND + 2 * SECOND + 8 * SECOND / 4);
        assert!((history.share - 0.2).abs() < 1e-12, "{history:?}");
        // Room for five above the watermark of 0.005: half of the uses stay, at C(0.5) = 2.
        let full = of(&watched(10, 10, 1), "history", None);
        assert_eq!((full.promoted, full.ns), (5, 2 * SECOND + 2 * SECOND + 8 * SECOND / 2));
    }

    #[test]
    fn what_is_beyond_the_limit_stays() {
        // Two pages a second: five looks until ten are there.
        let slow = of(&watched(10, 900, 1), "history", Some(2 * PAGE));
        assert_eq!(slow.promoted, 10);
        assert!(slow.ns > of(&watched(10, 900, 1), "history", None).ns, "{slow:?}");
    }

    #[test]
    fn where_nothing_lies_lower_nothing_is_gained() {
        let one = of(&watched(10, 900, 0), "history", None);
        assert_eq!((one.ns, one.promoted), (12 * SECOND, 0));
    }

    #[test]
    fn a_page_that_goes_gives_its_room_back() {
        let mut log = watched(5, 10, 1);
        log.push_str("{\"placed\":[[0,3,null]]}\n");
        let later = watched(5, 10, 1).replace("[[0,10]]", "[[3,7]]");
        log.push_str(&later.lines().skip(3).collect::<Vec<_>>().join("\n"));
        // Five fit; three of them are no more, and three others come in their place.
        assert_eq!(of(&(log + "\n"), "history", None).promoted, 8);
    }

    #[test]
    fn a_line_that_makes_no_sense_is_named() {
        let log = watched(1, 900, 1).replace("[[0,10]]", "[[600,10]]");
        let curve = Curve::flat();
        let error = predict(&mut log.as_bytes(), "none", &curve, 0, None).unwrap_err();
        assert!(error.to_string().starts_with("line 5: "), "{error}");
        let error = predict(&mut log.as_bytes(), "oracle", &curve, 0, None).unwrap_err();
        assert!(error.to_string().starts_with("line 2: "), "{error}");
    }
}
