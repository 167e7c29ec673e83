//! A number with its interval and its unit: the only form in which a result leaves this crate.
//!
//! Arithmetic on quantities carries the interval along by its ends, so that a ratio of two is never
//! narrower than what went into it. It is no error propagation: ends are combined as if the worst
//! of both happened at once, which is wider than the truth, never narrower.

use pagelab_record::{stats::Estimate, units};
use serde::{Serialize, Serializer};

pagelab_record::named! {
    /// What a [`Quantity`] counts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Unit {
        /// Nanoseconds.
        Ns = "ns",
        /// Nanoseconds for each KiB.
        NsPerKib = "ns/KiB",
        /// Ticks of the time stamp counter.
        Ticks = "ticks",
        /// Operations a second.
        PerSecond = "1/s",
        /// Bytes a second.
        BytesPerSecond = "B/s",
        /// A part of a whole, 1 being all of it.
        Share = "share",
        /// One quantity divided by another of its kind.
        Ratio = "ratio",
        /// A plain number.
        Count = "count",
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A value with the ends of its interval; all three are equal where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantity {
    /// The headline.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Probability that such an interval holds the true value; 0 where nobody can say.
    pub coverage: f64,
    /// Fresh processes that it rests on; 0 where it has no interval.
    #[serde(skip)]
    pub processes: usize,
    /// What it counts.
    pub unit: Unit,
}

/// What an interval covers that is called one; what covers less is the span of some medians.
const INTERVAL: f64 = 0.95;

impl Quantity {
    /// A number that has no interval.
    pub fn exact(value: f64, unit: Unit) -> Self {
        // A sum of nothing is -0.0.
        let value = value + 0.0;
        Self { value, low: value, high: value, coverage: 0.0, processes: 0, unit }
    }

    /// An estimate in its own unit.
    pub fn of(estimate: &Estimate, unit: Unit) -> Self {
        let Estimate { value, low, high, coverage, processes, .. } = *estimate;
        Self { value, low, high, coverage, processes, unit }
    }

    /// The sum; a sum of intervals is as wide as all of them.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            low: self.low + other.low,
            high: self.high + other.high,
            coverage: self.coverage.min(other.coverage),
            processes: self.processes.min(other.processes),
            unit: self.unit,
        }
    }

    /// The quantity times a positive number, in another unit.
    #[must_use]
    pub fn times(self, factor: f64, unit: Unit) -> Self {
        let Self { value, low, high, .. } = self;
        Self { value: value * factor, low: low * factor, high: high * factor, unit, ..self }
    }

    /// A number divided by the quantity: the ends change places. `None` where it would be infinite.
    pub fn under(self, numerator: f64, unit: Unit) -> Option<Self> {
        (self.low > 0.0).then(|| Self {
            value: numerator / self.value,
            low: numerator / self.high,
            high: numerator / self.low,
            unit,
            ..self
        })
    }

    /// The quantity divided by another.
    pub fn over(self, other: Self, unit: Unit) -> Option<Self> {
        (other.low > 0.0).then(|| Self {
            value: self.value / other.value,
            low: self.low / other.high,
            high: self.high / other.low,
            coverage: self.coverage.min(other.coverage),
            processes: self.processes.min(other.processes),
            unit,
        })
    }

    /// The value for reading: `1.28 µs`, `9.93 GB/s`, `98 %`.
    pub fn display(self) -> String {
        self.display_value(self.value)
    }

    /// Whether more than rounding in a conversion keeps its ends from the value.
    pub fn has_interval(self) -> bool {
        self.value > 0.0 && (self.high - self.low) / self.value >= 1e-9
    }

    /// How far the value may be off: `±0.7%`, half of a 95 % interval, or where too few processes
    /// give one, what their medians span: `(1.27–1.29)`. Empty where it has neither.
    pub fn display_spread(self) -> String {
        self.display_spread_by(|value| self.display_value(value))
    }

    /// The same, where numbers are written otherwise.
    pub fn display_spread_by(self, display: impl Fn(f64) -> String) -> String {
        if !self.has_interval() {
            return String::new();
        }
        if self.coverage < INTERVAL {
            let [low, value, high] = [self.low, self.value, self.high].map(&display);
            // The unit stands beside the value already.
            let unit = value.rfind(' ').map(|at| &value[at..]);
            let bare = |end: &str| end.strip_suffix(unit?).map(str::to_owned);
            if low == high {
                return String::new();
            }
            let ends = bare(&low).zip(bare(&high)).map_or([low, high], |(low, high)| [low, high]);
            return format!("({})", span(ends));
        }
        let percent = (self.high - self.low) / 2.0 / self.value * 100.0;
        let digits = usize::from(percent < 9.95);
        format!("±{percent:.digits$}%")
    }

    /// Value and spread: `1.28 µs ±0.7%`, `1.28 µs (1.27–1.29)`.
    pub fn display_with_spread(self) -> String {
        format!("{} {}", self.display(), self.display_spread()).trim_end().to_owned()
    }

    /// The ends of the interval and what they are: `95 %: 1.27–1.29 µs`, `3 processes: …`.
    pub fn told_interval(self) -> String {
        self.told_interval_by(|value| self.display_value(value))
    }

    /// The same, where numbers are written otherwise.
    pub fn told_interval_by(self, display: impl Fn(f64) -> String) -> String {
        let ends = || span([self.low, self.high].map(&display));
        match self.processes {
            _ if !self.has_interval() => String::new(),
            _ if self.coverage >= INTERVAL => format!("95 %: {}", ends()),
            0 | 1 => format!("1 process: {}", ends()),
            processes => format!("{processes} processes: {}", ends()),
        }
    }

    fn display_value(self, value: f64) -> String {
        match self.unit {
            Unit::Ns => units::display_ns(value),
            Unit::NsPerKib => format!("{} ns/KiB", units::display_number(value)),
            Unit::Ticks => format!("{value:.0} ticks"),
            Unit::PerSecond => units::display_rate(value),
            Unit::BytesPerSecond => units::display_bandwidth(value),
            Unit::Share if value < 0.0995 => format!("{:.1} %", value * 100.0),
            Unit::Share => format!("{:.0} %", value * 100.0),
            Unit::Ratio => format!("{value:.3}"),
            Unit::Count => group_thousands(value),
        }
    }
}

