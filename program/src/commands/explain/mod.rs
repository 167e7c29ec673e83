//! `pagelab explain`: what faults cost a program on this machine, and what would help.
//!
//! The program runs first, with the terminal to itself; then the kinds of fault that it took are
//! measured, unless the costs of an earlier run are given. Both are records of one run.

mod captured;

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    explain::{
        WORKLOAD, prices,
        record::record,
        watch::{Blocked, Subject, Watched, Wish, watch},
    },
    settings::Settings,
    views::explain::folded,
};
use clap::{Args, ValueEnum, value_parser};
use pagelab_bench::{asked::Seconds, count::parse_count, plan::Plan, runner::Runner};
use pagelab_record::{Outcome, Record, vocabulary::knob::HELD_BY};
use pagelab_report::{Forms, Report};
use pagelab_sys::{machine::tlb::tlbs, process::catch_interrupts, time::ClockChoice};
use pagelab_translation::{WORKLOAD as CHASE, chase::told};
use serde_json::json;

use self::captured::Capture;
use pagelab_cli::{
    args::{Conduct, Output, Run},
    exit::{Exit, Failure},
    output, session, settings,
};

/// What faults cost a program on this machine, and what would help.
///
/// Runs the program and receives every fault of it and of what it starts, then measures what such
/// faults cost here. The program keeps stdin, stdout and stderr; an interrupt goes to it. The
/// report follows on stderr, or is written to --report FILE. Faults are dearer while they are
/// watched; the costs are those of faults that nobody watches.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Watch a process that runs, instead of starting one.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    #[arg(conflicts_with = "program")]
    pid: Option<u32>,
    /// How long a running process is watched.
    #[arg(long, value_name = "SECONDS", requires = "pid", default_value = "10")]
    duration: Seconds,
    /// Take the costs of an earlier run of this machine instead of measuring, or: none.
    #[arg(long, value_name = "RUN")]
    costs: Option<String>,
    /// Write the report to a file that does not exist yet, instead of stderr (with --pid: stdout).
    #[arg(long, value_name = "FILE")]
    report: Option<String>,
    /// Write its stacks, weighted by stall, to a file that does not exist yet, for a flame graph.
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Also say what its page walks (TLB misses) cost: sample them, or capture its accesses.
    ///
    /// sample, unless another is named, clears the accessed bits of its pages now and then and
    /// counts which are set again: reclaim takes those pages for idle meanwhile, so not on a
    /// machine that is short of memory and swaps. capture is for programs that are too short to
    /// sample: they run once more in qemu-user, without output, and a modelled TLB misses.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "sample")]
    translation: Option<How>,
    /// End the captured run after so many loads, stores and instructions (1g).
    #[arg(long, value_name = "OPS", value_parser = parse_count)]
    capture_max: Option<u64>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    conduct: Conduct,
    /// The program and its arguments, after --.
    #[arg(required_unless_present = "pid", trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(num_args = 1..)]
    program: Vec<OsString>,
}

/// How page walks are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    /// By the accessed bits of its pages, while it runs.
    Sample,
    /// By its accesses under emulation, in a run of their own.
    Capture,
}

impl Explain {
    /// The captured run, where one is asked for, with all that it takes.
    fn capture(&self) -> Result<Option<Capture>, Failure> {
        if self.translation != Some(How::Capture) {
            if self.capture_max.is_some() {
                return Err(usage!(
                    "--capture-max bounds a captured run: it takes --translation=capture"
                ));
            }
            return Ok(None);
        }
        if self.pid.is_some() {
            return Err(usage!(
                "--translation=capture runs a program once more, which no process can be: give the \
                 program, or look at the process with --translation=sample",
            ));
        }
        Capture::prepare(&self.program, self.capture_max.unwrap_or(captured::OPS_MAX)).map(Some)
    }

    fn subject(&self) -> Subject {
        let at_most = Duration::from_secs_f64(self.duration.get().min(1e6));
        match self.pid {
            Some(pid) => Subject::Process { pid, at_most },
            None => Subject::Program(self.program.clone()),
        }
    }
}

impl Run for Explain {
    /// Watches, prices, reports.
    fn run(self) -> Result<Exit, Failure> {
        let clock = self.conduct.clock.choice();
        let subject = self.subject();
        // Before the program runs, so that it does not run for nothing.
        let capture = self.capture()?;
        let sink = Sink::open(self.report.as_deref(), &subject)?;
        let stacks_to = output::Named::of(self.folded.as_ref())?;
        let costs = self.costs.as_deref().map(costs_of).transpose()?;
        let (case, method) = prices::watched(&subject, clock);
        settings::undisturbed(self.conduct.wait.patience())?;
        let place = self.output.place();
        let mut header = session::header(&place.run, "", &[], &Plan::default());
        // What prices the faults is known when they were seen; a run that stops before goes on
        // there.
        header.asked = prices::asked(costs.is_none());
        header.plan = vec![(WORKLOAD.to_owned(), case.clone())];
        header.method = json!([method]);
        let mut run = session::Run::start(&place, header)?;
        catch_interrupts();
        let wish =
            Wish { stacks: stacks_to.is_some(), walks: self.translation == Some(How::Sample) };
        let before = Settings::now();
        let watched = watch(&subject, wish).map_err(|blocked| refused(blocked, &subject))?;
        say_end(&watched);
        let mut record = record(&place.run, case, &watched);
        let after = Settings::now();
        let disturbed = before.disturbed(&after);
        if let Outcome::Measured(measured) = &mut record.outcome {
            measured.warnings.extend(before.warnings(&after));
            measured.witness.push(before.claim(&after));
            let held = before.held_by(&after).map(|pid| (HELD_BY.to_owned(), pid.into()));
            measured.counters.extend(held);
        }
        let seen = capture.map(|capture| capture.run(watched.ended.map(|ended| ended.status)));
        if let (Some(Ok(seen)), Outcome::Measured(measured)) = (&seen, &mut record.outcome) {
            seen.write(measured);
            measured.tables.push(told(&tlbs()));
        }
        run.keep(record)?;
        seen.transpose()?;
        let mut end = Exit::Good;
        if let Some(changed) = disturbed {
            output::warn(&format!(
                "{changed} while the program was watched, so nothing is said of its faults: watch \
                 it again"
            ));
        } else if let Some(costs) = costs {
            for record in costs {
                run.keep(record)?;
            }
        } else {
            let plan = prices::of_run(&run.header, &run.records, clock);
            end = measure_prices(&mut run, &plan, clock, &self.conduct)?;
        }
        let done = run.conclude(end)?;
        sink.take(&done.report)?;
        if let Some(file) = stacks_to {
            let stacks = folded(done.report.run());
            if stacks.is_empty() {
                output::warn("no stack is known, so the folded file is empty: the report says why");
            }
            file.write(&stacks)?;
        }
        done.tell();
        Ok(done.exit)
    }
}

