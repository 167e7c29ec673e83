//! `pagelab list`: the tables, as they are in the code.

use clap::Args;
use pagelab_bench::workload::Row;
use pagelab_report::Listing;
use serde_json::{Value, json};

use crate::{
    args::{self, Format, Run},
    exit::{Exit, Failure},
    output, part,
};

/// The workloads and suites; with a name, a workload's parameters.
#[derive(Debug, Args)]
pub(super) struct List {
    /// A workload, such as fault/throughput.
    workload: Option<String>,
    #[command(flatten)]
    format: Format,
}

impl Run for List {
    fn run(self) -> Result<Exit, Failure> {
        let workload = self.workload.as_deref().map(part::workload).transpose()?;
        if !self.format.is_json() {
            output::result(&workload.map_or_else(overview, |workload| Ok(details(workload)))?)?;
            return Ok(Exit::Good);
        }
        output::json(&workload.map_or_else(
            || {
                let workloads: Vec<_> = part::workloads().iter().map(|one| row(*one)).collect();
                let suites: Vec<_> = part::suites().map(|(name, _)| *name).collect();
                json!({ "workloads": workloads, "suites": suites })
            },
            row,
        ))
    }
}

fn overview() -> Result<Listing, String> {
    let row = |name: &str, summary: &str| format!("{name:<18} {summary}");
    let workloads =
        part::workloads().iter().map(|workload| row(workload.name(), workload.about().summary));
    let suites = part::suites().map(|(name, _)| {
        let suite = part::suite(name)?;
        Ok(row(name, &suite.summary))
    });
    Ok(Listing::default()
        .section("workloads", workloads)
        .section("suites", suites.collect::<Result<Vec<_>, String>>()?)
        .line("\npagelab list WORKLOAD shows its parameters"))
}

fn details(workload: Row) -> Listing {
    let params = workload.params().iter().flat_map(|param| {
        let more = |text: String| format!("{:<10}   {text}", "");
        let choices = Some(param.choices().join(", ")).filter(|choices| !choices.is_empty());
        let default = more(format!("default {}", param.default));
        let lines = [Some(format!("{:<10} {}", param.name, param.help)), choices.map(more)];
        lines.into_iter().flatten().chain([default])
    });
    let refused = workload.refusals().into_iter().map(|(what, why)| format!("{what}: {why}"));
    let listing = Listing::default()
        .line(format_args!("{}: {}", workload.name(), workload.about().summary))
        .section("parameters (a comma between values makes a case, or an arm, for each)", params);
    let none = workload.params().is_empty().then_some("\nit has no parameters");
    listing.lines(none).section("refused, because they would measure something else", refused)
}

fn row(workload: Row) -> Value {
    let params: Vec<Value> = workload
        .params()
        .iter()
        .map(|param| {
            json!({
                "name": param.name,
                "help": param.help,
                "default": param.default,
                "choices": param.choices(),
                "comma_makes": args::comma(param),
            })
        })
        .collect();
    let refused: Vec<Value> = workload
        .refusals()
        .iter()
        .map(|(what, why)| json!({"combination": what, "reason": why}))
        .collect();
    json!({
        "name": workload.name(),
        "summary": workload.about().summary,
        "parameters": params,
        "refused": refused,
    })
}
