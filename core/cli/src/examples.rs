//! What `--help` shows at its end: an example of each command, and the headings above flags.
//!
//! The one idea: examples are data, so that a test can parse each with the command line that it
//! stands in. A command without one does not pass.

use clap::{Arg, Command};

use crate::part;

/// The heading above flags that say what is measured.
pub const WORKLOAD: &str = "Workload";
/// The heading above flags that say how, and where to.
const RUN: &str = "Run";

/// The commands that have examples, each with the lines of its own: below each command, in
/// brackets and without `pagelab`, what one might type after it.
pub fn examples() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    let sections = part::parts().flat_map(|part| part.examples.split("\n["));
    sections
        .filter_map(|section| section.split_once("]\n"))
        .map(|(of, lines)| (of, lines.lines().filter(|line| !line.is_empty())))
}

/// Gives every command its example and its headings.
pub fn dress(command: Command) -> Command {
    dress_below(command, "")
}

fn dress_below(mut command: Command, path: &str) -> Command {
    if let Some((_, examples)) = examples().find(|(of, _)| *of == path) {
        let examples: Vec<&str> = examples.collect();
        let lines = examples.join("\n  pagelab ");
        let title = if examples.len() == 1 { "Example" } else { "Examples" };
        let after = command.get_after_help().map(|text| format!("\n{text}")).unwrap_or_default();
        command = command
            .after_help(format!("{title}:\n  pagelab {lines}\n{after}").trim_end().to_owned());
    }
    let of_workload = |arg: &Arg| arg.get_help_heading() == Some(WORKLOAD);
    if path == "run" || command.get_arguments().any(of_workload) {
        command = command.mut_args(|arg| match arg.get_help_heading() {
            None if !arg.is_positional() => arg.help_heading(RUN),
            _ => arg,
        });
    }
    let names: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    for name in names {
        let below = format!("{path} {name}");
        command = command.mut_subcommand(name, |sub| dress_below(sub, below.trim_start()));
    }
    command
}
