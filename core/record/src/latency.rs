//! The histogram that every latency goes into.
//!
//! One shape for all, so that any two can be merged: two significant digits (≤ 1 % error), from 1
//! nanosecond to 60 seconds, never resized. `HdrHistogram`'s V2 encoding in base64 is the form on
//! disk, which the plotters and libraries of that family read.

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{Deserializer, Serializer, V2Serializer},
};

/// Largest latency that is told apart from a larger one: 60 seconds.
pub const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// An empty histogram whose counts are already present in memory.
///
/// They are a copy, which writes them, so that recording into it takes no page fault of its own.
pub fn empty() -> Histogram<u64> {
    static SHAPE: LazyLock<Histogram<u64>> = LazyLock::new(|| {
        Histogram::new_with_bounds(1, LATENCY_NS_MAX, 2)
            .expect("1 ns to 60 s in two digits is a valid shape")
    });
    SHAPE.clone()
}

/// The text form that a record holds.
pub fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .expect("a histogram of this shape fits in memory");
    STANDARD.encode(bytes)
}

/// Reads the text form back.
///
/// # Errors
/// A sentence that says why the text is not a histogram.
pub fn decode(text: &str) -> Result<Histogram<u64>, String> {
    // A record is read from a file that anyone may have written: the shape on the wire decides how
    // much memory the histogram takes, so a text far longer than our shape needs is refused first.
    const TEXT_MAX: usize = 1 << 20;
    if text.len() > TEXT_MAX {
        return Err(format!("histogram of {} characters is longer than {TEXT_MAX}", text.len()));
    }
    let bytes = STANDARD.decode(text).map_err(|error| format!("histogram: {error}"))?;
    let read: Histogram<u64> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| format!("histogram: {error:?}"))?;
    let mut ours = empty();
    ours.add(&read).map_err(|error| format!("histogram of another shape: {error}"))?;
    Ok(ours)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_is_kept_within_one_percent() {
        let mut histogram = empty();
        for value in [1_u64, 19, 1_280, 211_335, 45_300_000, 2_650_000_000] {
            histogram.reset();
            histogram.record(value).unwrap();
            let kept = histogram.max();
            assert!(kept.abs_diff(value) * 100 <= value, "{value} became {kept}");
        }
    }

    #[test]
    fn a_fresh_histogram_is_empty() {
        assert_eq!(empty().len(), 0);
    }

    #[test]
    fn what_is_no_histogram_is_refused() {
        assert!(decode("not base64!").is_err());
        assert!(decode("AAAA").is_err());
    }

    proptest! {
        #[test]
        fn the_text_form_reads_back(values in prop::collection::vec(1..LATENCY_NS_MAX, 0..200)) {
            let mut histogram = empty();
            for value in values {
                histogram.record(value).unwrap();
            }
            prop_assert_eq!(decode(&encode(&histogram)).unwrap(), histogram);
        }

        #[test]
        fn no_text_panics_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&STANDARD.encode(bytes));
        }
    }
}
