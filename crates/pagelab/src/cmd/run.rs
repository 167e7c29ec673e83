//! `pagelab run`: the main job.

use std::{fmt, path::Path};

use anyhow::Context;
use clap::ArgMatches;
use pagelab_bench::{
    Need, Needed, Remedy,
    plan::{self, Outlook, Plan},
    suite::{self, Entry, Suite},
};
use pagelab_record::{
    input,
    units::{display_bytes, display_ns},
};
use pagelab_sys::time::clock::ClockChoice;
use pagelab_workloads::{needs::Memory, suites};

use super::{clock, text};
use crate::{
    args,
    exit::{Exit, Failure},
    output, progress, published,
    session::{self, Place, Run},
};

/// Plans, then measures (or shows the plan), then reports.
///
/// # Errors
/// When the plan makes no sense, the host cannot run it, or the output cannot be written.
pub(crate) fn run(matches: &ArgMatches) -> Result<Exit, Failure> {
    let clock = clock(matches);
    let (plan, name, published) = if let Some((workload, grid)) = matches.subcommand() {
        (plan_of_grid(matches, workload, grid, clock)?, String::new(), Vec::new())
    } else {
        let suite = chosen_suite(matches)?;
        let over = args::overrides(matches);
        let plan = plan::of_suite(&suite, clock, over).map_err(Failure::usage_text)?;
        (plan, suite.name, suite.published)
    };
    let outlook = plan.outlook();
    // A suite's own sizes may be too large for a host, and are skipped; one that was asked for is
    // a mistake.
    if matches.subcommand().is_some() || text(matches, "size").is_some() {
        refuse_what_cannot_fit(&outlook)?;
    }
    for why in &plan.left_out {
        output::warn(&format!("left out: {why}"));
    }
    if matches.get_flag("dry-run") {
        output::result(&describe(&plan, &outlook))?;
        return Ok(Exit::Good);
    }
    let place = Place::choose(text(matches, "output").map(Path::new));
    // The knobs first: a run that must wait for another leaves no directory behind.
    let runner = session::runner(&place.run, &plan.cases, args::wait(matches))?;
    let header = session::header(&place.run, &name, &published, &plan);
    let run = Run::start(&place, header)?;
    session::execute(runner, run, &plan, matches.get_flag("quiet"))
}

/// The grid that was asked for, with the limits that results are shares of.
fn plan_of_grid(
    matches: &ArgMatches,
    workload: &str,
    grid: &ArgMatches,
    clock: ClockChoice,
) -> Result<Plan, Failure> {
    let given =
        ["suite", "size", "rounds", "ops"].into_iter().find(|name| text(matches, name).is_some());
    if let Some(given) = given.or(matches.get_flag("fifo").then_some("fifo")) {
        return Err(Failure::usage_text(format!(
            "--{given} before the workload speaks of a suite: write it after {workload}"
        )));
    }
    let row = pagelab_workloads::workload(workload).map_err(Failure::usage_text)?;
    let entry = Entry::new(row, args::axes(row, grid));
    let limits = suites::built_in("limits", published::NAMES).map_err(Failure::usage_text)?;
    plan::of_grid(&entry, &limits, clock, args::overrides(matches)).map_err(Failure::usage_text)
}

/// The suite that was asked for, with the overrides of the command line.
fn chosen_suite(matches: &ArgMatches) -> Result<Suite, Failure> {
    let mut suite = load(text(matches, "suite").unwrap_or("quick"))?;
    let fifo = matches.get_flag("fifo").then_some("on");
    for (name, value) in
        [("size", text(matches, "size")), ("rounds", text(matches, "rounds")), ("fifo", fifo)]
            .into_iter()
            .chain([("ops", text(matches, "ops"))])
    {
        let Some(value) = value else { continue };
        let mut used = false;
        for entry in &mut suite.entries {
            if entry.workload.params().iter().any(|param| param.name == name) {
                entry.axes.retain(|(axis, _)| axis != name);
                entry.axes.push((name.to_owned(), vec![value.to_owned()]));
                used = true;
            }
        }
        if !used {
            return Err(Failure::usage_text(format!(
                "suite `{}` has no case with a {name}: leave --{name} out",
                suite.name
            )));
        }
    }
    Ok(suite)
}

