//! The facts of many machines: kept once where they are the same, and told where they are not.
//!
//! The one idea: identity decides which machines stand beside each other; everything else may be
//! why one of them lies apart. A fact is told of a machine where most of the others agree in
//! another value, the rarest first; of what always moves, where the number lies as far off as one
//! that is measured must.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    rc::Rc,
};

use pagelab_record::Host;
use serde_json::Value;

use super::{
    super::facts::{Class, Difference},
    rule::{NUMBERS_MIN, SCORE_MAX, Spread},
};
use crate::views::display_fact;

/// Facts that lie apart from most others', for one machine.
const TOLD_MAX: usize = 8;
/// Of what always moves fewer: some of it lies apart by chance.
const MOVING_MAX: usize = 3;

/// Facts by their keys, of parts `mitigations.retbleed`, as they are shown.
pub(super) type Facts = BTreeMap<String, String>;

/// Facts that machines share, each set of them kept once.
#[derive(Debug, Default)]
pub(super) struct Kept {
    sets: HashMap<Facts, Rc<Facts>>,
    /// Names of the numbers that always move.
    moving: HashMap<String, usize>,
}

/// What a machine is and how it is set up, at one record.
#[derive(Debug, Clone)]
pub(super) struct Told {
    /// What forbids that it stands beside another.
    pub(super) identity: Rc<Facts>,
    /// What may differ: settings, and facts of identity that were allowed to.
    pub(super) loose: Rc<Facts>,
    /// What always moves, by the places of [`Kept`]; not a number where it is not known.
    moving: Box<[f64]>,
}

impl Kept {
    /// The facts of a machine. What the version of pagelab is forbids as identity does.
    pub(super) fn told(&mut self, host: &Host, version: &str, allow: &[String]) -> Told {
        let (mut identity, mut loose) = (Facts::new(), Facts::new());
        flatten("", &host.settings, &mut loose);
        let mut all = Facts::new();
        flatten("", &host.identity, &mut all);
        all.insert("pagelab".to_owned(), version.to_owned());
        for (key, value) in all {
            let fact = Difference::new(Class::Identity, &key, Default::default());
            let to = if fact.is_allowed(allow) { &mut loose } else { &mut identity };
            to.insert(key, value);
        }
        let moving = self.moving(&host.volatile);
        Told { identity: self.once(identity), loose: self.once(loose), moving }
    }

    fn once(&mut self, facts: Facts) -> Rc<Facts> {
        if let Some(known) = self.sets.get(&facts) {
            return known.clone();
        }
        let kept = Rc::new(facts.clone());
        self.sets.insert(facts, kept.clone());
        kept
    }

    /// The numbers among what always moves. What only ever grows says how long the machine has
    /// been up, and is left out.
    fn moving(&mut self, facts: &BTreeMap<String, Value>) -> Box<[f64]> {
        let mut found = vec![f64::NAN; self.moving.len()];
        let mut add = |key: String, value: &Value| {
            let Some(number) = value.as_f64() else { return };
            let next = self.moving.len();
            let at = *self.moving.entry(key).or_insert(next);
            found.resize(found.len().max(at + 1), f64::NAN);
            found[at] = number;
        };
        for (key, value) in facts.iter().filter(|(key, _)| !key.ends_with("_counters")) {
            add(key.clone(), value);
            for (part, value) in value.as_object().into_iter().flatten() {
                add(format!("{key}.{part}"), value);
            }
        }
        found.into()
    }
}

/// Every part of some facts that is there, as it is shown.
fn flatten<'v>(
    within: &str,
    facts: impl IntoIterator<Item = (&'v String, &'v Value)>,
    to: &mut Facts,
) {
    for (key, value) in facts {
        let whole = if within.is_empty() { key.clone() } else { format!("{within}.{key}") };
        match value {
            Value::Object(parts) => flatten(&whole, parts, to),
            Value::Null => {}
            value => drop(to.insert(whole, display_fact(key, value))),
        }
    }
}

/// The keys in which two sets differ, with both values; empty where one has none.
pub(super) fn differing(one: &Facts, other: &Facts) -> Vec<(String, [String; 2])> {
    let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
    let both = |key: &String| [one, other].map(|facts| facts.get(key).cloned().unwrap_or_default());
    keys.map(|key| (key.clone(), both(key))).filter(|(_, [a, b])| a != b).collect()
}

/// A fact in which a machine lies apart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Apart {
    pub(super) key: String,
    pub(super) here: String,
    /// What most of the others have.
    pub(super) usual: String,
    /// Of the others, how many have what they mostly have, and how many are as this one is.
    pub(super) others: Option<[usize; 2]>,
    /// How far a number lies off.
    pub(super) score: Option<f64>,
}

/// In what a machine lies apart from others.
pub(super) fn apart(kept: &Kept, one: &Told, others: &[&Told]) -> Vec<Apart> {
    let mut sets: HashMap<*const Facts, (usize, &Facts)> = HashMap::new();
    for other in others {
        sets.entry(Rc::as_ptr(&other.loose)).or_insert((0, &other.loose)).0 += 1;
    }
    let none = String::new();
    let keys: BTreeSet<&String> =
        one.loose.keys().chain(sets.values().flat_map(|(_, facts)| facts.keys())).collect();
    let mut found: Vec<Apart> = Vec::new();
    for key in keys {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (count, facts) in sets.values() {
            *counts.entry(facts.get(key).unwrap_or(&none)).or_default() += count;
        }
        let Some((usual, most)) = counts.iter().max_by_key(|(_, count)| **count) else { continue };
        let here = one.loose.get(key).unwrap_or(&none);
        // Where each has its own there is nothing to be apart from.
        if here == usual || most * 2 < others.len() {
            continue;
        }
        let alike = counts.get(here.as_str()).copied().unwrap_or_default();
        found.push(Apart {
            key: key.clone(),
            here: here.clone(),
            usual: (*usual).to_owned(),
            others: Some([*most, alike]),
            score: None,
        });
    }
    found.sort_by_key(|fact| fact.others.map(|[most, alike]| (alike, usize::MAX - most)));
    found.truncate(TOLD_MAX);
    found.extend(moving(kept, one, others));
    found
}

fn moving(kept: &Kept, one: &Told, others: &[&Told]) -> Vec<Apart> {
    let mut found: Vec<Apart> = Vec::new();
    for (key, at) in &kept.moving {
        let of = |told: &&Told| told.moving.get(*at).copied().filter(|number| !number.is_nan());
        let numbers = others.iter().filter_map(of);
        let Some(here) = of(&one).filter(|_| numbers.clone().count() >= NUMBERS_MIN) else {
            continue;
        };
        let spread = Spread::of(numbers);
        let score = spread.score(here);
        if score.abs() > SCORE_MAX {
            let shown = |number: f64| display_fact(key, &number.into());
            found.push(Apart {
                key: key.clone(),
                here: shown(here),
                usual: shown(spread.middle),
                others: None,
                score: Some(score),
            });
        }
    }
    let far = |fact: &Apart| fact.score.map_or(0.0, f64::abs);
    found.sort_by(|a, b| far(b).total_cmp(&far(a)).then_with(|| a.key.cmp(&b.key)));
    found.truncate(MOVING_MAX);
    found
}
