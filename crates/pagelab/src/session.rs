//! One run from its first journal line to its report: the loop over cases.
//!
//! The directory and the journal exist before anything is measured. A record is on the disk before
//! the next case starts, so whatever ends the run, what was done can be read and resumed.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use anyhow::Context;
use pagelab_bench::{
    plan::{Plan, Planned},
    runner::{Attempt, Runner},
    suite,
};
use pagelab_record::{
    Outcome, Record, RunHeader,
    journal::{self, Contents, Damage, Journal},
    schema::RUN_SCHEMA,
};
use pagelab_report::Report;
use pagelab_sys::{
    clock::unix_seconds,
    crew::{catch_interrupts, interrupted},
    environment,
    knobs::{KnobError, WATCHDOG_COMMAND},
};

use serde_json::Value;

use crate::{
    CASE_COMMAND,
    exit::{Exit, Failure},
    output,
    progress::Progress,
};

/// What a run is called and where it goes.
#[derive(Debug)]
pub(crate) struct Place {
    /// Name of the run.
    pub(crate) run: String,
    /// Its directory.
    pub(crate) directory: PathBuf,
}

impl Place {
    /// Names the directory: the one that was asked for, or `pagelab-runs/<time>-<host>`.
    pub(crate) fn choose(asked: Option<&Path>) -> Self {
        let stamp: String = now().chars().filter(|c| !matches!(c, '-' | ':')).collect();
        let name = format!("{stamp}-{}", environment::hostname());
        let directory =
            asked.map_or_else(|| unused(Path::new("pagelab-runs"), &name), Path::to_owned);
        let last = directory.file_name().map(|name| name.to_string_lossy().into_owned());
        Self { run: last.unwrap_or(name), directory }
    }

