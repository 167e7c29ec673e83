//! `explain/program`: what the faults of a program cost, and what would help.
//!
//! The one idea: the record of the program holds counts, the records of the same run hold what such
//! faults cost here; the time in faults is their product, with the interval of the price. What has
//! no price is not in the sum and is said beside it. Faults that waited for a device are no
//! product: how long they took was seen.
//!
//! Prices are in `prices`, what would help in `knobs`, page walks in `translation` and
//! `modelled`, the tables in `section`, what is said beside them in `notes`.

mod advice;
mod compared;
mod folded;
mod knobs;
mod modelled;
mod notes;
mod predicted;
mod priced;
mod prices;
mod section;
mod translation;
mod walks;
mod whole;

use std::collections::BTreeMap;

use pagelab_record::{Measured, Table, units, vocabulary::table};

pub(crate) use self::compared::COUNTING;
pub use self::folded::folded;
pub(crate) use self::{
    advice::value,
    predicted::{Predicted, Saving},
    section::section,
};
use self::{
    knobs::{Knob, Outcome},
    prices::Prices,
    translation::Translation,
};
use pagelab_report::{
    At, Entry, Headline, Quantity, Run, Time, Tone, Unit, elapsed, headline, tally,
};

pub(crate) use pagelab_record::vocabulary::arm::PROGRAM as ARM;

pub(crate) use crate::explain::WORKLOAD;
/// The sum over all faults that have a price.
pub(crate) const ALL: &str = "all";

/// What page walks cost.
pub(crate) const TRANSLATION: &str = "translation";

/// Faults on files in the page cache, whose price depends on its folios.
pub(crate) const FILE_MINOR: &str = "file-minor";

/// First stores to shared pages of files.
pub(crate) const MKWRITE: &str = "mkwrite";

/// Faults of one kind, page and place.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// `KIND/PAGE/PLACE`.
    pub(crate) name: String,
    /// Faults, with those that were lost on the way in proportion.
    pub(crate) faults: f64,
    /// Of them, those that waited for I/O.
    pub(crate) major: f64,
    /// Of them, those that also allocated pages of page table.
    pub(crate) tables: f64,
    /// So many of them, more or less: each of those told in brief, and not known by itself, was
    /// taken for one that was told in full.
    pub(crate) give: f64,
    /// Of them, those that met another fault of the same address space.
    pub(crate) crowded: f64,
    /// How many were in flight together then, on average.
    pub(crate) crowd: f64,
    /// What meeting added to what they cost, and the threads that it was measured with; in the
    /// cost already.
    pub(crate) crowding: Option<(Quantity, u64)>,
    /// Of faults on files in the page cache, the share whose page was of a large folio; `None`
    /// where nobody looked.
    pub(crate) folios: Option<f64>,
    /// What they took as they were watched, in nanoseconds; `None` where that was not seen.
    pub(crate) seen: Option<f64>,
    /// What they cost.
    pub(crate) cost: Option<Quantity>,
}

impl Group {
    /// Kind, page and place.
    pub(crate) fn parts(&self) -> [&str; 3] {
        let mut parts = self.name.split('/');
        std::array::from_fn(|_| parts.next().unwrap_or_default())
    }

    /// Its kind, without whether it waited.
    pub(crate) fn kind(&self) -> &str {
        let [kind, ..] = self.parts();
        kind.strip_suffix(table::WAITING).unwrap_or(kind)
    }

    /// Whether it waited for something that another had begun.
    pub(crate) fn is_waiting(&self) -> bool {
        self.parts()[0].ends_with(table::WAITING)
    }

    /// What one costs.
    pub(crate) fn each(&self) -> Option<Quantity> {
        self.cost.filter(|_| self.faults > 0.0).map(|q| q.times(1.0 / self.faults, Unit::Ns))
    }
}

/// A cell of a table of one row, by the name of its column.
pub(crate) fn cell(table: &Table, column: &str) -> Option<f64> {
    Some(table.cell(column)? as f64)
}

