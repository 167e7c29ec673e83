//! `guest`: the test cases that need a real kernel, and the program that conducts them.
//!
//! One binary is the first process of a virtual machine that `cargo xtask vm` boots, and a
//! program for this host: `guest list` prints the table of cases as JSON, `guest run NAME…` runs
//! cases here where the host allows it. A case runs in a process of its own either way, so that
//! one that dies leaves a verdict.
//!
//! It is not a benchmark: a case asserts states, counts and error codes, never a time.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its output is what the lane reads, and a person at a terminal"
)]

mod case;
mod cases;
mod conduct;
mod guest;
mod init;
mod kernel_log;
mod machine;
mod verdict;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::{
    cases::{CASES, tier::target, tries},
    guest::Guest,
};

fn main() -> ExitCode {
    if std::process::id() == 1 {
        init::init();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("guest: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether all went well.
fn dispatch(words: &[&str]) -> Result<bool> {
    match words {
        ["list"] => {
            println!("{}", serde_json::to_string(&*CASES)?);
            Ok(true)
        }
        ["run", names @ ..] => conduct::natively(names),
        [conduct::CASE_COMMAND, name] => {
            let guest = Guest::here()?;
            conduct::case(&guest, cases::find(name).context("no such case")?);
            Ok(true)
        }
        [target::HEAT, bytes, seed, pages] => target::heat(bytes, seed, pages).map(|()| true),
        [tries::HOLD, seconds] => tries::hold(seconds).map(|()| true),
        _ => bail!("usage: guest list | guest run NAME…"),
    }
}
