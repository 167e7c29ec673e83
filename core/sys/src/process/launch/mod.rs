#![expect(unsafe_code, reason = "a child waits between fork and exec; wait4 fills a C struct")]
//! Somebody's program, started so that it can be watched from its first instruction.
//!
//! The one idea: the child stands still between `fork` and `execve` until everything that watches
//! it is ready. It keeps the terminal, the descriptors and the process group of its parent, as
//! any program that is started from a shell.
//!
//! It is not how a case is measured: that is [`crate::process::child`].
//!
//! Rules for the unsafe blocks:
//! 1. Between fork and exec the child makes plain system calls only: it writes its number, reads
//!    one byte, and allocates nothing.
//! 2. `wait4` is called once for a child that nobody else waits for, and writes one status and one
//!    `struct rusage`.

use std::{
    fs::File,
    io::{self, PipeReader, PipeWriter, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Child, Command, ExitStatus},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
    time::Timespec,
};

use crate::{
    checked,
    process::closed::leave_closed,
    time::{Usage, monotonic_raw_ns, usage::of_rusage},
};

/// What a child does before it becomes the program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Before<'b> {
    /// Switches transparent huge pages off, or on again where whoever started us switched them
    /// off: both are inherited through fork and exec (`PR_SET_THP_DISABLE`, Linux 3.15).
    pub thp_disabled: Option<bool>,
    /// Enters a memory cgroup, by its `cgroup.procs`.
    pub group: Option<&'b File>,
}

/// A program that waits to be started.
#[derive(Debug)]
pub struct Waiting {
    pid: u32,
    go: PipeWriter,
    spawn: JoinHandle<io::Result<Child>>,
}

impl Waiting {
    /// Forks; the child waits before it becomes the program, and has our standard streams.
    ///
    /// # Errors
    /// When there can be no process.
    pub fn prepare(mut command: Command) -> io::Result<Self> {
        leave_closed(&mut command, &[0, 1, 2]);
        Self::prepare_with(command, Before::default())
    }

    /// The same, with something done before it becomes the program.
    ///
    /// # Errors
    /// As [`Waiting::prepare`].
    pub fn prepare_with(mut command: Command, before: Before<'_>) -> io::Result<Self> {
        let thp_disabled = before.thp_disabled;
        let door = before.group.map(AsRawFd::as_raw_fd);
        let (mut told, tell): (PipeReader, PipeWriter) = io::pipe()?;
        let (may_go, go) = io::pipe()?;
        // The parent's end must not stay open in the child, or it would never see the end.
        let (tell_fd, wait_fd, go_fd) = (tell.as_raw_fd(), may_go.as_raw_fd(), go.as_raw_fd());
        let wait = move || {
            let number = std::process::id().to_le_bytes();
            // SAFETY: rule 1: writes four bytes of the stack to a pipe that the parent reads.
            let written = unsafe { libc::write(tell_fd, number.as_ptr().cast(), 4) };
            // SAFETY: rule 1: closes the child's copy of the parent's end.
            unsafe { libc::close(go_fd) };
            let mut byte = [0_u8];
            // SAFETY: rule 1: reads one byte to the stack.
            let read = unsafe { libc::read(wait_fd, byte.as_mut_ptr().cast(), 1) };
            // The parent went away, or gave up.
            if written != 4 || read != 1 {
                return Err(io::Error::from_raw_os_error(libc::ECANCELED));
            }
            if let Some(door) = door {
                // SAFETY: rule 1: writes one byte of static memory to the group's file.
                let entered = unsafe { libc::write(door, b"0".as_ptr().cast(), 1) };
                checked(i64::try_from(entered).unwrap_or(-1))?;
            }
            let Some(disabled) = thp_disabled else { return Ok(()) };
            let [flag, rest] = [libc::c_ulong::from(disabled), 0];
            // SAFETY: rule 1: changes a flag of the child's memory and reads no pointer.
            checked(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, flag, rest, rest, rest) })?;
            Ok(())
        };
        // SAFETY: rule 1: the closure makes plain system calls only.
        unsafe { command.pre_exec(wait) };
        // `spawn` returns when the child has become the program, so it needs a thread of its own.
        let spawn = thread::Builder::new().spawn(move || {
            let child = command.spawn();
            drop((tell, may_go));
            child
        })?;
        let mut number = [0; 4];
        if told.read_exact(&mut number).is_err() {
            let error = match spawn.join() {
                Ok(Err(error)) => error,
                _ => io::Error::other("the child told nothing"),
            };
            return Err(error);
        }
        Ok(Self { pid: u32::from_le_bytes(number), go, spawn })
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it become the program.
    ///
    /// # Errors
    /// When there is no such program, or it may not be executed.
    pub fn go(mut self) -> io::Result<Running> {
        self.go.write_all(&[1])?;
        let child = self.spawn.join().map_err(|_| io::Error::other("the launcher panicked"))??;
        let mut running = Running::of(&child);
        running.stamp = running.fd.as_ref().and_then(|fd| stamp(fd.try_clone().ok()?).ok());
        Ok(running)
    }
}

