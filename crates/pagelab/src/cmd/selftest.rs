//! `pagelab selftest --aa`: the same thing twice, to see what this host calls different.
//!
//! Every case is measured for run A and for run B before the next one starts, so that drift over
//! minutes does not pass for noise.

use clap::Args;
use pagelab_bench::plan::{self, Plan};
use pagelab_record::Record;
use pagelab_report::noise_floor;

use super::run::load;
use crate::{
    args::{Conduct, Format, Method, Output, Run},
    exit::{Exit, Failure},
    output,
    session::{self, Place},
};

/// Measure the same thing twice: the noise floor of this host, cell by cell.
#[derive(Debug, Args)]
pub(super) struct Selftest {
    #[command(flatten)]
    method: Method,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    conduct: Conduct,
    /// Two alternating runs of one suite.
    #[arg(long, required = true)]
    aa: bool,
    /// The suite to run twice.
    #[arg(long, default_value = "quick")]
    suite: String,
    #[command(flatten)]
    format: Format,
}

impl Run for Selftest {
    /// Runs a suite twice, alternating, and prints the noise floor of each cell.
    fn run(self) -> Result<Exit, Failure> {
        let suite = load(&self.suite)?;
        let plan = plan::of_suite(&suite, self.conduct.clock.choice(), self.method.overrides())
            .map_err(Failure::usage_text)?;
        let whole = self.output.place();
        let runner = session::runner(&whole.run, &plan.cases, self.conduct.wait.patience())?;
        let mut sides = Vec::new();
        for side in ["a", "b"] {
            let place = Place {
                run: format!("{}-{side}", whole.run),
                directory: whole.directory.join(side),
            };
            let header = session::header(&place.run, &suite.name, &suite.published, &plan);
            sides.push(session::Run::start(&place, header)?);
        }
        let twice = Plan {
            cases: plan
                .cases
                .iter()
                .flat_map(|planned| [planned.clone(), planned.clone()])
                .collect(),
            left_out: Vec::new(),
        };
        let mut count = 0;
        let end = session::measure(&runner, &twice, self.conduct.quiet.quiet, &mut |record| {
            // A B, then B A: neither side is always the first.
            let side = [0, 1, 1, 0][count % 4];
            count += 1;
            sides[side].keep(record)
        })?;
        drop(runner);
        let floor = noise_floor(&sides[0].records, &sides[1].records);
        let is_json = self.format.is_json();
        output::drawn(&if is_json { floor.json() } else { floor.terminal(output::style()) })?;
        output::warn(&format!("\nboth runs: {}", whole.directory.display()));
        let both: Vec<Record> = sides.into_iter().flat_map(|run| run.records).collect();
        Ok(end.min(session::verdict(&both)))
    }
}
