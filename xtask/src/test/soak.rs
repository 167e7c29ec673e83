//! `cargo xtask soak`: the tests again and again, on a machine that is kept busy on purpose, and
//! those whose verdict a busy host can change.
//!
//! A test of the second sort is marked `#[ignore = "soak: REASON"]`; CI does not run it.

use std::thread;

use anyhow::{Context, Result, bail};
use clap::Parser;

use super::{BUILT, JUNIT, ran, runner};
use crate::{
    shell::{self, run},
    workspace,
};

/// What the task takes.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Run the tests N times
    #[arg(long, value_name = "N", default_value_t = 5)]
    times: u32,
    /// Keep N processors busy meanwhile
    #[arg(long, value_name = "N", default_value_t = 0)]
    busy: u32,
    /// Run tests with one of these in their name
    filter: Vec<String>,
}

/// The task.
pub(crate) fn soak(asked: &Arguments) -> Result<()> {
    run("soak", &mut workspace::build())?;
    let nextest = runner::nextest().context("the soak needs cargo-nextest")?;
    for _ in 0..asked.busy {
        // Ends with this program.
        thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    }
    let (jobs, times) = (runner::jobs(), asked.times);
    let mut words = vec!["--run-ignored", "all", "--test-threads", &jobs];
    words.extend(asked.filter.iter().map(String::as_str));
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
