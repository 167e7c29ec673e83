//! `pagelab doctor`: every need, whether this host has it, how to get it, and what it affects.

use std::time::Duration;

use clap::Args;
use pagelab_bench::{Needed, needs::Memory, plan};
use pagelab_report::Listing;
use pagelab_sys::{
    knobs::{KnobError, Place, leftovers, patiently, restore_leftovers},
    machine::environment,
};
use serde_json::{Value, json};

use crate::{
    args::{Format, Run, Wait},
    exit::{Exit, Failure},
    output, part, settings,
};

/// What this host has and lacks, what to do about it, and what it affects.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Put back settings that a killed run left changed.
    #[arg(long)]
    restore: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    format: Format,
}

impl Run for Doctor {
    fn run(self) -> Result<Exit, Failure> {
        if self.restore {
            return restore(self.wait.patience());
        }
        let (asked, ways) = (part::requirements().into_iter(), ways());
        let findings: Vec<Finding> = asked.map(|need| Finding::of(need, &ways)).collect();
        let facts = environment::facts();
        let warnings = environment::warnings(&facts);
        let left = leftovers(&Place::machine());
        let doctor = part::parts().flat_map(|part| part.doctor);
        let doctor = doctor.map(|section| (section, (section.lines)()));
        if self.format.is_json() {
            let findings: Vec<Value> = findings.iter().map(Finding::json).collect();
            let facts = facts
                .iter()
                .map(|fact| json!({"key": fact.key, "value": fact.value, "effect": fact.effect}));
            let mut told = json!({
                "needs": findings, "leftovers": left, "warnings": warnings,
                "facts": facts.collect::<Vec<_>>()
            });
            for (section, lines) in doctor {
                told[section.name] = lines.into_iter().map(|(_, value)| value).collect();
            }
            return output::json(&told);
        }
        let cure = Some(" cure    sudo pagelab doctor --restore").filter(|_| !left.is_empty());
        let left = left.iter().map(ToString::to_string).chain(cure.map(str::to_owned));
        let listing = Listing::default()
            .lines(findings.iter().map(Finding::text))
            .section("what a killed run left changed", left)
            .section("what may disturb results here", warnings);
        output::result(&doctor.fold(listing, |listing, (section, lines)| {
            listing.section(section.title, lines.into_iter().map(|(line, _)| line))
        }))?;
        Ok(Exit::Good)
    }
}

fn restore(patience: Duration) -> Result<Exit, Failure> {
    let mut tell = |held: &KnobError| output::warn(&format!("waiting: {held}"));
    let restored = patiently(patience, &mut tell, || restore_leftovers(&Place::machine()));
    let restored = match restored {
        Ok(restored) => restored,
        Err(error @ (KnobError::Held { .. } | KnobError::Denied { .. })) => {
            return Err(settings::refused(error));
        }
        Err(error) => return Err(Failure::internal(error)),
    };
    if restored.is_empty() {
        output::result("nothing was left changed\n")?;
    }
    let clean = restored.iter().all(pagelab_sys::knobs::Restored::is_clean);
    for one in &restored {
        output::result(&format!("{one}\n"))?;
    }
    Ok(if clean { Exit::Good } else { Exit::CaseFailed })
}

struct Finding {
    need: Needed,
    has: bool,
    affects: Vec<String>,
}

impl Finding {
    fn of(need: Needed, ways: &[Way]) -> Self {
        let has = need.check();
        let affects = affected(&need, ways);
        Self { need, has, affects }
    }

    fn text(&self) -> String {
        let Self { need, has, affects } = self;
        let mut text = format!("{}  {need}", if *has { "have" } else { "lack" });
        if let Some(found) = need.found() {
            text += &format!("\n   found   {found}");
        }
        if !has {
            text += &format!("\n   cure    {}", need.cure());
            if !affects.is_empty() {
                text += &format!("\n   affects {}", affects.join("; "));
            }
        }
        text
    }

    fn json(&self) -> Value {
        json!({
            "need": self.need.name(),
            "have": self.has,
            "found": self.need.found(),
            "cure": self.need.cure(),
            "affects": self.affects,
        })
    }
}

/// A workload with a parameter, or alone, and all that it asks for.
struct Way {
    text: String,
    asks: Vec<Needed>,
}

/// Which of these ask for something of this kind.
fn affected(need: &Needed, ways: &[Way]) -> Vec<String> {
    let mut affected: Vec<String> = Vec::new();
    // What there is of memory everything asks for.
    for way in ways.iter().filter(|_| need.of::<Memory>().is_none()) {
        let asks = way.asks.iter().any(|other| need.is_alike(&**other));
        if asks && !affected.contains(&way.text) {
            affected.push(way.text.clone());
        }
    }
    affected
}

/// The workloads with each value of a parameter that asks for something. Made once: what a machine
/// has is read for every case.
fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for workload in part::workloads() {
        for param in workload.params() {
            for value in param.asks {
                let axes = [(param.name.to_owned(), vec![(*value).to_owned()])];
                // What this workload refuses is not one of its ways.
                let Ok((cases, _)) = plan::grid(*workload, &axes) else { continue };
                for case in cases {
                    let read = workload.read(&case);
                    let Some(value) = case.get(param.name) else { continue };
                    let text = format!("{} --{} {value}", workload.name(), param.name);
                    let asks = read.needs().into_iter().chain(read.wishes()).collect();
                    ways.push(Way { text, asks });
                }
            }
        }
    }
    ways
}
