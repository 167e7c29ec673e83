//! What pages of one size would have made of the faults of one kind of memory.
//!
//! The one idea: a row of a table of densities, in numbers that add up over places.

use pagelab_record::Table;

use super::{
    Group,
    prices::{Price, Prices},
};
use pagelab_report::{Quantity, Unit};

/// What would have come in blocks of one size.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Whole {
    /// Faults in all, also outside such blocks.
    pub(super) all: f64,
    /// Faults that would have been in such blocks, or not.
    pub(super) unknown: f64,
    pub(super) blocks: f64,
    pub(super) faults: f64,
    pub(super) pages: f64,
    pub(super) waves: f64,
    /// Loads, and stores to what they had brought, that took a fault of their own.
    pub(super) reads: f64,
    pub(super) rewrites: f64,
}

impl Whole {
    pub(super) fn of(table: &Table, size: u64) -> Option<Self> {
        let all = *table.rows.iter().find(|row| row.first() == Some(&4096))?.get(2)? as f64;
        let of = |name: &str| cell_of(table, size, name);
        let (blocks, faults) = (of("blocks")?, of("faults")?);
        let (pages, waves) = (of("pages")?, of("waves")?);
        let [unknown, reads, rewrites] =
            ["unknown", "reads", "rewrites"].map(|name| of(name).unwrap_or(0.0));
        Some(Self { all, unknown, blocks, faults, pages, waves, reads, rewrites })
    }

    /// Faults that these blocks took.
    pub(super) fn taken(&self) -> f64 {
        self.faults + self.reads + self.rewrites
    }

    /// What they cost, as far as they have a price.
    pub(super) fn now(&self, base: Price, prices: &Prices) -> Quantity {
        let others = [("read", self.reads), ("zero-write", self.rewrites)].into_iter();
        let others = others.filter(|(_, faults)| *faults > 0.0);
        let dear = others.filter_map(|(kind, faults)| Some((prices.get(kind, "4k")?, faults)));
        dear.fold(base.fault.times(self.faults, Unit::Ns), |sum, (price, faults)| {
            sum.plus(price.fault.times(faults, Unit::Ns))
        })
    }

    /// How many faults of a group there were for each that was told: what was lost on the way lay
    /// as the rest did.
    pub(super) fn scale(&self, group: &Group) -> f64 {
        if self.all > 0.0 { group.faults / self.all } else { 1.0 }
    }

    pub(super) fn add(&mut self, other: &Self, scale: f64) {
        self.blocks += other.blocks * scale;
        self.faults += other.faults * scale;
        self.pages += other.pages * scale;
        self.waves += other.waves * scale;
        self.unknown += other.unknown * scale;
        self.reads += other.reads * scale;
        self.rewrites += other.rewrites * scale;
    }
}

/// A cell of the row of a size, by the name of its column; runs of earlier versions lack some.
pub(super) fn cell_of(table: &Table, size: u64, column: &str) -> Option<f64> {
    Some(table.cell_of(size.cast_signed(), column)? as f64)
}
