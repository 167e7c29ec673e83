//! `pagelab trace capture`: the accesses of a program, as a trace.
//!
//! The one idea: the program runs in qemu-user with our plugin (the crate in `capture/`), which
//! writes the trace itself. Here the program's kind is found out, QEMU is started with the files
//! that this process has created, and what the plugin could not write any more is appended, so that
//! the trace is whole however the program ended.
//!
//! The program has our stdin, stdout and stderr; our own line goes to stdout after it has ended.

mod counters;
mod files;
mod program;
mod sink;
mod tools;

use std::{
    ffi::OsString,
    io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    process::{Child, Command as Process, ExitStatus},
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use pagelab_bench::count::parse_count;
use pagelab_sys::process::{catch_interrupts, interrupted};

use self::{files::Files, program::Program};
use crate::{
    args::Run,
    exit::{Exit, Failure},
};

/// Host address of guest address 0: above whatever a program asks for, and so far below QEMU's own
/// libraries that the two never meet.
const BASE: &str = "0x100000000000";
/// How often an interrupt is looked for while the program runs.
const LOOK_UP: Duration = Duration::from_millis(10);

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
        let program = Program::find(name, self.sysroot.as_ref())?;
        let emulator = tools::emulator(program.emulator)?;
        let plugin = tools::plugin()?;
        let files = Files::create(&program.path, self.file, self.image, !self.no_image)?;

        let mut process = Process::new(&emulator);
        process.args(["-B", BASE, "-0"]).arg(name);
        process.arg("-plugin").arg(plugin_argument(&plugin, &files, self.max, self.no_fetch));
        if let Some(sysroot) = &program.sysroot {
            process.arg("-L").arg(sysroot);
        }
        process.arg(&program.path).args(arguments);
        catch_interrupts();
        let started =
            process.spawn().with_context(|| format!("cannot start {}", emulator.display()));
        let ended = started.and_then(|child| Ok(attend(child, &files)?)).map_err(Failure::host);
        files.finish(ended?, program.emulator)
    }
}

/// What QEMU passes on to the plugin: no path of ours but the plugin's own can hold a comma, which
/// QEMU wants doubled.
fn plugin_argument(plugin: &Path, files: &Files, max: Option<u64>, no_fetch: bool) -> OsString {
    let mut argument = Vec::new();
    for byte in plugin.as_os_str().as_bytes() {
        argument.extend(std::iter::repeat_n(*byte, if *byte == b',' { 2 } else { 1 }));
    }
    let mut rest = format!(",base={BASE}");
    for (option, place) in files.places() {
        rest.push_str(&format!(",{option}={place}"));
    }
    if let Some(max) = max {
        rest.push_str(&format!(",max={max}"));
    }
    if no_fetch {
        rest.push_str(",fetch=off");
    }
    argument.extend(rest.bytes());
    OsString::from_vec(argument)
}

/// Waits for the program's end, or ends it when the user interrupts or the disk is full.
fn attend(mut child: Child, files: &Files) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupted() || files.has_failed() {
            // The plugin's buffer outlives it; nothing is lost.
            child.kill()?;
            return child.wait();
        }
        std::thread::sleep(LOOK_UP);
    }
}
