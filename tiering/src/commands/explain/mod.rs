//! `pagelab tier explain`: what each policy is worth to a program, said before it is tried.
//!
//! The one idea: the program runs once while nothing moves and is watched; from that, and from the
//! measured curve of the machine, comes a time for each policy. Then it runs under each, in turns,
//! and how far the prediction was off is printed, whatever it is, with the range of what came: no
//! two runs are alike.

mod told;

use std::{ffi::OsString, path::PathBuf};

use crate::preset;
use clap::Args;
use pagelab_live::{
    Reason,
    predict::{Curve, Predicted, predict},
    source::Source,
};
use pagelab_sys::machine::{Tree, tiers::MemoryNode};
use pagelab_tier::{Row as _, policy::Needs};
use serde_json::{Value, json};

use self::told::{Spread, Told, Took, seconds};
use super::promote::{Asked, Kept, Once, Promote};
use pagelab_cli::{
    args::Run,
    exit::{Exit, Failure},
    output,
};

/// What nothing is moved by.
const NONE: &str = "none";
/// What is always said beside the numbers.
const UNSEEN: &str = "not yet seen on hardware with two tiers";

/// Predict what each policy is worth to a program, then run it under each.
///
/// Runs the program once while nothing moves, predicts from what was seen and from the curve of
/// the machine how long it would take under each policy, runs it under each, and says by how much
/// the prediction was off, as the median of its runs and their range. With the policy none it says,
/// too, what watching costs: in each turn the program runs once with nobody beside. It keeps its
/// terminal; what came of it follows on stderr. On one node nothing can be promoted: it says so,
/// and every policy is predicted to change nothing.
/// Not yet seen on hardware with two tiers.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// Policies and their parameters, as in tier simulate; numbers follow a colon.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "none,history")]
    policy: Vec<String>,
    /// What a share of slow memory costs here: a scenario that tier calibrate wrote.
    #[arg(long, value_name = "FILE")]
    curve: Option<PathBuf>,
    #[command(flatten)]
    asked: Asked,
    /// Run the program so often under each policy, in turns.
    #[arg(long, value_name = "COUNT", default_value = "3")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// The program and its arguments, after --.
    #[arg(last = true, required = true, num_args = 1.., value_name = "PROGRAM")]
    program: Vec<OsString>,
}

impl Run for Explain {
    fn run(self) -> Result<Exit, Failure> {
        for policy in &self.policy {
            let spec = self.asked.makes_sense(policy)?;
            if spec.row().needs == Needs::Future {
                let name = spec.row().name();
                return Err(usage!("`{name}` knows the future: only the simulator has it"));
            }
        }
        let kept = Kept::default();
        let watch = self.under(NONE, Some(kept.clone()));
        let given = self.curve.as_deref().map(measured).transpose()?;
        let tree = Tree::machine();
        let nodes = watch.nodes(&tree)?;
        let source = watch.source(&tree)?;
        let stays = stays(&nodes);
        let curve = match (given, &stays) {
            (Some(curve), _) => curve,
            (None, Some(_)) => Curve::flat(),
            (None, None) => {
                return Err(host!(
                    "what slow memory costs here is not known: pagelab tier calibrate \
                            --write FILE measures it, --curve FILE takes it"
                ));
            }
        };
        let watched = watch.once(source, &watch.options(nodes.clone()), None)?;
        watched.warn();
        let log = kept.take();
        let told = |policy: &String| -> Result<Told, Failure> {
            let found = predict(&mut &log[..], policy, &curve, watched.ns, self.asked.limit);
            let predicted = found.map_err(|why| Failure::internal(anyhow::Error::new(why)))?;
            Ok(Told { policy: policy.clone(), predicted, took: Vec::new() })
        };
        let mut told: Vec<Told> = self.policy.iter().map(told).collect::<Result<_, _>>()?;
        // Before any of them is tried.
        for line in self.before(&watched, &told, stays.as_ref()) {
            output::warn(&line);
        }
        let watched_ns = watched.ns;
        let mut alone = Vec::new();
        let last = self.tried(watched, &mut told, &mut alone, source, &nodes)?;
        let costs = told.iter().find(|one| one.policy == NONE).and_then(|one| one.slower(&alone));
        if !self.asked.format.is_json() {
            told.iter().map(Told::text).for_each(|text| output::warn(&text));
            if let Some(costs) = &costs {
                let name = source.name;
                output::warn(&format!("watched by {name} it is slower by {}", costs.text()));
            }
        }
        if self.asked.format.is_json() {
            let why =
                stays.map(|why| json!({ "why": why, "says": why.to_string(), "cure": why.cure() }));
            let told: Vec<Value> = told.iter().map(Told::json).collect();
            let costs = costs.as_ref().map(Spread::json);
            let all = json!({ "watched_ns": watched_ns, "policies": told, "watching": costs,
                "nothing_moves": why, "note": UNSEEN });
            output::warn(&all.to_string());
        }
        Ok(last.exit())
    }
}

