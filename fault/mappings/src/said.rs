//! What a forked worker found out about its kind's own claims, as plain numbers.
//!
//! The one idea: only plain numbers cross from a forked worker, and what matters of claims that
//! hold is their number. Of those that do not, the first crosses as text, cut where its room ends.

use std::borrow::Cow;

use pagelab_bench::Witness;
use pagelab_record::{Claim, vocabulary::Check};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The claims of workers, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Said {
    claims: u64,
    broken: u64,
    /// The first claim that does not hold, as text that ends with the first 0.
    first: [[u8; 32]; 8],
}

impl Said {
    /// Counts claims.
    pub(super) fn of(claims: &[Claim]) -> Self {
        let broken: Vec<&Claim> = claims.iter().filter(|claim| !claim.holds).collect();
        let mut first = <[[u8; 32]; 8]>::default();
        if let Some(Claim { claim, expected, observed, .. }) = broken.first() {
            let text = format!("{claim}: expected {expected}, observed {observed}");
            first.as_flattened_mut().iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte);
        }
        Self { claims: claims.len() as u64, broken: broken.len() as u64, first }
    }

    /// The first claim that does not hold.
    fn first(&self) -> Cow<'_, str> {
        let text = self.first.as_flattened().split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text)
    }

    /// What two workers said.
    #[must_use]
    pub(super) fn join(self, other: Self) -> Self {
        let first = if self.broken > 0 { self.first } else { other.first };
        Self { claims: self.claims + other.claims, broken: self.broken + other.broken, first }
    }

    /// Passes it on.
    pub(super) fn testify(&self, witness: &mut Witness) {
        if self.claims > 0 {
            let mut claim = "claims of the kind that hold in the workers".to_owned();
            if self.broken > 0 {
                claim = format!("{claim} (not: {})", self.first());
            }
            witness.expect((Check::WorkersSay, &claim), self.claims, self.claims - self.broken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_adds_up_and_is_cut_where_it_is_too_long() {
        let claims = [
            Claim::check((Check::Unshared, "pages shared"), "a", 4, 4, 0),
            Claim::check((Check::Unshared, "pages copied"), "a", 4, 3, 0),
        ];
        let said = Said::of(&claims);
        let both = said.join(Said::of(&claims[..1]));
        assert_eq!((both.claims, both.broken), (3, 1));
        assert_eq!(both.first(), "pages copied: expected 4, observed 3");
        let long = Said::of(&[Claim::check((Check::Unshared, &"x".repeat(1000)), "a", 4, 3, 0)]);
        assert_eq!(long.first(), "x".repeat(256));
    }
}
