//! Our own engine beside the accesses: `pagelab tier promote` on the process that makes them.
//!
//! The one idea: it is a process of its own, as anybody would run it, and knows of the accesses
//! what the kernel tells it. It starts before the clock and is told to end after it.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use pagelab_bench::{Error, Plain};
use pagelab_sys::{machine::rights, memory::notes_stores, process::interrupt};

/// Seconds between two looks: as often as a look over some GiB can be.
const INTERVAL: &str = "0.1";

/// What its source needs.
pub(super) const SOURCE: Plain = Plain {
    name: "soft-dirty bits, for our own engine",
    has: || notes_stores().unwrap_or(false),
    cure: "a kernel with CONFIG_MEM_SOFT_DIRTY, as Debian's",
};
/// What its moves need.
pub(super) const ROOT: Plain =
    Plain { name: "root, for our own engine", has: rights::is_root, cure: "run as root (sudo)" };

/// The engine, while it runs.
#[derive(Debug)]
pub(super) struct Engine(Child);

impl Engine {
    /// Starts it on this process.
    ///
    /// # Errors
    /// When there can be no process.
    pub(super) fn start() -> Result<Self, Error> {
        let failed = |why| Error::Case(format!("our own engine: {why}"));
        let pid = std::process::id().to_string();
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["tier", "promote", "--pid", &pid, "--interval", INTERVAL]);
        // The engine's memory is not of the process that it looks at.
        let piped = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(Self(piped.spawn().map_err(failed)?))
    }

    /// Ends it.
    ///
    /// # Errors
    /// When it had ended by itself, with what it said.
    pub(super) fn stop(mut self) -> Result<(), Error> {
        let ended = self.0.try_wait().ok().flatten();
        interrupt(self.0.id());
        let said = self.0.stderr.take().map(BufReader::new);
        let _ = self.0.wait();
        let Some(status) = ended else { return Ok(()) };
        let line = said.and_then(|said| said.lines().map_while(Result::ok).last());
        let line = line.unwrap_or_default();
        Err(Error::Case(format!("our own engine ended before the accesses did: {status}: {line}")))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Whoever leaves early takes it along.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
