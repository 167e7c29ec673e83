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
    walks::{Captured, Curve, End, Look, Looks, busy, tlb_levels},
};

use super::{
    ARM, modelled,
    priced::{By, ENTRIES, Seen, Sum, Walks},
};

/// Fewer looks say nothing.
const LOOKS_MIN: usize = 3;
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
        Some(Self::Seen(looked_at(&looks, covered, busy_ns, walks)))
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

/// What looks at a program's pages come to.
fn looked_at(looks: &Looks, covered: f64, busy_ns: f64, walks: &Walks) -> Seen {
    let mut sums = vec![Sum::default(); looks.places.len()];
    let stands = looks.stand_for();
    // What nobody looked at, the end above all, was as the rest.
    let scale = if stands > 0.0 { busy_ns / stands } else { 0.0 };
    for phase in looks.phases() {
        add_phase(&mut sums, &phase, walks, scale);
    }
    Seen::priced(By::Looks(looks.looks.len(), covered), &looks.places, &sums, busy_ns, walks)
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
            let near = if band.window.is_finite() {
                together.at(band.window)
            } else {
                // Between all that came in the longest window and all that there is.
                let seen = together.at(f64::MAX).max(1.0);
                (seen * resident.max(seen)).sqrt()
            };
            // So many were walked to meanwhile. What a TLB answered set no bit, and lay between as
            // well: at most all that there is.
            let far = resident.max(near);
            let distances = [near, (near * far).sqrt(), far];
            let [least, likely] = [band.least, band.likely].map(|rate| rate * stands);
            sum.add([least, likely, likely], walks, distances);
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
