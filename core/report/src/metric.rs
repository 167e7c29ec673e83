//! What of a record is compared: its series, and one number for each process.
//!
//! A case is compared by one number, whose series the view of its workload names. Arms are compared
//! inside a case already; of two runs it is our own loop that is compared, or every arm where there
//! is none.

use std::{collections::BTreeSet, str::FromStr};

use pagelab_record::{
    Case, Clock, Data, Measured, Series,
    stats::{self, Samples},
    verdict::Better,
    vocabulary::{
        arm,
        series::{MAP, POPULATE, TOUCH},
    },
};

use crate::{
    numbers::{Time, clock_of, summed},
    parameter,
    quantity::Unit,
};

/// Map, populate and touch taken together.
pub const FAULT_IN: &str = "fault-in";

/// What is taken of the observations of a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistic(Kind);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// A quantile of the time of one operation, in parts of a thousand.
    Quantile(u16),
    /// Bytes a second, by the median.
    Bandwidth,
    /// Operations a second, by the median.
    Rate,
}

impl Statistic {
    /// The median.
    pub const MEDIAN: Self = Self(Kind::Quantile(500));
    /// Bytes a second.
    pub(crate) const BANDWIDTH: Self = Self(Kind::Bandwidth);

    /// `p50`, `p99.9`, `bandwidth`, `rate`.
    pub fn name(self) -> String {
        match self.0 {
            Kind::Quantile(mille) if mille.is_multiple_of(10) => format!("p{}", mille / 10),
            Kind::Quantile(mille) => format!("p{}.{}", mille / 10, mille % 10),
            Kind::Bandwidth => "bandwidth".to_owned(),
            Kind::Rate => "rate".to_owned(),
        }
    }

    pub(crate) fn better(self) -> Better {
        match self.0 {
            Kind::Quantile(_) => Better::Less,
            Kind::Bandwidth | Kind::Rate => Better::More,
        }
    }
}

impl FromStr for Statistic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = match text {
            "bandwidth" => Some(Kind::Bandwidth),
            "rate" => Some(Kind::Rate),
            _ => text.strip_prefix('p').and_then(|percent| {
                let (whole, tenth) = percent.split_once('.').unwrap_or((percent, "0"));
                let (whole, tenth): (u16, u16) = (whole.parse().ok()?, tenth.parse().ok()?);
                let mille = whole.checked_mul(10)? + tenth;
                (tenth < 10 && (1..1000).contains(&mille)).then_some(Kind::Quantile(mille))
            }),
        };
        kind.map(Self).ok_or_else(|| {
            format!("`{text}` is no metric: write p50, p99, p99.9, bandwidth or rate")
        })
    }
}

/// A place in a record where a number to compare stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) arm: String,
    pub(crate) series: String,
    time: Time,
}

impl Place {
    /// `fault p50`, `clear/nt-store p50`.
    pub(crate) fn metric(&self, statistic: Statistic) -> String {
        let arm = match self.arm.as_str() {
            arm::OURS | arm::PUBLISHED => String::new(),
            other => format!("/{other}"),
        };
        format!("{}{arm} {}", self.series, statistic.name())
    }

    /// The same by the time on the CPU.
    pub(crate) fn on_cpu(&self) -> Self {
        Self { time: Time::Cpu, ..self.clone() }
    }

    /// Whether it is the same place in another record: what was published is nobody's loop.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let is_published =
            |place: &Self| [arm::PUBLISHED, arm::AS_PUBLISHED].contains(&place.arm.as_str());
        (&self.series, self.time) == (&other.series, other.time)
            && (self.arm == other.arm || is_published(self) || is_published(other))
    }
}

/// The places of a record that are compared: that of the `main` series, or `all` times.
pub(crate) fn places(
    main: Option<(&str, Time)>,
    case: &Case,
    measured: &Measured,
    all: bool,
) -> BTreeSet<Place> {
    let main = main.filter(|_| !all);
    let mut places = BTreeSet::new();
    for series in &measured.series {
        let time = Time::of(series.clock);
        let is_time = matches!(series.unit, pagelab_record::Unit::Ns | pagelab_record::Unit::Ticks);
        let name = match main {
            Some((FAULT_IN, wanted)) => {
                (series.name == TOUCH && time == wanted).then(|| touched(case))
            }
            Some((name, wanted)) => {
                (series.name == name && time == wanted).then_some(series.name.as_str())
            }
            None => (is_time && (all || time == Time::Elapsed)).then_some(series.name.as_str()),
        };
        if let Some(name) = name {
            places.insert(Place { arm: series.arm.clone(), series: name.to_owned(), time });
        }
    }
    if places.iter().any(|place| place.arm == arm::OURS) {
        places.retain(|place| place.arm == arm::OURS);
    }
    places
}

