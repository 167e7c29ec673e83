//! `pagelab fleet merge`: results of many folders as one run.
//!
//! The one idea: a result is read once, checked against the list and against its own name, and
//! written on, so that what is held at once is one record, however many machines there are. Nothing
//! is left out in silence: what is no result, or is of another machine than its name says, is told,
//! and so is what is missing.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs::{self, File},
    io::{BufWriter, ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::{Args, ValueHint};
use pagelab_bench::{
    plan::Plan,
    results::{Origin, boot},
    tasks::{FILE as LIST, List, Task},
};
use pagelab_record::{Record, RunHeader, journal};
use pagelab_sys::files::folder::Folder;
use serde_json::Value;

use super::list_in;
use crate::{
    args::{Output, Run},
    exit::{Exit, Failure},
    output, part,
    progress::brief_case,
    session,
};

/// How many lines say what is missing.
const LINES: usize = 20;
/// Records come by the thousand, some KiB each.
const WRITTEN_AT_ONCE: usize = 1 << 20;

/// Put the results of shards and hosts together, as one run.
#[derive(Debug, Args)]
pub(super) struct Merge {
    /// Folders of results.
    #[arg(required = true, num_args = 1.., value_name = "DIR", value_hint = ValueHint::DirPath)]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
}

impl Run for Merge {
    /// Writes the run, and says what it lacks.
    fn run(self) -> Result<Exit, Failure> {
        let list = same_list(&self.folders)?;
        let mut found = Found::of(&list, &self.folders)?;
        let place = self.output.place();
        let directory = place.directory.display();
        let folder = Folder::make(&place.directory).map_err(Failure::usage)?;
        let header = header(&place.run, &list);
        let written = folder.create_filled(journal::FILE, |file| found.write(&header, &file));
        written
            .map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => {
                    usage!("{directory} holds a run already: choose another directory")
                }
                _ => Failure::usage(anyhow!("{directory}: {error}")),
            })?
            .with_context(|| directory.to_string())
            .map_err(Failure::host)?;
        folder.sync().map_err(Failure::host)?;
        let hosts = found.hosts();
        let records = found.kept.values().map(BTreeSet::len).sum::<usize>();
        let missing = found.missing();
        tell(&found.left_out, "left out");
        tell(&missing, "missing");
        let names: Vec<&str> = hosts.iter().take(LINES).map(String::as_str).collect();
        output::result(&format!(
            "{directory}: {records} records of {} tasks from {} host{}: {}{}\n",
            list.tasks.len(),
            hosts.len(),
            if hosts.len() == 1 { "" } else { "s" },
            names.join(", "),
            if hosts.len() > LINES { ", …" } else { "" }
        ))?;
        let is_whole = missing.is_empty() && found.left_out.is_empty();
        Ok(if is_whole { Exit::Good } else { Exit::CaseFailed })
    }
}

/// What a task is, as far as it is out of the ordinary.
fn brief(task: &Task) -> String {
    let known = part::workload(&task.workload);
    known.map_or_else(|_| task.workload.clone(), |row| brief_case(row, &task.case))
}

fn tell(lines: &[String], what: &str) {
    lines.iter().take(LINES).for_each(|line| output::warn(&format!("{what}: {line}")));
    if lines.len() > LINES {
        output::warn(&format!("{what}: and {} more", lines.len() - LINES));
    }
}

/// The list that all folders are of.
fn same_list(folders: &[PathBuf]) -> Result<List, Failure> {
    let (first, rest) = folders.split_first().expect("clap wants one");
    let (text, list) = list_in(first)?;
    for folder in rest {
        if list_in(folder)?.0 != text {
            return Err(usage!(
                "{} and {} hold results of two plans: merge each by itself",
                first.display(),
                folder.display()
            ));
        }
    }
    Ok(list)
}

/// The first line of a run of all tasks.
fn header(run: &str, list: &List) -> RunHeader {
    let methods: Vec<_> = list.tasks.iter().map(|task| task.method).collect();
    RunHeader {
        plan: list.tasks.iter().map(|task| (task.workload.clone(), task.case.clone())).collect(),
        method: serde_json::to_value(methods).expect("a method is plain data"),
        ..session::header(run, &list.head.suite, &list.head.published, &Plan::default())
    }
}

/// Results, by the place of their task in the list.
struct Found<'l> {
    list: &'l List,
    files: BTreeMap<usize, BTreeMap<Origin, PathBuf>>,
    left_out: Vec<String>,
    /// What was written of each task.
    kept: BTreeMap<usize, BTreeSet<Origin>>,
    /// What each machine says that it is.
    machines: HashMap<Origin, BTreeMap<String, Value>>,
}

