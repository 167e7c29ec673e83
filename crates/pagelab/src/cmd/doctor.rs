//! `pagelab doctor`: every need, whether this host has it, how to get it, and what it affects.

use std::time::Duration;

use clap::Args;
use pagelab_bench::{Need as _, Needed, plan};
use pagelab_live::status::{Why, reasons};
use pagelab_report::Listing;
use pagelab_sys::{
    knobs::{KnobError, Place, leftovers, patiently, restore_leftovers},
    machine::{Tree, environment},
};
use pagelab_workloads::{WORKLOADS, catalogue, limit::bulk::STRING_STORE, needs::Memory};
use serde_json::{Value, json};

use crate::{
    args::{Format, Run, Wait},
    exit::{Exit, Failure},
    output, settings,
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
        let (asked, ways) = (catalogue().into_iter(), ways());
        let findings: Vec<Finding> = asked.map(|need| Finding::of(need, &ways)).collect();
        let facts = environment::facts();
        let warnings = environment::warnings(&facts);
        let left = leftovers(&Place::machine());
        let tiers: Vec<Why> = reasons(&Tree::machine()).into_iter().map(Why::from).collect();
        if self.format.is_json() {
            let findings: Vec<Value> = findings.iter().map(Finding::json).collect();
            let facts = facts
                .iter()
                .map(|fact| json!({"key": fact.key, "value": fact.value, "effect": fact.effect}));
            return output::json(&json!({
                "needs": findings, "leftovers": left, "warnings": warnings,
                "facts": facts.collect::<Vec<_>>(), "tiers": tiers
            }));
        }
        let cure = Some(" cure    sudo pagelab doctor --restore").filter(|_| !left.is_empty());
        let left = left.iter().map(ToString::to_string).chain(cure.map(str::to_owned));
        let tiers = tiers.iter().map(|why| format!("{}: {}", why.says, why.cure));
        output::result(
            &Listing::default()
                .lines(findings.iter().map(Finding::text))
                .section("what a killed run left changed", left)
                .section("what may disturb results here", warnings)
                .section("why nothing moves between tiers of memory", tiers),
        )?;
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

/// The workloads with each parameter that asks for something. Made once: what a machine has is read
/// for every case.
fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for workload in WORKLOADS {
        let has = |name: &str| workload.params().iter().any(|param| param.name == name);
        for (name, value) in [
            ("page", "all"),
            ("fifo", "on"),
            ("governor", "performance"),
            ("turbo", "off"),
            ("populate", "mlock"),
            ("kind", "swap"),
            ("threads", "2"),
            ("mem-node", "far"),
            ("arms", "as-published"),
            ("type", "uc,wc,wt"),
            ("fence", "uc-store"),
            ("op", "uc-fence"),
            ("op", "load-nt"),
            ("width", "32"),
            ("width", "64"),
            ("load", "nt"),
            ("kind", "mkwrite"),
            ("kind", "file-major"),
            ("kind", "file-minor"),
            ("kind", "file-minor-single"),
            ("op", "copy,continue,wp,move,poison"),
            ("handler", "sigbus"),
            ("arms", "segment-1g"),
            ("arms", "module-2m"),
            ("kernel", "6.12"),
        ] {
            if !has(name) {
                continue;
            }
            let values = value.split(',').map(str::to_owned).collect();
            let axes = [(name.to_owned(), values)];
            // A value that this workload does not know is simply not one of its ways.
            let Ok((cases, _)) = plan::grid(*workload, &axes) else { continue };
            for case in cases {
                let read = workload.read(&case);
                let Some(value) = case.get(name) else { continue };
                let text = format!("{} --{name} {value}", workload.name());
                let asks = read.needs().into_iter().chain(read.wishes()).collect();
                ways.push(Way { text, asks });
            }
        }
        let stores_strings = workload.params().iter().any(|param| param.name == "level");
        if stores_strings {
            let text = workload.name().to_owned();
            ways.push(Way { text, asks: vec![STRING_STORE.needed()] });
        }
    }
    ways
}