/// Where the report goes: stdout is the program's own.
#[derive(Debug)]
enum Sink {
    Stdout,
    Stderr,
    File(output::Named),
}

impl Sink {
    fn open(path: Option<&str>, subject: &Subject) -> Result<Self, Failure> {
        match (path, subject) {
            (Some("-"), Subject::Program(_)) => Err(usage!(
                "--report -: stdout is the program's: name a file, or leave it out: the report \
                 goes to stderr",
            )),
            (None | Some("-"), Subject::Process { .. }) => Ok(Self::Stdout),
            (None, Subject::Program(_)) => Ok(Self::Stderr),
            (Some(path), _) => output::Named::create(Path::new(path)).map(Self::File),
        }
    }

    fn take(self, report: &Report) -> Result<(), Failure> {
        match self {
            Self::Stdout => output::drawn(&report.terminal(output::style())),
            Self::Stderr => {
                output::warn_drawn(&report.terminal(output::style_of(&io::stderr())));
                Ok(())
            }
            Self::File(file) => {
                let text = report.terminal(output::style_of(&file.target.file));
                file.write(&text)
            }
        }
    }
}

/// The measured faults of an earlier run.
fn costs_of(run: &str) -> Result<Vec<Record>, Failure> {
    if run == "none" {
        return Ok(Vec::new());
    }
    let mut records = session::read(Path::new(run))?.records;
    records.retain(|record| record.workload.starts_with("fault/") || record.workload == CHASE);
    if records.is_empty() {
        return Err(usage!(
            "{run} has measured no faults: leave --costs out, or: pagelab run --suite full"
        ));
    }
    Ok(records)
}

/// Measures what prices the faults that were seen.
///
/// # Errors
/// When a process cannot be started or a record cannot be kept.
pub(super) fn measure_prices(
    run: &mut session::Run,
    plan: &Plan,
    clock: ClockChoice,
    conduct: &Conduct,
) -> Result<Exit, Failure> {
    let (patience, quiet) = (conduct.wait.patience(), conduct.quiet.quiet);
    let runner = settings::pricing_runner(&run.header.run, &plan.cases, patience)?;
    priced(run, &runner, plan, clock, quiet)
}

/// The same by a runner.
///
/// # Errors
/// As [`measure_prices`].
pub(super) fn priced(
    run: &mut session::Run,
    runner: &Runner,
    plan: &Plan,
    clock: ClockChoice,
    quiet: bool,
) -> Result<Exit, Failure> {
    // Others on the machine may take a file's pages out of memory meanwhile: what comes out invalid
    // is measured once more, and that is kept however it comes out.
    let mut invalid = Vec::new();
    let end = session::measure(runner, plan, quiet, &mut |record| match &record.outcome {
        Outcome::Measured(measured) if !measured.is_valid() => {
            invalid.push(record);
            Ok(())
        }
        _ => run.keep(record),
    })?;
    if invalid.is_empty() || end != Exit::Good {
        invalid.into_iter().try_for_each(|record| run.keep(record))?;
        return Ok(end);
    }
    for record in &invalid {
        let kind = record.case.get("kind").unwrap_or_default();
        output::warn(&format!("the price of {kind} failed its proof, so it is measured again"));
    }
    let plan = prices::again(&invalid, clock);
    run.measure(runner, &plan, quiet)
}

/// How the program ended, where that is not as it should.
fn say_end(watched: &Watched) {
    let Some(ended) = watched.ended else { return };
    match (ended.status.code(), ended.signal()) {
        (Some(0), _) | (None, None) => (),
        (Some(code), _) => output::warn(&format!("the program exited with {code}")),
        (None, Some(signal)) => {
            output::warn(&format!("the program was ended by signal {signal}"));
        }
    }
}

fn refused(blocked: Blocked, subject: &Subject) -> Failure {
    match blocked {
        Blocked::Program { .. } | Blocked::NoProcess(_) => Failure::usage(blocked),
        Blocked::Denied { .. } => {
            let Subject::Process { pid, .. } = subject else { return Failure::host(blocked) };
            if blocked.is_out_of_descriptors() {
                let cure = "raise it with ulimit -n; beyond its hard limit with CAP_SYS_RESOURCE";
                return host!("{blocked}: {cure}");
            }
            host!(
                "{blocked}: run as root or as the owner of the process: sudo pagelab explain \
                 --pid {pid} (in a container: allow perf_event_open in its seccomp profile)"
            )
        }
        Blocked::Sys(_) => Failure::internal(blocked),
    }
}
