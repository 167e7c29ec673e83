//! What a forked worker found out about its kind's own claims, as plain numbers.
//!
//! The one idea: only words cross from a forked worker, and what matters of claims that hold is
//! their number. Of those that do not, the first crosses as text, cut where its words end.

use pagelab_bench::Witness;
use pagelab_record::Claim;

/// Words of text.
const TEXT: usize = 32;

/// Words of a [`Said`].
pub(super) const SAID: usize = TEXT + 2;

/// The claims of workers, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Said {
    claims: u64,
    broken: u64,
    /// The first claim that does not hold.
    first: String,
}

impl Said {
    /// Counts claims.
    pub(super) fn of(claims: &[Claim]) -> Self {
        let broken: Vec<&Claim> = claims.iter().filter(|claim| !claim.holds).collect();
        let text = |claim: &&Claim| {
            let Claim { claim, expected, observed, .. } = claim;
            format!("{claim}: expected {expected}, observed {observed}")
        };
        Self {
            claims: claims.len() as u64,
            broken: broken.len() as u64,
            first: broken.first().map(text).unwrap_or_default(),
        }
    }

    /// For shared memory.
    pub(super) fn words(&self) -> [u64; SAID] {
        let mut bytes = self.first.bytes();
        let mut text = || u64::from_le_bytes(std::array::from_fn(|_| bytes.next().unwrap_or(0)));
        std::array::from_fn(|index| match index {
            0 => self.claims,
            1 => self.broken,
            _ => text(),
        })
    }

    /// Back from shared memory.
    pub(super) fn from(words: &[u64; SAID]) -> Self {
        let bytes: Vec<u8> =
            words[2..].iter().flat_map(|w| w.to_le_bytes()).take_while(|byte| *byte != 0).collect();
        let first = String::from_utf8_lossy(&bytes).into_owned();
        Self { claims: words[0], broken: words[1], first }
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
                claim = format!("{claim} (not: {})", self.first);
            }
            witness.expect(&claim, self.claims, self.claims - self.broken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_crosses_shared_memory_and_adds_up() {
        let claims = [
            Claim::check("pages shared", "a", 4, 4, 0),
            Claim::check("pages copied", "a", 4, 3, 0),
        ];
        let said = Said::of(&claims);
        assert_eq!(Said::from(&said.words()), said);
        let both = said.clone().join(Said::of(&claims[..1]));
        assert_eq!((both.claims, both.broken), (3, 1));
        assert_eq!(both.first, "pages copied: expected 4, observed 3");
        let long = Said { first: "x".repeat(1000), ..said };
        assert_eq!(Said::from(&long.words()).first.len(), TEXT * 8);
    }
}
