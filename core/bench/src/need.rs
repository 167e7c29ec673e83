//! What a case needs of the host: one concept behind `doctor`, skipped records, test skips and
//! error texts.
//!
//! A need knows how to check itself and how a person can meet it. Some are met by a knob, which a
//! run with root sets for the case and puts back; some by a belonging, which it makes for the case
//! and removes. Such a need is checked for whether the thing can be made. Each need lives with the
//! workload that asks for it.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use pagelab_record::vocabulary::Check;

use crate::{
    remedy::Remedy,
    same::{Same, same},
};

/// A capability that a case cannot do without.
pub trait Need: Same + Send + Sync {
    /// What it is called: in skips, in `doctor`, in the plan.
    fn name(&self) -> String;

    /// Whether this host has it now.
    fn check(&self) -> bool;

    /// What a person can do about it: a command to paste where there is one.
    fn cure(&self) -> String;

    /// What was found, where there is more to say than whether the host has it.
    fn found(&self) -> Option<String> {
        None
    }

    /// What is claimed of a need that a setting meets and nothing in the process of a case proves:
    /// that it is met at both ends of the process.
    fn lasting(&self) -> Option<(Check, String)> {
        None
    }

    /// The fact of the machine that the case has its own way with: of its value for others nobody
    /// is warned.
    fn overrules(&self) -> Option<&'static str> {
        None
    }

    /// What a run with root does to meet it, where there is something.
    fn remedy(&self) -> Option<Remedy> {
        None
    }

    /// Whether another need is met by the same thing, whatever the amount.
    fn is_alike(&self, other: &dyn Need) -> bool {
        self.as_any().type_id() == other.as_any().type_id()
    }

    /// What a run does before this case: nothing where the need is met, or cannot be.
    fn pending(&self) -> Option<Remedy> {
        match (self.remedy()?, self.check()) {
            (remedy @ Remedy::Set(..), false) | (remedy @ Remedy::Create(_), true) => Some(remedy),
            _ => None,
        }
    }

    /// Whether the host does not meet it and a run cannot either.
    fn is_lacking(&self) -> bool {
        !self.check() && !matches!(self.remedy(), Some(Remedy::Set(..)))
    }

    /// As one of several.
    fn needed(self) -> Needed
    where
        Self: Sized,
    {
        Arc::new(self)
    }
}

/// One need of a case.
pub type Needed = Arc<dyn Need>;

same!(dyn Need);

impl dyn Need {
    /// The need of this type, where it is one.
    pub fn of<T: Need>(&self) -> Option<&T> {
        self.as_any().downcast_ref()
    }
}

impl fmt::Display for dyn Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// A need that a name, a question and a sentence say all about.
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    /// What it is called; no two have the same name.
    pub name: &'static str,
    /// Whether this host has it.
    pub has: fn() -> bool,
    /// What to do about it.
    pub cure: &'static str,
}

impl PartialEq for Plain {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Plain {}

impl Hash for Plain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Need for Plain {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn check(&self) -> bool {
        (self.has)()
    }

    fn cure(&self) -> String {
        self.cure.to_owned()
    }

    fn is_alike(&self, other: &dyn Need) -> bool {
        other.of::<Self>() == Some(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const fn plain(name: &'static str) -> Plain {
        Plain { name, has: || false, cure: "" }
    }

    #[test]
    fn equal_needs_are_one_and_others_are_not() {
        let needs = ["a", "b", "a"].map(|name| plain(name).needed());
        let unique: HashSet<&Needed> = needs.iter().collect();
        assert_eq!(unique.len(), 2);
        assert!(needs[0].is_alike(&*needs[2]) && !needs[0].is_alike(&*needs[1]));
        assert_eq!(needs[1].of::<Plain>(), Some(&plain("b")));
    }
}
