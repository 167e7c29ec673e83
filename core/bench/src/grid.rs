//! From values of parameters to cases: completion, products of axes, and what is no case.
//!
//! The one idea: a case is complete and canonical or there is none. A product is counted before it
//! is made, and what is known is found by its hash.

use std::{collections::HashSet, hash::Hash, sync::Arc};

use pagelab_record::Case;

use crate::{
    Kind, Param, Role,
    workload::{Experiment, Workload},
};

/// A complete case from some parameters: canonical, defaults filled in, nothing left to decide.
///
/// # Errors
/// A sentence that names the parameter or the combination and what to do instead.
pub fn complete(workload: &dyn Workload, pairs: &[(&str, &str)]) -> Result<Case, String> {
    let mut case = defaults(workload);
    for (name, value) in pairs {
        case = case.with(name, &canonical(parameter(workload, name)?, value)?);
    }
    settle(workload, case).map(|(case, _)| case)
}

/// Every parameter of a workload as it is when nobody says anything.
fn defaults(workload: &dyn Workload) -> Case {
    let pairs = workload.params().iter().map(|param| (param.name.into(), param.default.into()));
    Case(pairs.collect())
}

/// States what a case of an older version leaves unsaid: a parameter that is newer than the case
/// has as its default what was so before it was there.
pub fn state(workload: &dyn Workload, case: &mut Case) {
    for param in workload.params() {
        case.0.entry(param.name.into()).or_insert_with(|| param.default.into());
    }
}

fn parameter(workload: &dyn Workload, name: &str) -> Result<&'static Param, String> {
    let found = workload.params().iter().find(|param| param.name == name);
    found.ok_or_else(|| unknown_parameter(workload, name))
}

/// The canonical spelling of a value of a case, which may be a list.
fn canonical(param: &Param, value: &str) -> Result<String, String> {
    match param.role {
        Role::Axis => param.canonical(value),
        Role::Arms | Role::List => {
            let words: Result<Vec<String>, String> =
                value.split(',').map(|word| param.canonical(word)).collect();
            words.map(|words| words.join(","))
        }
    }
}

/// Decides what is left to decide, or refuses the combination.
fn settle(workload: &dyn Workload, case: Case) -> Result<(Case, Box<dyn Experiment>), String> {
    let case = workload.resolve(case);
    let asked = workload.accept(&case)?;
    Ok((case, asked))
}

/// Whether a case that was planned elsewhere, by another version perhaps, is one of this version.
///
/// # Errors
/// A sentence that names the parameter and its value.
pub fn check(row: &dyn Workload, case: &Case) -> Result<(), String> {
    let workload = row.name();
    let said = |why| format!("{workload}: {why}");
    for (name, value) in &case.0 {
        let known = canonical(parameter(row, name)?, value).map_err(said)?;
        if known != *value {
            return Err(format!("{workload}: --{name} {value}: this version writes {known}"));
        }
    }
    if let Some(param) = row.params().iter().find(|param| case.get(param.name).is_none()) {
        return Err(format!("{workload}: the case has no `{}`", param.name));
    }
    let (settled, _) = settle(row, case.clone()).map_err(said)?;
    match case.0.iter().find(|(name, value)| settled.get(name) != Some(value)) {
        Some((name, value)) => Err(format!("{workload}: --{name} {value}: that is not decided")),
        None => Ok(()),
    }
}

fn unknown_parameter(workload: &dyn Workload, name: &str) -> String {
    let names: Vec<&str> = workload.params().iter().map(|param| param.name).collect();
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("{} has no parameter `{name}`; it has {known}", workload.name())
}

/// Every case of a grid: one for each combination of the values of its axes.
///
/// Combinations that the workload refuses are left out with their reason, unless all are.
///
/// # Errors
/// When a parameter or value is unknown, there are too many, or nothing is left.
pub fn grid(
    workload: &dyn Workload,
    axes: &[(String, Vec<String>)],
) -> Result<(Vec<Arc<Case>>, Vec<String>), String> {
    let mut cases = Vec::new();
    let add = |case, _| cases.push(case);
    let left_out = grid_beside(workload, axes, &mut HashSet::new(), add)?;
    Ok((cases, left_out))
}

