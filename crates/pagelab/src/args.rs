//! The command line, built from the tables: a workload's flags are its parameters.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser, value_parser};
use pagelab_bench::{
    Kind, Param, Role, Workload,
    asked::{Forks, Seconds, Share},
    plan::Overrides,
};
use pagelab_workloads::{WORKLOADS, suites};

use crate::examples::{WORKLOAD, dress};

/// The whole command line.
pub(crate) fn command() -> Command {
    let command =
        Command::new("pagelab")
            .version(env!("CARGO_PKG_VERSION"))
            .about("A laboratory for the Linux memory subsystem: what memory costs, with proof")
            .after_help(
                "Man pages and completions: pagelab generate --out DIR\n\n\
             Exit codes: 0 fine, 1 a case or check failed, 2 usage, 3 this host cannot, 4 \
             everything skipped, 6 a witness failed, 70 internal error, 130 interrupted.",
            )
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand(run())
            .subcommand(list())
            .subcommand(check())
            .subcommand(doctor())
            .subcommand(report())
            .subcommand(crate::cmd::advise::command())
            .subcommand(crate::cmd::explain::command())
            .subcommand(crate::cmd::trace::command())
            .subcommand(crate::cmd::tier::command())
            .subcommand(
                Command::new("resume")
                    .about("Continue a run after a crash, an interrupt or a reboot")
                    .arg(directory("run", "Directory of the run"))
                    .arg(wait_flag())
                    .arg(quiet())
                    .arg(clock()),
            )
            .subcommand(selftest())
            .subcommand(
                Command::new("completions").about("Print a completion script").arg(
                    Arg::new("shell")
                        .required(true)
                        .value_parser(value_parser!(clap_complete::Shell))
                        .help("Which shell"),
                ),
            )
            .subcommand(
                Command::new("generate")
                    .about("Write man pages and completion scripts into a directory")
                    .arg(
                        Arg::new("out").long("out").value_name("DIR").required(true).help(
                            "Where to: man1/ for MANPATH, completions/ for bash, zsh and fish",
                        ),
                    ),
            );
    dress(command)
}

fn run() -> Command {
    let suites: Vec<&str> = suites::BUILT_IN.iter().map(|(name, _)| *name).collect();
    let mut run = method(Command::new("run"))
        .arg(output())
        .arg(dry_run())
        .arg(wait_flag())
        .arg(quiet())
        .arg(clock())
        .about("Measure: a suite (quick by default), or a grid of one workload")
        .long_about(
            "Measure: a suite (quick by default), or a grid of one workload.\n\n\
             A comma between values makes a case for each; two such flags make their product. \
             The machine's own limits are measured with every grid.",
        )
        .arg(
            Arg::new("suite")
                .long("suite")
                .value_name("SUITE")
                .help(format!("A suite by name ({}) or the path of a .toml", suites.join(", "))),
        )
        .arg(
            Arg::new("size")
                .long("size")
                .value_name("SIZE")
                .help("Override the size of every case of a suite"),
        )
        .arg(
            Arg::new("rounds")
                .long("rounds")
                .value_name("ROUNDS")
                .help("Override the rounds of every case of a suite"),
        )
        .arg(
            Arg::new("ops")
                .long("ops")
                .value_name("OPS")
                .help("Override the operations of every case of a suite"),
        )
        .arg(
            Arg::new("fifo")
                .long("fifo")
                .action(ArgAction::SetTrue)
                .help("Run measured threads of a suite under SCHED_FIFO"),
        )
        .subcommand_value_name("WORKLOAD")
        .subcommand_help_heading("Workloads");
    for workload in WORKLOADS {
        run = run.subcommand(grid(*workload));
    }
    run
}

fn grid(workload: &dyn Workload) -> Command {
    let mut command =
        Command::new(workload.name().to_owned()).about(sentence(workload.about().summary));
    for param in workload.params() {
        command = command.arg(flag(param));
    }
    command
}

