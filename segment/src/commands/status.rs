//! `pagelab segment status`: what a program has had in segments so far.
//!
//! Read from outside: the page of counts that `segment run` holds open, and the kernel's account of
//! the program's processes. The program is not asked, and no signal is sent.

use std::fs;

use anyhow::Context;
use clap::Args;
use pagelab_cli::{
    args,
    exit::{Exit, Failure},
    output,
};
use pagelab_interpose::segment::{Counts, Variable, Wish};
use pagelab_record::units::display_bytes;
use pagelab_sys::{
    machine::proc::Holding,
    process::{CounterPage, tree},
};

use super::{SHEET_NAME, told::Told, zeroing::Prices};

/// Show what a program that runs with segments has had so far.
///
/// Memory in segments is counted when a process ends or becomes another program; what processes
/// hold that still run is told as the kernel has it, segments and all else together.
#[derive(Debug, Args)]
pub(super) struct Status {
    /// The process of `pagelab segment run`.
    #[arg(value_name = "PID")]
    pid: u32,
}

impl args::Run for Status {
    fn run(self) -> Result<Exit, Failure> {
        let counts = counts(self.pid)?;
        let all = tree::below(self.pid);
        let wish = all.first().and_then(|pid| wish(*pid)).unwrap_or_default();
        let told = Told { wish: &wish, counts: &counts, usage: None, prices: Prices::default() };
        let mut lines = told.lines();
        let held: Vec<_> = all.iter().filter_map(|pid| Holding::of(*pid)).collect();
        let anonymous = |[anonymous, _, _, hugetlb]: [u64; 4]| anonymous + hugetlb;
        let large: u64 = held.iter().map(|holding| anonymous(holding.kinds())).sum();
        let processes = if held.len() == 1 { "process runs" } else { "processes run" };
        lines.push(format!(
            "  now         {} {processes}, {} of private memory in huge pages",
            held.len(),
            display_bytes(large as f64)
        ));
        output::result(&format!("{}\n", lines.join("\n")))?;
        Ok(Exit::Good)
    }
}

/// What was counted, from the page that a process holds open.
fn counts(pid: u32) -> Result<Counts, Failure> {
    let folder = format!("/proc/{pid}/fd");
    let open = fs::read_dir(&folder).with_context(|| folder.clone()).map_err(Failure::usage)?;
    let is_sheet = |path: &std::path::PathBuf| {
        fs::read_link(path).is_ok_and(|link| link.to_string_lossy().contains(SHEET_NAME))
    };
    let sheet = open.flatten().map(|entry| entry.path()).find(is_sheet).ok_or_else(|| {
        let cure = "name the process of pagelab segment run";
        usage!("process {pid} runs no program with segments: {cure}")
    })?;
    let page = CounterPage::open(&sheet).context(folder).map_err(Failure::host)?;
    Ok(Counts(page.first()))
}

/// What a program was asked to have, by its environment.
fn wish(pid: u32) -> Option<Wish> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |variable: Variable| {
        environment
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(variable.name().as_bytes())?.strip_prefix(b"="))
    };
    Wish::read(value).ok()
}
