//! What the program accesses: the one door to all patterns.
//!
//! The one idea: whatever the pattern is, the simulator asks four questions: which page does this
//! access hit, how often is this page accessed between two counts, when is it accessed next, and
//! what share of the traffic goes where. Random patterns answer by probability, sequences exactly.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of accesses below 2^53, kept as floats because speed is one"
)]

use std::sync::Arc;

use super::{generators::Kind, popularity::Popularity, scenario::Work, trace::TraceWork};
use crate::random::Random;

/// A pattern of accesses, ready to be asked.
#[derive(Debug)]
pub(super) enum Pattern {
    Random(Popularity),
    /// The page at each position of the cycle, and the position of each page.
    Chase {
        order: Vec<u32>,
        position: Vec<u32>,
    },
    Stream {
        pages: u32,
        touches: f64,
    },
    Trace(Arc<TraceWork>),
}

impl Pattern {
    /// The pattern of `pages` pages and `total` accesses where the top tier has `top` pages.
    pub(super) fn new(work: &Work, pages: u32, total: f64, top: u64, random: &mut Random) -> Self {
        let spec = match work {
            Work::Trace(trace) => return Self::Trace(Arc::clone(trace)),
            Work::Generated(spec) => spec,
        };
        let part = |share: f64| ((f64::from(pages) * share) as u32).clamp(1, pages);
        let popularity = match spec.row().kind {
            Kind::Uniform => Popularity::uniform(pages),
            Kind::Even => Popularity::even(pages, total),
            Kind::Zipf => Popularity::zipf(pages, spec.value("exponent"), random),
            Kind::Gups => {
                let hot = part(spec.value("hot"));
                let count = spec.value("moves") as u32 + 1;
                Popularity::hot(pages, hot, spec.value("share"), Some(random))
                    .rotating(hot, count, total)
            }
            Kind::Pmbench => Popularity::bell(pages, spec.value("sigma")),
            Kind::Phases => {
                let hot = part(1.0 / spec.value("parts"));
                let steps = spec.value("steps") as u32;
                Popularity::hot(pages, hot, spec.value("share"), None).rotating(hot, steps, total)
            }
            Kind::SlightlyLarger => {
                let hot = (top as f64 * (1.0 + spec.value("excess"))).min(f64::from(pages)) as u32;
                Popularity::hot(pages, hot.max(1), 1.0, None)
            }
            Kind::Stream => return Self::Stream { pages, touches: spec.value("touches") },
            Kind::Chase => {
                let mut order: Vec<u32> = (0..pages).collect();
                random.shuffle(&mut order);
                let mut position = vec![0; order.len()];
                for (at, &page) in (0..).zip(&order) {
                    position[page as usize] = at;
                }
                return Self::Chase { order, position };
            }
        };
        Self::Random(popularity)
    }

    pub(super) fn pages(&self) -> u32 {
        match self {
            Self::Random(popularity) => popularity.pages(),
            Self::Chase { order, .. } => order.len() as u32,
            Self::Stream { pages, .. } => *pages,
            Self::Trace(trace) => trace.pages(),
        }
    }

    /// The page of the access with this number, and whether it is a store where that is known.
    #[inline]
    pub(super) fn draw(&self, at: f64, random: &mut Random) -> (u32, Option<bool>) {
        match self {
            Self::Random(popularity) => (popularity.draw(random), None),
            Self::Chase { order, .. } => (order[(at as u64 % order.len() as u64) as usize], None),
            Self::Stream { pages, touches } => {
                (((at / touches) as u64 % u64::from(*pages)) as u32, None)
            }
            Self::Trace(trace) => {
                let (page, store) = trace.op(at as u64);
                (page, Some(store))
            }
        }
    }

    /// Draws as many random pages as there is room for, as that many calls of [`Self::draw`] would;
    /// nothing where which page it is depends on more than that.
    pub(super) fn draw_many(&self, random: &mut Random, pages: &mut [u32]) -> bool {
        matches!(self, Self::Random(popularity) if popularity.draw_many(random, pages))
    }

    /// Expected accesses to a page between two counts of accesses.
    #[inline]
    pub(super) fn expected(&self, page: u32, from: f64, to: f64) -> f64 {
        match self {
            Self::Random(popularity) => popularity.expected(page, from, to),
            sequence => sequence.counted(page, from, to),
        }
    }

