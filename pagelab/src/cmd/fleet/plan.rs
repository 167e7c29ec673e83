//! `pagelab fleet plan`: a suite into a list of tasks.

use std::{num::NonZeroU32, path::PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, ValueHint};
use pagelab_bench::{
    plan,
    tasks::{FILE as LIST, Head, List, SCHEMA, VERSION},
};
use pagelab_sys::files::folder::Folder;

use crate::{
    args::{Clock, Method, Run},
    cmd::run::load,
    exit::{Exit, Failure},
    output,
};

/// Cut a suite into tasks, in a list that never changes.
#[derive(Debug, Args)]
pub(super) struct Plan {
    /// A suite by name, or the path of a .toml.
    suite: String,
    /// Into how many shards.
    #[arg(long, value_name = "N", default_value = "1")]
    shards: NonZeroU32,
    /// The folder of the plan, which has none yet.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: PathBuf,
    #[command(flatten)]
    method: Method,
    #[command(flatten)]
    clock: Clock,
}

impl Run for Plan {
    /// Writes the list and says how long it is.
    fn run(self) -> Result<Exit, Failure> {
        let suite = load(&self.suite)?;
        let plan = plan::of_suite(&suite, self.clock.choice(), self.method.overrides())?;
        for why in &plan.left_out {
            output::warn(&format!("left out: {why}"));
        }
        let head = Head {
            schema: SCHEMA.to_owned(),
            pagelab: VERSION.to_owned(),
            suite: suite.name,
            published: suite.published,
            shards: self.shards,
            tasks: 0,
        };
        let list = List::of(&plan, head)?;
        let folder = Folder::make(&self.output).map_err(Failure::usage)?;
        let path = self.output.join(LIST);
        let written = folder.create_filled(LIST, |file| {
            list.write(std::io::BufWriter::new(&file)).and_then(|()| file.sync_all())
        });
        written
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    anyhow!("{} holds a plan already: choose another folder", self.output.display())
                }
                _ => anyhow!("{}: {error}", path.display()),
            })
            .map_err(Failure::usage)?
            .with_context(|| path.display().to_string())
            .map_err(Failure::host)?;
        folder.sync().map_err(Failure::host)?;
        let (tasks, shards) = (list.tasks.len(), self.shards);
        let s = if shards.get() == 1 { "" } else { "s" };
        output::result(&format!("{}: {tasks} tasks in {shards} shard{s}\n", path.display()))?;
        Ok(Exit::Good)
    }
}
