//! `pagelab selftest --aa`: the same thing twice, to see what this host calls different.
//!
//! Every case is measured for run A and for run B before the next one starts, so that drift over
//! minutes does not pass for noise.

use std::path::Path;

use clap::ArgMatches;
use pagelab_bench::plan::{self, Plan};
use pagelab_record::Record;
use pagelab_report::noise_floor;

use super::{clock, run::load, text};
use crate::{
    args,
    exit::{Exit, Failure},
    output,
    session::{self, Place, Run},
};

/// Runs a suite twice, alternating, and prints the noise floor of each cell.
///
/// # Errors
/// When the suite or the output is wrong.
pub(crate) fn selftest(matches: &ArgMatches) -> Result<Exit, Failure> {
    let suite = load(text(matches, "suite").unwrap_or("quick"))?;
    let plan = plan::of_suite(&suite, clock(matches), args::overrides(matches))
        .map_err(Failure::usage_text)?;
    let whole = Place::choose(text(matches, "output").map(Path::new));
    let runner = session::runner(&whole.run, &plan.cases, args::wait(matches))?;
    let mut sides = Vec::new();
    for side in ["a", "b"] {
        let place =
            Place { run: format!("{}-{side}", whole.run), directory: whole.directory.join(side) };
        let header = session::header(&place.run, &suite.name, &suite.published, &plan);
        sides.push(Run::start(&place, header)?);
    }
    let twice = Plan {
        cases: plan.cases.iter().flat_map(|planned| [planned.clone(), planned.clone()]).collect(),
        left_out: Vec::new(),
    };
    let mut count = 0;
    let end = session::measure(&runner, &twice, matches.get_flag("quiet"), &mut |record| {
        // A B, then B A: neither side is always the first.
        let side = [0, 1, 1, 0][count % 4];
        count += 1;
        sides[side].keep(record)
    })?;
    drop(runner);
    let floor = noise_floor(&sides[0].records, &sides[1].records);
    output::drawn(&match text(matches, "format") {
        Some("json") => floor.json(),
        _ => floor.terminal(output::style()),
    })?;
    output::warn(&format!("\nboth runs: {}", whole.directory.display()));
    let both: Vec<Record> = sides.into_iter().flat_map(|run| run.records).collect();
    Ok(end.min(session::verdict(&both)))
}
