//! `pagelab run`: the main job.

use std::path::Path;

use anyhow::Context;
use clap::{ArgMatches, Args, Command};
use pagelab_bench::{
    Need, Remedy,
    asked::{Seconds, share},
    plan::{self, Outlook, Overrides, Plan},
    remedy,
    suite::{self, Entry, Suite},
    workload::Row,
};
use pagelab_record::{
    Arm, Asked, input,
    units::{display_bytes, display_ns},
};
use pagelab_report::Listing;
use pagelab_sys::time::ClockChoice;

use super::ab;
use crate::{
    args::{self, Conduct, DryRun, Method, Output},
    exit::{Exit, Failure},
    output, part,
    plan::refuse_what_cannot_fit,
    progress,
    session::{self, Run},
    settings,
};

/// The flags of `run`, and of every grid below it.
#[derive(Debug, Args)]
struct Flags {
    #[command(flatten)]
    method: Method,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    dry: DryRun,
    #[command(flatten)]
    conduct: Conduct,
    #[arg(long, help = suite_help())]
    suite: Option<String>,
    /// Set two arms against each other, process by process: page=4k page=2m, env:NAME=VALUE
    /// env:NAME, settings of the machine, set:PATH=VALUE set:PATH=VALUE, or two builds of pagelab,
    /// bin:PATH bin:PATH.
    #[arg(long, global = true, num_args = 2, value_names = ["A", "B"], value_parser = ab::arm)]
    ab: Option<Vec<Arm>>,
    /// Treat differences between the arms below this share as equal, 3% or 0.03 (default 3%).
    #[arg(long, global = true, value_name = "SHARE", value_parser = share)]
    delta: Option<f64>,
    /// Override the size of every case of a suite.
    #[arg(long)]
    size: Option<String>,
    /// Override the rounds of every case of a suite.
    #[arg(long)]
    rounds: Option<String>,
    /// Override the operations of every case of a suite.
    #[arg(long)]
    ops: Option<String>,
    #[arg(long, help = "Run measured threads of a suite under SCHED_FIFO")]
    fifo: bool,
    /// Frequency governor of every processor during a suite's faults, put back afterwards.
    #[arg(long)]
    governor: Option<String>,
    /// Turbo during a suite's faults (off or on), put back afterwards.
    #[arg(long)]
    turbo: Option<String>,
}

fn suite_help() -> String {
    let names: Vec<&str> = part::suites().map(|(name, _)| *name).collect();
    format!("A suite by name ({}) or the path of a .toml", names.join(", "))
}

/// Adds the flags, and a command for each workload.
pub(super) fn describe(command: Command) -> Command {
    let grid = |workload: &Row| {
        Command::new(workload.name().to_owned())
            .about(args::sentence(workload.about().summary))
            .args(args::flags(*workload, ""))
    };
    Flags::augment_args(command)
        .about("Measure: a suite (quick by default), or a grid of one workload")
        .long_about(
            "Measure: a suite (quick by default), or a grid of one workload.\n\n\
             A comma between values makes a case for each; two such flags make their product. \
             The machine's own limits are measured with every grid.",
        )
        .subcommand_value_name("WORKLOAD")
        .subcommand_help_heading("Workloads")
        .subcommands(part::workloads().iter().map(grid))
}

/// Plans, then measures (or shows the plan), then reports.
///
/// # Errors
/// When the plan makes no sense, the host cannot run it, or the output cannot be written.
pub(super) fn run(matches: &ArgMatches) -> Result<Exit, Failure> {
    let flags: Flags = args::of(matches)?;
    let clock = flags.conduct.clock.choice();
    let (mut plan, name, published) = if let Some((workload, grid)) = matches.subcommand() {
        (flags.plan_of_grid(workload, grid, clock)?, String::new(), Vec::new())
    } else {
        let suite = flags.chosen_suite()?;
        let plan = plan::of_suite(&suite, clock, flags.overrides());
        (plan?, suite.name, suite.published)
    };
    let mut asked = None;
    if let Some([a, b]) = flags.ab.as_deref() {
        let (both, arms) = ab::plan(plan, [a.clone(), b.clone()])?;
        let budget_ns = flags.method.overrides().budget.map(Seconds::ns);
        asked = Some(ab::asked(arms, &both, budget_ns, flags.delta));
        plan = both;
    } else if flags.delta.is_some() {
        return Err(usage!("--delta is about two arms: name them with --ab A B"));
    }
    let outlook = plan.outlook();
    // A suite's own sizes may be too large for a host, and are skipped; one that was asked for is
    // a mistake.
    if matches.subcommand().is_some() || flags.size.is_some() {
        refuse_what_cannot_fit(&outlook)?;
    }
    for why in &plan.left_out {
        output::warn(&format!("left out: {why}"));
    }
    if flags.dry.dry_run {
        output::result(&describe_plan(&plan, &outlook))?;
        return Ok(Exit::Good);
    }
    let place = flags.output.place();
    // The knobs first: a run that must wait for another leaves no directory behind.
    let patience = flags.conduct.wait.patience();
    let mut header = session::header(&place.run, &name, &published, &plan);
    let quiet = flags.conduct.quiet.quiet;
    if let Some(asked) = asked {
        let runner = ab::runner(&place.run, &plan, &asked, patience)?;
        header.asked = Some(Asked::Ab(asked));
        return ab::execute(runner, Run::start(&place, header)?, &plan, quiet);
    }
    let runner = settings::runner(&place.run, &plan.cases, patience)?;
    let run = Run::start(&place, header)?;
    session::execute(runner, run, &plan, quiet)
}