/// What the touches of a throughput case are the end of: other kinds find memory prepared.
fn touched(case: &Case) -> &'static str {
    if case.get(parameter::KIND).is_none_or(|kind| kind == "write") { FAULT_IN } else { TOUCH }
}

/// The numbers of a place, one for each process.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Bytes of each observation, where it is the time of a whole range.
    pub(crate) range: Option<u64>,
    pub(crate) unit: Unit,
    pub(crate) processes: Vec<f64>,
    /// The number of each process in its case.
    numbers: Vec<u32>,
}

impl Found {
    /// What stands for the side as a whole.
    pub(crate) fn middle(&self) -> f64 {
        stats::median(self.processes.iter().copied())
    }

    /// Each process's, by its number.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, f64)> {
        self.numbers.iter().copied().zip(self.processes.iter().copied())
    }
}

/// The observations of a place, their clock, and the first series of them.
pub(crate) fn samples(measured: &Measured, place: &Place) -> Option<(Samples, Series)> {
    let Place { arm, series, time } = place;
    let all = &measured.series;
    let stored = if series == FAULT_IN { TOUCH } else { series };
    let clock: Clock = clock_of(all, stored, arm, *time)?;
    let mine = |s: &&Series| s.name == stored && s.arm == *arm && s.clock == clock;
    let first = all.iter().find(mine)?;
    let samples = if series == FAULT_IN {
        let whole = summed(all, &[MAP, POPULATE], TOUCH, arm, clock);
        Samples::of(&whole, TOUCH, arm, clock)
    } else {
        Samples::of(all, stored, arm, clock)
    };
    let data = Data::Values(Vec::new());
    let kept = Series { data, name: String::new(), arm: String::new(), ..*first };
    match &first.data {
        // Of what was published as a summary the median is all there is.
        Data::Summary(summary) => {
            let value = vec![summary.p50?];
            let one = Series { data: Data::Values(value), ops: 1, ..first.clone() };
            Some((Samples::of(&[one], stored, arm, clock), kept))
        }
        _ if first.is_distribution() => {
            Some((samples, Series { data: first.data.clone(), ..kept }))
        }
        _ => Some((samples, kept)),
    }
}

/// Every value that was seen, and the share of all that is done by then.
pub fn steps_of(samples: &Samples) -> Vec<(f64, f64)> {
    let (merged, mut seen) = (samples.merged(), 0);
    let step = |step: hdrhistogram::iterators::IterationValue<u64>| {
        seen += step.count_since_last_iteration();
        (step.value_iterated_to().max(1) as f64, seen as f64 / merged.len() as f64)
    };
    merged.iter_recorded().map(step).collect()
}

/// The numbers of a place, or why there are none.
pub(crate) fn find(
    measured: &Measured,
    place: &Place,
    statistic: Statistic,
) -> Result<Found, &'static str> {
    let Some((samples, first)) = samples(measured, place) else { return Err("not measured") };
    let unit = match first.unit {
        pagelab_record::Unit::Ns => Unit::Ns,
        pagelab_record::Unit::Ticks => Unit::Ticks,
        _ => Unit::Count,
    };
    let quantile = |mille: u16| {
        if mille != 500 && matches!(&first.data, Data::Values(values) if values.is_empty()) {
            return Err("no distribution: a repetition has one observation");
        }
        samples.of_processes(f64::from(mille) / 1000.0).ok_or("too few observations beyond it")
    };
    let per_second = |each: f64| -> Result<Vec<f64>, &'static str> {
        let times = quantile(500)?;
        if unit != Unit::Ns || each <= 0.0 {
            return Err("no such rate");
        }
        Ok(times.into_iter().map(|time| each * 1e9 / time).collect())
    };
    let (unit, processes) = match statistic.0 {
        Kind::Quantile(mille) => (unit, quantile(mille)?),
        Kind::Rate => (Unit::PerSecond, per_second(1.0)?),
        Kind::Bandwidth => {
            let each = first.bytes as f64 / first.ops.max(1) as f64;
            (Unit::BytesPerSecond, per_second(each)?)
        }
    };
    if processes.is_empty() {
        return Err("not measured");
    }
    if processes.iter().any(|value| !(*value > 0.0 && value.is_finite())) {
        return Err("a process has a time of nothing");
    }
    let is_range = matches!(first.data, Data::Values(_)) && first.bytes > 0;
    let range = is_range.then(|| first.bytes / first.ops.max(1));
    Ok(Found { range, unit, processes, numbers: samples.numbers().to_vec() })
}