    /// The same of a sequence.
    fn counted(&self, page: u32, from: f64, to: f64) -> f64 {
        match self {
            Self::Random(popularity) => popularity.expected(page, from, to),
            Self::Chase { order, position } => {
                let before = |at: f64| {
                    let (lap, rest) = laps(at.ceil(), order.len() as f64);
                    lap + f64::from(u8::from(f64::from(position[page as usize]) < rest))
                };
                before(to) - before(from)
            }
            Self::Stream { pages, touches } => {
                let before = |at: f64| {
                    let (lap, rest) = laps(at, touches * f64::from(*pages));
                    lap * touches + (rest - f64::from(page) * touches).clamp(0.0, *touches)
                };
                before(to) - before(from)
            }
            Self::Trace(trace) => trace.count(page, from.ceil() as u64, to.ceil() as u64) as f64,
        }
    }

    /// The count at which a page is accessed next, after `at`; infinite where it never is.
    pub(super) fn next(&self, page: u32, at: f64, random: &mut Random) -> f64 {
        match self {
            Self::Random(popularity) => popularity.next(page, at, random),
            Self::Chase { order, position } => {
                let (lap, rest) = laps(at, order.len() as f64);
                let position = f64::from(position[page as usize]);
                let lap = if position > rest { lap } else { lap + 1.0 };
                lap * order.len() as f64 + position
            }
            Self::Stream { pages, touches } => {
                let lap_length = touches * f64::from(*pages);
                let (lap, rest) = laps(at, lap_length);
                let first = f64::from(page) * touches;
                if rest >= first && rest < first + touches - 1.0 {
                    at + 1.0
                } else if rest < first {
                    lap * lap_length + first
                } else {
                    (lap + 1.0) * lap_length + first
                }
            }
            Self::Trace(trace) => trace.next(page, at as u64 + 1) as f64,
        }
    }

    /// The share of the traffic that a page gets now; sequences: on average over a lap.
    #[inline]
    pub(super) fn weight(&self, page: u32) -> f64 {
        match self {
            Self::Random(popularity) => popularity.weight(page),
            sequence => sequence.mean(page),
        }
    }

    /// The same of a sequence.
    fn mean(&self, page: u32) -> f64 {
        match self {
            Self::Random(popularity) => popularity.weight(page),
            Self::Chase { order, .. } => 1.0 / order.len() as f64,
            Self::Stream { pages, .. } => 1.0 / f64::from(*pages),
            Self::Trace(trace) => {
                let ops = trace.ops();
                trace.count(page, 0, ops) as f64 / ops as f64
            }
        }
    }

    /// Where the pattern changes next, in accesses.
    pub(super) fn change(&self) -> f64 {
        match self {
            Self::Random(popularity) => popularity.change(),
            _ => f64::INFINITY,
        }
    }

    /// Which stretch between changes this is.
    pub(super) const fn phase(&self) -> usize {
        match self {
            Self::Random(popularity) => popularity.phase(),
            _ => 0,
        }
    }

    /// Goes on to the stretch that `at` lies in; whether that is another one.
    pub(super) fn enter(&mut self, at: f64) -> bool {
        let Self::Random(popularity) = self else { return false };
        let before = popularity.phase();
        popularity.enter(at);
        before != popularity.phase()
    }

    /// Hands out what is accessed from one count to another, as pages with numbers of accesses,
    /// where shares of the traffic follow from that and not from weights.
    pub(super) fn window(&self, from: f64, to: f64, mut visit: impl FnMut(u32, f64)) -> bool {
        match self {
            Self::Random(_) | Self::Chase { .. } => false,
            Self::Stream { pages, touches } => {
                let mut at = from;
                while at < to {
                    let slot = (at / touches).floor();
                    let end = ((slot + 1.0) * touches).min(to);
                    visit((slot as u64 % u64::from(*pages)) as u32, end - at);
                    at = end.max(at + 0.5);
                }
                true
            }
            Self::Trace(trace) => {
                for at in from.ceil() as u64..to.ceil() as u64 {
                    visit(trace.op(at).0, 1.0);
                }
                true
            }
        }
    }
}

/// Whole laps, and what is left.
fn laps(at: f64, length: f64) -> (f64, f64) {
    let lap = (at / length).floor();
    (lap, at - lap * length)
}