/// How many faults there were for each that was told.
fn scale(measured: &Measured) -> f64 {
    let of = |name: &str| measured.counter(name).unwrap_or(0) as f64;
    let (counted, lost) =
        (of("perf_minor") + of("perf_major"), of("perf_minor_lost") + of("perf_major_lost"));
    if counted > lost { counted / (counted - lost) } else { 1.0 }
}

/// Faults of which only the address was told, beside those told in full.
#[derive(Debug, Clone, Copy, Default)]
struct Brief {
    /// Faults told in full.
    in_full: f64,
    /// Stretches in which they were.
    stretches: f64,
}

impl Brief {
    fn of(measured: &Measured) -> Self {
        let stretches = measured.counter("stretches").unwrap_or(0) as f64;
        let faults = measured.tables.iter().filter(|table| table.name.starts_with("fault/"));
        let in_full = |table: &Table| Some(cell(table, "faults")? - cell(table, "brief")?);
        Self { in_full: faults.filter_map(in_full).sum(), stretches }
    }

    /// How far the number of a group may be off, of which so many were told in full and so many
    /// were not: 1.96 standard deviations of a share that was seen in so many stretches, each as
    /// one observation, because neighbours in time are alike.
    fn give(self, in_full: f64, brief: f64) -> f64 {
        if brief <= 0.0 || self.stretches < 1.0 || self.in_full <= 0.0 {
            return brief.max(0.0);
        }
        let share = (in_full / self.in_full).clamp(0.0, 1.0);
        let all = if share > 0.0 { brief / share } else { 0.0 };
        (1.96 * (share * (1.0 - share) / self.stretches).sqrt() * all).min(brief)
    }
}

/// The faults of a record by group, with those that were lost on the way in proportion.
pub(crate) fn counts(measured: &Measured) -> BTreeMap<String, f64> {
    let scale = scale(measured);
    let groups = measured.tables.iter().filter_map(|table| {
        let name = table.name.strip_prefix("fault/")?;
        Some((name.to_owned(), cell(table, "faults")? * scale))
    });
    groups.collect()
}

/// The groups of a record with what they cost.
pub(crate) fn groups(measured: &Measured, prices: &Prices) -> Vec<Group> {
    let scale = scale(measured);
    let brief = Brief::of(measured);
    let mut groups: Vec<Group> = measured
        .tables
        .iter()
        .filter_map(|table| {
            let name = table.name.strip_prefix("fault/")?.to_owned();
            let of = |column| cell(table, column).unwrap_or(0.0) * scale;
            let (faults, timed) = (of("faults"), of("timed"));
            // Earlier versions inferred all that they told in brief.
            let inferred = cell(table, "inferred").or(cell(table, "brief")).unwrap_or(0.0);
            let seen = (timed > 0.0).then(|| of("seen_ns") * faults / timed);
            // Whether faults meet is known of those whose exception was seen.
            let crowded = if timed > 0.0 { of("crowded") * faults / timed } else { 0.0 };
            let crowd = if crowded > 0.0 { of("crowd") / of("crowded") } else { 0.0 };
            let looked = of("in_folio") + of("in_base");
            let folios = (looked > 0.0).then(|| of("in_folio") / looked);
            let mut group = Group {
                name,
                faults,
                major: of("major"),
                tables: of("tables"),
                give: brief.give(of("faults") - of("brief"), inferred * scale),
                crowded,
                crowd,
                crowding: None,
                folios,
                seen,
                cost: None,
            };
            group.crowding = crowding_of(&group, prices);
            group.cost = cost_of(&group, prices);
            Some(group)
        })
        .collect();
    let rank = |group: &Group| group.cost.map_or(group.seen.unwrap_or(0.0) / 1e6, |s| s.value);
    groups.sort_by(|a, b| rank(b).total_cmp(&rank(a)).then(b.faults.total_cmp(&a.faults)));
    groups
}

