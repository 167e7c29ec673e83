//! The process that ends somebody's program when we no longer can: after SIGKILL of us, even of our
//! whole process group.
//!
//! The one idea: it waits for the end of a pipe whose other end only we hold, as the watchdog of
//! the knobs does. Whatever was started with the mark in its environment, and whatever that
//! started, carries it, whoever its parent is by then; a program that empties the environment of
//! what it starts is out of its reach.

use std::{
    io::{self, PipeWriter, Read, Write},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::child::this_program;
use crate::machine::proc;

/// The hidden sub-command that a program must route to [`minder_main`].
pub const MINDER_COMMAND: &str = "__program-minder";
/// The variable that marks a program.
pub const MARK: &str = "PAGELAB_TRIED_BY";

/// What says that nobody is to be ended.
const DONE: u8 = b'D';
/// Looks for more of them: who forks while others are ended is met by a later one.
const LOOKS: u32 = 50;
const WAIT: Duration = Duration::from_millis(10);

/// Our end of it.
#[derive(Debug)]
pub struct Minder {
    child: Child,
    line: Option<PipeWriter>,
    mark: String,
}

impl Minder {
    /// Starts it.
    ///
    /// # Errors
    /// When there can be no process.
    pub fn start() -> io::Result<Self> {
        let mark = format!("{}-{}", std::process::id(), crate::time::monotonic_raw_ns());
        let mut command = this_program();
        command.arg(MINDER_COMMAND).arg(&mark);
        Self::of(command, mark)
    }

    fn of(mut command: Command, mark: String) -> io::Result<Self> {
        let (its_end, line) = io::pipe()?;
        command.stdin(its_end).stdout(Stdio::null());
        let child = command.spawn()?;
        Ok(Self { child, line: Some(line), mark })
    }

    /// The variable that a program must have to be ended.
    pub fn mark(&self) -> (&'static str, &str) {
        (MARK, &self.mark)
    }
}

impl Drop for Minder {
    fn drop(&mut self) {
        if let Some(mut line) = self.line.take() {
            // Where it was killed, nobody reads this.
            let _ = line.write_all(&[DONE]);
        }
        let _ = self.child.wait();
    }
}

/// What the hidden sub-command does.
pub fn minder_main(mark: &str) {
    // Fails only for the leader of a process group, and that is then its own.
    let _ = rustix::process::setsid();
    let _ = rustix::process::chdir("/");
    let mut byte = [0];
    // An interrupt of the terminal does not reach this session.
    let read = io::stdin().read(&mut byte);
    if !mark.is_empty() && !matches!(read, Ok(1) if byte == [DONE]) {
        end_marked(mark);
    }
}

/// Ends every process that has the mark in its environment.
fn end_marked(mark: &str) {
    let entry = format!("{MARK}={mark}");
    for look in 0..LOOKS {
        let marked = marked(&entry);
        if marked.is_empty() && look > 0 {
            return;
        }
        for pid in marked {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(WAIT);
    }
}

fn marked(entry: &str) -> Vec<Pid> {
    let pids = proc::with_environment(&[entry.to_owned()]).into_iter();
    pids.filter_map(|pid| Pid::from_raw(pid.cast_signed())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_carries_the_mark_is_ended_and_nobody_else() {
        let _alone = crate::alone();
        let mark = format!("test-{}", std::process::id());
        let sleeper = |variable: &str| {
            Command::new("sleep").arg("1000").env(variable, &mark).spawn().unwrap()
        };
        let (mut marked, mut other) = (sleeper(MARK), sleeper("ANOTHER"));
        end_marked(&mark);
        assert!(!marked.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn it_is_told_to_end_nobody_when_we_end_as_we_should() {
        let _alone = crate::alone();
        let mut command = Command::new("sh");
        command.args(["-c", "read said; test \"$said\" = D"]);
        let mut minder = Minder::of(command, "none".to_owned()).unwrap();
        minder.line.as_mut().unwrap().write_all(b"D").unwrap();
        minder.line = None;
        assert!(minder.child.wait().unwrap().success());
        assert_eq!(minder.mark(), (MARK, "none"));
    }
}
