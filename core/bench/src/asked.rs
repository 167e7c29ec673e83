//! The numbers with which a person says how to measure: a flag and a key of a suite are read by the
//! same parser, with the same bounds.

use std::{fmt, str::FromStr};

use pagelab_record::units::whole;

/// The longest time that can be asked for: a year.
const SECONDS_MAX: f64 = 365.0 * 86_400.0;

/// A time, above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds(f64);

impl Seconds {
    /// So many milliseconds.
    pub const fn of_ms(ms: u32) -> Self {
        Self(ms as f64 / 1000.0)
    }

    /// A part of it.
    #[must_use]
    pub fn part(self, share: f64) -> Self {
        Self(self.0 * share)
    }

    /// As a number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// In nanoseconds.
    pub fn ns(self) -> u64 {
        whole(self.0 * 1e9)
    }
}

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().parse() {
            Ok(seconds) if seconds > 0.0 && seconds <= SECONDS_MAX => Ok(Self(seconds)),
            _ => Err(format!("expected seconds, above 0 and at most {SECONDS_MAX} (a year)")),
        }
    }
}

/// Reads a share from 0 to 1: `3%`, `3 %` or `0.03`. Every flag and key that takes a share is read
/// by it.
///
/// # Errors
/// With both ways to write one.
pub fn share(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let percent = text.strip_suffix('%').map(str::trim_end);
    let number: Option<f64> = percent.unwrap_or(text).parse().ok();
    let number = number.map(|number| if percent.is_some() { number / 100.0 } else { number });
    number
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("`{text}` is no share: write 3% or 0.03, between 0 and 1"))
}

/// A share in millionths, as a header keeps it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 1")]
pub fn ppm(share: f64) -> u32 {
    (share * 1e6).round() as u32
}

/// A share of a value, above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(f64);

impl Share {
    /// So many thousandths.
    pub const fn of_thousandths(thousandths: u32) -> Self {
        Self(thousandths as f64 / 1000.0)
    }

    /// As a number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = share(text)?;
        let is_some = share > 0.0;
        is_some.then_some(Self(share)).ok_or_else(|| format!("`{text}` is not above 0"))
    }
}

/// A whole number from 1 to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole<const MAX: u32>(u32);

/// Fresh processes for a case.
pub type Forks = Whole<1000>;

/// Repetitions in a process.
pub type Repetitions = Whole<100_000>;

impl<const MAX: u32> Whole<MAX> {
    /// The largest.
    pub const MAX: Self = Self(MAX);

    /// This many.
    ///
    /// # Panics
    /// When that is out of bounds: for numbers written in code.
    pub const fn of(number: u32) -> Self {
        assert!(number >= 1 && number <= MAX, "out of bounds");
        Self(number)
    }

    /// As a number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl<const MAX: u32> fmt::Display for Whole<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<const MAX: u32> FromStr for Whole<MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().parse() {
            Ok(number) if (1..=MAX).contains(&number) => Ok(Self(number)),
            _ => Err(format!("expected a whole number from 1 to {MAX}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_clock_can_count_is_no_time() {
        for text in ["inf", "nan", "1e12", "0", "-1", "-inf", "5s", ""] {
            let error = text.parse::<Seconds>().unwrap_err();
            assert!(error.contains("at most 31536000"), "{text}: {error}");
        }
        assert_eq!("0.3".parse::<Seconds>().unwrap().ns(), 300_000_000);
        assert_eq!("31536000".parse::<Seconds>().unwrap().ns(), 31_536_000_000_000_000);
    }

    #[test]
    fn counts_and_shares_have_bounds() {
        for text in ["0", "1001", "1000000000", "2.5", "-1", "4294967297"] {
            assert!(text.parse::<Forks>().unwrap_err().contains("from 1 to 1000"), "{text}");
        }
        for text in ["0", "0%", "1.5", "101%", "-1%", "inf", "nan", "", "%", "3%%", "3 percent"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
        assert_eq!(("7".parse(), "1".parse()), (Ok(Forks::of(7)), Ok(Share(1.0))));
    }

    #[test]
    fn a_share_is_written_with_or_without_a_percent_sign() {
        for text in ["3%", "3 %", " 0.03 ", "3.0%", ".03"] {
            assert_eq!(share(text), Ok(0.03), "{text}");
            assert_eq!(text.parse(), Ok(Share::of_thousandths(30)), "{text}");
        }
        assert_eq!((share("0"), share("100%")), (Ok(0.0), Ok(1.0)));
        for wrong in ["3", "-1%", "p50", "200%", "NaN"] {
            let why = share(wrong).unwrap_err();
            assert!(why.contains(wrong) && why.contains("3% or 0.03"), "{why}");
        }
        assert_eq!(share("29%").map(ppm), Ok(290_000));
    }
}
