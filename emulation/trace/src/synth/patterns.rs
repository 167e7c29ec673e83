//! The plain patterns: one rule for the next address, and random widths, stores and values.
#![expect(clippy::cast_possible_truncation, reason = "widths are at most 8")]

use super::{
    Kind, Spec,
    random::{Permutation, Random},
    zipf::Zipf,
};
use crate::op::{Op, Visit, Width};

/// Bytes of a page of the sparse trace.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Operations of a step.
const STEP_OPS: u64 = 4096;
/// The widest operation, in bytes.
const WIDEST: u64 = 8;

/// A pattern at work.
#[derive(Debug)]
pub(super) struct Pattern {
    random: Random,
    base: u64,
    /// None for any of them.
    width: Option<Width>,
    /// In millionths.
    stores: u64,
    place: Place,
}

/// Where the next operation is, counted from the base.
#[derive(Debug)]
enum Place {
    /// Some places a stride apart, in order.
    Sequential { stride: u64, places: u64, next: u64 },
    /// Any of the slots.
    Uniform { slot_bytes: u64, slots: u64 },
    /// Any slot of an item by Zipf's law.
    Zipf { zipf: Zipf, scattered: Permutation, item: u64, slot_bytes: u64, slots: u64 },
    /// Every place a stride apart once, in the order of a permutation, then again.
    Chase { order: Permutation, stride: u64, next: u64 },
    /// Any slot of some pages of all.
    Sparse { all: Permutation, pages: u64 },
}

impl Pattern {
    /// The pattern of a spec that was checked.
    pub(super) fn new(spec: &Spec) -> Self {
        let mut random = Random::new(spec.seed);
        let [footprint, stride, item] =
            ["footprint", "stride", "item"].map(|name| spec.value(name));
        // What has a width of its own does not name it.
        let named = spec.generator.parameters.iter().any(|parameter| parameter.name == "width");
        let width = if named { spec.value("width") } else { WIDEST };
        let slot_bytes = if width == 0 { WIDEST } else { width };
        let place = match spec.generator.kind {
            Kind::Sequential => {
                let places = (footprint - slot_bytes) / stride + 1;
                Place::Sequential { stride, places, next: 0 }
            }
            Kind::Zipf => {
                let items = footprint / item;
                let scattered = Permutation::new(items, &mut random);
                let zipf = Zipf::new(items, spec.value("exponent"));
                Place::Zipf { zipf, scattered, item, slot_bytes, slots: item / slot_bytes }
            }
            Kind::PointerChase => {
                let order = Permutation::new(footprint / stride, &mut random);
                Place::Chase { order, stride, next: 0 }
            }
            Kind::Sparse => {
                let pages = 1 << (spec.value("bits") - u64::from(PAGE_BYTES.ilog2()));
                let all = Permutation::new(pages, &mut random);
                Place::Sparse { all, pages: spec.value("pages") }
            }
            Kind::Uniform | Kind::Fib | Kind::ExecBlock => {
                Place::Uniform { slot_bytes, slots: footprint / slot_bytes }
            }
        };
        let width = Width::of(width as usize);
        Self { random, base: spec.value("base"), width, stores: spec.value("stores"), place }
    }

    /// Some thousand operations.
    ///
    /// # Errors
    /// What the visitor says.
    pub(super) fn step<V: Visit>(&mut self, sink: &mut V) -> Result<(), V::Stop> {
        for _ in 0..STEP_OPS {
            let addr = self.base + self.place.next(&mut self.random);
            let random = &mut self.random;
            let width = self.width.unwrap_or_else(|| Width::ALL[random.below(4) as usize]);
            if self.stores > 0 && self.random.chance(self.stores) {
                Op::store(addr, width, self.random.next()).visit(sink)?;
            } else {
                Op::load(addr, width).visit(sink)?;
            }
        }
        Ok(())
    }
}

impl Place {
    #[inline]
    fn next(&mut self, random: &mut Random) -> u64 {
        match self {
            Self::Sequential { stride, places, next } => {
                let place = *next;
                *next = if place + 1 == *places { 0 } else { place + 1 };
                place * *stride
            }
            Self::Uniform { slot_bytes, slots } => random.below(*slots) * *slot_bytes,
            Self::Zipf { zipf, scattered, item, slot_bytes, slots } => {
                let place = scattered.at(zipf.draw(random));
                place * *item + random.below(*slots) * *slot_bytes
            }
            Self::Chase { order, stride, next } => {
                let place = order.at(*next);
                *next = if *next + 1 == order.count() { 0 } else { *next + 1 };
                place * *stride
            }
            Self::Sparse { all, pages } => {
                let page = all.at(random.below(*pages));
                page * PAGE_BYTES + random.below(PAGE_BYTES / WIDEST) * WIDEST
            }
        }
    }
}
