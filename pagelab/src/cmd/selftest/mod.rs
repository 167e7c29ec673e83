//! `pagelab selftest`: does a comparison on this host cry wolf ([`aa`]), and does it find what
//! differs ([`power`])?

mod aa;
mod power;

use clap::Args;

use crate::{
    args::{Conduct, Format, Method, Output, Run},
    exit::{Exit, Failure},
};

/// Measure the same thing twice, or something that was made slower: what does a comparison see?
#[derive(Debug, Args)]
pub(super) struct Selftest {
    #[command(flatten)]
    method: Method,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    conduct: Conduct,
    /// Two equal arms of one suite: what is called different, and the floor of this host.
    #[arg(long, required_unless_present = "power")]
    aa: bool,
    /// The suite to run twice.
    #[arg(long, default_value = "aa", conflicts_with = "power")]
    suite: String,
    /// Take turns by case and not by process: how far do runs differ that follow each other?
    #[arg(long, conflicts_with = "power")]
    apart: bool,
    #[command(flatten)]
    power: power::Flags,
    /// So many trials, one after the other: pairs of runs (default 1), or slowdowns (default 50).
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    trials: Option<u32>,
    #[command(flatten)]
    format: Format,
}

impl Run for Selftest {
    fn run(self) -> Result<Exit, Failure> {
        if self.power.power { power::run(&self) } else { aa::run(&self) }
    }
}
