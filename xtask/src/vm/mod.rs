//! `cargo xtask vm`: the cases of `vm/` on unmodified kernels, in virtual machines.
//!
//! The path of a boot: [`table`] makes boots of the cases in a file, [`fetch`] brings
//! QEMU and kernels, [`boot`] packs the guest with its modules, [`qemu`] runs it with a time
//! limit, [`verdict`] reads what it left, [`skips`] compares skips with the committed list. The
//! lane knows machines and kernels; what is tested is the guest's business.
//!
//! What the machine lacks (a network, packages, a privilege) makes the whole lane a skip that
//! cannot be overlooked; anything else that goes wrong is a failure.

mod apt;
mod boot;
mod build;
mod disk;
mod fetch;
mod machines;
mod ours;
mod path;
mod qemu;
mod sanitized;
mod skips;
mod summary;
mod table;
mod verdict;

use std::{cmp::Reverse, env, fs, num::NonZero, thread};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Parser, value_parser};
use rustix::system::sysinfo;

pub(crate) use self::{boot::LOGS, summary::CheckedBoot};
use self::{
    boot::{Lane, Run},
    summary::Summary,
    table::{Asked, SANITIZED},
};
use crate::{dist, shell};

/// `off` leaves the lane out of `cargo xtask test`.
const VARIABLE: &str = "PAGELAB_VM";

/// The case that is `pagelab check`, whole.
const CHECK: &str = "check/everything";
/// What `cargo xtask test` boots.
const IN_TEST: &str = "check/everything@newest";
/// What to do where the lane lacks something.
const CURE: &str = "run `cargo xtask vm` once as root, on Debian, with a network";

/// Memory of this machine for each emulated one: most have 3 GiB, and QEMU takes what is touched.
const MEMORY_PER_JOB: u64 = 4 << 30;

/// Machines that run at once, where nobody says: they wait for a quarter of their time, so that
/// there is one more than processors.
fn jobs() -> NonZero<usize> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let memory = sysinfo();
    let fit = memory.totalram * u64::from(memory.mem_unit) / MEMORY_PER_JOB;
    let jobs = (processors + 1).min(usize::try_from(fit).unwrap_or(usize::MAX));
    NonZero::new(jobs).unwrap_or(NonZero::<usize>::MIN)
}

/// What the task takes.
#[derive(Parser)]
pub(crate) struct Arguments {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    options: Options,
    /// Print cases and machines; boot nothing
    #[arg(long)]
    list: bool,
    /// Soak on a kernel with KASAN, lockdep and page poisoning, built first
    #[arg(long, conflicts_with = "kernels")]
    sanitize: bool,
}

/// What was asked for, besides which cases.
#[derive(Debug, Clone, Copy, Args)]
struct Options {
    /// Keep each initramfs, and print the command that boots it
    #[arg(long)]
    keep: bool,
    /// Let cases that can go on for long do so
    #[arg(long)]
    soak: bool,
    /// Fetch QEMU and kernels afresh, also where the cache has them
    #[arg(long)]
    update: bool,
    /// Boot everything this many times
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    repeat: u32,
    /// Run this many machines at once
    #[arg(long, value_name = "N", default_value_t = jobs())]
    jobs: NonZero<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self { keep: false, soak: false, update: false, repeat: 1, jobs: jobs() }
    }
}

/// The task.
pub(crate) fn vm(mut arguments: Arguments) -> Result<()> {
    if arguments.sanitize {
        arguments.asked.kernels = vec![SANITIZED.to_owned()];
        arguments.options.soak = true;
    }
    if arguments.list {
        return list(&arguments.asked);
    }
    lane(&arguments.asked, arguments.options)
}

/// What came of `pagelab check` on real kernels.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) boots: Vec<CheckedBoot>,
    /// Why nothing was booted.
    pub(crate) lack: Option<String>,
}

/// `pagelab check` where `cargo xtask test` boots it, once `built` says that all is built.
pub(crate) fn check(built: impl FnOnce() -> Result<()>) -> Result<Checked> {
    if env::var_os(VARIABLE).is_some_and(|value| value == "off") {
        return Ok(Checked { lack: Some(format!("{VARIABLE}=off")), ..Checked::default() });
    }
    let asked = Asked { filters: vec![IN_TEST.to_owned()], ..Asked::default() };
    Ok(match run(&asked, Options::default(), built)? {
        Ok(summary) => Checked { boots: summary.checked(), lack: None },
        Err(lack) => Checked { lack: Some(format!("{lack:#}; {CURE}")), ..Checked::default() },
    })
}

