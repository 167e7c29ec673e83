//! Walks of a program by kind of memory, and what they cost, however they were seen.
//!
//! The one idea: whoever counted walks hands them over as rates at a distance ([`Sum`]), with three
//! ends; the price of each comes from chains of loads of the same run, that wait for each other or
//! do not.

use pagelab_record::walks::End;
use pagelab_report::{Entry, Quantity, Unit};
use pagelab_translation::prices::Prices as Chains;

/// Of eight entries of a page table in a cache line, pages in order bring one.
const IN_ORDER: f64 = 8.0;
/// Pages that THP gives.
pub(crate) const LARGE: u64 = 2 << 20;
/// Every second-level TLB of the last ten years holds so many base pages, or more.
pub(super) const ENTRIES: f64 = 1024.0;
/// Kinds of memory whose pages a setting makes larger.
const HEAP: &str = "heap";
const ANONYMOUS: &str = "anonymous";

/// What a walk costs, by how many pages lie between two uses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Walks {
    /// Where each load waits for the one before it.
    waiting: Option<Chains>,
    /// Where it does not.
    free: Option<Chains>,
}

impl Walks {
    /// Of all valid records.
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let records = entries.iter().map(|entry| &entry.record);
        let mut mine: Vec<Chains> = Chains::of(records);
        mine.retain(|chains| chains.page == "4k" && chains.against == "2m");
        let mut of = |waits: bool| {
            let at = mine.iter().position(|chains| (chains.together == 1) == waits)?;
            Some(mine.swap_remove(at))
        };
        Self { waiting: of(true), free: of(false) }
    }
}

/// Walks of a program.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// How they were seen.
    pub(crate) by: By,
    /// By kind of memory, the dearest first.
    pub(crate) places: Vec<Place>,
    /// Whether the shortest window was too long for some, so that nobody knows how often.
    pub(crate) is_open: bool,
    /// Nanoseconds on the CPU while it was watched.
    pub(crate) busy_ns: f64,
}

/// How walks were seen.
#[derive(Debug, Clone)]
pub(crate) enum By {
    /// By accessed bits: so many looks, and the part of the CPU time that they stand for.
    Looks(usize, f64),
    /// By accesses, in a modelled TLB.
    Model(Model),
}

/// Walks to one kind of memory.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Which.
    pub(crate) name: String,
    /// How many.
    pub(crate) walks: Quantity,
    /// What they cost more than over pages of 2 MiB.
    pub(crate) cost: Option<Quantity>,
    /// The part of them where such a page could lie.
    pub(super) whole: f64,
    /// The part of those that would remain over larger pages, by their bytes, rising; of others
    /// nothing is known to.
    pub(super) left: Vec<(u64, f64)>,
}

/// How walks were modelled.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    /// How the capture ended.
    pub(super) end: End,
    /// Operations that it saw.
    pub(super) ops: u64,
    /// Whether the processor names the last TLB for base pages.
    pub(super) is_named: bool,
    /// Whether the program started others, which nobody captured.
    pub(super) has_children: bool,
    /// By page size, rising.
    pub(super) sizes: Vec<Size>,
}

/// What pages of one size come to.
#[derive(Debug, Clone)]
pub(crate) struct Size {
    /// Bytes of a page.
    pub(super) bytes: u64,
    /// Entries of the last TLB.
    pub(super) entries: u64,
    /// Entries of the first TLB, and misses there that the last one answers.
    pub(super) near: Option<(u64, f64)>,
    /// Misses of the last one by loads and stores.
    pub(super) walks: Quantity,
    /// The same by fetches.
    pub(super) fetches: f64,
}

/// What walks come to: with the price of loads that wait, and of those that do not.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) least: f64,
    likely: f64,
    most: f64,
    /// Of the least, where a larger page could lie.
    pub(super) whole: f64,
    /// Least, likely and most, and the most with all that lay between as far as it may be.
    waiting: [f64; 4],
    free: [f64; 4],
    /// What the loads took in all, if each waited.
    loads: f64,
    /// How many times as many there may have been as are likely; infinite where nobody knows.
    pub(super) at_most: f64,
}

impl Seen {
    /// What walks to some places cost.
    pub(super) fn priced(
        by: By,
        names: &[String],
        sums: &[Sum],
        busy_ns: f64,
        walks: &Walks,
    ) -> Self {
        let loads: f64 = sums.iter().map(|sum| sum.loads).sum();
        // Loads that would take longer than the program did, one after the other, were under way
        // together, and so were their walks.
        let at_once = if loads > busy_ns && loads > 0.0 { busy_ns / loads } else { 1.0 };
        let is_priced = walks.waiting.is_some();
        let places = names.iter().zip(sums).map(|(name, sum)| {
            // What nobody bounds has no upper end that could be told.
            let factor = if sum.at_most.is_finite() { sum.at_most.max(1.0) } else { 1.0 };
            let high = sum.most * factor;
            let walks = Quantity { low: sum.least, high, ..of(sum.likely) };
            let whole = if sum.least > 0.0 { sum.whole / sum.least } else { 0.0 };
            let cost = is_priced.then(|| sum.cost(at_once, busy_ns, loads));
            Place { name: name.clone(), walks, cost, whole, left: Vec::new() }
        });
        let mut places: Vec<Place> = places.collect();
        let rank = |place: &Place| (place.cost.map_or(0.0, |cost| cost.value), place.walks.value);
        places.sort_by(|a, b| rank(b).partial_cmp(&rank(a)).unwrap_or(std::cmp::Ordering::Equal));
        let is_open = sums.iter().any(|sum| sum.at_most.is_infinite());
        Self { by, places, is_open, busy_ns }
    }

