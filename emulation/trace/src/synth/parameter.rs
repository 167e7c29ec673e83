//! Parameters of generators: their units, and how values are read and written.

use crate::op::address;

/// What a parameter counts. Values are whole numbers of the unit's smallest part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, with k, m, g and t as powers of 1024; not 0.
    Bytes,
    /// An address, in hexadecimal with `0x` or in decimal.
    Address,
    /// A number of things; not 0.
    Count,
    /// 1, 2, 4 or 8 bytes, or `mixed`, which is 0.
    Width,
    /// A part of all, from 0 to 1 in millionths.
    Share,
    /// An exponent, from 0 to 4 in millionths.
    Exponent,
}

/// Something that a generator can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// One line: what it is.
    pub summary: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// Its value where none is given, spelt as [`Parameter::format`] would.
    pub default: &'static str,
}

const MILLION: u64 = 1_000_000;
/// Names and shifts of the multiples of bytes.
const MULTIPLES: [(char, u32); 4] = [('t', 40), ('g', 30), ('m', 20), ('k', 10)];

impl Parameter {
    pub(super) const fn new(
        name: &'static str,
        summary: &'static str,
        unit: Unit,
        default: &'static str,
    ) -> Self {
        Self { name, summary, unit, default }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// A sentence that says what it should be.
    pub fn parse(&self, text: &str) -> Result<u64, String> {
        let (value, what) = match self.unit {
            Unit::Bytes => (bytes(text), "a number of bytes, as in 4096, 64k or 1g"),
            Unit::Address => (address(text), "an address, as in 0x10000000"),
            Unit::Count => (text.parse().ok().filter(|&count| count > 0), "a number from 1 on"),
            Unit::Width => (width(text), "1, 2, 4, 8 or mixed"),
            Unit::Share => (millionths(text, 1), "a share from 0 to 1, as in 0.25"),
            Unit::Exponent => (millionths(text, 4), "a number from 0 to 4, as in 0.99"),
        };
        value.ok_or_else(|| format!("`{}={text}`: it is {what}", self.name))
    }

    /// The canonical spelling of a value.
    pub fn format(&self, value: u64) -> String {
        match self.unit {
            Unit::Bytes => {
                let fits = |&(_, shift): &(char, u32)| value.is_multiple_of(1 << shift);
                match MULTIPLES.into_iter().find(fits) {
                    Some((suffix, shift)) if value > 0 => format!("{}{suffix}", value >> shift),
                    _ => value.to_string(),
                }
            }
            Unit::Address => format!("{value:#x}"),
            Unit::Width if value == 0 => "mixed".to_owned(),
            Unit::Width | Unit::Count => value.to_string(),
            Unit::Share | Unit::Exponent => {
                let text = format!("{}.{:06}", value / MILLION, value % MILLION);
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
        }
    }

    /// The default as a value; a test parses every one.
    pub(super) fn default_value(&self) -> u64 {
        self.parse(self.default).unwrap_or_default()
    }
}

fn bytes(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let lower = lower.strip_suffix("ib").unwrap_or(&lower);
    let suffix = MULTIPLES.into_iter().find(|&(suffix, _)| lower.ends_with(suffix));
    let (digits, shift) = suffix
        .map_or((lower, 0), |(name, shift)| (lower.strip_suffix(name).unwrap_or(lower), shift));
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1 << shift).filter(|&bytes| bytes > 0)
}

fn width(text: &str) -> Option<u64> {
    match text {
        "mixed" => Some(0),
        "1" | "2" | "4" | "8" => text.parse().ok(),
        _ => None,
    }
}

/// A decimal number from 0 to `most` in millionths, without ever being a float.
fn millionths(text: &str, most: u64) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if part.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = format!("{part:0<6}").parse().ok()?;
    let value = whole.checked_mul(MILLION)?.checked_add(part)?;
    (value <= most * MILLION).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(unit: Unit) -> Parameter {
        Parameter::new("x", "", unit, "1")
    }

    #[test]
    fn values_are_read_and_written_canonically() {
        for (unit, text, value, canonical) in [
            (Unit::Bytes, "1024m", 1 << 30, "1g"),
            (Unit::Bytes, "64KiB", 1 << 16, "64k"),
            (Unit::Bytes, "4097", 4097, "4097"),
            (Unit::Address, "0x10_0".replace('_', "").as_str(), 256, "0x100"),
            (Unit::Address, "18446744073709551615", u64::MAX, "0xffffffffffffffff"),
            (Unit::Count, "7", 7, "7"),
            (Unit::Width, "mixed", 0, "mixed"),
            (Unit::Width, "4", 4, "4"),
            (Unit::Share, "0.50", 500_000, "0.5"),
            (Unit::Share, "1", 1_000_000, "1"),
            (Unit::Exponent, "1.2", 1_200_000, "1.2"),
            (Unit::Exponent, "0.000001", 1, "0.000001"),
            (Unit::Exponent, "0", 0, "0"),
        ] {
            assert_eq!(of(unit).parse(text), Ok(value), "{text}");
            assert_eq!(of(unit).format(value), canonical);
            assert_eq!(of(unit).parse(canonical), Ok(value));
        }
    }

    #[test]
    fn what_is_no_value_is_refused_by_name() {
        for (unit, text) in [
            (Unit::Bytes, "0"),
            (Unit::Bytes, ""),
            (Unit::Bytes, "-1"),
            (Unit::Bytes, "1.5g"),
            (Unit::Bytes, "99999999t"),
            (Unit::Address, "0x"),
            (Unit::Address, "0x+1"),
            (Unit::Address, "+1"),
            (Unit::Address, "0x10000000000000000"),
            (Unit::Count, "0"),
            (Unit::Width, "3"),
            (Unit::Share, "1.000001"),
            (Unit::Share, "0.1234567"),
            (Unit::Share, "."),
            (Unit::Share, "-0"),
            (Unit::Exponent, "4.1"),
            (Unit::Exponent, "1e3"),
        ] {
            let error = of(unit).parse(text).unwrap_err();
            assert!(error.contains(&format!("`x={text}`")), "{error}");
        }
    }
}
