//! `cargo xtask soak`: the tests again and again, on a machine that is kept busy on purpose, and
//! those whose verdict a busy host can change.
//!
//! A test of the second sort is marked `#[ignore = "soak: REASON"]`; CI does not run it.

use std::thread;

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};

use super::{BUILT, JUNIT, ran, runner};
use crate::{
    shell::{self, run},
    workspace,
};

/// What the task takes.
pub(crate) fn arguments(command: Command) -> Command {
    let number = |name: &'static str, usual: &'static str, help: &'static str| {
        let arg = Arg::new(name).long(name).value_name("N").value_parser(value_parser!(u32));
        arg.default_value(usual).help(help)
    };
    command
        .arg(number("times", "5", "Run the tests N times"))
        .arg(number("busy", "0", "Keep N processors busy meanwhile"))
        .arg(Arg::new("filter").num_args(0..).help("Run tests with one of these in their name"))
}

/// The task.
pub(crate) fn soak(matches: &ArgMatches) -> Result<()> {
    let number = |name| matches.get_one::<u32>(name).copied().context("it has a default");
    let filter = matches.get_many::<String>("filter").unwrap_or_default();
    run("soak", &mut workspace::build())?;
    let nextest = runner::nextest().context("the soak needs cargo-nextest")?;
    for _ in 0..number("busy")? {
        // Ends with this program.
        thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    }
    let (jobs, times) = (runner::jobs(), number("times")?);
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
