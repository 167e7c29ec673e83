//! What is counted of a workload and compared as counts: they differ exactly or not at all.
//!
//! A row of a view says which pairs have counts and what is made of all pairs of one side; what
//! they come to is for that row alone.

use std::{fmt::Debug, sync::Arc};

use pagelab_record::Record;
use serde_json::Value;

use super::Pair;
use crate::{Headline, Section};

/// How the counts of a workload are compared.
#[derive(Debug)]
pub struct Counting {
    /// What they are called in JSON.
    pub name: &'static str,
    /// What a threshold on them is called, and whether it is a share or a number.
    pub threshold: (&'static str, Most),
    /// Whether the machine's facts forbid a comparison, as they do for times. Then nothing else of
    /// the workload is compared, and this is why a pair may have no counts.
    pub lacks: Option<&'static str>,
    /// Whether a pair has counts.
    pub has: fn(&Pair<'_>) -> bool,
    /// All pairs of one side that have counts, with their short names.
    pub of: for<'r> fn(Vec<Named<'r>>) -> Arc<dyn Counts + 'r>,
}

/// A pair with its short name.
pub type Named<'r> = (Pair<'r>, String);

/// By how much counts may be more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Most {
    /// By so many.
    Number,
    /// By a share of the base.
    Share,
}

/// Counts of one side against the base.
pub trait Counts: Debug {
    /// Records of both sides whose machines matter.
    fn example(&self) -> Option<[&Record; 2]> {
        None
    }
    /// Whether the second side has more, by more than this.
    fn is_worse(&self, most: f64) -> bool;
    /// Whether a count that is larger says that the second side is slower, and one is.
    fn is_slower(&self) -> bool {
        false
    }
    /// The main numbers.
    fn headlines(&self) -> Vec<Headline> {
        Vec::new()
    }
    /// What a report says of them.
    fn sections(&self, heading: &Heading<'_>) -> Vec<Section>;
    /// Every number, a value for each pair.
    fn json(&self) -> Vec<Value>;
    /// Lines of a mail, so many columns wide; what is longer is broken between words.
    fn mail(&self, columns: usize) -> Vec<String>;
    /// Stacks with what they take before and after, for flame graphs.
    fn folded(&self) -> String {
        String::new()
    }
}

/// What sections of one side are called.
#[derive(Debug)]
pub struct Heading<'h> {
    /// The base and the side.
    pub names: [&'h str; 2],
    /// The side's number, where there are several.
    pub number: Option<usize>,
    /// Whether it is for the page, which shows more.
    pub for_page: bool,
}

impl Heading<'_> {
    /// The id of a section.
    pub fn id(&self, name: &str) -> String {
        self.number.map_or_else(|| name.to_owned(), |number| format!("{name}-{number}"))
    }

    /// The title of a section.
    pub fn title(&self, text: &str) -> String {
        self.number.map_or_else(|| text.to_owned(), |_| format!("{}: {text}", self.names[1]))
    }
}
