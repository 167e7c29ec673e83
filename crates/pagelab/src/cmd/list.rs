//! `pagelab list`: the tables, as they are in the code.

use clap::Args;
use pagelab_bench::Workload;
use pagelab_workloads::{WORKLOADS, suites};
use serde_json::{Value, json};

use crate::{
    args::{self, Format, Run},
    exit::{Exit, Failure},
    output, published,
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
        let is_json = self.format.is_json();
        let printed = match &self.workload {
            None if is_json => pretty(&json!({
                "workloads": WORKLOADS.iter().map(|workload| row(*workload)).collect::<Vec<_>>(),
                "suites": suites::BUILT_IN.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            })),
            None => overview()?,
            Some(name) => {
                let workload = pagelab_workloads::workload(name).map_err(Failure::usage_text)?;
                if is_json { pretty(&row(workload)) } else { details(workload) }
            }
        };
        output::result(&printed)?;
        Ok(Exit::Good)
    }
}

fn overview() -> Result<String, Failure> {
    let mut text = "workloads\n".to_owned();
    for workload in WORKLOADS {
        text.push_str(&format!("  {:<18} {}\n", workload.name(), workload.about().summary));
    }
    text.push_str("\nsuites\n");
    for (name, _) in suites::BUILT_IN {
        let suite = suites::built_in(name, published::NAMES).map_err(Failure::usage_text)?;
        text.push_str(&format!("  {name:<18} {}\n", suite.summary));
    }
    text.push_str("\npagelab list WORKLOAD shows its parameters\n");
    Ok(text)
}

fn details(workload: &dyn Workload) -> String {
    let mut text = format!("{}: {}\n", workload.name(), workload.about().summary);
    if workload.params().is_empty() {
        text.push_str("\nit has no parameters\n");
    } else {
        text.push_str("\nparameters (a comma between values makes a case, or an arm, for each)\n");
    }
    for param in workload.params() {
        text.push_str(&format!("  {:<10} {}\n", param.name, param.help));
        let choices = param.choices();
        if !choices.is_empty() {
            text.push_str(&format!("  {:<10}   {}\n", "", choices.join(", ")));
        }
        text.push_str(&format!("  {:<10}   default {}\n", "", param.default));
    }
    if !workload.refusals().is_empty() {
        text.push_str("\nrefused, because they would measure something else\n");
        for (what, why) in workload.refusals() {
            text.push_str(&format!("  {what}: {why}\n"));
        }
    }
    text
}

fn row(workload: &dyn Workload) -> Value {
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

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
