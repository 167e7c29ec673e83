#![expect(unsafe_code, reason = "ignoring a signal is libc's `signal`, which rustix does not wrap")]
//! The process that puts the knobs back when the run cannot: after SIGKILL, even of the whole
//! process group.
//!
//! One idea: it waits for the end of a socket whose other end only the run holds. The kernel
//! closes that end however the run dies, and only after its last system call has returned, so a
//! half-finished write to a knob is over by then.
//!
//! It is the same program, started as a hidden sub-command with three descriptors:
//! - stdin: the socket. One byte goes out once the process is in a session of its own; before
//!   that byte no knob may be changed. Then it waits for the end.
//! - stdout: the lock's open file description, for reading only. It keeps the lock held until the
//!   knobs are back, and nothing can be printed into it.
//! - stderr: the run's, to say what it did.

use std::{
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    process::{Child, Command},
    time::Duration,
};

use super::{
    KnobError, Place,
    lock::{self, Lock},
    restore,
};
use crate::process::child::this_program;

/// The hidden sub-command that a program must route to [`watchdog_main`].
pub const WATCHDOG_COMMAND: &str = "__knob-watchdog";

/// How long a process may take from its start to its first byte, on a machine under load.
const START_MAX: Duration = Duration::from_secs(120);

const READY: u8 = b'R';

/// The command that runs this same program as the watchdog of `directory`.
pub fn watchdog_command(directory: &Path) -> Command {
    let mut command = this_program();
    command.arg(WATCHDOG_COMMAND).arg(directory);
    command
}

/// The run's end of it.
#[derive(Debug)]
pub(super) struct Watchdog {
    child: Child,
    line: Option<UnixStream>,
}

impl Watchdog {
    /// Starts it and waits until it is out of reach of the signals that may kill the run.
    pub(super) fn start(mut command: Command, lock: &Lock) -> Result<Self, KnobError> {
        let failed = |error: io::Error| KnobError::Watchdog { why: format!("failed: {error}") };
        let (mut line, its_end) = UnixStream::pair().map_err(failed)?;
        let child = command
            .stdin(OwnedFd::from(its_end))
            .stdout(lock.duplicate().map_err(failed)?)
            .spawn()
            .map_err(|error| KnobError::Watchdog { why: format!("cannot be started: {error}") })?;
        // The command keeps its copy of the child's end, which would hide that the child died.
        drop(command);
        line.set_read_timeout(Some(START_MAX)).map_err(failed)?;
        let mut byte = [0];
        let answer = line.read(&mut byte);
        let mut watchdog = Self { child, line: Some(line) };
        match answer {
            Ok(1) if byte == [READY] => Ok(watchdog),
            Ok(_) => {
                watchdog.line = None;
                let status = watchdog.child.wait().map_err(failed)?;
                Err(KnobError::Watchdog { why: format!("did not start: {status}") })
            }
            Err(error) => {
                watchdog.child.kill().map_err(failed)?;
                Err(KnobError::Watchdog { why: format!("does not answer: {error}") })
            }
        }
    }

    /// Checks that it is still there; without it nothing may be changed.
    pub(super) fn check(&mut self) -> Result<(), KnobError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(KnobError::Watchdog { why: format!("has died: {status}") }),
            // A run that waits for all of its children has waited for this one.
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => {
                Err(KnobError::Watchdog { why: "has died".to_owned() })
            }
            Err(error) => Err(KnobError::Watchdog { why: format!("cannot be found: {error}") }),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.line = None;
        // It restores what is left in the journal, then ends; nothing to do if it was killed.
        let _ = self.child.wait();
    }
}

/// What the hidden sub-command does; the result is its exit code.
///
/// 0: everything is back, 1: something is not, 2: it was not started by [`Knobs`](super::Knobs).
pub fn watchdog_main(place: &Place) -> i32 {
    ignore_signals();
    // Fails only for the leader of a process group, and that is then its own.
    let _ = rustix::process::setsid();
    let _ = rustix::process::chdir("/");
    // A benchmark of memory may well meet the OOM killer; this process is not to be its choice.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    let line = rustix::stdio::stdin();
    if !lock::is_held_through(place, rustix::stdio::stdout()) {
        complain(&format!("{WATCHDOG_COMMAND} is started by pagelab itself, not by hand"));
        return 2;
    }
    if rustix::io::write(line, &[READY]) != Ok(1) {
        return 2;
    }
    loop {
        let mut byte = [0; 1];
        match rustix::io::read(line, &mut byte) {
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // A socket that reports an error has nobody at its other end either.
            Err(_) => break,
        }
    }
    match restore::all(place) {
        Ok((journal, restored)) => {
            for one in restored {
                complain(&one.to_string());
            }
            i32::from(!journal.entries().is_empty())
        }
        Err(error) => {
            complain(&error.to_string());
            1
        }
    }
}

/// Says something to whoever still listens.
fn complain(sentence: &str) {
    let _ = writeln!(io::stderr(), "pagelab: {sentence}");
}

/// Ignores what ends a run from its terminal or its service manager: the run ends, and then we do.
fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        // SAFETY: SIG_IGN runs no code of ours, and the signals are valid constants; the call can
        // change nothing but this process's own disposition.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
