//! Which latency distributions are drawn together, and how.
//!
//! The one idea: a dozen curves can be told apart, sixty cannot. Where there are more, one pair of
//! planes compares kinds of fault and another page sizes, each with everything else as most cases
//! have it; what is left out stands in the table.

use pagelab_record::{
    Series,
    stats::Samples,
    vocabulary::{
        arm::{AS_PUBLISHED, CONTROL, OURS as ARM},
        series::FAULT,
    },
};

use crate::latency::NAME;
use pagelab_report::{
    Axis, Curve, Entry, Mark, Plane, Scale, Time, Unit, chart::Dash, clock_of, hue, parameters,
    steps_of,
};

/// More curves than this are drawn in families.
const TOGETHER_MAX: usize = 12;
/// The least share of faults that is drawn.
const FLOOR: f64 = 1e-4;

/// One distribution.
struct Distribution {
    label: String,
    kind: String,
    page: String,
    control: bool,
    /// Value in nanoseconds, and the share of the observations up to it.
    steps: Vec<(f64, f64)>,
}

/// The cases that are drawn together, and what they have in common.
struct Members<'a> {
    /// Empty where they are all there are.
    name: &'static str,
    entries: Vec<&'a Entry>,
}

/// Two planes for each family of the latency cases that are valid.
pub(crate) fn blocks(entries: &[Entry]) -> Vec<Plane> {
    members(entries).iter().flat_map(planes).flatten().collect()
}

fn members(entries: &[Entry]) -> Vec<Members<'_>> {
    let mine = entries.iter().filter(|entry| entry.record.workload == NAME);
    let mine: Vec<&Entry> =
        mine.filter(|entry| entry.is_valid() && !steps(entry, ARM).is_empty()).collect();
    if mine.len() <= TOGETHER_MAX {
        let all = Members { name: "", entries: mine };
        return if all.entries.is_empty() { Vec::new() } else { vec![all] };
    }
    let cases: Vec<_> = mine.iter().map(|entry| entry.case()).collect();
    let usual = parameters::usual(&cases);
    let like_most = |entry: &&&Entry| parameters::unusual(entry.case(), &usual, &["kind", "page"]);
    let ordinary: Vec<&Entry> = mine.iter().filter(|e| like_most(e) == 0).copied().collect();
    let of = |(name, parameter, value): (&'static str, &str, &str)| {
        let mine = ordinary.iter().filter(|entry| entry.value(parameter) == value);
        Members { name, entries: mine.copied().collect() }
    };
    let families = [
        ("4 KiB pages, by kind of fault", "page", "4k"),
        ("kind=write, by page size", "kind", "write"),
        ("2 MiB pages, by kind of fault", "page", "2m"),
    ];
    families.map(of).into_iter().filter(|family| family.entries.len() > 1).collect()
}

fn planes(members: &Members<'_>) -> [Option<Plane>; 2] {
    let all = distributions(&members.entries);
    let title = |title: &str| match members.name {
        "" => title.to_owned(),
        name => format!("{title}: {name}"),
    };
    let caption = match members.name {
        "" => {
            "Cumulative share of faults by latency, one curve for each kind and page size; dashed \
             grey is the same loop over present pages."
        }
        _ => {
            "Cumulative share of faults by latency, with all else as most cases have it; the \
             others are in the table. Dashed grey is the same loop over present pages."
        }
    };
    // Where a curve has come so far.
    let at = |share: f64| {
        let reached =
            move |d: &Distribution| d.steps.iter().find(|(_, done)| *done >= share).map(|s| s.0);
        all.iter().filter_map(reached)
    };
    let low = 10_f64.powf(at(0.001).fold(f64::MAX, f64::min).max(10.0).log10().floor());
    let until = |share| 10_f64.powf(at(share).fold(low, f64::max).log10().ceil());
    let (high, top) = (until(0.999), until(1.0));
    let looks = looks(&all);
    let curves = |steps: &dyn Fn(&Distribution) -> Vec<(f64, f64)>| -> Vec<Curve> {
        let curve = |(one, (hue, dash)): (&Distribution, &(Option<f64>, Dash))| {
            Curve::new(one.label.clone(), *hue, Mark::Steps, steps(one)).drawn(*dash)
        };
        all.iter().zip(&looks).map(curve).collect()
    };
    let x = || Axis::new("latency of one fault", Unit::Ns, Scale::Decades);
    let done = Plane::new(
        &title("How many faults are done by then"),
        caption,
        [
            x().between(low, high),
            Axis::new("share of faults done", Unit::Share, Scale::Linear).between(0.0, 1.0),
        ],
        curves(&|one| {
            let ends = [(low / 2.0, 0.0)].into_iter().chain(one.steps.iter().copied());
            thinned(ends.chain([(high * 2.0, 1.0)]), |before, now| now - before >= 1.0 / 300.0)
        }),
    );
    let longer = Plane::new(
        &title("How many faults take longer"),
        "The same curves from the other end, on a logarithmic scale: 10 % is p90, 0.1 % is p99.9.",
        [
            x().between(low, top),
            Axis::new("share of faults that take longer", Unit::Share, Scale::Decades)
                .between(FLOOR, 1.0),
        ],
        curves(&|one| {
            let left = one.steps.iter().map(|(value, done)| (*value, 1.0 - done));
            let left = left.map(|(value, left)| (value, left.max(FLOOR / 10.0)));
            thinned([(low / 2.0, 1.0)].into_iter().chain(left), |before, now| now < before * 0.97)
        }),
    );
    [done.shown(), longer.shown()]
}

