//! Flags that several commands have, those that are parameters, and tables of commands.
//!
//! The one idea: a command is a struct, its flags are its fields, and what a field's comment says
//! is what `--help` says of the flag. What is known only from a table is added by hand.

use std::{path::PathBuf, time::Duration};

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, builder::PossibleValuesParser,
};
use pagelab_bench::{
    Kind, Param, Role, Workload,
    asked::{Forks, Seconds, Share},
    plan::Overrides,
};
use pagelab_sys::time::ClockChoice;

use crate::{
    examples::WORKLOAD,
    exit::{Exit, Failure},
    session::Place,
};

/// A command whose flags are its fields.
pub trait Run: Args {
    /// Does it.
    ///
    /// # Errors
    /// With the exit code that belongs to what went wrong.
    fn run(self) -> Result<Exit, Failure>;
}

/// A row of a table of commands.
#[derive(Debug)]
pub struct Row {
    /// What it is called.
    pub name: &'static str,
    /// Adds what it does, in a line, and its flags.
    describe: fn(Command) -> Command,
    /// Does it.
    run: fn(&ArgMatches) -> Result<Exit, Failure>,
    /// What a row with rows below it is about.
    about: &'static str,
    /// The commands below it, which then do all of it.
    below: &'static [Self],
}

impl Row {
    /// The row of a command whose flags are its fields.
    pub const fn of<C: Run>(name: &'static str) -> Self {
        Self::new(name, C::augment_args, |matches| of::<C>(matches)?.run())
    }

    /// The row of a command whose flags a table names.
    pub const fn new(
        name: &'static str,
        describe: fn(Command) -> Command,
        run: fn(&ArgMatches) -> Result<Exit, Failure>,
    ) -> Self {
        Self { name, describe, run, about: "", below: &[] }
    }

    /// The row of a command that has others below it.
    pub const fn group(name: &'static str, about: &'static str, below: &'static [Self]) -> Self {
        Self { about, below, ..Self::new(name, |command| command, |_| Ok(Exit::Usage)) }
    }

    fn command(&self) -> Command {
        let command = (self.describe)(Command::new(self.name));
        match self.below {
            [] => command,
            below => with_rows(command.about(self.about), below),
        }
    }
}

/// A command with those of a table below it.
pub fn with_rows<'r>(command: Command, rows: impl IntoIterator<Item = &'r Row>) -> Command {
    let command = command.subcommand_required(true).arg_required_else_help(true);
    command.subcommands(rows.into_iter().map(Row::command))
}

/// Runs the command of a table that was asked for.
///
/// # Errors
/// With the exit code that belongs to what went wrong.
pub fn dispatch<'r>(
    rows: impl IntoIterator<Item = &'r Row>,
    matches: &ArgMatches,
) -> Result<Exit, Failure> {
    let (asked, matches) = matches.subcommand().expect("clap requires one of its sub-commands");
    let mut rows = rows.into_iter();
    let row = rows.find(|row| row.name == asked).expect("clap knows these only");
    if row.below.is_empty() { (row.run)(matches) } else { dispatch(row.below, matches) }
}

/// The flags that were given, as fields.
///
/// # Errors
/// Never, as long as they were added to the command.
pub fn of<F: FromArgMatches>(matches: &ArgMatches) -> Result<F, Failure> {
    F::from_arg_matches(matches).map_err(Failure::internal)
}

/// The flag of a parameter.
pub fn flag(param: &Param) -> Arg {
    let help = match param.kind {
        Kind::Page => format!("{} [here: {}]", param.help, param.choices().join(", ")),
        Kind::Choice(words) => format!("{} [{}]", param.help, words.join(", ")),
        _ => param.help.to_owned(),
    };
    let flag = Arg::new(param.name)
        .long(param.name)
        .action(ArgAction::Append)
        .value_delimiter(',')
        .value_name(param.name.to_uppercase())
        .help_heading(WORKLOAD)
        .help(sentence(&format!("{help} (default {})", param.default)));
    match param.kind {
        // A list of CPUs and what a generator takes have commas of their own.
        kind if kind.has_commas() => flag.value_delimiter(None),
        // An unknown word is refused here, where completion learns the words too.
        Kind::Choice(words) => {
            let flag =
                flag.value_parser(PossibleValuesParser::new(words)).hide_possible_values(true);
            if words == ["off", "on"] {
                flag.num_args(0..=1).default_missing_value("on")
            } else {
                flag
            }
        }
        _ => flag,
    }
}

/// The flags of a workload's parameters, but for those that the command has by another name.
pub fn flags<'w>(workload: &'w dyn Workload, but: &'w str) -> impl Iterator<Item = Arg> {
    workload.params().iter().filter(move |param| param.name != but).map(flag)
}

/// With a capital, unless it starts with a value or a name.
pub fn sentence(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    if !first.chars().all(|c| c.is_ascii_lowercase() || c == ',') {
        return text.to_owned();
    }
    let (initial, rest) = text.split_at(1);
    initial.to_uppercase() + rest
}

