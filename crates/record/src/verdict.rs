//! What a comparison comes to.
//!
//! The one idea: a verdict needs the whole interval of a ratio: one that reaches from a tie to what
//! is none says nothing, however its middle lies.

use serde::{Deserialize, Serialize};

/// The time of one thing over that of another, with the interval that it lies in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The estimate.
    pub value: f64,
    /// The low end.
    pub low: f64,
    /// The high end.
    pub high: f64,
}

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is a tie.
    Same,
    /// Less time, beyond a tie.
    Faster,
    /// More time, beyond a tie.
    Slower,
    /// The interval reaches from a tie to what is none.
    Inconclusive,
    /// The two are not of one kind: other machines, other cases.
    NotComparable,
    /// One of the two is not what its name says.
    Invalid,
}

impl Verdict {
    /// What a ratio says where a difference of less than `tie` is none.
    pub fn of(ratio: Ratio, tie: f64) -> Self {
        let Ratio { low, high, .. } = ratio;
        if high < 1.0 - tie {
            Self::Faster
        } else if low > 1.0 + tie {
            Self::Slower
        } else if low >= 1.0 - tie && high <= 1.0 + tie {
            Self::Same
        } else {
            Self::Inconclusive
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_the_whole_interval() {
        let of =
            |low, high| Verdict::of(Ratio { value: f64::midpoint(low, high), low, high }, 0.15);
        assert_eq!(of(0.60, 0.70), Verdict::Faster);
        assert_eq!(of(0.90, 1.10), Verdict::Same);
        assert_eq!(of(1.20, 1.30), Verdict::Slower);
        assert_eq!(of(0.80, 0.90), Verdict::Inconclusive);
        assert_eq!(of(0.70, 1.40), Verdict::Inconclusive);
    }
}
