//! `pagelab fleet exec`: the tasks of a shard that have left no result on this machine since it
//! booted.

use std::{
    fs::{File, TryLockError},
    num::NonZeroU32,
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use anyhow::Context;
use clap::{Args, ValueHint};
use pagelab_bench::{
    plan::{self, Plan},
    results::{self, Origin},
    tasks::{FILE as LIST, List, Task},
};
use pagelab_record::{Record, RunHeader};
use pagelab_sys::files::folder::Folder;

use super::list_in;
use crate::{
    args::{Conduct, Run},
    exit::{Exit, Failure},
    lock, output, part, session, settings,
};

/// Measure the tasks of a shard that have no result here yet.
#[derive(Debug, Args)]
pub(super) struct Exec {
    /// The folder of the plan.
    #[arg(value_hint = ValueHint::DirPath)]
    plan: PathBuf,
    /// Which shard of how many (1/1 is everything, as on each host of a fleet).
    #[arg(long, value_name = "K/N", default_value = "1/1")]
    shard: Shard,
    /// The folder of the results; several shards may share one.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: PathBuf,
    /// Leave out models and counts, which whoever drives this carries out elsewhere.
    #[arg(long)]
    only_measured: bool,
    #[command(flatten)]
    conduct: Conduct,
}

/// `2/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shard {
    number: NonZeroU32,
    of: NonZeroU32,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        let (number, of) =
            parts.ok_or_else(|| format!("`{text}` is no shard: write K/N, such as 2/8"))?;
        if number > of {
            return Err(format!("there is no shard {number} of {of}: they are 1 to {of}"));
        }
        Ok(Self { number, of })
    }
}

impl Run for Exec {
    /// Measures what is left, a file a task.
    fn run(self) -> Result<Exit, Failure> {
        let (text, list) = list_in(&self.plan)?;
        let Shard { number, of } = self.shard;
        if of != list.head.shards {
            return Err(usage!(
                "{} is cut into {}, not {of}: --shard {}/{}",
                self.plan.display(),
                list.head.shards,
                number.min(list.head.shards),
                list.head.shards
            ));
        }
        let origin = Origin::here().map_err(|why| host!(why))?;
        let folder = Folder::make(&self.output).map_err(Failure::usage)?;
        same_list(&folder, &text)?;
        let _turn = alone(&folder, self.shard, &origin, self.conduct.wait.patience())?;
        // One of another build is left in, and fails with its name.
        let is_measured = |task: &Task| {
            part::workload(&task.workload).map_or(true, |one| one.about().is_measured)
        };
        let is_wanted = |task: &&Task| !self.only_measured || is_measured(task);
        let all: Vec<&Task> = list.shard(number).filter(is_wanted).collect();
        let left: Vec<&Task> =
            all.iter().copied().filter(|task| !folder.has(origin.file(&task.id))).collect();
        let done = all.len() - left.len();
        output::warn(&format!(
            "shard {number} of {of}: {done} of {} tasks are done here, {} are left",
            all.len(),
            left.len()
        ));
        self.measure(&folder, &list, &left, &origin)
    }
}

impl Exec {
    fn measure(
        &self,
        folder: &Folder,
        list: &List,
        left: &[&Task],
        origin: &Origin,
    ) -> Result<Exit, Failure> {
        let clock = self.conduct.clock.choice();
        let mut plan = Plan::default();
        for task in left {
            let of_task = |why| usage!("task {}: {why}", task.id);
            task.check_files().map_err(of_task)?;
            let (case, method) = (&task.case, task.method);
            let case = plan::again(part::workloads(), &task.workload, case, method, clock)
                .map_err(of_task)?;
            plan.cases.push(case);
        }
        let run = origin.run();
        let runner = settings::runner(&run, &plan.cases, self.conduct.wait.patience())?;
        let header = session::header(&run, &list.head.suite, &list.head.published, &plan);
        let mut tasks = left.iter();
        let mut kept: Vec<Record> = Vec::new();
        let end = session::measure(&runner, &plan, self.conduct.quiet.quiet, &mut |record| {
            let task = tasks.next().expect("one record for each task");
            keep(folder, &origin.file(&task.id), &header, task, &record)?;
            kept.push(record);
            Ok(())
        })?;
        Ok(end.min(session::verdict(&kept)))
    }
}

/// Leaves the result of a task: a run of one case, whole or not at all.
fn keep(
    folder: &Folder,
    name: &str,
    of_shard: &RunHeader,
    task: &Task,
    record: &Record,
) -> Result<(), Failure> {
    let lines = results::text(of_shard, task, record);
    let written = folder.create_filled(name, |mut file| {
        std::io::Write::write_all(&mut file, lines.as_bytes()).and_then(|()| file.sync_all())
    });
    let path = folder.path().join(name);
    written.and_then(|written| written).and_then(|()| folder.sync()).map_err(|error| {
        host!(
            "{}: {error}; the results before it are safe: when the disk has room again, the same \
             command goes on",
            path.display()
        )
    })
}

/// Puts the list beside the results, where it tells what they are of.
fn same_list(folder: &Folder, text: &str) -> Result<(), Failure> {
    if folder.has(LIST) {
        let (theirs, _) = list_in(folder.path())?;
        if theirs != text {
            return Err(usage!(
                "{} holds results of another plan: choose another folder",
                folder.path().display()
            ));
        }
        return Ok(());
    }
    // Another shard may do the same at this moment, with the same content.
    folder
        .replace(LIST, text.as_bytes())
        .with_context(|| format!("cannot write into {}", folder.path().display()))
        .map_err(Failure::usage)
}

/// Keeps a second process of this machine away from the same shard in the folder, for as long as it
/// is open. Other machines measure the same shard at the same time where all do everything.
fn alone(
    folder: &Folder,
    shard: Shard,
    origin: &Origin,
    patience: Duration,
) -> Result<File, Failure> {
    let name = format!(".shard-{}-of-{}.{}.lock", shard.number, shard.of, origin.boot);
    let open = folder.create(&name).or_else(|_| folder.append_to(&name));
    let path = folder.path().join(&name);
    let file = open.with_context(|| path.display().to_string()).map_err(Failure::usage)?;
    let held = || {
        let (path, number) = (path.display(), shard.number);
        format!("{path}: another pagelab of this machine measures shard {number} into this folder")
    };
    let ask = || {
        file.try_lock().map_err(|error| {
            Failure::host(anyhow::Error::from(error).context(path.display().to_string()))
        })
    };
    let is_locked = |failure: &Failure| {
        let error = failure.error.downcast_ref();
        matches!(error, Some(TryLockError::WouldBlock)).then(held)
    };
    lock::patiently(patience, ask, is_locked)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_those_that_there_are() {
        let shard: Shard = "2/8".parse().unwrap();
        assert_eq!((shard.number.get(), shard.of.get()), (2, 8));
        for wrong in ["0/8", "9/8", "2", "2/0", "a/b", "-1/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
