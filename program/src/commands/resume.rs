//! How runs of `explain` and `try` go on.

use pagelab_cli::{
    Resume,
    args::Conduct,
    exit::{Exit, Failure},
    resume, session, settings,
};
use pagelab_record::{Asked, RunHeader};

use super::{explain::measure_prices, tries};
use crate::explain::{WORKLOAD, prices};

pub(crate) const RESUME: Resume = Resume { takes, go_on };

fn takes(header: &RunHeader) -> bool {
    matches!(header.asked, Some(Asked::Try(_))) || is_watched(header)
}

fn is_watched(header: &RunHeader) -> bool {
    header.plan.iter().any(|(workload, _)| workload == WORKLOAD)
}

fn go_on(mut run: session::Run, conduct: &Conduct) -> Result<Exit, Failure> {
    let (patience, quiet) = (conduct.wait.patience(), conduct.quiet.quiet);
    if let Some(Asked::Try(tried)) = run.header.asked.clone() {
        return tries::resume(run, &tried, (patience, quiet));
    }
    if !run.records.iter().any(|record| record.workload == WORKLOAD) {
        let why = "the program was not watched to an end: start again with pagelab explain";
        return Err(usage!("{}: {why}", run.directory().display()));
    }
    // What prices the faults of a program is no part of the header: it follows from what was seen.
    let clock = conduct.clock.choice();
    let priced = prices::of_run(&run.header, &run.records, clock);
    let plan = resume::left(&run, priced, clock)?;
    if run.header.asked == prices::asked(true) {
        let end = measure_prices(&mut run, &plan, clock, conduct)?;
        return session::tell(&run.conclude(end)?);
    }
    let runner = settings::runner(&run.header.run, &plan.cases, patience)?;
    session::execute(runner, run, &plan, quiet)
}