/// What meeting other faults added to the faults of a group. At least nothing: faults are longer
/// while they are watched, so that more of them meet.
fn crowding_of(group: &Group, prices: &Prices) -> Option<(Quantity, u64)> {
    let [kind, page, _] = group.parts();
    let (each, threads) = prices.crowding(kind, page, group.crowd)?;
    let all = each.times(group.crowded, Unit::Ns);
    (group.crowded > 0.0).then_some((Quantity { low: 0.0, ..all }, threads))
}

fn cost_of(group: &Group, prices: &Prices) -> Option<Quantity> {
    // Beside a device the watching costs nothing, and how fast the device is nobody knows but it.
    if let Some(seen) = group.seen.filter(|_| group.major > 0.0 || group.is_waiting()) {
        return Some(Quantity::exact(seen, Unit::Ns));
    }
    let [kind, page, _] = group.parts();
    let price = match kind {
        FILE_MINOR => prices.of_file(group.folios)?,
        _ => prices.get(kind, page)?,
    };
    // A store to a page of a large folio makes all of it writable, and is measured over base pages:
    // it costs what was seen at most.
    if let (MKWRITE, Some(folios), Some(seen)) = (kind, group.folios, group.seen)
        && folios > 0.0
    {
        let small = price.fault.times(group.faults * (1.0 - folios), Unit::Ns);
        let large = Quantity { low: 0.0, ..Quantity::exact(seen * folios, Unit::Ns) };
        return Some(small.plus(large));
    }
    let faults = price.fault.times(group.faults, Unit::Ns);
    let tables = price.table.map(|table| table.times(group.tables, Unit::Ns));
    let lone = tables.map_or(faults, |tables| faults.plus(tables));
    let cost = group.crowding.map_or(lone, |(crowding, _)| lone.plus(crowding));
    let give = price.fault.value * group.give;
    Some(Quantity { low: (cost.low - give).max(0.0), high: cost.high + give, ..cost })
}

/// The sum of what has a price.
pub(crate) fn total(groups: &[Group]) -> Option<Quantity> {
    groups.iter().filter_map(|group| group.cost).reduce(Quantity::plus)
}

/// Adds what the records of a run say together about its programs.
pub(crate) fn derive(entries: &mut [Entry]) {
    let is_mine = |entry: &Entry| entry.record.workload == WORKLOAD && entry.is_valid();
    if !entries.iter().any(is_mine) {
        return;
    }
    let prices = Prices::of(entries);
    for entry in entries.iter_mut().filter(|entry| is_mine(entry)) {
        let Some(measured) = entry.measured().cloned() else { continue };
        let groups = groups(&measured, &prices);
        let numbers = &mut entry.numbers;
        for group in &groups {
            let count = Quantity::exact(group.faults, Unit::Count);
            numbers.add(tally(ARM, &group.name), "faults", Some(count));
            numbers.add(elapsed(ARM, &group.name), "per_fault", group.each());
            numbers.add(elapsed(ARM, &group.name), "stall", group.cost);
            if group.crowded > 0.0 {
                let crowded = Quantity::exact(group.crowded, Unit::Count);
                numbers.add(tally(ARM, &group.name), "crowded_faults", Some(crowded));
                let added = group.crowding.map(|(added, _)| added);
                numbers.add(elapsed(ARM, &group.name), "crowding", added);
            }
            let seen = group.seen.map(|ns| Quantity::exact(ns, Unit::Ns));
            numbers.add(elapsed(ARM, &group.name), "seen", seen);
        }
        let all = total(&groups);
        numbers.add(elapsed(ARM, ALL), "stall", all);
        let unpriced = groups.iter().filter(|g| g.cost.is_none()).map(|g| g.faults).sum();
        let unpriced = Quantity::exact(unpriced, Unit::Count);
        numbers.add(tally(ARM, ALL), "unpriced_faults", Some(unpriced));
        let busy = numbers.get(At { arm: ARM, series: "watched", time: Time::Cpu }, "p50");
        let share = all.zip(busy).and_then(|(all, busy)| all.over(busy, Unit::Share));
        numbers.add(elapsed(ARM, ALL), "share_of_cpu", share);
        if let Some(Translation::Seen(seen)) = Translation::of(&measured, &prices.walks) {
            numbers.add(tally(ARM, TRANSLATION), "walks", Some(seen.walks()));
            numbers.add(elapsed(ARM, TRANSLATION), "cost", seen.cost());
            let share = seen.cost().zip(busy).and_then(|(all, busy)| all.over(busy, Unit::Share));
            numbers.add(elapsed(ARM, TRANSLATION), "share_of_cpu", share);
        }
        for knob in knobs::knobs(&measured, &groups, &prices) {
            numbers.add(elapsed(ARM, &knob.name), "saved", Some(knob.saved));
            let others =
                [("saved_given_back", knob.given_back), ("saved_translation", knob.translation)];
            for (of, saved) in others {
                numbers.add(elapsed(ARM, &knob.name), of, saved);
            }
            if others.iter().any(|(_, saved)| saved.is_some()) {
                numbers.add(elapsed(ARM, &knob.name), "saved_in_all", Some(knob.in_all()));
            }
            let bytes = knob.bytes.map(|bytes| Quantity::exact(bytes, Unit::Count));
            numbers.add(tally(ARM, &knob.name), "extra_bytes", bytes);
        }
    }
}

