//! One run from its first journal line to its report: the loop over cases.
//!
//! The directory and the journal exist before anything is measured. A record is on the disk before
//! the next case starts, so whatever ends the run, what was done can be read and resumed.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Context, anyhow};
use pagelab_bench::{
    partial::Partial,
    plan::{Plan, Planned},
    runner::Runner,
};
use pagelab_record::{
    Outcome, Record, RunHeader,
    journal::{self, Contents, Journal, JournalError},
    schema::RUN_SCHEMA,
};
use pagelab_report::{Forms, Report};
use pagelab_sys::{files::folder::Folder, machine::environment, time::unix_seconds};

use crate::{
    exit::{Exit, Failure},
    history::{self, RUNS},
    latest::{latest, stated, tidy_up},
    output, part, published, turns,
};

/// What a run is called and where it goes.
#[derive(Debug)]
pub struct Place {
    /// Name of the run.
    pub run: String,
    /// Its directory.
    pub directory: PathBuf,
}

impl Place {
    /// Names the directory: the one that was asked for, or `pagelab-runs/<time>-<host>`.
    pub fn choose(asked: Option<&Path>) -> Self {
        let stamp: String = now().chars().filter(|c| !matches!(c, '-' | ':')).collect();
        let name = format!("{stamp}-{}", environment::hostname());
        let directory = asked.map_or_else(|| unused(Path::new(RUNS), &name), Path::to_owned);
        let last = directory.file_name().map(|name| name.to_string_lossy().into_owned());
        Self { run: last.unwrap_or(name), directory }
    }
}

/// A run that is being written: its directory, its journal, and the records so far.
#[derive(Debug)]
pub struct Run {
    folder: Folder,
    journal: Journal,
    /// The first line of the journal.
    pub header: RunHeader,
    /// The records behind it.
    pub records: Vec<Record>,
}

impl Run {
    /// Makes the directory and starts the journal, before anything is measured.
    ///
    /// # Errors
    /// When it cannot be written, or holds a run already.
    pub fn start(place: &Place, header: RunHeader) -> Result<Self, Failure> {
        let directory = place.directory.display();
        let folder = Folder::make(&place.directory)
            .with_context(|| format!("cannot write a run into {directory}"))
            .map_err(Failure::usage)?;
        let path = place.directory.join(journal::FILE);
        // A journal that is there has its header: what is killed before leaves no half of a run.
        let made =
            folder.create_filled(journal::FILE, |file| Journal::create(file, &path, &header));
        let journal = made.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => usage!(
                "{directory} holds a run already: choose another directory, or: pagelab resume \
                 {directory}"
            ),
            _ => Failure::usage(anyhow!("cannot create {}: {error}", path.display())),
        })?;
        let journal = journal.map_err(Failure::host)?;
        // The name must survive a crash as well as the bytes do.
        folder.sync().map_err(Failure::host)?;
        Ok(Self { folder, journal, header, records: Vec::new() })
    }

    /// Goes on with a run that stopped.
    ///
    /// # Errors
    /// When it is no run, is being written, or is not to be trusted.
    pub fn resume(directory: &Path) -> Result<Self, Failure> {
        let folder = Folder::open(directory).map_err(Failure::usage)?;
        let path = directory.join(journal::FILE);
        let file = folder.append_to(journal::FILE);
        let file = file.with_context(|| path.display().to_string()).map_err(Failure::usage)?;
        let resumed = Journal::resume(file, &path, || aside(&folder));
        let (journal, mut contents) = resumed.map_err(|error| match error {
            JournalError::Aside { .. } => Failure::host(error),
            error => Failure::usage(error),
        })?;
        tidy_up(&path, &mut contents);
        Ok(Self { folder, journal, header: contents.header, records: contents.records })
    }

    /// Where it lies.
    pub fn directory(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a file for what a program of the run says.
    ///
    /// # Errors
    /// When there is one of this name already.
    pub fn scratch(&self, name: &str) -> io::Result<fs::File> {
        self.folder.create_private(name)
    }

    /// Takes such files away, where they are.
    pub fn forget_scratch(&self, names: impl Iterator<Item = String>) {
        names.for_each(|name| drop(self.folder.remove(name)));
    }

    /// Appends a record, which is on the disk when this returns.
    ///
    /// # Errors
    /// When the disk is full or fails: says what is safe, and how to go on.
    pub fn keep(&mut self, record: Record) -> Result<(), Failure> {
        self.journal.append(&record).map_err(|error| {
            let (kept, directory) = (self.records.len(), self.directory().display());
            let safe = format!(
                "a record cannot be written; the {kept} before it are safe in {directory}: when \
                 the disk has room again: {}",
                history::go_on(self.directory(), &self.header)
            );
            Failure::host(anyhow::Error::from(error).context(safe))
        })?;
        self.records.push(record);
        Ok(())
    }

    /// Measures a plan, record by record.
    ///
    /// # Errors
    /// When a process cannot be started or a record cannot be kept.
    pub fn measure(&mut self, runner: &Runner, plan: &Plan, quiet: bool) -> Result<Exit, Failure> {
        let done = self.records.clone();
        let begun = |planned: &Planned| turns::begun(&done, planned);
        let keep = &mut |record| self.keep(record);
        let (end, begun) = turns::measure(runner, plan, &begun, quiet, keep)?;
        begun.into_iter().try_for_each(keep)?;
        Ok(end)
    }

    /// Writes the page of the run.
    ///
    /// # Errors
    /// When the page cannot be written.
    pub fn conclude(self, end: Exit) -> Result<Done, Failure> {
        let Self { folder, header, records, .. } = self;
        let records = latest(records);
        let report =
            Report::of(&header, &records, None, &published::beside(&header, &[]), part::views());
        let page = folder.path().join(PAGE);
        folder.replace(PAGE, report.html().as_bytes()).map_err(|error| {
            let (kept, directory) = (records.len(), folder.path().display());
            host!(
                "cannot write {}: {error}; all {kept} records are safe in {directory}: when the \
                 disk has room again: pagelab report {directory}",
                page.display()
            )
        })?;
        let exit = end.min(verdict(&records));
        let go_on = history::go_on(folder.path(), &header);
        Ok(Done { records, report, page, go_on, exit })
    }
}

