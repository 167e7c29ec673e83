//! Which facts of two machines differ, and which of them forbid a comparison.
//!
//! The one idea: identity and settings forbid it unless they are allowed by name; what a machine
//! happened to be doing never does. A fact that only one side recorded is no difference: versions
//! record more and more of them.

use std::collections::BTreeMap;

use pagelab_record::{Host, Record};
use serde_json::Value;

use crate::views::display_fact;

pagelab_record::named! {
    /// How far a difference matters.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum Class {
        Identity = "identity",
        Settings = "settings",
        Volatile = "volatile",
    }
}

impl Class {
    /// Those of a host.
    pub(crate) fn of(self, host: &Host) -> &BTreeMap<String, Value> {
        match self {
            Self::Identity => &host.identity,
            Self::Settings => &host.settings,
            Self::Volatile => &host.volatile,
        }
    }
}

/// A fact that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    pub(super) class: Class,
    /// `kernel_release`; of a fact with parts `mitigations.retbleed`.
    pub(super) key: String,
    pub(super) values: [String; 2],
}

impl Difference {
    pub(super) fn new(class: Class, key: &str, values: [String; 2]) -> Self {
        Self { class, key: key.to_owned(), values }
    }

    /// Whether it is one that was allowed: by its name, the name of what it is a part of, or that
    /// of its class.
    pub(super) fn is_allowed(&self, allowed: &[String]) -> bool {
        let is_it = |name: &String| {
            let part = self.key.strip_prefix(name.as_str());
            name == self.class.name()
                || part.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.class == Class::Volatile || allowed.iter().any(is_it)
    }
}

/// The facts of a class in which two records differ.
pub(super) fn differences(class: Class, a: &Record, b: &Record) -> Vec<Difference> {
    let (a, b) = (class.of(&a.host), class.of(&b.host));
    let mut found = Vec::new();
    for (key, one) in a {
        if let Some(other) = b.get(key) {
            part(class, key, one, other, &mut found);
        }
    }
    found
}

fn part(class: Class, key: &str, a: &Value, b: &Value, found: &mut Vec<Difference>) {
    if a == b {
        return;
    }
    if let (Value::Object(a), Value::Object(b)) = (a, b) {
        let nothing = Value::Null;
        for name in a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))) {
            let [a, b] = [a, b].map(|map| map.get(name).unwrap_or(&nothing));
            part(class, &format!("{key}.{name}"), a, b, found);
        }
        return;
    }
    found.push(Difference::new(class, key, [a, b].map(|value| display_fact(key, value))));
}