impl Flags {
    /// How to measure; of two arms so that the screen leaves time for what it does not decide.
    fn overrides(&self) -> Overrides {
        let over = self.method.overrides();
        if self.ab.is_none() {
            return over;
        }
        let budget = over.budget.map(|budget| budget.part(ab::SCREEN_SHARE));
        Overrides { forks: over.forks.or(Some(ab::FORKS)), budget, ..over }
    }

    /// What the flags say of the cases of a suite.
    fn of_suite(&self) -> [(&'static str, Option<&str>); 6] {
        [
            ("size", self.size.as_deref()),
            ("rounds", self.rounds.as_deref()),
            ("fifo", self.fifo.then_some("on")),
            ("governor", self.governor.as_deref()),
            ("turbo", self.turbo.as_deref()),
            ("ops", self.ops.as_deref()),
        ]
    }

    /// The grid that was asked for, with the limits that results are shares of.
    fn plan_of_grid(
        &self,
        workload: &str,
        grid: &ArgMatches,
        clock: ClockChoice,
    ) -> Result<Plan, Failure> {
        let given = self.of_suite().into_iter().find(|(_, value)| value.is_some());
        let given = self.suite.as_ref().map(|_| "suite").or(given.map(|(name, _)| name));
        if let Some(given) = given {
            return Err(usage!(
                "--{given} before the workload speaks of a suite: write it after {workload}"
            ));
        }
        let row = part::workload(workload)?;
        let entry = Entry::new(row, args::axes(row, grid));
        if self.ab.is_some() {
            // The arms are each other's measure.
            return plan::of_cases(&entry, clock, self.overrides()).map_err(Failure::from);
        }
        let limits = part::suite("limits")?;
        plan::of_grid(&entry, &limits, clock, self.method.overrides()).map_err(Failure::from)
    }

    /// The suite that was asked for, with the overrides of the command line.
    fn chosen_suite(&self) -> Result<Suite, Failure> {
        let mut suite = load(self.suite.as_deref().unwrap_or("quick"))?;
        for (name, value) in self.of_suite() {
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
                return Err(usage!(
                    "suite `{}` has no case with a {name}: leave --{name} out",
                    suite.name
                ));
            }
        }
        Ok(suite)
    }
}

/// A suite by name or path.
///
/// # Errors
/// When there is none of that name, or the file is no suite.
pub(super) fn load(name: &str) -> Result<Suite, Failure> {
    if !name.contains(['/', '.']) {
        return part::suite(name).map_err(Failure::from);
    }
    let text = input::text(Path::new(name), suite::BYTES_MAX)
        .with_context(|| format!("cannot read the suite {name}"))
        .map_err(Failure::usage)?;
    suite::parse(&text, part::known()).map_err(|why| usage!("{name}: {why}"))
}

/// The plan for people.
fn describe_plan(plan: &Plan, outlook: &Outlook) -> Listing {
    // Without the right to change its setting, a run of such an arm does not begin.
    let mut arms = plan.cases.iter().filter_map(|planned| planned.arm.as_ref());
    let is_refused =
        !pagelab_sys::machine::rights::is_root() && arms.any(|arm| arm.setting().is_some());
    let lacking = if is_refused { "refused" } else { "skipped" };
    let notes: Vec<_> = outlook.needs.iter().map(|need| note(&**need, lacking)).collect();
    let cases = plan.cases.iter().zip(&outlook.cases).map(|(planned, expected)| {
        let of_needs = expected.needs.iter().map(|place| &notes[*place]);
        let lacks = expected.wishes.iter().filter(|place| notes[**place].0 == 0).count();
        let note = of_needs.min_by_key(|(place, _)| *place).map_or("", |(_, note)| note);
        let note = match (note, lacks) {
            ("", 1..) => "   [without the arms that lack something]",
            (note, _) => note,
        };
        let time = display_ns(expected.seconds * 1e9);
        let memory = display_bytes(expected.bytes as f64);
        format!("{time:>8} {memory:>9}  {}{note}", progress::brief(planned))
    });
    let listing = Listing::default().lines(cases).line(format_args!(
        "\n{} cases, about {:.0} s, at most {} of memory at once",
        plan.cases.len(),
        outlook.seconds(),
        display_bytes(outlook.bytes() as f64)
    ));
    let remedies = outlook.remedies();
    let (knobs, belongings): (Vec<_>, Vec<_>) =
        remedies.iter().partition(|(remedy, _)| matches!(remedy, Remedy::Set(..)));
    let told = |(remedy, cases): &&(Remedy, usize)| {
        format!("{remedy} ({cases} case{})", if *cases == 1 { "" } else { "s" })
    };
    let may = if knobs.is_empty() {
        "no setting of this machine would be changed".to_owned()
    } else if pagelab_sys::machine::rights::is_root() {
        "settings that would be changed for their cases and put back:".to_owned()
    } else {
        format!("settings that these cases need; without root they are {lacking}:")
    };
    let listing = listing.item(may, knobs.iter().map(told));
    let may = "what would be made for each of its cases and removed:";
    if belongings.is_empty() { listing } else { listing.item(may, belongings.iter().map(told)) }
}

/// What a need of a case means for it, and its place among several: the lowest is what is said.
fn note(need: &dyn Need, lacking: &str) -> (u8, String) {
    let is_root = pagelab_sys::machine::rights::is_root();
    if need.is_lacking() || (!is_root && !need.check()) {
        return (0, format!("   [{lacking}, needs {need}]"));
    }
    match need.pending() {
        Some(Remedy::Set(paths, value)) => {
            (1, format!("   [sets {} to {value}]", remedy::knobs(&paths)))
        }
        Some(Remedy::Create(what)) => (1, format!("   [makes {what}]")),
        None => (2, String::new()),
    }
}
