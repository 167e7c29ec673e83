//! `pagelab trace capture`: the accesses of a program, as a trace.
//!
//! The one idea: the program runs in qemu-user with our plugin (the crate in `emulation/capture/`),
//! which writes the trace itself. Here the program's kind is found out, QEMU is started with the
//! files that this process has created, and what the plugin could not write any more is appended,
//! so that the trace is whole however the program ended.
//!
//! The program has our stdin, stdout and stderr; our own line goes to stdout after it has ended.

mod files;
mod sink;

use std::{ffi::OsString, path::PathBuf};

use anyhow::Context;
use clap::Args;
use pagelab_bench::count::parse_count;
use pagelab_sys::process::catch_interrupts;

use self::files::Files;
use crate::capture::{Ready, attend};
use pagelab_cli::{
    args::Run,
    exit::{Exit, Failure},
};

/// Run a program and write the trace of its memory accesses.
///
/// The program runs in qemu-user: riscv64 and x86-64 programs of Linux, static or dynamic.
/// Instruction fetches are accesses too. What is in its memory before the first instruction goes
/// into FILE.image, which replay loads.
#[derive(Debug, Args)]
pub(super) struct Capture {
    /// The trace, a file that does not exist yet (default PROGRAM.trace).
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    file: Option<PathBuf>,
    /// End the program after so many operations, such as 200m.
    #[arg(long, value_name = "OPS", value_parser = parse_count)]
    max: Option<u64>,
    /// Leave instruction fetches out.
    #[arg(long)]
    no_fetch: bool,
    /// The memory image, a file that does not exist yet (default FILE.image).
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Write no memory image.
    #[arg(long, conflicts_with = "image")]
    no_image: bool,
    /// Where the loader and libraries of a dynamic riscv64 program are.
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    /// The program and its arguments, after --.
    #[arg(required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

impl Run for Capture {
    fn run(self) -> Result<Exit, Failure> {
        let (name, arguments) = self.program.split_first().expect("clap requires a program");
        let ready = Ready::find(name, self.sysroot.as_ref(), "pagelab trace capture")?;
        let emulator = ready.program.emulator;
        let files = Files::create(&ready.program.path, self.file, self.image, !self.no_image)?;
        let max = self.max.map(|max| ("max", max.to_string()));
        let fetch = self.no_fetch.then(|| ("fetch", "off".to_owned()));
        let mut process = ready.command(arguments, files.places().chain(max).chain(fetch));
        catch_interrupts();
        let started = process.spawn().with_context(|| format!("cannot start {emulator}"));
        let ended = started.and_then(|child| Ok(attend(child, || files.has_failed())?));
        files.finish(ended.map_err(Failure::host)?, emulator)
    }
}
