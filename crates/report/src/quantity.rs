//! A number with its interval and its unit: the only form in which a result leaves this crate.
//!
//! Arithmetic on quantities carries the interval along by its ends, so that a ratio of two is never
//! narrower than what went into it. It is no error propagation: ends are combined as if the worst
//! of both happened at once, which is wider than the truth, never narrower.

use pagelab_record::{stats::Estimate, units};
use serde::{Serialize, Serializer};

/// What a [`Quantity`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nanoseconds.
    Ns,
    /// Nanoseconds for each KiB.
    NsPerKib,
    /// Ticks of the time stamp counter.
    Ticks,
    /// Operations a second.
    PerSecond,
    /// Bytes a second.
    BytesPerSecond,
    /// A part of a whole, 1 being all of it.
    Share,
    /// One quantity divided by another of its kind.
    Ratio,
    /// A plain number.
    Count,
}

impl Unit {
    /// The name in JSON and CSV.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::NsPerKib => "ns/KiB",
            Self::Ticks => "ticks",
            Self::PerSecond => "1/s",
            Self::BytesPerSecond => "B/s",
            Self::Share => "share",
            Self::Ratio => "ratio",
            Self::Count => "count",
        }
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A value with the ends of its interval; all three are equal where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Quantity {
    /// The headline.
    pub(crate) value: f64,
    /// Lower end of the interval.
    pub(crate) low: f64,
    /// Upper end of the interval.
    pub(crate) high: f64,
    /// Probability that such an interval holds the true value; 0 where nobody can say.
    pub(crate) coverage: f64,
    /// What it counts.
    pub(crate) unit: Unit,
}

/// How to read an interval; said once in each section that shows some.
pub(crate) const INTERVALS: &str = "Intervals cover 95 % from six processes on (a bootstrap). With \
    fewer they are the span of the processes' medians: 75 % for three, 94 % for five. With one \
    they say nothing of other processes.";

impl Quantity {
    /// A number that has no interval.
    pub(crate) fn exact(value: f64, unit: Unit) -> Self {
        // A sum of nothing is -0.0.
        let value = value + 0.0;
        Self { value, low: value, high: value, coverage: 0.0, unit }
    }

    /// An estimate in its own unit.
    pub(crate) fn of(estimate: &Estimate, unit: Unit) -> Self {
        let Estimate { value, low, high, coverage, .. } = *estimate;
        Self { value, low, high, coverage, unit }
    }

    /// The quantity times a positive number, in another unit.
    pub(crate) fn times(self, factor: f64, unit: Unit) -> Self {
        let Self { value, low, high, coverage, .. } = self;
        Self { value: value * factor, low: low * factor, high: high * factor, coverage, unit }
    }

    /// A number divided by the quantity: the ends change places. `None` where it would be infinite.
    pub(crate) fn under(self, numerator: f64, unit: Unit) -> Option<Self> {
        (self.low > 0.0).then(|| Self {
            value: numerator / self.value,
            low: numerator / self.high,
            high: numerator / self.low,
            coverage: self.coverage,
            unit,
        })
    }

    /// The quantity divided by another.
    pub(crate) fn over(self, other: Self, unit: Unit) -> Option<Self> {
        (other.low > 0.0).then(|| Self {
            value: self.value / other.value,
            low: self.low / other.high,
            high: self.high / other.low,
            coverage: self.coverage.min(other.coverage),
            unit,
        })
    }

    /// The value for reading: `1.28 µs`, `9.93 GB/s`, `98 %`.
    pub(crate) fn display(self) -> String {
        self.display_value(self.value)
    }

    /// Half the interval as a part of the value, `±0.7%`; empty where there is no interval.
    pub(crate) fn display_spread(self) -> String {
        // Ends that differ from the value only by rounding in a conversion are not an interval.
        if self.value <= 0.0 || (self.high - self.low) / self.value < 1e-9 {
            return String::new();
        }
        let percent = (self.high - self.low) / 2.0 / self.value * 100.0;
        let digits = usize::from(percent < 9.95);
        format!("±{percent:.digits$}%")
    }

    /// Value and spread: `1.28 µs ±0.7%`.
    pub(crate) fn display_with_spread(self) -> String {
        format!("{} {}", self.display(), self.display_spread()).trim_end().to_owned()
    }

    /// The interval for reading, `1.27–1.29 µs`; empty where there is none.
    pub(crate) fn display_interval(self) -> String {
        if self.display_spread().is_empty() {
            return String::new();
        }
        let (low, high) = (self.display_value(self.low), self.display_value(self.high));
        match (low.rsplit_once(' '), high.rsplit_once(' ')) {
            (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}–{high}"),
            _ => format!("{low}–{high}"),
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

/// A whole number with its thousands told apart: `52 428 800`.
pub(crate) fn group_thousands(value: f64) -> String {
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

    const FAULT: Quantity =
        Quantity { value: 1280.0, low: 1270.0, high: 1290.0, coverage: 0.75, unit: Unit::Ns };

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
        assert_eq!(FAULT.display_interval(), "1.27–1.29 µs");
        assert_eq!(Quantity::exact(1280.0, Unit::Ns).display_with_spread(), "1.28 µs");
        assert_eq!(Quantity::exact(1280.0, Unit::Ns).display_interval(), "");
    }

    #[test]
    fn thousands_are_told_apart() {
        assert_eq!(group_thousands(52_428_800.0), "52 428 800");
        assert_eq!(group_thousands(999.0), "999");
        assert_eq!(group_thousands(-1000.0), "-1 000");
    }
}