/// The axes that the flags of a workload's sub-command name.
pub fn axes(workload: &dyn Workload, matches: &ArgMatches) -> Vec<(String, Vec<String>)> {
    workload
        .params()
        .iter()
        .filter_map(|param| {
            let values = matches.get_many::<String>(param.name)?;
            Some((param.name.to_owned(), values.cloned().collect()))
        })
        .collect()
}

/// How to measure: for the commands that plan.
#[derive(Debug, Args)]
pub struct Method {
    /// Fit the measured time of the whole run into so many seconds.
    #[arg(long, value_name = "SECONDS", global = true)]
    budget: Option<Seconds>,
    /// End a process of a case that has not answered by then.
    #[arg(long, value_name = "SECONDS", global = true)]
    time_limit: Option<Seconds>,
    /// Fresh processes for each case.
    #[arg(long, value_name = "N", global = true)]
    forks: Option<Forks>,
    /// A process is done when its median is known this well, 1% or 0.01 (default: the
    /// suite's, else 0.5%).
    #[arg(long, value_name = "SHARE", global = true)]
    precision: Option<Share>,
}

impl Method {
    /// What the flags say over a suite.
    pub const fn overrides(&self) -> Overrides {
        let Self { budget, time_limit: limit, forks, precision } = *self;
        Overrides { forks, budget, limit, precision }
    }
}

/// Where a new run goes.
#[derive(Debug, Args)]
pub struct Output {
    /// Its directory.
    #[arg(short, long, value_name = "DIR", global = true)]
    #[arg(help = "Directory of the run (default pagelab-runs/<time>-<host>)")]
    output: Option<PathBuf>,
}

impl Output {
    /// The place that was asked for, or a new one.
    pub fn place(&self) -> Place {
        Place::choose(self.output.as_deref())
    }
}

/// For the commands that plan.
#[derive(Debug, Args)]
pub struct DryRun {
    /// Show the cases, the time and memory they take, and the settings they change.
    #[arg(long, global = true)]
    pub dry_run: bool,
}

/// Whether progress is drawn.
#[derive(Debug, Args)]
pub struct Quiet {
    /// No progress.
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// What waits without an end.
const FOR_EVER: &str = "for-ever";

/// For the commands that take the knobs.
#[derive(Debug, Args)]
pub struct Wait {
    /// Where another pagelab holds what is needed, such as the machine's settings, wait until it
    /// ends, or for so long.
    #[arg(long, value_name = "SECONDS", global = true, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = FOR_EVER, value_parser = patience)]
    wait: Option<Duration>,
}

impl Wait {
    /// How long to wait for another run; not at all without the flag.
    pub fn patience(&self) -> Duration {
        self.wait.unwrap_or_default()
    }
}

fn patience(text: &str) -> Result<Duration, <Seconds as std::str::FromStr>::Err> {
    match text {
        FOR_EVER => Ok(Duration::MAX),
        number => number.parse().map(|seconds: Seconds| Duration::from_nanos(seconds.ns())),
    }
}

/// The clock; hidden, because only tests have a reason to choose it.
#[derive(Debug, Args)]
pub struct Clock {
    #[arg(long, global = true, hide = true, default_value = "auto")]
    #[arg(value_parser = ["auto", "raw", "scripted"])]
    clock: String,
}

impl Clock {
    /// The clock of a run.
    pub fn choice(&self) -> ClockChoice {
        match self.clock.as_str() {
            "raw" => ClockChoice::Raw,
            "scripted" => ClockChoice::Scripted { step_ns: 1000 },
            _ => ClockChoice::of_this_machine(),
        }
    }
}

/// For the commands whose result a program may read.
#[derive(Debug, Clone, Args)]
pub struct Format {
    /// How to print it.
    #[arg(long, value_parser = ["terminal", "json"], default_value = "terminal")]
    pub format: String,
}

impl Format {
    /// Whether a program reads it.
    pub fn is_json(&self) -> bool {
        self.format == "json"
    }

    /// The same command with more of them; the first is the default.
    pub fn of(command: Command, formats: &'static [&'static str]) -> Command {
        let parser = PossibleValuesParser::new(formats);
        command.mut_arg("format", |arg| arg.value_parser(parser))
    }
}

/// How a run waits for others, what it says meanwhile, and its clock.
#[derive(Debug, Args)]
pub struct Conduct {
    /// How long it waits for others.
    #[command(flatten)]
    pub wait: Wait,
    /// Whether progress is drawn.
    #[command(flatten)]
    pub quiet: Quiet,
    /// Its clock.
    #[command(flatten)]
    pub clock: Clock,
}

/// The flags of a command that stands for one workload, beside those of its parameters.
#[derive(Debug, Args)]
pub struct Short {
    /// How to measure.
    #[command(flatten)]
    pub method: Method,
    /// Where the run goes.
    #[command(flatten)]
    pub output: Output,
    /// Whether progress is drawn.
    #[command(flatten)]
    pub quiet: Quiet,
    /// Its clock.
    #[command(flatten)]
    pub clock: Clock,
    /// How to print what it comes to.
    #[command(flatten)]
    pub format: Format,
}

/// Whether a comma between the values of a parameter makes cases or arms, in words.
pub fn comma(param: &Param) -> &'static str {
    match param.role {
        Role::Axis => "cases",
        Role::Arms => "arms",
        Role::List => "one list",
    }
}
