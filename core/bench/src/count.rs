//! Counts of operations as people write them: `20m` is 20 million.
//!
//! Powers of 1000, unlike sizes: operations are counted, not addressed.

const UNITS: [(u64, &str); 3] = [(1_000_000_000, "g"), (1_000_000, "m"), (1000, "k")];

/// Reads a count: `20m`, `4g`, `1500`.
///
/// # Errors
/// A sentence that names the text and shows what is accepted.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let bad = || {
        format!(
            "`{text}` is no count: write a whole number and k, m or g (10^3, 10^6, 10^9), as in 20m"
        )
    };
    let lower = text.to_ascii_lowercase();
    let unit = UNITS.iter().find(|(_, suffix)| lower.ends_with(suffix));
    let (factor, suffix) = unit.copied().unwrap_or((1, ""));
    let digits = lower.strip_suffix(suffix).unwrap_or(&lower);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let number: u64 = digits.parse().map_err(|_| bad())?;
    match number.checked_mul(factor) {
        Some(0) => Err("a count of operations is not 0".to_owned()),
        Some(count) => Ok(count),
        None => Err(format!("`{text}` is more than 2^64")),
    }
}

/// The canonical spelling of a count: the largest unit that divides it.
pub fn format_count(count: u64) -> String {
    let unit = UNITS.iter().find(|(factor, _)| count > 0 && count.is_multiple_of(*factor));
    match unit {
        Some((factor, suffix)) => format!("{}{suffix}", count / factor),
        None => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_million_is_a_million_and_not_a_mebi() {
        for (text, count) in [("20m", 20_000_000), ("4G", 4_000_000_000), ("7", 7), ("2k", 2000)] {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
        assert_eq!(format_count(1_500_000), "1500k");
        assert_eq!(format_count(parse_count("1000m").unwrap()), "1g");
    }

    #[test]
    fn what_is_no_count_is_refused_by_name() {
        for text in ["", "m", "1.5m", "-3", "+3", "4t", "20 m", "99999999999g"] {
            assert!(parse_count(text).unwrap_err().contains(text), "{text}");
        }
        assert!(parse_count("0").is_err());
    }

    proptest! {
        #[test]
        fn the_canonical_spelling_reads_back(count in 1..u64::MAX) {
            prop_assert_eq!(parse_count(&format_count(count)), Ok(count));
        }
    }
}
