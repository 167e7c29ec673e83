//! A program in qemu-user with our plugin (the crate in `emulation/capture/`), for the commands
//! that want its accesses.
//!
//! The one idea: all that it takes is found before anything is made or run ([`Ready`]); then the
//! plugin writes where it is told, and its counters and buffer are in a file in memory that
//! outlives it. What becomes of the accesses is the command's.

mod counters;
mod program;
mod tools;

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    time::Duration,
};

use pagelab_sys::process::interrupted;

pub use self::{
    counters::{Counters, State, place},
    program::Program,
};
use pagelab_cli::exit::Failure;

/// Host address of guest address 0: above whatever a program asks for, and so far below QEMU's own
/// libraries that the two never meet.
pub const BASE: u64 = 0x1000_0000_0000;
/// How often an interrupt is looked for while the program runs.
const LOOK_UP: Duration = Duration::from_millis(10);

/// A program that can be captured, and what captures it.
#[derive(Debug)]
pub struct Ready {
    name: OsString,
    /// The program, and the QEMU that runs it.
    pub program: Program,
    emulator: PathBuf,
    plugin: PathBuf,
}

impl Ready {
    /// Finds a program as a shell would, a QEMU for it, and our plugin. `command` is what captures
    /// programs, for whoever is told to capture another one.
    ///
    /// # Errors
    /// When one of them is not there, or the program is none that can be captured.
    pub fn find(name: &OsStr, sysroot: Option<&PathBuf>, command: &str) -> Result<Self, Failure> {
        let program = Program::find(name, sysroot, command)?;
        let emulator = tools::emulator(program.emulator)?;
        let plugin = tools::plugin()?;
        Ok(Self { name: name.to_owned(), program, emulator, plugin })
    }

    /// What captures it, with its arguments and what the plugin is told.
    pub fn command(
        &self,
        arguments: &[OsString],
        told: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Command {
        let mut command = Command::new(&self.emulator);
        command.args(["-B", &format!("{BASE:#x}"), "-0"]).arg(&self.name);
        command.arg("-plugin").arg(plugin_argument(&self.plugin, told));
        if let Some(sysroot) = &self.program.sysroot {
            command.arg("-L").arg(sysroot);
        }
        command.arg(&self.program.path).args(arguments);
        command
    }
}

/// What QEMU passes on to the plugin: no path of ours but the plugin's own can hold a comma, which
/// QEMU wants doubled.
fn plugin_argument(
    plugin: &Path,
    told: impl IntoIterator<Item = (&'static str, String)>,
) -> OsString {
    let mut argument = Vec::new();
    for byte in plugin.as_os_str().as_bytes() {
        argument.extend(std::iter::repeat_n(*byte, if *byte == b',' { 2 } else { 1 }));
    }
    argument.extend(format!(",base={BASE:#x}").bytes());
    for (option, value) in told {
        argument.extend(format!(",{option}={value}").bytes());
    }
    OsString::from_vec(argument)
}

/// Waits for the program's end, or ends it when the user interrupts or nobody takes what the plugin
/// writes.
///
/// # Errors
/// When it can be neither waited for nor ended.
pub fn attend(mut child: Child, has_failed: impl Fn() -> bool) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupted() || has_failed() {
            // The plugin's buffer outlives it; nothing is lost.
            child.kill()?;
            return child.wait();
        }
        std::thread::sleep(LOOK_UP);
    }
}