/// So long may a process take to die that was killed: one in a device's hands takes its time.
const INSISTED: Duration = Duration::from_secs(60);

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    fd: Option<OwnedFd>,
    /// Waits for nothing but the end, so that nobody who is busy is late for it.
    stamp: Option<JoinHandle<u64>>,
}

/// Waits for the end of a process; when that was.
fn stamp(fd: OwnedFd) -> io::Result<JoinHandle<u64>> {
    thread::Builder::new().spawn(move || {
        // Woken by a signal it waits on.
        while !poll(&mut [PollFd::new(&fd, PollFlags::IN)], None).is_ok_and(|ready| ready > 0) {}
        monotonic_raw_ns()
    })
}

/// How a program ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Its exit code or signal.
    pub status: ExitStatus,
    /// What the kernel counted for it and for those of its children that it waited for, since the
    /// fork.
    pub usage: Usage,
    /// The most bytes that it held at once, or one of its children that it waited for; hugetlb
    /// pages are not among them. It begins with what we held at the fork (`exec_mmap` of Linux
    /// 6.12 takes the mark of the memory that it replaces).
    pub peak: u64,
    /// When it ended, by the clock that never jumps.
    pub at_ns: u64,
}

impl Ended {
    /// The signal that ended it.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }
}

impl Running {
    /// Starts a program that nobody watches from its first instruction: by `posix_spawn`, which
    /// copies nothing of this process, and with no thread beside it. When it ended is known as late
    /// as somebody waits.
    ///
    /// # Errors
    /// When there is no such program, it may not be executed, or there can be no process.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        leave_closed(command, &[0, 1, 2]);
        let spawned = command.spawn().or_else(|error| match error.raw_os_error() {
            Some(libc::ENOEXEC) => {
                // A script without a first line that says by what: `execvp`, which comes after a
                // fork, hands it to the shell.
                // SAFETY: rule 1: it does nothing.
                unsafe { command.pre_exec(|| Ok(())) }.spawn()
            }
            _ => Err(error),
        });
        Ok(Self::of(&spawned?))
    }

    fn of(child: &Child) -> Self {
        let pid = Pid::from_child(child);
        // Where the kernel has no such descriptors (before 5.3), waiting is sleeping.
        let fd = pidfd_open(pid, PidfdFlags::empty()).ok();
        Self { pid, fd, stamp: None }
    }

    /// Waits so long for its end; `None` while it runs.
    ///
    /// # Errors
    /// When it is not our child any more.
    pub fn wait(&mut self, at_most: Duration) -> io::Result<Option<Ended>> {
        match &self.fd {
            Some(fd) => drop(is_readable(fd, at_most)),
            None => thread::sleep(at_most),
        }
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        let pid = self.pid.as_raw_nonzero().get();
        // SAFETY: rule 2.
        let done = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
        if checked(done)? == 0 {
            return Ok(None);
        }
        // SAFETY: zeroed at first, and filled by the call that found the child.
        let usage = unsafe { usage.assume_init() };
        let peak = usage.ru_maxrss.unsigned_abs() << 10;
        let usage = of_rusage(&usage);
        let stamped = self.stamp.take().and_then(|stamp| stamp.join().ok());
        let at_ns = stamped.unwrap_or_else(monotonic_raw_ns);
        Ok(Some(Ended { status: ExitStatus::from_raw(status), usage, peak, at_ns }))
    }

    /// Asks it to end, insists after `patience`, and waits for that; `None` where not even that
    /// ends it.
    ///
    /// # Errors
    /// As [`Running::wait`].
    pub fn end(&mut self, patience: Duration) -> io::Result<Option<Ended>> {
        for (signal, wait) in [(Signal::TERM, patience), (Signal::KILL, INSISTED)] {
            let _ = kill_process(self.pid, signal);
            let asked = monotonic_raw_ns();
            // A signal to us may cut a wait short.
            while u128::from(monotonic_raw_ns() - asked) < wait.as_nanos() {
                if let Some(ended) = self.wait(wait.min(Duration::from_millis(50)))? {
                    return Ok(Some(ended));
                }
            }
        }
        Ok(None)
    }

    /// Hands a signal on to it.
    pub fn interrupt(&self) {
        let _ = kill_process(self.pid, Signal::INT);
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }
}

/// A process that is not our child.
#[derive(Debug)]
pub struct Other(OwnedFd);

impl Other {
    /// # Errors
    /// When there is no such process.
    pub fn of(pid: u32) -> io::Result<Self> {
        super::tree::descriptor(pid).map(Self)
    }

    /// Waits so long for its end; whether it has ended.
    pub fn wait(&self, at_most: Duration) -> bool {
        is_readable(&self.0, at_most)
    }
}

fn is_readable(fd: &OwnedFd, at_most: Duration) -> bool {
    let timeout = Timespec::try_from(at_most).ok();
    // Interrupted by a signal: the caller looks around and comes back.
    poll(&mut [PollFd::new(fd, PollFlags::IN)], timeout.as_ref()).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests;