impl<'l> Found<'l> {
    /// Looks through the folders.
    fn of(list: &'l List, folders: &[PathBuf]) -> Result<Self, Failure> {
        let places: HashMap<&str, usize> =
            list.tasks.iter().enumerate().map(|(at, task)| (task.id.as_str(), at)).collect();
        let mut found = Self {
            list,
            files: BTreeMap::new(),
            left_out: Vec::new(),
            kept: BTreeMap::new(),
            machines: HashMap::new(),
        };
        for folder in folders {
            let failed = |error| Failure::usage(anyhow!("{}: {error}", folder.display()));
            for entry in fs::read_dir(folder).map_err(failed)? {
                let name = entry.map_err(failed)?.file_name();
                let name = name.to_string_lossy();
                // What begins with a dot is being written, or keeps others away.
                if name == LIST || name.starts_with('.') {
                    continue;
                }
                let path = folder.join(name.as_ref());
                let known = Origin::of_file(&name);
                let known = known.and_then(|(task, origin)| Some((*places.get(task)?, origin)));
                match known {
                    Some((at, origin)) => found.add(at, origin, path)?,
                    None => {
                        found
                            .left_out
                            .push(format!("{} is no result of this plan", path.display()));
                    }
                }
            }
        }
        found.left_out.sort();
        Ok(found)
    }

    /// One more file; the same result twice counts once.
    fn add(&mut self, at: usize, origin: Origin, path: PathBuf) -> Result<(), Failure> {
        let files = self.files.entry(at).or_default();
        let Some(known) = files.get(&origin) else {
            files.insert(origin, path);
            return Ok(());
        };
        let read = |path: &Path| fs::read(path).with_context(|| path.display().to_string());
        let [one, other] = [known, &path].map(|path| read(path).map_err(Failure::usage));
        if one? == other? {
            return Ok(());
        }
        Err(usage!(
            "{} and {} are two results of one task, host and boot: remove one",
            known.display(),
            path.display()
        ))
    }

    /// Writes the header and every result that is one.
    fn write(&mut self, header: &RunHeader, file: &File) -> std::io::Result<()> {
        let mut to = BufWriter::with_capacity(WRITTEN_AT_ONCE, file);
        serde_json::to_writer(&mut to, header)?;
        to.write_all(b"\n")?;
        for (at, files) in std::mem::take(&mut self.files) {
            for (origin, path) in files {
                match self.read(&self.list.tasks[at], &origin, &path) {
                    Ok(record) => {
                        to.write_all(&journal::line(&record))?;
                        self.kept.entry(at).or_default().insert(origin);
                    }
                    Err(why) => self.left_out.push(format!("{}: {why}", path.display())),
                }
            }
        }
        to.flush()?;
        file.sync_all()
    }

    /// The record of a file, where it is of this task, host and boot.
    fn read(&mut self, task: &Task, origin: &Origin, path: &Path) -> Result<Record, String> {
        let contents = journal::read(path).map_err(|error| error.to_string())?;
        if let Some(damage) = contents.damage {
            return Err(format!("line {} cannot be read: {}", damage.line, damage.why));
        }
        let (theirs, ours) = (&contents.header.pagelab, &self.list.head.pagelab);
        if theirs != ours {
            return Err(format!("it is of pagelab {theirs}, and the plan of {ours}"));
        }
        let [record] = <[Record; 1]>::try_from(contents.records)
            .map_err(|records| format!("{} records and not one", records.len()))?;
        if record.workload != task.workload || record.case != task.case {
            return Err(format!("it is of {} {}", record.workload, record.case));
        }
        let says = (record.host.name().unwrap_or("nobody"), boot(&record.boot));
        if says != (origin.host.as_str(), origin.boot.clone()) {
            return Err(format!("its record is of {}, boot {}", says.0, says.1));
        }
        let known = self.machines.entry(origin.clone());
        let known = known.or_insert_with(|| record.host.identity.clone());
        let differs =
            |(key, value): &(&String, &Value)| record.host.identity.get(*key) != Some(*value);
        if let Some((key, _)) = known.iter().find(differs) {
            return Err(format!(
                "another machine gives this name and boot as its own: {key} differs"
            ));
        }
        Ok(record)
    }

    fn hosts(&self) -> BTreeSet<String> {
        self.kept.values().flatten().map(|origin| origin.host.clone()).collect()
    }

    /// What has no result: of a plan in shards a task, of a fleet a task on a host that has others.
    fn missing(&self) -> Vec<String> {
        let hosts = self.hosts();
        let is_fleet = self.list.head.shards.get() == 1;
        let mut missing = Vec::new();
        for (at, task) in self.list.tasks.iter().enumerate() {
            let there = self.kept.get(&at);
            let (id, what) = (&task.id, brief(task));
            if !is_fleet || hosts.is_empty() {
                if there.is_none() {
                    missing.push(format!("task {id}: {what}"));
                }
                continue;
            }
            let there: HashSet<&str> =
                there.into_iter().flatten().map(|origin| origin.host.as_str()).collect();
            for host in hosts.iter().filter(|host| !there.contains(host.as_str())) {
                missing.push(format!("task {id} on {host}: {what}"));
            }
        }
        missing
    }
}
