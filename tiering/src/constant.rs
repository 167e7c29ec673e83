//! A number of a scenario file, with where it comes from.
//!
//! The one idea: what a number was fitted to, or taken from, stands beside it in the file, as names
//! of published results (`NUMAB2/time_s`). So what a result is (identity, fitted, predicted)
//! follows from the file (`compare`) and nobody has to be believed.
//!
//! A plain number, or a text with a unit (`"8g"`, `"28ms"`), is a constant that was simply given.

use std::fmt;

use pagelab_record::units::parse_bytes;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};

/// A number and its origin. Sizes are in bytes, times in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// The number.
    pub value: f64,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a number comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origin {
    /// Nobody says.
    #[default]
    Given,
    /// Chosen so that these published results come out.
    Fitted(Vec<String>),
    /// Taken from these published results, which therefore prove nothing.
    Identity(Vec<String>),
    /// Published, by this source.
    Published(String),
    /// Measured, so.
    Measured(String),
    /// What the kernel does, by this source of it.
    Kernel(String),
    /// Assumed, for this reason.
    Assumed(String),
}

impl Origin {
    /// The published results that it was chosen by, whether fitted or taken.
    pub fn results(&self) -> &[String] {
        match self {
            Self::Fitted(results) | Self::Identity(results) => results,
            _ => &[],
        }
    }

    /// One word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Fitted(_) => "fitted",
            Self::Identity(_) => "identity",
            Self::Published(_) => "published",
            Self::Measured(_) => "measured",
            Self::Kernel(_) => "kernel",
            Self::Assumed(_) => "assumed",
        }
    }

    /// What stands behind the word.
    pub fn text(&self) -> String {
        match self {
            Self::Given => String::new(),
            Self::Fitted(results) | Self::Identity(results) => results.join(", "),
            Self::Published(text)
            | Self::Measured(text)
            | Self::Kernel(text)
            | Self::Assumed(text) => text.clone(),
        }
    }
}

impl Constant {
    /// A number that nobody explains.
    pub fn given(value: f64) -> Self {
        Self { value, origin: Origin::Given }
    }
}

/// The keys that say where a number comes from.
const ORIGINS: &[&str] =
    &["value", "fitted", "identity", "published", "measured", "kernel", "assumed"];

impl<'de> Deserialize<'de> for Constant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Constant;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a number of 0 or more, a text such as \"8g\" or \"28ms\", or a table of `value` and \
             its origin",
        )
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Constant, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Constant, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Constant, E> {
        if value.is_finite() && value >= 0.0 {
            Ok(Constant::given(value))
        } else {
            Err(E::custom(format!("{value} is not a number of 0 or more")))
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Constant, E> {
        parse(text).map(Constant::given).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Constant, A::Error> {
        let (mut value, mut origin) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            if key == "value" {
                value = Some(map.next_value::<Self::Value>()?.value);
                continue;
            }
            let found = match key.as_str() {
                "fitted" => Origin::Fitted(map.next_value::<Names>()?.all()),
                "identity" => Origin::Identity(map.next_value::<Names>()?.all()),
                "published" => Origin::Published(map.next_value()?),
                "measured" => Origin::Measured(map.next_value()?),
                "kernel" => Origin::Kernel(map.next_value()?),
                "assumed" => Origin::Assumed(map.next_value()?),
                _ => return Err(A::Error::unknown_field(&key, ORIGINS)),
            };
            if origin.replace(found).is_some() {
                return Err(A::Error::custom("a number has one origin, not two"));
            }
        }
        let value = value.ok_or_else(|| A::Error::missing_field("value"))?;
        Ok(Constant { value, origin: origin.unwrap_or_default() })
    }
}

/// Names of published results, where one need not be a list.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "the name of a published result such as \"NUMAB2/time_s\", or several"
)]
enum Names {
    One(String),
    Several(Vec<String>),
}

impl Names {
    fn all(self) -> Vec<String> {
        match self {
            Self::One(name) => vec![name],
            Self::Several(names) => names,
        }
    }
}

/// Reads `28ms`, `1s`, `8g`, `0.25`: a time in seconds, a size in bytes, or a number.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn parse(text: &str) -> Result<f64, String> {
    let text = text.trim();
    // Ordered so that no unit is the end of one before it.
    for (unit, seconds) in [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)] {
        let number = text.strip_suffix(unit).and_then(|number| number.trim().parse::<f64>().ok());
        if let Some(number) = number.filter(|number| number.is_finite() && *number >= 0.0) {
            return Ok(number * seconds);
        }
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => parse_bytes(text).map(|bytes| bytes as f64).map_err(|_| {
            format!("`{text}` is no number, time (28ms, 1s) or size (4k, 8g) of 0 or more")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct File {
        x: Constant,
    }

    fn read(text: &str) -> Result<Constant, String> {
        toml::from_str::<File>(text).map(|file| file.x).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_times_and_sizes_are_read() {
        for (text, value) in [
            ("x = 3", 3.0),
            ("x = 2.5", 2.5),
            ("x = '28ms'", 0.028),
            ("x = '1s'", 1.0),
            ("x = '8g'", 8_589_934_592.0),
            ("x = '13ns'", 13e-9),
            ("x = '4k'", 4096.0),
        ] {
            let found = read(text).unwrap();
            assert!((found.value - value).abs() <= value * 1e-12, "{text}: {found:?}");
            assert_eq!(found.origin, Origin::Given);
        }
    }

    #[test]
    fn an_origin_stands_beside_its_number() {
        let fitted = read("x = { value = 26.6, fitted = ['A/time_s', 'B/time_s'] }").unwrap();
        assert_eq!(fitted.origin.results(), ["A/time_s", "B/time_s"]);
        let taken = read("x = { value = 181.4, identity = 'A/time_s' }").unwrap();
        assert_eq!((taken.origin.word(), taken.origin.text()), ("identity", "A/time_s".into()));
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, named) in [
            ("\n\nx = -1", "line 3"),
            ("\nx = 'many'", "line 2"),
            ("x = { fitted = 'A' }", "value"),
            ("x = { value = 1, guessed = 'A' }", "guessed"),
            ("x = { value = 1, fitted = 'A', kernel = 'B' }", "one origin"),
            ("x = nan", "nan"),
        ] {
            let error = read(text).unwrap_err().to_lowercase();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
