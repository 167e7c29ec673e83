//! A policy or a generator as a file names it: a text, or a table whose numbers have origins.
//!
//! `policy = "pghot:threshold=1"` and `policy = { name = "pghot", threshold = { value = 1, kernel =
//! "…" } }` are the same choice; the second says where the number comes from.

use std::{fmt, marker::PhantomData};

use pagelab_tier::{Row, Spec};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};

use super::constant::{Constant, Origin};

/// A choice with the origins of its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice<S> {
    /// What was chosen.
    pub spec: S,
    /// The numbers that say where they come from.
    pub constants: Vec<(String, Constant)>,
}

impl<R: Row> Choice<Spec<R>> {
    /// Reads a choice without origins.
    ///
    /// # Errors
    /// A sentence that says what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { spec: Spec::parse(text)?, constants: Vec::new() })
    }

    /// Sets a number, which then has no origin any more.
    ///
    /// # Errors
    /// A sentence that says what is accepted.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), String> {
        self.spec.set(name, value)?;
        self.constants.retain(|(known, _)| known != name);
        Ok(())
    }

    /// The numbers that say where they come from, each with its name in a file.
    pub(super) fn each(&self) -> impl Iterator<Item = (String, &Constant)> {
        self.constants.iter().map(|(name, constant)| (name.clone(), constant))
    }
}

impl<'de, R: Row> Deserialize<'de> for Choice<Spec<R>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

struct Reader<R>(PhantomData<R>);

impl<'de, R: Row> Visitor<'de> for Reader<R> {
    type Value = Choice<Spec<R>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {0} such as \"name:parameter=1\", or a table of `name` and numbers", R::KIND)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Choice::parse(text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut name, mut constants) = (None, Vec::new());
        while let Some(key) = map.next_key::<String>()? {
            if key == "name" {
                name = Some(map.next_value::<String>()?);
            } else {
                constants.push((key, map.next_value::<Constant>()?));
            }
        }
        let name = name.ok_or_else(|| A::Error::missing_field("name"))?;
        let mut spec = Spec::parse(&name).map_err(A::Error::custom)?;
        for (key, constant) in &constants {
            spec.set(key, constant.value).map_err(A::Error::custom)?;
        }
        constants.retain(|(_, constant)| constant.origin != Origin::Given);
        Ok(Choice { spec, constants })
    }
}

#[cfg(test)]
mod tests {
    use pagelab_tier::PolicySpec;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct File {
        policy: Choice<PolicySpec>,
    }

    fn read(text: &str) -> Result<Choice<PolicySpec>, String> {
        toml::from_str::<File>(text).map(|file| file.policy).map_err(|error| error.to_string())
    }

    #[test]
    fn a_text_and_a_table_are_the_same_choice() {
        let text = read("policy = 'pghot:threshold=1'").unwrap();
        let table = "policy = { name = 'pghot', threshold = { value = 1, assumed = 'why' } }";
        let table = read(table).unwrap();
        assert_eq!(text.spec, table.spec);
        assert_eq!((text.constants.len(), table.constants.len()), (0, 1));
    }

    #[test]
    fn mistakes_name_their_line_and_what_there_is() {
        let error = read("\npolicy = 'hot'").unwrap_err();
        assert!(error.contains("line 2") && error.contains("oracle"), "{error}");
        let error = read("policy = 'pghot:treshold=1'").unwrap_err();
        assert!(error.contains("treshold") && error.contains("threshold"), "{error}");
        assert!(read("policy = { threshold = 1 }").unwrap_err().contains("name"));
    }
}