/// A file for the copy of a damaged journal, under a name that no earlier copy has.
fn aside(folder: &Folder) -> io::Result<fs::File> {
    let first = format!("{}.damaged", journal::FILE);
    let further = (2..1000).map(|number| format!("{first}-{number}"));
    let taken = |made: &io::Result<fs::File>| {
        made.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
    };
    let mut made = std::iter::once(first.clone()).chain(further).map(|name| folder.create(name));
    made.find(|made| !taken(made)).unwrap_or_else(|| Err(ErrorKind::AlreadyExists.into()))
}

/// The time now, as `2026-11-21T02:00:00Z`.
fn now() -> String {
    let since_1970 = Duration::from_secs(unix_seconds().max(0).cast_unsigned());
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since_1970).to_string()
}

/// A directory of this name that does not exist yet, numbered where two runs start in one second.
fn unused(runs: &Path, name: &str) -> PathBuf {
    let mut path = runs.join(name);
    let mut number = 2_u64;
    while path.exists() {
        path = runs.join(format!("{name}-{number}"));
        number += 1;
    }
    path
}

/// The first line of a journal for a plan.
pub fn header(run: &str, suite: &str, published: &[String], plan: &Plan) -> RunHeader {
    let methods: Vec<_> = plan.cases.iter().map(|planned| planned.method).collect();
    RunHeader {
        schema: RUN_SCHEMA.to_owned(),
        run: run.to_owned(),
        started: now(),
        pagelab: env!("CARGO_PKG_VERSION").to_owned(),
        asked: None,
        suite: suite.to_owned(),
        published: published.to_vec(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        method: serde_json::to_value(methods).expect("a method is plain data"),
        plan: plan
            .cases
            .iter()
            .map(|planned| (planned.workload.name().to_owned(), planned.case.as_ref().clone()))
            .collect(),
    }
}

/// Runs the cases of a plan and hands every record to `keep`, which must not lose it.
///
/// # Errors
/// When a process cannot be started or a record cannot be kept.
pub fn measure(
    runner: &Runner,
    plan: &Plan,
    quiet: bool,
    keep: &mut dyn FnMut(Record) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let (end, _) = turns::measure(runner, plan, &|_| Partial::default(), quiet, keep)?;
    Ok(end)
}

/// Measures what is left of a plan into a run, then reports the whole of it.
///
/// # Errors
/// When the journal or the report cannot be written.
pub fn execute(runner: Runner, run: Run, plan: &Plan, quiet: bool) -> Result<Exit, Failure> {
    tell(&carry_out(runner, run, plan, quiet)?)
}

/// Prints the report of a run.
///
/// # Errors
/// When stdout cannot be written.
pub fn tell(done: &Done) -> Result<Exit, Failure> {
    output::drawn(&done.report.terminal(output::style()))?;
    done.tell();
    Ok(done.exit)
}

/// A run that was carried out.
#[derive(Debug)]
pub struct Done {
    /// Its records.
    pub records: Vec<Record>,
    /// What they come to.
    pub report: Report,
    /// Where it can be read.
    page: PathBuf,
    /// The command that goes on with it.
    go_on: String,
    /// The exit code that the run comes to.
    pub exit: Exit,
}

impl Done {
    /// Says where the report is, and how an interrupted run goes on.
    pub fn tell(&self) {
        output::warn(&format!("\nreport: {}", self.page.display()));
        if self.exit == Exit::Interrupted {
            output::warn(&format!("interrupted; go on with: {}", self.go_on));
        }
    }
}

/// The report's file in a run's directory.
const PAGE: &str = "report.html";

/// Measures what is left of a plan into a run and writes the report's page.
///
/// # Errors
/// When the journal or the page cannot be written.
pub fn carry_out(runner: Runner, mut run: Run, plan: &Plan, quiet: bool) -> Result<Done, Failure> {
    let end = run.measure(&runner, plan, quiet)?;
    // Puts the knobs back before anything slow is drawn.
    drop(runner);
    run.conclude(end)
}

/// Reads a run, telling the person about a damaged end.
///
/// # Errors
/// When it is no run.
pub fn read(path: &Path) -> Result<Contents, Failure> {
    select(path, |_| true)
}

/// The same, of the records that are wanted: a run of many hosts may be longer than what is held.
///
/// # Errors
/// When it is no run.
pub fn select(path: &Path, mut wanted: impl FnMut(&Record) -> bool) -> Result<Contents, Failure> {
    let path = history::find(path)?;
    let wanted = |record: &mut Record| wanted(stated(record));
    let mut contents = journal::select(&path, wanted).map_err(Failure::usage)?;
    tidy_up(&path, &mut contents);
    Ok(contents)
}

/// Whether a workload only says what the machine can do at most.
pub fn is_limit(name: &str) -> bool {
    part::workload(name).is_ok_and(|row| row.about().is_limit)
}

/// The exit code that some records come to.
pub fn verdict(records: &[Record]) -> Exit {
    let skipped = |record: &&Record| matches!(record.outcome, Outcome::Skipped { .. });
    let of = |record: &&Record| match &record.outcome {
        Outcome::Failed { .. } => Exit::CaseFailed,
        Outcome::Measured(measured) if !measured.is_valid() => Exit::Invalid,
        _ => Exit::Good,
    };
    // What is predicted of a program that is tried decides nothing.
    let in_rounds = |record: &&Record| part::views().of(&record.workload).in_rounds;
    let tried: Vec<&Record> = records.iter().filter(in_rounds).collect();
    let all = if tried.is_empty() { records.iter().collect() } else { tried };
    // The limits accompany every run: a run whose own cases were all skipped has shown nothing.
    let own: Vec<&Record> =
        all.iter().copied().filter(|record| !is_limit(&record.workload)).collect();
    let own = if own.is_empty() { all.clone() } else { own };
    if !own.is_empty() && own.iter().all(skipped) {
        return all.iter().map(of).min().unwrap_or(Exit::Good).min(Exit::AllSkipped);
    }
    all.iter().map(of).min().unwrap_or(Exit::Good)
}
