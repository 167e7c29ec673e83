//! `cargo xtask soak`: the tests again and again, on a machine that is disturbed on purpose, and
//! those whose verdict a busy host can change.
//!
//! A test of the second sort is marked `#[ignore = "soak: REASON"]`; CI does not run it. Disturbers
//! are threads of this program, so they end with it.

use std::{fs, path::Path, process::Stdio, thread, time::Duration};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser, value_parser};

use super::{BUILT, JUNIT, ran, runner};
use crate::{
    shell::{self, program, run},
    workspace,
};

/// What disturbs, by the name that `--beside` takes. Each goes on for ever.
const DISTURBERS: &[(&str, fn())] =
    &[("loop", spin), ("pagelab", run_pagelab), ("drop-caches", drop_caches)];

/// What the task takes.
pub(crate) fn arguments(command: Command) -> Command {
    let names = DISTURBERS.iter().map(|(name, _)| *name);
    command
        .arg(
            Arg::new("times")
                .long("times")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..))
                .default_value("5")
                .help("Run the tests N times"),
        )
        .arg(
            Arg::new("beside")
                .long("beside")
                .value_name("NAME")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .value_parser(PossibleValuesParser::new(names))
                .help("Disturb the machine meanwhile; `loop,loop` keeps two processors busy"),
        )
        .arg(Arg::new("filter").num_args(0..).help("Run tests with one of these in their name"))
}

/// The task.
pub(crate) fn soak(matches: &ArgMatches) -> Result<()> {
    let times = *matches.get_one::<u32>("times").context("--times has a default")?;
    let beside = matches.get_many::<String>("beside").unwrap_or_default();
    let filter = matches.get_many::<String>("filter").unwrap_or_default();
    run("soak", &mut workspace::build())?;
    let nextest = runner::nextest().context("the soak needs cargo-nextest")?;
    for name in beside {
        let row = DISTURBERS.iter().find(|(known, _)| known == name);
        thread::spawn(row.context("clap knows only these names")?.1);
    }
    let jobs = runner::jobs();
    let mut words = vec!["--run-ignored", "all", "--test-threads", &jobs];
    words.extend(filter.map(String::as_str));
    let mut failed = Vec::new();
    for time in 1..=times {
        let mut command = runner::command(Some(&nextest), &words);
        let ((count, _), took) = shell::timed(|| ran(Some(JUNIT), command.env(BUILT, "1")));
        let bad = count.failed.len();
        println!("[soak] {time} of {times}: {bad} failed, {:.0} s", took.as_secs_f64());
        failed.extend(count.failed.into_iter().map(|name| format!("{time}: {name}")));
    }
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("\n")) }
}

fn spin() {
    loop {
        std::hint::spin_loop();
    }
}

/// Another pagelab that takes the machine's settings for one case; it waits for its turn.
fn run_pagelab() {
    let words = "run fault/throughput --page 64k,hugetlb-2m --size 64m --rounds 20 --forks 1 \
                 --budget 2 --wait --quiet --output target/soak";
    loop {
        let _ = fs::remove_dir_all("target/soak");
        let mut command = program("target/debug/pagelab", words.split_whitespace());
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Takes root; without, nothing is dropped.
fn drop_caches() {
    loop {
        let _ = fs::write(Path::new("/proc/sys/vm/drop_caches"), "1");
        thread::sleep(Duration::from_secs(3));
    }
}