/// The points that can be told from the one before, and the last.
fn thinned(
    points: impl Iterator<Item = (f64, f64)>,
    is_apart: impl Fn(f64, f64) -> bool,
) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let mut points = points.peekable();
    while let Some(point) = points.next() {
        if points.peek().is_none() || kept.last().is_none_or(|last| is_apart(last.1, point.1)) {
            kept.push(point);
        }
    }
    kept
}

fn distributions(entries: &[&Entry]) -> Vec<Distribution> {
    let groups: Vec<_> =
        entries.iter().map(|e| parameters::without(e.case(), &["size", "dir"])).collect();
    let labels = parameters::labels(&groups.iter().collect::<Vec<_>>(), "fault");
    let mut all: Vec<Distribution> = Vec::new();
    for (entry, label) in entries.iter().zip(labels) {
        let label = label.replace("page=", "");
        for (arm, suffix) in
            [(ARM, ""), (AS_PUBLISHED, ", as published"), (CONTROL, ", present (control)")]
        {
            let control = arm == CONTROL;
            // The control differs little from case to case: the first speaks for all.
            if control && all.iter().any(|one| one.control) {
                continue;
            }
            let steps = steps(entry, arm);
            if !steps.is_empty() {
                let [kind, page] = ["kind", "page"].map(|name| entry.value(name).to_owned());
                let label =
                    if control { "present page".to_owned() } else { format!("{label}{suffix}") };
                all.push(Distribution { label, kind, page, control, steps });
            }
        }
    }
    all.sort_by_key(|one| (one.control, one.kind.clone(), parameters::page_rank(&one.page)));
    all
}

/// A colour and a line for each: by kind and page. Where there are more than colours, they go once
/// around the circle and every other one is dashed; what was measured of one kind and page in
/// another way is dotted.
fn looks(all: &[Distribution]) -> Vec<(Option<f64>, Dash)> {
    let mut things: Vec<(&str, &str)> = Vec::new();
    let look = |one| {
        let Distribution { kind, page, control, .. }: &Distribution = one;
        if *control {
            return None;
        }
        let known = things.iter().position(|thing| *thing == (kind, page));
        if known.is_none() {
            things.push((kind, page));
        }
        Some((known.unwrap_or(things.len() - 1), known.is_some()))
    };
    let places: Vec<Option<(usize, bool)>> = all.iter().map(look).collect();
    let (count, few) = (things.len(), things.len() <= 8);
    let of = |(nth, again): (usize, bool)| {
        let around = (255.0 + 360.0 * nth as f64 / count as f64) % 360.0;
        let dash = match () {
            () if again => Dash::Dotted,
            () if few || nth.is_multiple_of(2) => Dash::Whole,
            () => Dash::Dashed,
        };
        (Some(if few { hue(nth) } else { around }), dash)
    };
    places.into_iter().map(|place| place.map_or((None, Dash::Dashed), of)).collect()
}

/// The distribution of the faults of an arm: nanoseconds, and the share of faults up to there.
fn steps(entry: &Entry, arm: &str) -> Vec<(f64, f64)> {
    let all = entry.measured().map_or(&[][..], |measured| &measured.series);
    let mut mine = all.iter().filter(|s| s.name == FAULT && s.arm == arm);
    let clock = clock_of(all, FAULT, arm, Time::Elapsed);
    let Some(clock) = clock.filter(|_| mine.any(Series::is_distribution)) else {
        return Vec::new();
    };
    steps_of(&Samples::of(all, FAULT, arm, clock))
}