/// Two ends, with their unit once where it is the same.
pub(crate) fn span([low, high]: [String; 2]) -> String {
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// A whole number with its thousands told apart: `52 428 800`.
pub fn group_thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    // A sum of nothing is -0.0.
    let digits = if digits == "-0" { "0" } else { &digits };
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && digit.is_ascii_digit() && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAULT: Quantity = Quantity {
        value: 1280.0,
        low: 1270.0,
        high: 1290.0,
        coverage: 0.95,
        processes: 6,
        unit: Unit::Ns,
    };

    #[test]
    fn a_rate_keeps_the_order_of_its_ends() {
        let rate = FAULT.under(1e9, Unit::PerSecond).unwrap();
        assert!(rate.low < rate.value && rate.value < rate.high);
        assert_eq!(rate.display(), "781 k/s");
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        assert!(Quantity::exact(0.0, Unit::Ns).under(1.0, Unit::PerSecond).is_none());
        assert!(FAULT.over(Quantity::exact(0.0, Unit::Ns), Unit::Ratio).is_none());
    }

    #[test]
    fn an_interval_is_shown_only_where_there_is_one() {
        assert_eq!(FAULT.display_with_spread(), "1.28 µs ±0.8%");
        assert_eq!(FAULT.told_interval(), "95 %: 1.27–1.29 µs");
        assert_eq!(Quantity::exact(1280.0, Unit::Ns).display_with_spread(), "1.28 µs");
        assert_eq!(Quantity::exact(1280.0, Unit::Ns).told_interval(), "");
    }

    #[test]
    fn what_too_few_processes_span_is_called_no_interval() {
        let three = Quantity { coverage: 0.75, processes: 3, ..FAULT };
        assert_eq!(three.display_with_spread(), "1.28 µs (1.27–1.29)");
        assert_eq!(three.told_interval(), "3 processes: 1.27–1.29 µs");
        let wide = Quantity { low: 980.0, ..three };
        assert_eq!(wide.display_with_spread(), "1.28 µs (980 ns–1.29 µs)");
        // A millisecond ends like a second.
        let wider = Quantity { value: 1.5e9, low: 16.7e6, high: 3.34e9, ..three };
        assert_eq!(wider.display_with_spread(), "1.50 s (16.7 ms–3.34 s)");
        let one = Quantity { coverage: 0.0, processes: 1, ..FAULT };
        assert_eq!(one.told_interval(), "1 process: 1.27–1.29 µs");
    }

    #[test]
    fn thousands_are_told_apart() {
        assert_eq!(group_thousands(52_428_800.0), "52 428 800");
        assert_eq!(group_thousands(999.0), "999");
        assert_eq!(group_thousands(-1000.0), "-1 000");
    }
}