    /// All walks.
    pub(crate) fn walks(&self) -> Quantity {
        let all = self.places.iter().map(|place| place.walks);
        all.reduce(Quantity::plus).map_or(of(0.0), |all| Quantity { unit: Unit::Count, ..all })
    }

    /// What all of them cost; `None` without a price.
    pub(crate) fn cost(&self) -> Option<Quantity> {
        if self.places.is_empty() {
            return Some(nanoseconds([0.0; 3]));
        }
        self.places.iter().map(|place| place.cost).reduce(|a, b| Some(a?.plus(b?)))?
    }

    /// What pages of a size would save of it, where at least and at most these shares of anonymous
    /// mappings had them; `None` where they would change nothing, or nothing has a price.
    pub(crate) fn saved(&self, bytes: u64, [least, most]: [f64; 2]) -> Option<Quantity> {
        let of = |place: &str| {
            let mine = self.places.iter().find(|known| known.name == place)?;
            Some(mine.cost?.times(mine.gone(bytes).max(1e-9), Unit::Ns))
        };
        let share = |all: Quantity| Quantity { low: all.low * least, ..all.times(most, Unit::Ns) };
        let all = match (of(HEAP), of(ANONYMOUS).map(share)) {
            (Some(heap), Some(anonymous)) => Some(heap.plus(anonymous)),
            (heap, anonymous) => heap.or(anonymous),
        }?;
        // From nothing, where no entry of a TLB holds more than a base page, to all.
        let half = Quantity { value: all.value / 2.0, low: 0.0, ..all };
        Some(if bytes == LARGE { all } else { half })
    }
}

impl Place {
    /// The part of its walks that pages of so many bytes would take away; between two sizes that
    /// were looked at, what the larger one would.
    pub(super) fn gone(&self, bytes: u64) -> f64 {
        let left = self.left.iter().find(|(known, _)| *known >= bytes);
        self.whole * (1.0 - left.map_or(0.0, |(_, left)| *left))
    }
}

fn of(walks: f64) -> Quantity {
    Quantity { coverage: 0.0, processes: 1, ..Quantity::exact(walks, Unit::Count) }
}

fn nanoseconds([low, value, high]: [f64; 3]) -> Quantity {
    Quantity { low, high, processes: 1, ..Quantity::exact(value, Unit::Ns) }
}

impl Sum {
    fn cost(&self, at_once: f64, busy_ns: f64, loads: f64) -> Quantity {
        let waiting = self.waiting.map(|ns| ns * at_once);
        // However often it walked: a program does nothing but such loads at most.
        let most = busy_ns * if loads > 0.0 { self.waiting[2] / loads } else { 0.0 };
        // What comes more often than was seen comes again soon; the rest may lie far apart.
        let high = (waiting[2] * self.at_most.max(1.0)).min(most.max(waiting[2])).max(waiting[3]);
        let value = f64::midpoint(self.free[1].min(waiting[1]), waiting[1]);
        let low = (self.free[0] / IN_ORDER).min(value);
        nanoseconds([low, value, high.max(value)])
    }

    /// Walks: at least, most likely and at most so many, and so many pages between two of a page.
    pub(super) fn add(&mut self, rates: [f64; 3], walks: &Walks, distances: [f64; 3]) {
        let [least, likely, most] = rates;
        self.least += least;
        self.likely += likely;
        self.most += most;
        let price = |chains: &Option<Chains>| {
            let chains = chains.as_ref()?;
            let [near, middle, far] = distances.map(|distance| chains.at(distance));
            let (near, middle, far) = (near?, middle?, far?);
            Some([near.low, middle.value, near.high, far.high].map(|ns| ns.max(0.0)))
        };
        let add = |sum: &mut [f64; 4], [low, value, high, far]: [f64; 4]| {
            sum[0] += least * low;
            sum[1] += likely * value;
            sum[2] += most * high;
            sum[3] += most * far;
        };
        if let Some(price) = price(&walks.waiting) {
            add(&mut self.waiting, price);
        }
        if let Some(price) = price(&walks.free) {
            add(&mut self.free, price);
        }
        let load = walks.waiting.as_ref().and_then(|chains| chains.load_at(distances[0]));
        self.loads += likely * load.unwrap_or(0.0);
    }
}
