//! `pagelab resume`: go on where a run stopped; a finished case is never measured again.

use std::path::{Path, PathBuf};

use clap::Args;
use pagelab_bench::plan::Plan;
use pagelab_record::{Arm, Asked};

use crate::{
    args::{Conduct, Run},
    exit::{Exit, Failure},
    history, part, resume, session, settings,
};

/// Continue a run after a crash, an interrupt or a reboot.
#[derive(Debug, Args)]
pub(super) struct Resume {
    /// A run: its directory, a tag, or LAST.
    run: PathBuf,
    /// Name the arms of a run of two again, where they are more than parameters.
    #[arg(long, num_args = 2, value_names = ["A", "B"], value_parser = super::ab::arm)]
    ab: Option<Vec<Arm>>,
    #[command(flatten)]
    conduct: Conduct,
}

impl Run for Resume {
    /// Measures the planned cases that left no record, then reports the whole run.
    fn run(self) -> Result<Exit, Failure> {
        let clock = self.conduct.clock.choice();
        let directory = history::find(&self.run)?;
        let directory = directory.as_path();
        let directory = if directory.is_file() {
            directory.parent().unwrap_or(Path::new("."))
        } else {
            directory
        };
        let run = resume::opened(directory, self.conduct.wait.patience())?;
        if let Some(Asked::Ab(ab)) = run.header.asked.clone() {
            let named = super::ab::named_again(&ab, self.ab.as_deref());
            // All of the plan: what is done of each cell is told by its blocks.
            let plan =
                named.and_then(|()| resume::remaining(&run.header, &[], Plan::default(), clock));
            let (mut plan, _) = plan.map_err(|why| usage!("{}: {why}", directory.display()))?;
            plan.cases = super::ab::of_arms(plan.cases, &ab.arms);
            let patience = self.conduct.wait.patience();
            let runner = super::ab::runner(&run.header.run, &plan, &ab, patience)?;
            return super::ab::execute(runner, run, &plan, self.conduct.quiet.quiet);
        }
        let mut ways = part::parts().filter_map(|part| part.resume.as_ref());
        let way = ways.find(|way| (way.takes)(&run.header));
        if self.ab.is_some() {
            let why = "is no run of two arms: leave --ab out";
            return Err(usage!("{} {why}", directory.display()));
        }
        if let Some(way) = way {
            return (way.go_on)(run, &self.conduct);
        }
        let plan = resume::left(&run, Plan::default(), clock)?;
        let runner = settings::runner(&run.header.run, &plan.cases, self.conduct.wait.patience())?;
        session::execute(runner, run, &plan, self.conduct.quiet.quiet)
    }
}