/// Adds the cases of a grid that are not known yet, each as it was read; known they are afterwards.
/// Returns what was left out.
pub(crate) fn grid_beside(
    workload: &dyn Workload,
    axes: &[(String, Vec<String>)],
    known: &mut HashSet<Arc<Case>>,
    mut add: impl FnMut(Arc<Case>, Box<dyn Experiment>),
) -> Result<Vec<String>, String> {
    let mut canonical_axes = Vec::new();
    let unsaid = swept(workload, axes);
    for (name, values) in axes.iter().chain(&unsaid) {
        let param = parameter(workload, name)?;
        let values = match param.role {
            Role::Arms | Role::List => vec![values.join(",")],
            Role::Axis => values.iter().flat_map(|value| param.meant(value)).collect(),
        };
        if values.is_empty() {
            return Err(format!("`{name}` has no value"));
        }
        let values: Result<Vec<_>, _> = values.iter().map(|v| canonical(param, v)).collect();
        canonical_axes.push((name.as_str(), values?));
    }
    let combinations = count(canonical_axes.iter().map(|(_, values)| values.len()))?;
    let base = defaults(workload);
    let mut accepted = false;
    let mut left_out = Vec::new();
    for combination in 0..combinations {
        let mut case = base.clone();
        // The last axis changes fastest.
        let mut rest = combination;
        for (name, values) in canonical_axes.iter().rev() {
            case = case.with(name, &values[rest % values.len()]);
            rest /= values.len();
        }
        match settle(workload, case) {
            Ok((case, asked)) => {
                accepted = true;
                let case = Arc::new(case);
                if known.insert(Arc::clone(&case)) {
                    add(case, asked);
                }
            }
            // What is asked for alone is a mistake; one of several may be part of a grid.
            Err(why) if combinations == 1 => return Err(why),
            Err(why) => left_out.push(why),
        }
    }
    let left_out = unique(left_out);
    if accepted { Ok(left_out) } else { Err(left_out.join("; ")) }
}

/// How many cases a run may have: their records are just as long as a journal may be.
pub const CASES_MAX: usize = 120_000;

/// The number of combinations, known before the first one is made.
fn count(axes: impl Iterator<Item = usize>) -> Result<usize, String> {
    let product = axes.fold(1_u128, |product, values| product.saturating_mul(values as u128));
    match usize::try_from(product) {
        Ok(count) if count <= CASES_MAX => Ok(count),
        _ => Err(too_many(product)),
    }
}

pub(crate) fn too_many(cases: u128) -> String {
    format!(
        "{cases} cases are too many: a run has at most {CASES_MAX}; name fewer values, or divide \
         them among several runs"
    )
}

/// Things, each where it came first. What is known is looked up by its hash, so that a hundred
/// thousand take no longer each than ten.
pub fn unique<T: Clone + Eq + Hash>(things: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known = HashSet::new();
    things.into_iter().filter(|thing| known.insert(thing.clone())).collect()
}

/// The axes that nobody names and whose default stands for several values.
fn swept(workload: &dyn Workload, axes: &[(String, Vec<String>)]) -> Vec<(String, Vec<String>)> {
    let is_named = |param: &Param| axes.iter().any(|(name, _)| name == param.name);
    let sweeps = |param: &&Param| matches!(param.kind, Kind::Sweep(_)) && !is_named(param);
    let unsaid = workload.params().iter().filter(sweeps);
    unsaid.map(|param| (param.name.to_owned(), vec![param.default.to_owned()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thing that counts how often it is compared.
    #[derive(Debug, Clone)]
    struct Counted<'c>(u32, &'c std::cell::Cell<u64>);

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted<'_> {}

    impl Hash for Counted<'_> {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    #[test]
    fn finding_what_is_known_takes_a_comparison_each() {
        let compared = std::cell::Cell::new(0);
        let all = unique((0..20_000).map(|number| Counted(number / 2, &compared)));
        assert_eq!(all.len(), 10_000);
        assert!(compared.get() < 30_000, "{}", compared.get());
    }
}
