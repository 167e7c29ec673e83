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
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use pagelab_bench::count::parse_count;
use pagelab_sys::process::crew::{catch_interrupts, interrupted};

use self::{
    files::{Asked, Files},
    program::Program,
};
use crate::exit::{Exit, Failure};

/// Host address of guest address 0: above whatever a program asks for, and so far below QEMU's own
/// libraries that the two never meet.
const BASE: &str = "0x100000000000";
/// How often an interrupt is looked for while the program runs.
const LOOK_UP: Duration = Duration::from_millis(10);

/// The command line of `trace capture`.
pub(super) fn command() -> Command {
    Command::new("capture")
        .about("Run a program and write the trace of its memory accesses")
        .long_about(
            "Run a program and write the trace of its memory accesses.\n\n\
             The program runs in qemu-user: riscv64 and x86-64 programs of Linux, static or \
             dynamic. Instruction fetches are accesses too. What is in its memory before the first \
             instruction goes into FILE.image, which replay loads.",
        )
        .arg(
            Arg::new("file")
                .short('o')
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("The trace, a file that does not exist yet (default PROGRAM.trace)"),
        )
        .arg(
            Arg::new("max")
                .long("max")
                .value_name("OPS")
                .value_parser(parse_count)
                .help("End the program after so many operations, such as 200m"),
        )
        .arg(
            Arg::new("no-fetch")
                .long("no-fetch")
                .action(ArgAction::SetTrue)
                .help("Leave instruction fetches out"),
        )
        .arg(
            Arg::new("image")
                .long("image")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("The memory image, a file that does not exist yet (default FILE.image)"),
        )
        .arg(
            Arg::new("no-image")
                .long("no-image")
                .action(ArgAction::SetTrue)
                .conflicts_with("image")
                .help("Write no memory image"),
        )
        .arg(
            Arg::new("sysroot")
                .long("sysroot")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("Where the loader and libraries of a dynamic riscv64 program are"),
        )
        .arg(
            Arg::new("program")
                .value_name("PROGRAM")
                .required(true)
                .num_args(1..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(value_parser!(OsString))
                .help("The program and its arguments, after --"),
        )
}

/// Captures a program.
///
/// # Errors
/// When the program or a file is no good, this host cannot run it, or the trace cannot be written.
pub(super) fn capture(matches: &ArgMatches) -> Result<Exit, Failure> {
    let words: Vec<&OsString> = matches.get_many("program").into_iter().flatten().collect();
    let (name, arguments) = words.split_first().expect("clap requires a program");
    let program = Program::find(name, matches.get_one::<PathBuf>("sysroot"))?;
    let emulator = tools::emulator(program.emulator)?;
    let plugin = tools::plugin()?;
    let files = Files::create(&Asked {
        program: &program.path,
        trace: matches.get_one("file"),
        image: matches.get_one("image"),
        has_image: !matches.get_flag("no-image"),
    })?;
    let max = matches.get_one::<u64>("max").copied();

    let mut process = Process::new(&emulator);
    process.args(["-B", BASE, "-0"]).arg(name);
    process.arg("-plugin").arg(plugin_argument(&plugin, &files, max, matches.get_flag("no-fetch")));
    if let Some(sysroot) = &program.sysroot {
        process.arg("-L").arg(sysroot);
    }
    process.arg(&program.path).args(arguments);
    catch_interrupts();
    let started = process.spawn().with_context(|| format!("cannot start {}", emulator.display()));
    let ended = started.and_then(|child| Ok(attend(child, &files)?)).map_err(Failure::host);
    files.finish(ended?, program.emulator)
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
