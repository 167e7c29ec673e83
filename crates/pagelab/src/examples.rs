//! What `--help` shows at its end: an example of each command, and the headings above flags.
//!
//! The one idea: examples are data, so that a test can parse each with the command line that it
//! stands in. A command without one does not pass.

use clap::{Arg, Command};

/// The heading above flags that say what is measured.
pub(crate) const WORKLOAD: &str = "Workload";
/// The heading above flags that say how, and where to.
const RUN: &str = "Run";

/// A command without `pagelab`, and what one might type after it.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("", &["run", "run fault/latency --page 4k,2m", "explain -- ./program"]),
    (
        "run",
        &[
            "run",
            "run --suite full -o before",
            "run fault/throughput --page 4k,2m --forks 6",
            "run fault/latency --ab order=ascending order=random --budget 30",
            "run fault/latency --page 2m --ab \
             set:/sys/kernel/mm/transparent_hugepage/defrag=always \
             set:/sys/kernel/mm/transparent_hugepage/defrag=defer",
            "run --ab bin:../before/pagelab bin:./pagelab",
            "run fault/throughput --help",
        ],
    ),
    ("run limit/timer", &["run limit/timer"]),
    ("run limit/syscall", &["run limit/syscall"]),
    ("run limit/clear", &["run limit/clear --level l2,dram"]),
    ("run limit/copy", &["run limit/copy --level dram"]),
    ("run limit/read", &["run limit/read --level l1,l2,llc,dram"]),
    (
        "run fault/throughput",
        &[
            "run fault/throughput --page 4k,2m --threads 1,2",
            "run fault/throughput --populate touch,madvise-populate --size 1g --forks 6",
        ],
    ),
    (
        "run fault/latency",
        &[
            "run fault/latency --kind read,write --page 4k",
            "run fault/latency --page all --order random --forks 6",
        ],
    ),
    ("run fault/userfaultfd", &["run fault/userfaultfd --batch 1,16"]),
    ("run fault/stages", &["run fault/stages --kind read,write --fifo"]),
    ("run emu/replay", &["run emu/replay --trace exec-block --ops 20m"]),
    ("run emu/verify", &["run emu/verify --trace zipf --ops 1m"]),
    ("run trace/stats", &["run trace/stats --trace fib --ops 20m"]),
    ("run memtype/bandwidth", &["run memtype/bandwidth --type wb --size 16m"]),
    ("run memtype/latency", &["run memtype/latency --type wb,uc"]),
    ("run memtype/order", &["run memtype/order --type wb"]),
    ("run tier/simulation", &["run tier/simulation --policy all --fast 50%"]),
    ("list", &["list", "list fault/latency"]),
    ("check", &["check", "check --ktap"]),
    ("doctor", &["doctor", "doctor --restore"]),
    ("report", &["report pagelab-runs/first", "report first second --format csv -o numbers.csv"]),
    (
        "compare",
        &[
            "compare before after",
            "compare before after --fail-on p50:3% --format lkml",
            "compare pagelab-runs/first --by page",
            "compare v6.12 v6.18 --allow kernel_release,kernel_version,kernel_config",
        ],
    ),
    ("advise", &["advise --size 4g", "advise --size 1g --threads 2 --policy keep"]),
    ("explain", &["explain -- ./program its arguments", "explain --pid 1234 --duration 30"]),
    ("trace", &["trace synth exec-block -o block.zst", "trace replay block.zst"]),
    ("trace synth", &["trace synth exec-block --ops 20m -o block.zst"]),
    ("trace stats", &["trace stats block.zst", "trace stats exec-block --ops 20m"]),
    ("trace replay", &["trace replay block.zst --backend all"]),
    ("trace verify", &["trace verify block.zst"]),
    ("trace capture", &["trace capture -o ls.zst -- ls /"]),
    ("tier", &["tier simulate --preset pghot-v7/scan-1s"]),
    ("tier simulate", &["tier simulate --preset pghot-v7/scan-1s"]),
    ("resume", &["resume pagelab-runs/first", "resume LAST"]),
    ("ls", &["ls", "ls pagelab-runs --format json"]),
    ("show", &["show LAST"]),
    ("tag", &["tag LAST before-the-patch"]),
    ("selftest", &["selftest --aa --trials 20 --budget 600", "selftest --power"]),
    ("completions", &["completions bash > ~/.local/share/bash-completion/completions/pagelab"]),
    ("generate", &["generate --out dist"]),
];

/// Gives every command its example and its headings.
pub(crate) fn dress(command: Command) -> Command {
    dress_below(command, "")
}

fn dress_below(mut command: Command, path: &str) -> Command {
    if let Some((_, examples)) = EXAMPLES.iter().find(|(of, _)| *of == path) {
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

#[cfg(test)]
mod tests {
    use pagelab_bench::{plan, suite::Entry};
    use pagelab_sys::time::ClockChoice;

    use super::*;
    use crate::{args, cmd};

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
            assert!(help.contains(example.trim_end()), "no example of `{path}`: EXAMPLES\n{help}");
        }
    }

    #[test]
    fn every_example_is_a_command_line() {
        for (path, examples) in EXAMPLES {
            assert!(all().iter().any(|(known, _)| known == path), "there is no `{path}`");
            for example in *examples {
                assert!(example.starts_with(path), "{example} is no example of {path}");
                let typed = example.split(" > ").next().unwrap_or_default();
                let words = ["pagelab"].into_iter().chain(typed.split(' '));
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
        for example in EXAMPLES.iter().flat_map(|(_, examples)| *examples) {
            let words = ["pagelab"].into_iter().chain(example.split(' '));
            let Ok(matches) = cmd::command().try_get_matches_from(words) else { continue };
            let Some(("run", run)) = matches.subcommand() else { continue };
            let Some((name, grid)) = run.subcommand() else { continue };
            let workload = pagelab_workloads::workload(name).unwrap();
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
        let (_, mut command) =
            all().into_iter().find(|(path, _)| path == "run fault/latency").unwrap();
        let help = command.render_long_help().to_string();
        let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("no {text} in {help}"));
        assert!(at("Workload:") < at("--kind") && at("--kind") < at("Run:"), "{help}");
        assert!(at("Run:") < at("--forks") && at("Run:") < at("--output"), "{help}");
    }
}
