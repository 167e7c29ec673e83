//! What is worth a sentence: rows of a part's `rules.toml`, and what a row may say.
//!
//! A row names cells by workload and parameters, what they are set against, and how far apart the
//! two must be; the sentence takes the ratio in. Bounds leave at least a tie to either side of 1,
//! so that no pair of cells can be told both ways. `like` begins with the cells of that name. Of a
//! sentence: `{{ value }}` of the parameter, the same as `{{ pages }}` or `{{ memory }}` type, the
//! `{{ trace }}`; the ratio as a share of the `{{ limit }}`, and as `{{ time }}`, `{{ bandwidth }}`
//! or `{{ cpu_time }}` of the other; and the `{{ latency }}` of what must hold beside it.

use std::collections::BTreeMap;

use minijinja::{Environment, context};
use pagelab_record::{Case, verdict::DELTA};
use serde::{Deserialize, Deserializer, de::Error};
use toml::{Table, Value};

use super::{
    Compared,
    wording::{as_long_as, of_limit, of_the, pages},
};
use crate::{metric::Statistic, parameter, parameters};

/// A row.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What programs know it by.
    pub(super) id: String,
    /// What is compared.
    pub(super) cells: Cells,
    /// What must hold of the same value beside it.
    pub(super) beside: Option<Cells>,
    /// Of which values it is said, where there are several.
    #[serde(default)]
    pub(super) take: Take,
    /// The sentence, as a template.
    says: String,
    /// What it does not say.
    pub(super) caveat: String,
}

/// Cells along a parameter, each set against one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cells {
    pub(super) workload: String,
    /// The parameter; of arms, the series that they have.
    pub(super) axis: String,
    pub(super) base: Base,
    /// The one value that is spoken of; otherwise all.
    only: Option<String>,
    /// Pages below this one are spoken of.
    below: Option<String>,
    /// Values that begin so are not.
    #[serde(default)]
    not: Vec<String>,
    /// What the case must be, as far as it says.
    #[serde(default)]
    pub(super) with: BTreeMap<String, String>,
    #[serde(deserialize_with = "statistic")]
    pub(super) statistic: Statistic,
    pub(super) bounds: Bounds,
}

impl Cells {
    /// Whether a value of the parameter is one to speak of.
    pub(super) fn speaks_of(&self, value: &str) -> bool {
        let rank = parameters::page_rank;
        !matches!(&self.base, Base::Value(base) | Base::Arm(base) if base == value)
            && self.only.as_ref().is_none_or(|only| only == value)
            && self.below.as_ref().is_none_or(|page| rank(value) < rank(page))
            && !self.not.iter().any(|start| value.starts_with(start))
    }
}

/// What cells are set against.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Base {
    /// The otherwise equal case with this value of the parameter.
    Value(String),
    /// Another arm of the same processes.
    Arm(String),
    /// The limit of clearing memory.
    Clear,
}

/// Beyond which ratios there is something to say.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "a share, or a table of `below` and `above`")]
pub(super) enum Bounds {
    /// By so large a share less than 1, or as much more.
    Beyond(f64),
    Ends {
        below: Option<f64>,
        above: Option<f64>,
    },
}

impl Bounds {
    /// The ratio to lie below, and the one to lie above.
    pub(super) fn ends(self) -> [Option<f64>; 2] {
        match self {
            Self::Beyond(share) => [Some(1.0 - share), Some(1.0 / (1.0 - share))],
            Self::Ends { below, above } => [below, above],
        }
    }
}

/// Which of several values are told.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Take {
    /// All of them.
    #[default]
    Each,
    /// The first.
    First,
    /// The one farthest above its bound, and the one farthest below.
    Furthest,
}

/// The words of a sentence.
const WORDS: [&str; 9] =
    ["value", "pages", "memory", "trace", "limit", "time", "bandwidth", "cpu_time", "latency"];

impl Rule {
    /// The rows of a file, in the order in which they are told.
    ///
    /// # Panics
    /// Where the text is no such file; a test of the program reads those of every part.
    pub fn read(text: &str) -> Vec<Self> {
        read(text).unwrap_or_else(|error| panic!("{error}"))
    }

    /// What programs know it by.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether it speaks of no tie, and names only what it is given.
    ///
    /// # Errors
    /// The sentence is no template.
    pub fn is_sound(&self) -> Result<bool, minijinja::Error> {
        let speaks_of_a_tie = |cells: &Cells| {
            let [below, above] = cells.bounds.ends();
            (below.is_none() && above.is_none())
                || below.unwrap_or(0.0) >= above.unwrap_or(f64::INFINITY)
                || below.is_some_and(|below| below > 1.0 - DELTA)
        };
        let environment = Environment::empty();
        let words = environment.template_from_str(&self.says)?.undeclared_variables(false);
        Ok(words.iter().all(|word| WORDS.contains(&word.as_str()))
            && (self.beside.is_some() || !words.contains("latency"))
            && ![Some(&self.cells), self.beside.as_ref()]
                .into_iter()
                .flatten()
                .any(speaks_of_a_tie))
    }

    /// The sentence about what was found.
    pub(super) fn says(&self, value: &str, ratios: &[Compared], case: &Case) -> String {
        let first = &ratios[0].ratio;
        let trace = case.get(parameter::TRACE).unwrap_or("the trace");
        let words = context! {
            value,
            pages => pages(value),
            memory => parameters::display_type(value),
            trace => parameters::display_trace(trace),
            limit => of_limit(first),
            time => as_long_as(first),
            bandwidth => of_the("bandwidth", first),
            cpu_time => of_the("CPU time", first),
            latency => ratios.get(1).map(|beside| of_the("latency", &beside.ratio)),
        };
        Environment::empty().render_str(&self.says, words).expect("a test reads each sentence")
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    cells: BTreeMap<String, Table>,
    rules: Vec<Table>,
}

fn read(text: &str) -> Result<Vec<Rule>, toml::de::Error> {
    let File { cells, mut rules } = toml::from_str(text)?;
    let tables = rules.iter_mut().flat_map(|rule| rule.iter_mut());
    for own in tables.filter_map(|(_, value)| value.as_table_mut()) {
        if let Some(Value::String(like)) = own.remove("like") {
            let unknown = || toml::de::Error::custom(format!("no cells are called `{like}`"));
            let base = cells.get(&like).ok_or_else(unknown)?.clone();
            *own = base.into_iter().chain(std::mem::take(own)).collect();
        }
    }
    rules.into_iter().map(Table::try_into).collect()
}

fn statistic<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Statistic, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}