/// A suite by name or path.
///
/// # Errors
/// When there is none of that name, or the file is no suite.
pub(crate) fn load(name: &str) -> Result<Suite, Failure> {
    if !name.contains(['/', '.']) {
        return suites::built_in(name, published::NAMES).map_err(Failure::usage_text);
    }
    let text = input::text(Path::new(name), suite::BYTES_MAX)
        .with_context(|| format!("cannot read the suite {name}"))
        .map_err(Failure::usage)?;
    suite::parse(&text, suites::known(published::NAMES))
        .map_err(|why| Failure::usage_text(format!("{name}: {why}")))
}

/// A grid that asks for more memory than there is is refused before anything is measured.
pub(crate) fn refuse_what_cannot_fit(outlook: &Outlook) -> Result<(), Failure> {
    let is_too_large = |need: &&Needed| need.of::<Memory>().is_some() && need.is_lacking();
    match outlook.needs.iter().find(is_too_large) {
        Some(need) => {
            Err(Failure::host(anyhow::anyhow!("this host lacks {need}: {}", need.cure())))
        }
        None => Ok(()),
    }
}

/// The plan for people.
fn describe(plan: &Plan, outlook: &Outlook) -> String {
    let mut text = String::new();
    let notes: Vec<Note> = outlook.needs.iter().map(|need| Note::of(&**need)).collect();
    for (planned, expected) in plan.cases.iter().zip(&outlook.cases) {
        let of_needs = expected.needs.iter().map(|place| &notes[*place]);
        let note = of_needs.min_by_key(|note| note.rank()).unwrap_or(&Note::Nothing);
        let time = display_ns(expected.seconds * 1e9);
        let memory = display_bytes(expected.bytes as f64);
        text.push_str(&format!("{time:>8} {memory:>9}  {}{note}\n", progress::brief(planned)));
    }
    text.push_str(&format!(
        "\n{} cases, about {:.0} s, at most {} of memory at once\n",
        plan.cases.len(),
        outlook.seconds(),
        display_bytes(outlook.bytes() as f64)
    ));
    let remedies = outlook.remedies();
    let (knobs, belongings): (Vec<_>, Vec<_>) =
        remedies.iter().partition(|(remedy, _)| matches!(remedy, Remedy::Set(..)));
    if knobs.is_empty() {
        text.push_str("no setting of this machine would be changed\n");
    } else {
        let may = if pagelab_sys::machine::rights::is_root() {
            "settings that would be changed for their cases and put back:"
        } else {
            "settings that these cases need; without root they are skipped:"
        };
        text.push_str(&format!("{may}\n"));
        list(&mut text, &knobs);
    }
    if !belongings.is_empty() {
        text.push_str("what would be made for each of its cases and removed:\n");
        list(&mut text, &belongings);
    }
    text
}

/// What a need of a case means for it.
#[derive(Debug, Clone)]
enum Note {
    Skipped(String),
    Remedied(String),
    Nothing,
}

impl Note {
    /// The lowest of a case is what is said of it.
    fn rank(&self) -> u8 {
        match self {
            Self::Skipped(_) => 0,
            Self::Remedied(_) => 1,
            Self::Nothing => 2,
        }
    }

    fn of(need: &dyn Need) -> Self {
        if need.is_lacking() || (!pagelab_sys::machine::rights::is_root() && !need.check()) {
            return Self::Skipped(format!("   [skipped, needs {need}]"));
        }
        match need.pending() {
            Some(Remedy::Set(path, value)) => {
                Self::Remedied(format!("   [sets {} to {value}]", path.display()))
            }
            Some(Remedy::Create(what)) => Self::Remedied(format!("   [makes {what}]")),
            None => Self::Nothing,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped(text) | Self::Remedied(text) => f.write_str(text),
            Self::Nothing => Ok(()),
        }
    }
}

/// A line for each remedy.
fn list(text: &mut String, remedies: &[&(Remedy, usize)]) {
    for (remedy, cases) in remedies {
        let s = if *cases == 1 { "" } else { "s" };
        text.push_str(&format!("  {remedy} ({cases} case{s})\n"));
    }
}