/// What the machines need, and what of it is installed.
pub(crate) fn needs() -> String {
    let how = if dist::is_root() { "are installed where missing" } else { "are root's to install" };
    format!("the machines take qemu-system-x86 and kernels of Debian, 300 MiB: they {how}")
}

fn cases() -> Result<Vec<table::Case>> {
    table::read(&fs::read_to_string(table::FILE).context(table::FILE)?)
}

fn list(asked: &Asked) -> Result<()> {
    let cases = cases()?;
    for boot in table::boots(&cases, asked) {
        println!("{}", boot.name());
        for name in &boot.cases {
            let case = cases.iter().find(|case| case.name == *name).context("it is in a boot")?;
            let native = if case.native { " (also on a host)" } else { "" };
            println!("    {name:<28} {}{native}", case.about);
        }
    }
    println!();
    for name in path::names() {
        println!("{name:<12} fault/path, whose cases boot their machines themselves");
    }
    println!();
    for machine in machines::MACHINES.iter() {
        println!("{:<12} {}", machine.name, machine.about);
    }
    Ok(())
}

fn lane(asked: &Asked, options: Options) -> Result<()> {
    let (outcome, took) = shell::timed(|| run(asked, options, build::everything));
    match outcome? {
        Ok(summary) => {
            println!("\n[vm] {summary}, {:.0} s", took.as_secs_f64());
            if summary.is_good() { Ok(()) } else { bail!("the logs are in {LOGS}") }
        }
        Err(lack) => {
            shell::warn(&format!(
                "NOTHING WAS TESTED ON REAL KERNELS: the lane lacks what it needs.\n{lack:#}\n\
                 Cure: {CURE}"
            ));
            Ok(())
        }
    }
}

/// Everything, from the build to the summary; the inner error is what the machine lacks.
fn run(
    asked: &Asked,
    options: Options,
    await_build: impl FnOnce() -> Result<()>,
) -> Result<Result<Summary>> {
    let mut cases = cases()?;
    let boots = table::boots(&cases, asked);
    let paths = path::selected(asked);
    let is_known = !boots.is_empty() || !paths.is_empty();
    ensure!(is_known, "no case is called that: cargo xtask vm --list");
    let mut kernels = table::kernels(&boots);
    kernels.extend(paths.iter().map(|(kernel, _)| *kernel));
    kernels.sort_unstable();
    kernels.dedup();
    let supplies = match fetch::supplies(&kernels, options.update) {
        Ok(supplies) => supplies,
        Err(lack) => return Ok(Err(lack)),
    };
    let built = ours::build(&boots, &supplies)?;
    for (kernel, lack) in &built.lacks {
        table::leave_out(&mut cases, ours::NAME, kernel);
        shell::warn(&format!(
            "THE MODULE IS NOT TESTED ON {kernel}: it cannot be built here.\n{lack}"
        ));
    }
    let list = fs::read_to_string(skips::FILE).context(skips::FILE)?;
    let expected = skips::read(&list)?;
    await_build()?;
    let programs = build::programs(&boots)?;
    let lane = Lane::new(programs, supplies, built.modules, expected, options)?;
    let mut boots = table::boots(&cases, asked);
    // The long ones first: no processor is long without work at the end.
    let is_long = |boot: &table::Boot| boot.cases.iter().any(|case| case == CHECK);
    boots.sort_by_key(|boot| Reverse((is_long(boot), boot.cases.len())));
    let rounds = 0..options.repeat;
    let rounds = rounds.flat_map(|round| boots.iter().map(move |boot| Run::Boot(round, boot)));
    let paths = paths.iter().map(|(kernel, rows)| Run::Path(kernel, rows));
    Ok(Ok(lane.all(paths.chain(rounds).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_takes_filters_kernels_and_machines() {
        let parse = |words: &[&str]| Arguments::try_parse_from([&["vm"], words].concat());
        let asked = parse(&["check/", "--kernel", "6.1,newest", "--repeat", "60"]).unwrap();
        assert_eq!(asked.asked.kernels, ["6.1", "newest"]);
        assert_eq!(asked.options.repeat, 60);
        assert!(parse(&["--kernel", "5.10"]).is_err());
        assert!(parse(&["--except", "check/everything@6.1"]).is_ok());
        assert!(parse(&["--except", "check/everything@5.10"]).is_err());
        assert!(parse(&["check/everything@"]).is_err());
        assert!(parse(&["--sanitize", "--kernel", "6.1"]).is_err());
        assert!(parse(&["--machine", "microvm"]).is_err());
        assert!(parse(&["--repeat", "0"]).is_err());
    }
}
