//! What address translation costs a program, from the pages that it walked to.
//!
//! The one idea: how often it walked follows from the windows of its record
//! ([`pagelab_record::walks`]), what a walk costs from the chains of loads of the same run: a load
//! over base pages less the same load over pages of 2 MiB. Loads that wait for each other pay all
//! of it, loads that do not wait pay what is left when walks overlap, and pages that come in order
//! pay less still; which of them a program has nobody sees from outside. So it is an interval: the
//! ends are those kinds of loads, and the value lies midway between the first two. Where the
//! program's accesses were captured instead, a modelled TLB says how often ([`super::modelled`]).

use pagelab_record::{
    Clock, Data, Measured,
    translation::{Extra, Prices as Chains},
    vocabulary::knob,
    walks::{Captured, Curve, End, Look, Looks, busy, tlb_levels},
};

use super::{
    ARM,
    modelled::{self, Model},
};
use crate::{Entry, Quantity, Unit};

/// Of eight entries of a page table in a cache line, pages in order bring one.
const IN_ORDER: f64 = 8.0;
/// Fewer looks say nothing.
const LOOKS_MIN: usize = 3;
pub(super) const LARGE: u64 = 2 << 20;
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

/// What was seen of a program's walks, and what they cost.
#[derive(Debug, Clone)]
pub(crate) enum Translation {
    /// Too short a program: so many looks.
    TooShort(usize),
    /// It was not allowed.
    Refused,
    /// Under emulation the program ended otherwise than by itself, or nobody waited for it.
    Unlike(End),
    /// Walks, with their cost where they have a price.
    Seen(Seen),
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

impl Translation {
    /// Of a program; `None` where nobody asked.
    pub(crate) fn of(measured: &Measured, walks: &Walks) -> Option<Self> {
        if measured.counters.get("sees_walks") == Some(&0) {
            return Some(Self::Refused);
        }
        if let Some(captured) = Captured::of(measured) {
            if let End::Interrupted | End::Otherwise = captured.end {
                return Some(Self::Unlike(captured.end));
            }
            let levels = |bytes| tlb_levels(&measured.tables, bytes);
            let has_children = measured.counters.get("processes").is_some_and(|many| *many > 1);
            let busy_ns = busy_ns(measured);
            let seen = modelled::seen(&captured, has_children, &levels, busy_ns, walks);
            return Some(Self::Seen(seen));
        }
        let mut looks = Looks::of(&measured.tables)?;
        if looks.looks.len() < LOOKS_MIN {
            return Some(Self::TooShort(looks.looks.len()));
        }
        let (busy_ns, covered) = (busy_ns(measured), looks.stand_for());
        // What came behind the last look at a lone process was as at that.
        if measured.counters.get("processes") == Some(&1) {
            looks.last_stands_for(busy_ns - covered);
        }
        let covered = if busy_ns > 0.0 { (covered / busy_ns).min(1.0) } else { 0.0 };
        Some(Self::Seen(Seen::of(&looks, covered, busy_ns, walks)))
    }

    /// What was seen, where something was.
    pub(crate) fn seen(&self) -> Option<&Seen> {
        match self {
            Self::Seen(seen) => Some(seen),
            Self::TooShort(_) | Self::Refused | Self::Unlike(_) => None,
        }
    }
}

fn busy_ns(measured: &Measured) -> f64 {
    let is_it =
        |s: &&pagelab_record::Series| s.name == "watched" && s.arm == ARM && s.clock == Clock::Cpu;
    match measured.series.iter().find(is_it).map(|series| &series.data) {
        Some(Data::Values(values)) => values.iter().map(|ns| *ns as f64).sum(),
        _ => 0.0,
    }
}

/// What walks come to: with the price of loads that wait, and of those that do not.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    least: f64,
    likely: f64,
    most: f64,
    /// Of the least, where a larger page could lie.
    whole: f64,
    waiting: [f64; 3],
    free: [f64; 3],
    /// What the loads took in all, if each waited.
    loads: f64,
    /// How many times as many there may have been as are likely; infinite where nobody knows.
    at_most: f64,
}

impl Seen {
    fn of(looks: &Looks, covered: f64, busy_ns: f64, walks: &Walks) -> Self {
        let mut sums = vec![Sum::default(); looks.places.len()];
        let stands = looks.stand_for();
        // What nobody looked at, the end above all, was as the rest.
        let scale = if stands > 0.0 { busy_ns / stands } else { 0.0 };
        for phase in looks.phases() {
            add_phase(&mut sums, &phase, walks, scale);
        }
        Self::priced(By::Looks(looks.looks.len(), covered), &looks.places, &sums, busy_ns, walks)
    }

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