/// The largest saving that is none by chance, and what the faults of the program cost.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let mine =
        run.entries.iter().find(|entry| entry.record.workload == WORKLOAD && entry.is_valid());
    let Some(mine) = mine else { return Vec::new() };
    let cost = cost_headline(mine, [ALL, "stall"], "in page faults");
    let walks = cost_headline(mine, [TRANSLATION, "cost"], "in address translation");
    let saving = cost.as_ref().and_then(|_| saving_headline(mine, &Prices::of(&run.entries)));
    saving.into_iter().chain(cost).chain(walks).collect()
}

/// A saving is worth a headline from this share of the CPU time and so many nanoseconds on.
const SHARE_MIN: f64 = 0.01;
const NS_MIN: f64 = 1e6;

/// The largest saving whose whole interval is one, or that there is none; what is an upper bound
/// promises nothing.
fn saving_headline(mine: &Entry, prices: &Prices) -> Option<Headline> {
    let measured = mine.measured()?;
    let knobs = knobs::knobs(measured, &groups(measured, prices), prices);
    let busy = mine.numbers.get(At { arm: ARM, series: "watched", time: Time::Cpu }, "p50");
    let least = busy.map_or(0.0, |busy| busy.value * SHARE_MIN).max(NS_MIN);
    let is_sure = |knob: &&Knob| knob.outcome() == Outcome::Saves && knob.in_all().value >= least;
    let Some(knob) = knobs.iter().find(is_sure) else {
        let most = knobs.first().filter(|knob| knob.in_all().high >= least).map(|knob| {
            let most = Quantity::exact(knob.in_all().high, Unit::Ns).display();
            format!("at most {most} by: {}", knob.advice.how())
        });
        return Some(Headline {
            value: "no saving".to_owned(),
            label: "is sure of any change to how memory comes".to_owned(),
            detail: most.unwrap_or_default(),
            tone: Tone::Plain,
        });
    };
    let memory = knob.bytes.filter(|bytes| *bytes > 0.0);
    let memory = memory.map(|bytes| format!("takes {} more", units::display_bytes(bytes)));
    Some(headline(knob.in_all(), format!("less by {}", knob.advice.how()), &[memory]))
}

/// What the faults or the page walks of a program cost, where that is known.
fn cost_headline(mine: &Entry, of: [&str; 2], label: &str) -> Option<Headline> {
    let [series, statistic] = of;
    let at = elapsed(ARM, series);
    let share = mine.numbers.get(at, "share_of_cpu");
    let share = share.map(|share| format!("{} of its CPU time while watched", share.display()));
    Some(headline(mine.numbers.get(at, statistic)?, label.to_owned(), &[share]))
}
