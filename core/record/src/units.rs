//! Sizes and times as people of the field write them.
//!
//! Sizes are powers of 1024 on input and canonical on output (`1g`, never `1024m`), so that two
//! spellings of one case are one case. Rates are powers of 1000 (`GB/s` = 10⁹ bytes a second) or
//! named `MiB/s`; `MB/s` for MiB/s is an error that publications made and we do not repeat.

/// Bytes of the page that `base` names. Every supported architecture of this version is x86-64.
pub const BASE_PAGE: u64 = 4096;

/// The whole part of a number: 0 of a negative one, the largest of one that does not fit.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
pub const fn whole(number: f64) -> u64 {
    number as u64
}

/// The same as a place in a list.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
pub const fn place(number: f64) -> usize {
    number as usize
}

/// Reads a size: `64k`, `64kB`, `64KiB`, `hugepages-64kB`, `base`, `4096`.
///
/// # Errors
/// A sentence that names the text and shows what is accepted.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    if trimmed.eq_ignore_ascii_case("base") {
        return Ok(BASE_PAGE);
    }
    let plain = trimmed.strip_prefix("hugepages-").unwrap_or(trimmed);
    let digits = plain.len() - plain.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, suffix) = plain.split_at(digits);
    let shift = match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(bad_size(text)),
    };
    let number: u64 = number.parse().map_err(|_| bad_size(text))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("size `{text}` is larger than 2^64 bytes"))
}

fn bad_size(text: &str) -> String {
    format!("`{text}` is not a size: write a whole number and k, m, g or t, as in 64k or 1g")
}

/// The canonical spelling of a size: the largest unit that divides it.
pub fn format_bytes(bytes: u64) -> String {
    let unit = [(40, "t"), (30, "g"), (20, "m"), (10, "k")]
        .into_iter()
        .find(|(shift, _)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift));
    match unit {
        Some((shift, suffix)) => format!("{}{suffix}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// Parameters whose `k`, `m` and `g` are powers of 1000: they count, and measure no memory.
pub const COUNTS: &[&str] = &["accesses", "loads", "ops", "rounds", "samples"];

/// The value of a parameter in base units where it is a number with a unit: bytes, nanoseconds,
/// parts of a whole. A word, a list and a plain number are what they were.
pub fn base_value(parameter: &str, value: &str) -> String {
    let is_unit = |c: char| c.is_ascii_alphabetic() || c == '%';
    let (number, unit) = value.split_at(value.find(is_unit).unwrap_or(value.len()));
    let step = if COUNTS.contains(&parameter) { 1000.0_f64 } else { 1024.0 };
    let Ok(number) = number.parse::<f64>() else { return value.to_owned() };
    let base = match unit {
        "k" => number * step,
        "m" => number * step.powi(2),
        "g" => number * step.powi(3),
        "t" => number * step.powi(4),
        "%" => number / 100.0,
        "ns" => number,
        "us" => number * 1e3,
        "ms" => number * 1e6,
        "s" => number * 1e9,
        _ => return value.to_owned(),
    };
    base.to_string()
}

/// A size for reading: `260 MiB`, `1.5 GiB`.
pub fn display_bytes(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A duration for reading: `19.1 ns`, `1.28 µs`, `5.6 ms`.
pub fn display_ns(ns: f64) -> String {
    scaled(ns, 1000.0, &["ns", "µs", "ms", "s"])
}

/// A rate for reading, operations a second: `780 k/s`, `1.2 M/s`.
pub fn display_rate(per_second: f64) -> String {
    scaled(per_second, 1000.0, &["/s", "k/s", "M/s", "G/s"])
}

/// A bandwidth for reading, powers of 1000: `9.93 GB/s`.
pub fn display_bandwidth(bytes_per_second: f64) -> String {
    scaled(bytes_per_second, 1000.0, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"])
}

/// A number with three significant digits.
pub fn display_number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 99.95 || v == 0.0 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut index = 0;
    // The bound keeps "1000 ns" from appearing where rounding would carry into the next unit.
    while value.abs() >= step * 0.9995 && index + 1 < units.len() {
        value /= step;
        index += 1;
    }
    format!("{} {}", display_number(value), units[index])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_spelling_of_a_size_is_one_size() {
        for text in ["64k", "64K", "64kB", "64KiB", "hugepages-64kB", "65536", "65536B"] {
            assert_eq!(parse_bytes(text), Ok(65536), "{text}");
        }
        assert_eq!(parse_bytes("base"), Ok(4096));
    }

    #[test]
    fn what_is_not_a_size_is_refused_by_name() {
        for text in ["", "k", "1.5g", "-1", "12q", "99999999999t"] {
            assert!(parse_bytes(text).unwrap_err().contains(text), "{text}");
        }
    }

    #[test]
    fn a_base_value_has_no_unit_and_a_word_stays() {
        for (parameter, value, base) in [
            ("size", "1g", "1073741824"),
            ("ops", "20m", "20000000"),
            ("scan-period", "100ms", "100000000"),
            ("fast", "50%", "0.5"),
            ("threads", "2", "2"),
            ("page", "hugetlb-2m", "hugetlb-2m"),
            ("cache-sizes", "4,8k", "4,8k"),
            ("seed", "18446744073709551615", "18446744073709551615"),
            ("touch", "8@4k", "8@4k"),
            ("dir", "", ""),
        ] {
            assert_eq!(base_value(parameter, value), base, "{parameter}={value}");
        }
    }

    #[test]
    fn readings_have_three_digits() {
        assert_eq!(display_ns(19.13), "19.1 ns");
        assert_eq!(display_ns(1280.0), "1.28 µs");
        assert_eq!(display_ns(999.9), "1.00 µs");
        assert_eq!(display_bandwidth(9.93e9), "9.93 GB/s");
        assert_eq!(display_rate(780_000.0), "780 k/s");
    }

    proptest! {
        #[test]
        fn the_canonical_spelling_reads_back(bytes in any::<u64>()) {
            prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        }
    }
}