    /// What a change to how memory comes would save of it; `None` where it would change nothing, or
    /// nothing has a price.
    pub(crate) fn saved(&self, name: &str) -> Option<Quantity> {
        let bytes = if name == knob::MALLOC_THP { LARGE } else { knob::bytes_of(name)? };
        let of = |place: &str| {
            let mine = self.places.iter().find(|known| known.name == place)?;
            Some(mine.cost?.times(mine.gone(bytes).max(1e-9), Unit::Ns))
        };
        let (heap, anonymous) = (of(HEAP), of(ANONYMOUS));
        let all = match (heap, anonymous) {
            (Some(heap), Some(anonymous)) => Some(heap.plus(anonymous)),
            (heap, anonymous) => heap.or(anonymous),
        }?;
        match name {
            // Whose the mappings are nobody knows.
            knob::MALLOC_THP => Some(Quantity { low: heap.map_or(0.0, |heap| heap.low), ..all }),
            _ if bytes == LARGE => Some(all),
            // From nothing, where no entry of a TLB holds more than a base page, to all.
            _ => Some(Quantity { value: all.value / 2.0, low: 0.0, ..all }),
        }
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
        let high = (waiting[2] * self.at_most.max(1.0)).min(most.max(waiting[2]));
        let value = f64::midpoint(self.free[1].min(waiting[1]), waiting[1]);
        let low = (self.free[0] / IN_ORDER).min(value);
        nanoseconds([low, value, high.max(value)])
    }

    /// Walks at a distance: at least, most likely and at most.
    pub(super) fn add(&mut self, rates: [f64; 3], walks: &Walks, distance: f64) {
        let [least, likely, most] = rates;
        self.least += least;
        self.likely += likely;
        self.most += most;
        let price = |chains: &Option<Chains>| {
            let Extra { value, low, high, .. } = chains.as_ref()?.at(distance)?;
            Some([low, value, high].map(|ns| ns.max(0.0)))
        };
        let add = |sum: &mut [f64; 3], [low, value, high]: [f64; 3]| {
            sum[0] += least * low;
            sum[1] += likely * value;
            sum[2] += most * high;
        };
        if let Some(price) = price(&walks.waiting) {
            add(&mut self.waiting, price);
        }
        if let Some(price) = price(&walks.free) {
            add(&mut self.free, price);
        }
        let load = walks.waiting.as_ref().and_then(|chains| chains.load_at(distance));
        self.loads += likely * load.unwrap_or(0.0);
    }
}

/// Adds the walks of looks between which the program was about the same.
fn add_phase(sums: &mut [Sum], phase: &[&Look], walks: &Walks, scale: f64) {
    let stands = scale * phase.iter().map(|look| look.stands_ns as f64).sum::<f64>();
    let all = |look: &Look| {
        look.walked.iter().map(|w| f64::midpoint(w.least as f64, w.most as f64)).sum()
    };
    let Some(together) = curve(phase, &all) else { return };
    let resident = mean(phase, |look| look.resident as f64);
    let at_most = at_most(sums.len(), phase);
    for (nth, sum) in sums.iter_mut().enumerate() {
        let of = |look: &Look| {
            look.walked.get(nth).map_or(0.0, |w| f64::midpoint(w.least as f64, w.most as f64))
        };
        let Some(curve) = curve(phase, &of) else { continue };
        let [whole, pages] = [
            mean(phase, |look| look.walked.get(nth).map_or(0.0, |w| w.whole as f64)),
            mean(phase, |look| look.walked.get(nth).map_or(0.0, |w| w.least as f64)),
        ];
        let before = sum.least;
        for band in curve.bands() {
            let distance = if band.window.is_finite() {
                together.at(band.window)
            } else {
                // Between all that came in the longest window and all that there is.
                let seen = together.at(f64::MAX).max(1.0);
                (seen * resident.max(seen)).sqrt()
            };
            let [least, likely] = [band.least, band.likely].map(|rate| rate * stands);
            sum.add([least, likely, likely], walks, distance);
        }
        let share = if pages > 0.0 { whole / pages } else { 0.0 };
        sum.whole += (sum.least - before) * share.min(1.0);
        sum.at_most = sum.at_most.max(if curve.is_full() && pages > 0.0 { at_most } else { 1.0 });
    }
}

/// How many times as many walks as are likely there may have been. Of pages that all come within
/// the shortest window nobody knows how often; but between two walks to a page others have pushed
/// it out of the TLB: as many as that holds. So few such pages add a part, and many add anything.
fn at_most(places: usize, phase: &[&Look]) -> f64 {
    let of = |nth: usize| {
        let pages = |look: &Look| look.walked.get(nth).map_or(0.0, |w| w.most as f64);
        curve(phase, &pages).filter(Curve::is_full).map_or(0.0, |curve| curve.first())
    };
    let often: f64 = (0..places).map(of).sum();
    if often <= ENTRIES / 2.0 { 1.0 / (1.0 - often / ENTRIES) } else { f64::INFINITY }
}

/// The mean over time.
fn mean(phase: &[&Look], of: impl Fn(&Look) -> f64) -> f64 {
    let weight: f64 = phase.iter().map(|look| look.stands_ns as f64).sum();
    let sum: f64 = phase.iter().map(|look| of(look) * look.stands_ns as f64).sum();
    if weight > 0.0 { sum / weight } else { 0.0 }
}

/// Pages by CPU time, in windows that were aimed at the same length together.
fn curve(phase: &[&Look], of: &dyn Fn(&Look) -> f64) -> Option<Curve> {
    let mut levels: Vec<u64> = phase.iter().map(|look| look.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let point = |level: u64| {
        let mine: Vec<&Look> = phase.iter().copied().filter(|look| look.level == level).collect();
        let weight: f64 = mine.iter().map(|look| look.stands_ns as f64).sum();
        [busy(&mine, phase) * mean(&mine, |look| look.window_ns as f64), mean(&mine, of), weight]
    };
    Curve::through(&levels.into_iter().map(point).collect::<Vec<_>>())
}