impl Explain {
    fn under(&self, policy: &str, kept: Option<Kept>) -> Promote {
        Promote::of_program(&self.asked, &self.program, policy, kept)
    }

    /// Runs the program under each policy, and with nobody beside for what watching costs, so often
    /// as was asked for or until it fails; every second turn goes the other way round. What the
    /// last run was.
    fn tried(
        &self,
        watched: Once,
        told: &mut [Told],
        alone: &mut Vec<u64>,
        source: &'static Source,
        nodes: &[MemoryNode],
    ) -> Result<Once, Failure> {
        let mut last = watched;
        let is_compared = told.iter().any(|one| one.policy == NONE);
        let steps = told.len() + usize::from(is_compared);
        for turn in 0..self.runs {
            for step in 0..steps {
                let step = if turn % 2 == 0 { step } else { steps - 1 - step };
                if !last.ended.status.success() {
                    output::warn("the program failed: it is not run again");
                    return Ok(last);
                }
                if let Some(one) = told.get_mut(step) {
                    let asked = self.under(&one.policy, None);
                    last = asked.once(source, &asked.options(nodes.to_vec()), None)?;
                    one.took.push(Took::of(&last));
                } else {
                    last = self.under(NONE, None).alone()?;
                    alone.push(last.ns);
                }
            }
        }
        Ok(last)
    }

    /// What is known before any policy is tried.
    fn before(&self, watched: &Once, told: &[Told], stays: Option<&Reason>) -> Vec<String> {
        if self.asked.format.is_json() {
            return Vec::new();
        }
        let mut lines = Vec::new();
        if let Some(why) = stays {
            lines.push(format!("nothing can be promoted: {why}; {}", why.cure()));
        }
        let share = told.first().map_or(0.0, |one| one.predicted.watched_share);
        let looks = told.first().map_or(0, |one| one.predicted.looks);
        lines.push(format!(
            "watched: {}, {looks} looks, {:.1} % of what was used lay in lower tiers; {UNSEEN}",
            seconds(watched.ns),
            share * 100.0
        ));
        for Told { policy, predicted, .. } in told {
            let Predicted { ns, promoted, demoted, share, .. } = *predicted;
            lines.push(format!(
                "{policy}: predicted {}, {promoted} pages promoted, {demoted} demoted, {:.1} % in \
                 lower tiers",
                seconds(ns),
                share * 100.0
            ));
        }
        lines
    }
}

/// Why nothing can move, where no node is in a lower tier.
fn stays(nodes: &[MemoryNode]) -> Option<Reason> {
    match nodes {
        [_] => Some(Reason::OneNode),
        nodes if nodes.iter().all(|node| node.tier == 0) => {
            Some(Reason::SameTier { nodes: nodes.len() })
        }
        _ => None,
    }
}

/// The measured points of a scenario.
fn measured(path: &std::path::Path) -> Result<Curve, Failure> {
    let of = |why: String| usage!("--curve {}: {why}", path.display());
    let scenario = preset::load(&path.to_string_lossy())?;
    let none = "it has no measured `points`, as pagelab tier calibrate --write gives them";
    let points = scenario.base.points.ok_or_else(|| of(none.to_owned()))?;
    Curve::new(points).map_err(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_node_is_lower_the_reason_is_said() {
        let node = |id, tier| MemoryNode { id, tier, pages: 1, cpus: true };
        assert_eq!(stays(&[node(0, 0)]), Some(Reason::OneNode));
        assert_eq!(stays(&[node(0, 0), node(1, 0)]), Some(Reason::SameTier { nodes: 2 }));
        assert_eq!(stays(&[node(0, 0), node(1, 1)]), None);
    }
}
