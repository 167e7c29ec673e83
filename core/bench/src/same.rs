//! Equality of things behind a trait: open sets that can be looked up and counted once.
//!
//! The one idea: two of them are the same when their types are and their values are. A trait that
//! stands on [`Same`] gets `Eq` and `Hash` for its objects from [`same!`].

use std::{
    any::Any,
    fmt::Debug,
    hash::{Hash, Hasher},
};

/// What can be compared with anything.
pub trait Same: Any + Debug {
    /// Itself, for whoever knows the type.
    fn as_any(&self) -> &dyn Any;
    /// Whether the other is of this type and equal.
    fn is_same(&self, other: &dyn Any) -> bool;
    /// Its hash, into a state.
    fn feed(&self, state: &mut dyn Hasher);
}

impl<T: Any + Debug + Eq + Hash> Same for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>().is_some_and(|other| self == other)
    }

    fn feed(&self, mut state: &mut dyn Hasher) {
        self.type_id().hash(&mut state);
        self.hash(&mut state);
    }
}

/// Objects of a trait that stands on [`Same`] are equal as what is behind them is.
macro_rules! same {
    ($object:ty) => {
        impl PartialEq for $object {
            fn eq(&self, other: &Self) -> bool {
                self.is_same(other.as_any())
            }
        }

        impl Eq for $object {}

        impl std::hash::Hash for $object {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.feed(state);
            }
        }
    };
}

pub(crate) use same;
