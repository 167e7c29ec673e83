//! The tests of the original program as named points of a grid.
//!
//! The one idea: a test is four choices (how it stores, what ends a round, when it is verified, how
//! it loads), and a name is a row of [`NAMED`]. Whatever has no row is `unnamed` and is measured
//! like the others. What the choices do to memory is in `sys`.

use pagelab_bench::{Read, words};
use pagelab_record::Case;

/// What a test is called that the original program does not have.
pub(super) const UNNAMED: &str = "unnamed";

words! {
    /// How a round stores.
    pub(super) enum Stores {
        /// Not at all: the region is only read.
        None = "none",
        /// By ordinary stores.
        Plain = "plain",
        /// By non-temporal stores.
        NonTemporal = "nt",
    }

    /// What ends a round.
    pub(super) enum Fence {
        /// Nothing: the round ends when the last store was issued.
        None = "none",
        /// `sfence`.
        Sfence = "sfence",
        /// A store to a word of UC memory.
        UcStore = "uc-store",
        /// The same, and the word loaded back.
        UcStoreLoad = "uc-store-load",
    }

    /// When the words are compared with what was stored.
    pub(super) enum Verify {
        /// After every round.
        EachRound = "each-round",
        /// After the last round.
        Deferred = "deferred",
    }

    /// How a round loads.
    pub(super) enum Loads {
        /// Not at all.
        None = "none",
        /// By ordinary loads.
        Plain = "plain",
        /// By `movntdqa`.
        NonTemporal = "nt",
    }
}

/// What one round of a case does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    /// How it stores.
    pub(super) store: Stores,
    /// What ends it.
    pub(super) fence: Fence,
    /// When it is verified.
    pub(super) verify: Verify,
    /// How it loads.
    pub(super) load: Loads,
}

const fn point(store: Stores, fence: Fence, verify: Verify, load: Loads) -> Point {
    Point { store, fence, verify, load }
}

/// The nine tests of the original, by its names.
pub(super) const NAMED: [(&str, Point); 9] = {
    use {Fence as F, Loads as L, Stores as S, Verify as V};
    [
        ("write", point(S::Plain, F::Sfence, V::EachRound, L::None)),
        ("write_nofence", point(S::Plain, F::None, V::EachRound, L::None)),
        ("write_ucfence", point(S::Plain, F::UcStore, V::EachRound, L::None)),
        ("ntwrite", point(S::NonTemporal, F::Sfence, V::EachRound, L::None)),
        ("ntwrite_nofence", point(S::NonTemporal, F::None, V::EachRound, L::None)),
        ("ntwrite_nofence_deferred", point(S::NonTemporal, F::None, V::Deferred, L::None)),
        ("ntwrite_ucfence", point(S::NonTemporal, F::UcStore, V::EachRound, L::None)),
        ("read", point(S::None, F::None, V::EachRound, L::Plain)),
        ("ntwrite_readback", point(S::NonTemporal, F::None, V::EachRound, L::Plain)),
    ]
};

impl Point {
    /// The point that a case names: its `test`, with what is not `auto` in its place.
    pub(super) fn of(case: &Case) -> Self {
        let test = case.get("test").unwrap_or(UNNAMED);
        let named = NAMED.iter().find(|(name, _)| *name == test).map(|(_, point)| *point);
        // Without a name, what is not said is not done, and something has to be.
        let loads_only = matches!(case.said("store"), None | Some(Stores::None))
            && matches!(case.said("load"), Some(Loads::Plain | Loads::NonTemporal));
        let store = if loads_only { Stores::None } else { Stores::Plain };
        let unnamed = point(store, Fence::None, Verify::EachRound, Loads::None);
        let base = named.unwrap_or(unnamed);
        Self {
            store: case.said("store").unwrap_or(base.store),
            fence: case.said("fence").unwrap_or(base.fence),
            verify: case.said("verify").unwrap_or(base.verify),
            load: case.said("load").unwrap_or(base.load),
        }
    }

    /// The name of the point, or that it has none.
    pub(super) fn name(self) -> &'static str {
        NAMED.iter().find(|(_, point)| *point == self).map_or(UNNAMED, |(name, _)| *name)
    }

    /// The case with every choice said, and with the name that these choices have.
    pub(super) fn put(self, case: Case) -> Case {
        case.with("test", self.name())
            .with("store", &self.store.to_string())
            .with("fence", &self.fence.to_string())
            .with("verify", &self.verify.to_string())
            .with("load", &self.load.to_string())
    }

    /// Whether a round ends with an access to UC memory.
    pub(super) fn has_uc_fence(self) -> bool {
        matches!(self.fence, Fence::UcStore | Fence::UcStoreLoad)
    }

    /// Whether it only reads.
    pub(super) fn is_read(self) -> bool {
        self.store == Stores::None
    }

    /// Whether it stores and loads what it stored, all inside the clock.
    pub(super) fn is_readback(self) -> bool {
        self.store != Stores::None && self.load != Loads::None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Point {
        Point::of(&pairs.iter().fold(Case::default(), |case, (name, value)| case.with(name, value)))
    }

    #[test]
    fn the_nine_tests_are_nine_points_and_each_finds_its_name_again() {
        let points: BTreeSet<String> =
            NAMED.iter().map(|(_, point)| format!("{point:?}")).collect();
        assert_eq!(points.len(), NAMED.len());
        for (name, point) in NAMED {
            assert_eq!((of(&[("test", name)]), point.name()), (point, name));
            let said = point.put(Case::default().with("test", name));
            assert_eq!((Point::of(&said), said.get("test")), (point, Some(name)));
        }
    }

    #[test]
    fn a_choice_that_differs_from_the_name_takes_the_name_away_or_gives_another() {
        assert_eq!(of(&[("test", "write"), ("store", "nt")]).name(), "ntwrite");
        assert_eq!(of(&[("test", "write"), ("fence", "uc-store-load")]).name(), UNNAMED);
        assert_eq!(
            of(&[("test", "ntwrite_nofence"), ("load", "plain")]).name(),
            "ntwrite_readback"
        );
        assert_eq!(of(&[("test", "read"), ("load", "nt")]).name(), UNNAMED);
    }

    #[test]
    fn without_a_name_what_is_said_decides() {
        assert_eq!(of(&[("test", UNNAMED), ("load", "plain")]).name(), "read");
        assert_eq!(of(&[("test", UNNAMED), ("fence", "sfence")]).name(), "write");
        assert!(of(&[("test", UNNAMED), ("store", "nt"), ("load", "nt")]).is_readback());
    }
}
