//! `pagelab tier explain`: what each policy is worth to a program, said before it is tried.
//!
//! The one idea: the program runs once while nothing moves and is watched; from that, and from the
//! measured curve of the machine, comes a time for each policy. Then it runs once more under each,
//! and how far the prediction was off is printed, whatever it is.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;
use pagelab_live::{
    Reason,
    predict::{Curve, Predicted, predict},
};
use pagelab_sys::machine::{Tree, tiers::MemoryNode};
use pagelab_tier::{Row as _, policy::Needs};
use pagelab_workloads::tier::preset;
use serde_json::{Value, json};

use super::promote::{Asked, Kept, Once, Promote};
use crate::{
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
/// the prediction was off. The program keeps its terminal; what came of it follows on stderr. On
/// one node nothing can be promoted: it says so, and every policy is predicted to change nothing.
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
                let text = format!("`{name}` knows the future: only the simulator has it");
                return Err(Failure::usage_text(text));
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
                let text = "what slow memory costs here is not known: pagelab tier calibrate \
                            --write FILE measures it, --curve FILE takes it";
                return Err(Failure::host(anyhow::anyhow!(text)));
            }
        };
        let watched = watch.once(source, &watch.options(nodes.clone()))?;
        watched.warn();
        let log = kept.take();
        let told = |policy: &String| -> Result<Told, Failure> {
            let found = predict(&mut &log[..], policy, &curve, watched.ns, self.asked.limit);
            let predicted = found.map_err(|why| Failure::internal(anyhow::Error::new(why)))?;
            Ok(Told { policy: policy.clone(), predicted, took: None })
        };
        let mut told: Vec<Told> = self.policy.iter().map(told).collect::<Result<_, _>>()?;
        // Before any of them is tried.
        for line in self.before(&watched, &told, stays.as_ref()) {
            output::warn(&line);
        }
        let is_good = |once: &Once| once.ended.status.success();
        let mut last = watched;
        let watched_ns = last.ns;
        for one in &mut told {
            if !is_good(&last) {
                output::warn("the program failed: it is not run again");
                break;
            }
            let asked = self.under(&one.policy, None);
            let once = asked.once(source, &asked.options(nodes.clone()))?;
            one.took = Some(Took::of(&once));
            if !self.asked.format.is_json() {
                output::warn(&one.text());
            }
            last = once;
        }
        if self.asked.format.is_json() {
            let why =
                stays.map(|why| json!({ "why": why, "says": why.to_string(), "cure": why.cure() }));
            let told: Vec<Value> = told.iter().map(Told::json).collect();
            let all = json!({ "watched_ns": watched_ns, "policies": told,
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
    let of = |why: String| Failure::usage_text(format!("--curve {}: {why}", path.display()));
    let scenario = preset::load(&path.to_string_lossy()).map_err(Failure::usage_text)?;
    let none = "it has no measured `points`, as pagelab tier calibrate --write gives them";
    let points = scenario.base.points.ok_or_else(|| of(none.to_owned()))?;
    Curve::new(points).map_err(of)
}

/// A policy, what was predicted of it, and what came.
#[derive(Debug)]
struct Told {
    policy: String,
    predicted: Predicted,
    took: Option<Took>,
}

#[derive(Debug)]
struct Took {
    ns: u64,
    promoted: u64,
    demoted: u64,
}

impl Took {
    fn of(once: &Once) -> Self {
        Self { ns: once.ns, promoted: once.sum.promoted, demoted: once.sum.demoted }
    }
}

impl Told {
    /// By how much the prediction was off, as a share of what came.
    fn error(&self) -> Option<f64> {
        let took = self.took.as_ref().filter(|took| took.ns > 0)?;
        Some(self.predicted.ns as f64 / took.ns as f64 - 1.0)
    }

    fn text(&self) -> String {
        let Some((Took { ns, promoted, demoted }, error)) = self.took.as_ref().zip(self.error())
        else {
            return format!("{}: not run", self.policy);
        };
        let Predicted { ns: predicted, promoted: up, demoted: down, .. } = self.predicted;
        format!(
            "{}: took {}, predicted {}, off by {:+.1} %; {promoted} pages promoted, predicted \
             {up}; {demoted} demoted, predicted {down}",
            self.policy,
            seconds(*ns),
            seconds(predicted),
            error * 100.0
        )
    }

    fn json(&self) -> Value {
        let took = self.took.as_ref().map(|Took { ns, promoted, demoted }| {
            json!({ "ns": ns, "promoted": promoted, "demoted": demoted })
        });
        json!({ "policy": self.policy, "predicted": self.predicted, "took": took,
            "error": self.error() })
    }
}

fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(predicted: u64, took: Option<u64>) -> Told {
        let predicted = Predicted {
            ns: predicted,
            promoted: 10,
            demoted: 0,
            watched_share: 1.0,
            share: 0.2,
            looks: 10,
        };
        let took = took.map(|ns| Took { ns, promoted: 9, demoted: 1 });
        Told { policy: "history".into(), predicted, took }
    }

    #[test]
    fn an_error_is_a_share_of_what_came() {
        let error = told(6_000_000_000, Some(8_000_000_000)).error().unwrap();
        assert!((error + 0.25).abs() < 1e-12);
        assert_eq!(told(1, None).error(), None);
        assert_eq!(told(1, Some(0)).error(), None);
    }

    #[test]
    fn what_came_stands_beside_what_was_predicted() {
        let text = told(6_000_000_000, Some(8_000_000_000)).text();
        let pages = "9 pages promoted, predicted 10";
        for part in ["took 8.000 s", "predicted 6.000 s", "-25.0 %", pages] {
            assert!(text.contains(part), "{text}");
        }
        assert!(told(1, None).text().contains("not run"));
    }

    #[test]
    fn where_no_node_is_lower_the_reason_is_said() {
        let node = |id, tier| MemoryNode { id, tier, pages: 1, cpus: true };
        assert_eq!(stays(&[node(0, 0)]), Some(Reason::OneNode));
        assert_eq!(stays(&[node(0, 0), node(1, 0)]), Some(Reason::SameTier { nodes: 2 }));
        assert_eq!(stays(&[node(0, 0), node(1, 1)]), None);
    }
}
