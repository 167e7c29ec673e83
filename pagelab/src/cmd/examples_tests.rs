//! Examples of commands: each is one, and no command is without.

use clap::{Arg, Command};
use pagelab_bench::{plan, suite::Entry};
use pagelab_parts::PARTS;
use pagelab_sys::time::ClockChoice;

use crate::{args, cmd, part};

/// The commands that have examples.
fn examples() -> Vec<(&'static str, Vec<&'static str>)> {
    part::set(PARTS);
    crate::examples::examples().map(|(of, lines)| (of, lines.collect())).collect()
}

/// Every command and its words.
fn commands(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
    found.push((path.to_owned(), command.clone()));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let path = format!("{path} {}", below.get_name());
        commands(below, path.trim_start(), found);
    }
}

fn all() -> Vec<(String, Command)> {
    let mut found = Vec::new();
    let mut command = cmd::command();
    // Flags of a command that those below it take as well.
    command.build();
    commands(&command, "", &mut found);
    found
}

#[test]
fn every_command_shows_an_example_of_itself() {
    for (path, mut command) in all() {
        let help = command.render_long_help().to_string();
        let example = format!("  pagelab {path}");
        assert!(help.contains(example.trim_end()), "no example of `{path}`: examples.txt\n{help}");
    }
}

/// The words of a line as a shell splits them, where nothing but `"` keeps blanks together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().unwrap().push(character),
        }
    }
    words
}

#[test]
fn every_example_is_a_command_line() {
    for (path, examples) in examples() {
        assert!(all().iter().any(|(known, _)| known == path), "there is no `{path}`");
        for example in examples {
            assert!(example.starts_with(path), "{example} is no example of {path}");
            let typed = example.split(" > ").next().unwrap_or_default();
            let words = ["pagelab".to_owned()].into_iter().chain(words(typed));
            match cmd::command().try_get_matches_from(words) {
                Ok(_) => (),
                Err(error) if !error.use_stderr() => (),
                Err(error) => panic!("{example}: {error}"),
            }
        }
    }
}

#[test]
fn every_grid_that_is_an_example_can_be_planned() {
    for example in examples().into_iter().flat_map(|(_, examples)| examples) {
        let words = ["pagelab"].into_iter().chain(example.split(' '));
        let Ok(matches) = cmd::command().try_get_matches_from(words) else { continue };
        let Some(("run", run)) = matches.subcommand() else { continue };
        let Some((name, grid)) = run.subcommand() else { continue };
        let workload = part::workload(name).unwrap();
        let entry = Entry::new(workload, args::axes(workload, grid));
        let method: args::Method = args::of(run).unwrap();
        let planned = plan::of_cases(&entry, ClockChoice::Raw, method.overrides());
        assert!(planned.is_ok_and(|plan| !plan.cases.is_empty()), "{example}");
    }
}

#[test]
fn what_a_flag_takes_is_in_capitals() {
    for (path, command) in all() {
        let mut names = command.get_arguments().filter_map(Arg::get_value_names).flatten();
        let small = names.find(|name| name.chars().any(|c| c.is_ascii_lowercase()));
        assert_eq!(small, None, "{path}");
    }
}

#[test]
fn flags_of_the_workload_and_of_the_run_stand_apart() {
    let (_, mut command) = all().into_iter().find(|(path, _)| path == "run fault/latency").unwrap();
    let help = command.render_long_help().to_string();
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("no {text} in {help}"));
    assert!(at("Workload:") < at("--kind") && at("--kind") < at("Run:"), "{help}");
    assert!(at("Run:") < at("--forks") && at("Run:") < at("--output"), "{help}");
}