    /// Makes the directory and starts its journal, before anything is measured.
    ///
    /// # Errors
    /// When it cannot be written, or holds a run already.
    pub(crate) fn start(&self, header: &RunHeader) -> Result<Journal, Failure> {
        let directory = self.directory.display();
        fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot make the output directory {directory}"))
            .map_err(Failure::usage)?;
        if self.directory.join(journal::FILE).exists() {
            return Err(Failure::usage_text(format!(
                "{directory} holds a run already: choose another directory, or: pagelab resume \
                 {directory}"
            )));
        }
        Journal::create(&self.directory, header)
            .with_context(|| format!("cannot write into {directory}"))
            .map_err(Failure::usage)
    }
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
pub(crate) fn header(run: &str, suite: &str, published: &[String], plan: &Plan) -> RunHeader {
    let methods: Vec<_> = plan.cases.iter().map(|planned| planned.method).collect();
    RunHeader {
        schema: RUN_SCHEMA.to_owned(),
        run: run.to_owned(),
        started: now(),
        pagelab: env!("CARGO_PKG_VERSION").to_owned(),
        asked: Value::Null,
        suite: suite.to_owned(),
        published: published.to_vec(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        method: serde_json::to_value(methods).expect("a method is plain data"),
        plan: plan
            .cases
            .iter()
            .map(|planned| (planned.workload.clone(), planned.case.clone()))
            .collect(),
    }
}

/// A runner whose children and watchdog are this executable.
///
/// # Errors
/// When the executable cannot be found, or another run holds the knobs that the plan needs.
pub(crate) fn runner(run: &str, plan: &[Planned]) -> Result<Runner, Failure> {
    // Not current_exe(): a binary that was replaced meanwhile is still this one here.
    let executable = PathBuf::from("/proc/self/exe");
    let executable = fs::read_link(&executable).unwrap_or(executable);
    let mut runner = Runner::new(run, executable, &[CASE_COMMAND], &[WATCHDOG_COMMAND]);
    match runner.take_knobs(plan) {
        // Without the right to change settings, cases that need one are skipped with their cure.
        Ok(()) | Err(KnobError::Denied { .. }) => Ok(runner),
        Err(error) => Err(Failure::host(error)),
    }
}

/// Runs the cases of a plan and hands every record to `keep`, which must not lose it.
///
/// # Errors
/// When a process cannot be started or a record cannot be kept.
pub(crate) fn measure(
    runner: &Runner,
    plan: &Plan,
    quiet: bool,
    keep: &mut dyn FnMut(Record) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    catch_interrupts();
    let mut progress = Progress::start(plan, quiet);
    let mut end = Exit::Good;
    for (index, planned) in plan.cases.iter().enumerate() {
        runner.keep_traces_of(&plan.cases[index..]);
        let attempt = if interrupted() {
            Attempt::Interrupted
        } else {
            runner
                .run(planned, &mut |step| progress.step(planned, step))
                .map_err(Failure::internal)?
        };
        match attempt {
            Attempt::Done(record) => {
                progress.case(index, planned, &record);
                keep(*record)?;
            }
            Attempt::Interrupted => {
                end = Exit::Interrupted;
                break;
            }
        }
    }
    progress.finish();
    Ok(end)
}

/// Measures what is left of a plan into a journal, then reports the whole run.
///
/// # Errors
/// When the journal or the report cannot be written.
pub(crate) fn execute(
    runner: Runner,
    directory: &Path,
    header: &RunHeader,
    journal: Journal,
    earlier: Vec<Record>,
    plan: &Plan,
    quiet: bool,
) -> Result<Exit, Failure> {
    let done = carry_out(runner, directory, header, journal, earlier, plan, quiet)?;
    output::result(&done.report.terminal(output::style()))?;
    done.tell(directory);
    Ok(done.exit)
}

/// A run that was carried out.
#[derive(Debug)]
pub(crate) struct Done {
    /// Its records.
    pub(crate) records: Vec<Record>,
    /// What they come to.
    pub(crate) report: Report,
    /// The exit code that the run comes to.
    pub(crate) exit: Exit,
}

impl Done {
    /// Says where the report is, and how an interrupted run goes on.
    pub(crate) fn tell(&self, directory: &Path) {
        output::warn(&format!("\nreport: {}", directory.join(PAGE).display()));
        if self.exit == Exit::Interrupted {
            let hint = format!("interrupted; go on with: pagelab resume {}", directory.display());
            output::warn(&hint);
        }
    }
}

/// The report's file in a run's directory.
const PAGE: &str = "report.html";

/// Measures what is left of a plan into a journal and writes the report's page.
///
/// # Errors
/// When the journal or the page cannot be written.
pub(crate) fn carry_out(
    runner: Runner,
    directory: &Path,
    header: &RunHeader,
    mut journal: Journal,
    earlier: Vec<Record>,
    plan: &Plan,
    quiet: bool,
) -> Result<Done, Failure> {
    let mut records = earlier;
    let end = measure(&runner, plan, quiet, &mut |record| {
        journal.append(&record).map_err(Failure::internal)?;
        records.push(record);
        Ok(())
    })?;
    // Puts the knobs back before anything slow is drawn.
    drop(runner);
    conclude(directory, header, records, end)
}

/// Writes the page of a run whose records are in its journal.
///
/// # Errors
/// When the page cannot be written.
pub(crate) fn conclude(
    directory: &Path,
    header: &RunHeader,
    records: Vec<Record>,
    end: Exit,
) -> Result<Done, Failure> {
    let report = report(header, &records, None)?;
    let page = directory.join(PAGE);
    fs::write(&page, report.html())
        .with_context(|| format!("cannot write {}", page.display()))
        .map_err(Failure::internal)?;
    let exit = end.min(verdict(&records));
    Ok(Done { records, report, exit })
}

/// The report of a run, with the published results that belong beside it.
///
/// # Errors
/// When the header names published results that this version does not have.
pub(crate) fn report(
    header: &RunHeader,
    records: &[Record],
    damage: Option<&Damage>,
) -> Result<Report, Failure> {
    let mut published = Vec::new();
    for name in &header.published {
        published.extend(suite::published(name).map_err(Failure::usage_text)?);
    }
    Ok(Report::of(header, records, damage, &published))
}

/// Reads a run, telling the person about a damaged end.
///
/// # Errors
/// When it is no run.
pub(crate) fn read(path: &Path) -> Result<Contents, Failure> {
    let contents = journal::read(path).map_err(Failure::usage)?;
    if let Some(Damage { line, why }) = &contents.damage {
        output::warn(&format!(
            "warning: {}: line {line} cannot be read ({why}); the {} records before it are used",
            path.display(),
            contents.records.len()
        ));
    }
    Ok(contents)
}

/// The exit code that some records come to.
pub(crate) fn verdict(records: &[Record]) -> Exit {
    let skipped = |record: &&Record| matches!(record.outcome, Outcome::Skipped { .. });
    let of = |record: &Record| match &record.outcome {
        Outcome::Failed { .. } => Exit::CaseFailed,
        Outcome::Measured(measured) if !measured.is_valid() => Exit::Invalid,
        _ => Exit::Good,
    };
    // The limits accompany every run: a run whose own cases were all skipped has shown nothing.
    let own: Vec<&Record> =
        records.iter().filter(|record| !record.workload.starts_with("limit/")).collect();
    let own = if own.is_empty() { records.iter().collect() } else { own };
    if !own.is_empty() && own.iter().all(skipped) {
        return records.iter().map(of).min().unwrap_or(Exit::Good).min(Exit::AllSkipped);
    }
    records.iter().map(of).min().unwrap_or(Exit::Good)
}