/// The flag of a parameter.
pub(crate) fn flag(param: &Param) -> Arg {
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

/// With a capital, unless it starts with a value or a name.
pub(crate) fn sentence(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    if !first.chars().all(|c| c.is_ascii_lowercase() || c == ',') {
        return text.to_owned();
    }
    let (initial, rest) = text.split_at(1);
    initial.to_uppercase() + rest
}

/// The axes that the flags of a workload's sub-command name.
pub(crate) fn axes(workload: &dyn Workload, matches: &ArgMatches) -> Vec<(String, Vec<String>)> {
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
pub(crate) fn method(command: Command) -> Command {
    let seconds = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("SECONDS")
            .global(true)
            .value_parser(value_parser!(Seconds))
            .help(help)
    };
    command
        .arg(seconds("budget", "Fit the measured time of the whole run into so many seconds"))
        .arg(seconds("time-limit", "End a process of a case that has not answered by then"))
        .arg(
            Arg::new("forks")
                .long("forks")
                .value_name("N")
                .global(true)
                .value_parser(value_parser!(Forks))
                .help("Fresh processes for each case"),
        )
        .arg(
            Arg::new("precision")
                .long("precision")
                .value_name("SHARE")
                .global(true)
                .value_parser(value_parser!(Share))
                .help("A process is done when its median is known this well (0.005 is 0.5 %)"),
        )
}

/// Where a new run goes.
pub(crate) fn output() -> Arg {
    Arg::new("output")
        .short('o')
        .long("output")
        .value_name("DIR")
        .global(true)
        .help("Directory of the run (default pagelab-runs/<time>-<host>)")
}

fn dry_run() -> Arg {
    Arg::new("dry-run")
        .long("dry-run")
        .action(ArgAction::SetTrue)
        .global(true)
        .help("Show the cases, the time and memory they take, and the settings they change")
}

/// Whether progress is drawn.
pub(crate) fn quiet() -> Arg {
    Arg::new("quiet")
        .short('q')
        .long("quiet")
        .action(ArgAction::SetTrue)
        .global(true)
        .help("No progress")
}

/// What waits without an end.
const FOR_EVER: &str = "for-ever";

/// For the commands that take the knobs.
pub(crate) fn wait_flag() -> Arg {
    Arg::new("wait")
        .long("wait")
        .value_name("SECONDS")
        .global(true)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value(FOR_EVER)
        .value_parser(|text: &str| match text {
            FOR_EVER => Ok(Duration::MAX),
            number => number.parse().map(|seconds: Seconds| Duration::from_nanos(seconds.ns())),
        })
        .help(
            "Where another pagelab holds the machine's settings, wait until it ends, or for so \
             long",
        )
}

/// How long to wait for another run; not at all without the flag.
pub(crate) fn wait(matches: &ArgMatches) -> Duration {
    matches.get_one("wait").copied().unwrap_or_default()
}

/// The clock; hidden, because only tests have a reason to choose it.
pub(crate) fn clock() -> Arg {
    Arg::new("clock")
        .long("clock")
        .global(true)
        .hide(true)
        .value_parser(["auto", "raw", "scripted"])
        .default_value("auto")
}

/// What the measuring flags say.
pub(crate) fn overrides(matches: &ArgMatches) -> Overrides {
    Overrides {
        forks: matches.get_one("forks").copied(),
        budget: matches.get_one("budget").copied(),
        limit: matches.get_one("time-limit").copied(),
        precision: matches.get_one("precision").copied(),
    }
}

fn list() -> Command {
    Command::new("list")
        .about("The workloads and suites; with a name, a workload's parameters")
        .arg(Arg::new("workload").help("A workload, such as fault/throughput"))
        .arg(format(&["terminal", "json"]))
}

fn check() -> Command {
    method(Command::new("check"))
        .arg(dry_run())
        .arg(wait_flag())
        .arg(clock())
        .about("Run every workload's smallest case and verify it; times are not reported")
        .arg(
            Arg::new("ktap")
                .long("ktap")
                .action(ArgAction::SetTrue)
                .help("Print KTAP, as the kernel's own tests do"),
        )
}

fn doctor() -> Command {
    Command::new("doctor")
        .about("What this host has and lacks, what to do about it, and what it affects")
        .arg(
            Arg::new("restore")
                .long("restore")
                .action(ArgAction::SetTrue)
                .help("Put back settings that a killed run left changed"),
        )
        .arg(wait_flag())
        .arg(format(&["terminal", "json"]))
}

fn report() -> Command {
    Command::new("report")
        .about("Turn runs into something to read")
        .arg(
            directory("run", "Directories (or journals) of runs")
                .num_args(1..)
                .action(ArgAction::Append),
        )
        .arg(format(&["terminal", "html", "json", "csv", "markdown"]))
        .arg(
            Arg::new("published")
                .long("published")
                .value_name("DIR")
                .value_hint(clap::ValueHint::DirPath)
                .action(ArgAction::Append)
                .help(
                    "Set a publication beside the run: a folder with records.jsonl and claims.toml",
                ),
        )
        .arg(
            Arg::new("file")
                .short('o')
                .long("output")
                .value_name("FILE")
                .help("Write to a file that does not exist yet, instead of stdout"),
        )
}

fn selftest() -> Command {
    method(Command::new("selftest"))
        .arg(output())
        .arg(wait_flag())
        .arg(quiet())
        .arg(clock())
        .about("Measure the same thing twice: the noise floor of this host, cell by cell")
        .arg(
            Arg::new("aa")
                .long("aa")
                .action(ArgAction::SetTrue)
                .required(true)
                .help("Two alternating runs of one suite"),
        )
        .arg(
            Arg::new("suite")
                .long("suite")
                .value_name("SUITE")
                .default_value("quick")
                .help("The suite to run twice"),
        )
        .arg(format(&["terminal", "json"]))
}

/// How a result is printed; the first is the default.
pub(crate) fn format(formats: &'static [&'static str]) -> Arg {
    Arg::new("format")
        .long("format")
        .value_parser(PossibleValuesParser::new(formats))
        .default_value(formats[0])
        .help("How to print it")
}

fn directory(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).required(true).value_name("RUN").help(help)
}

/// Whether a comma between the values of a parameter makes cases or arms, in words.
pub(crate) fn comma(param: &Param) -> &'static str {
    match param.role {
        Role::Axis => "cases",
        Role::Arms => "arms",
        Role::List => "one list",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_flag_without_a_value_means_on() {
        let words = ["pagelab", "run", "fault/latency", "--fifo", "--page", "4k,2m"];
        let matches = command().try_get_matches_from(words).unwrap();
        let (_, run) = matches.subcommand().unwrap();
        let (name, grid) = run.subcommand().unwrap();
        let axes = axes(pagelab_workloads::workload(name).unwrap(), grid);
        let values = |name: &str| axes.iter().find(|(n, _)| n == name).map(|(_, v)| v.join(" "));
        assert_eq!(values("fifo").as_deref(), Some("on"));
        assert_eq!(values("page").as_deref(), Some("4k 2m"));
    }
}
