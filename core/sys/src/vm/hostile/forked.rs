//! Children that share what their parent mapped, and may die of it.

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

use super::{Errno, Ground, errno, is_alone, last};
use crate::process::crew;

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited with this code.
    Exited(i32),
    /// A signal of this number ended it.
    Killed(i32),
}

impl End {
    /// A write or a read where nothing is mapped, or where it is forbidden.
    pub const SEGMENTATION: Self = Self::Killed(libc::SIGSEGV);
}

/// A child; dropping it kills it and waits for its end.
#[derive(Debug)]
pub struct Forked(Option<Pid>);

impl Forked {
    /// Waits for its end.
    pub fn wait(mut self) -> Result<End, Errno> {
        self.0.take().map_or(Err(Errno::CHILD), end_of)
    }

    /// Whether it has ended; if so, how.
    pub fn has_ended(&mut self) -> Result<Option<End>, Errno> {
        let Some(pid) = self.0 else { return Err(Errno::CHILD) };
        let Some((_, status)) = waitpid(Some(pid), WaitOptions::NOHANG)? else { return Ok(None) };
        self.0 = None;
        Ok(Some(end(status)))
    }

    /// `kill -9` without a wait for its end, which [`Self::has_ended`] reports.
    pub fn send_kill(&self) -> Result<(), Errno> {
        kill_process(self.0.ok_or(Errno::CHILD)?, Signal::KILL)
    }

    /// `kill -9`, and waits for its end.
    pub fn kill(mut self) -> Result<End, Errno> {
        let Some(pid) = self.0.take() else { return Err(Errno::CHILD) };
        kill_process(pid, Signal::KILL)?;
        end_of(pid)
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = kill_process(pid, Signal::KILL);
            let _ = end_of(pid);
        }
    }
}

/// Forks a child that runs `body` and exits with what it returns; 101 after a panic.
///
/// # Panics
/// When the process has more than one thread.
pub fn fork(body: impl FnOnce() -> u8) -> Result<Forked, Errno> {
    assert!(is_alone(), "a process of several threads may not run on in a child");
    let child = crew::fork(body).map_err(|error| errno(&error.source))?;
    Ok(Forked(Some(child)))
}

/// Forks a child that gives up root for good, runs `body` and exits with what it returns.
///
/// # Panics
/// When the process has more than one thread.
pub fn fork_as(user: u32, body: impl FnOnce() -> u8) -> Result<Forked, Errno> {
    fork(|| {
        // SAFETY: changes who this process is, and nothing else; the child has one thread.
        let group = unsafe { libc::setresgid(user, user, user) };
        // SAFETY: as above.
        let user = unsafe { libc::setresuid(user, user, user) };
        if group == 0 && user == 0 { body() } else { 102 }
    })
}

/// A touch of one word.
#[derive(Debug, Clone, Copy)]
pub enum Touch {
    /// A load of the word at this offset.
    Load(usize),
    /// A store of this value to the word at this offset.
    Store(usize, u64),
}

/// Forks a child that makes these touches and exits with 0, if it lives that long; however many
/// threads there are.
pub fn touch_in_a_child(ground: &Ground, touches: &[Touch]) -> Result<End, Errno> {
    // SAFETY: the child only loads, stores and exits: no lock is taken, nothing is allocated.
    match unsafe { libc::fork() } {
        -1 => Err(last()),
        0 => {
            for touch in touches {
                match *touch {
                    Touch::Load(at) => drop(ground.load(at)),
                    Touch::Store(at, value) => ground.store(at, value),
                }
            }
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(0) }
        }
        pid => Pid::from_raw(pid).map_or(Err(Errno::CHILD), end_of),
    }
}

/// From now on children of children that died become this process's own.
pub fn adopt_orphans() -> Result<(), Errno> {
    rustix::process::set_child_subreaper(Some(getpid()))
}

/// Waits for the end of every child there is.
pub fn wait_for_all() -> Result<(), Errno> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => (),
            Err(Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn end_of(pid: Pid) -> Result<End, Errno> {
    loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(end(status)),
            Ok(None) | Err(Errno::INTR) => (),
            Err(error) => return Err(error),
        }
    }
}

fn end(status: rustix::process::WaitStatus) -> End {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => End::Exited(code),
        (None, signal) => End::Killed(signal.unwrap_or(0)),
    }
}
