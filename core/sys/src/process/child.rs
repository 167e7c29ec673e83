#![expect(unsafe_code, reason = "a child is set up between fork and exec")]
//! A case in a process of its own: JSON in on stdin, JSON out on a file descriptor of its own.
//!
//! The one idea: the child may crash, hang or be killed, and the parent still knows why and goes
//! on. The child has a process group of its own, so that it and what it forked can be ended
//! together, and dies with its parent. Files that it is to have cross as [`Heirloom`]s, under a
//! number that the request names.

use std::{
    fmt,
    fs::File,
    io::{self, PipeReader, PipeWriter, Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Child, Command, ExitStatus, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, Signal, kill_process_group, set_parent_process_death_signal},
    time::Timespec,
};

use crate::{Called, SysError, checked, process::interrupted, time::monotonic_raw_ns};

/// The descriptor that a child answers on.
const ANSWER_FD: i32 = 3;

/// A command that starts this very program: not the file that has its name by now, which a build
/// may have replaced meanwhile.
pub fn this_program() -> Command {
    // The link is followed in the child before it executes anything: it is a copy of us until then.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("pagelab");
    command
}

/// Has what a command starts die with the thread that starts it.
pub fn dies_with_us(command: &mut Command) {
    let set_up = || {
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        Ok(())
    };
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(set_up) };
}

/// In a child: takes the name that [`this_program`] gave it, instead of the link's.
pub fn take_name() {
    let _ = rustix::thread::set_name(c"pagelab");
}

/// How a child ended.
#[derive(Debug)]
pub enum Ended {
    /// It answered and exited with 0.
    Answered(Vec<u8>),
    /// It died or answered nothing: why, in one sentence.
    Died(String),
    /// It was ended because its time was up.
    TimedOut,
    /// It was ended because the user interrupted.
    Interrupted,
}

/// Lowest number of a descriptor that a child inherits: away from those that it begins with.
const HEIRLOOM_FD_MIN: i32 = 10;

/// A file that children inherit, under the number that it has here.
#[derive(Debug)]
pub struct Heirloom(OwnedFd);

impl Heirloom {
    /// Makes a file one that can be handed down.
    ///
    /// # Errors
    /// When there are too many descriptors.
    pub fn new(file: &File) -> Result<Self, SysError> {
        rustix::io::fcntl_dupfd_cloexec(file, HEIRLOOM_FD_MIN)
            .map(Self)
            .called("fcntl", "F_DUPFD_CLOEXEC")
    }

    /// Its number, in this process and in the child.
    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The same file for this process, which has no child to hand it to.
    ///
    /// # Errors
    /// When there are too many descriptors.
    pub fn file(&self) -> io::Result<File> {
        self.0.try_clone().map(File::from)
    }
}

/// In a child: takes a file that the parent handed down, once.
///
/// # Errors
/// When no file was handed down under this number, or it was taken before.
pub fn inherited(number: RawFd) -> io::Result<File> {
    // SAFETY: only asks for the flags of a descriptor, if there is one.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    // Everything that was opened here closes on exec; what was handed down does not, until taken.
    if number < HEIRLOOM_FD_MIN || flags < 0 || flags & libc::FD_CLOEXEC != 0 {
        return Err(io::Error::other(format!("descriptor {number} was not handed down")));
    }
    // SAFETY: changes a flag of a descriptor that this process has.
    checked(unsafe { libc::fcntl(number, libc::F_SETFD, flags | libc::FD_CLOEXEC) })?;
    // SAFETY: open, handed down by the parent, and taken for the first time: nothing here owns it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(number) }))
}

/// How a child is cared for.
pub struct Care<'a> {
    /// Nanoseconds after which it is ended.
    pub limit_ns: u64,
    /// What it inherits.
    pub heirlooms: &'a [&'a Heirloom],
    /// `cgroup.procs` of the group that it starts in, open for writing.
    pub group: Option<&'a File>,
    /// Called between waits, at least every 200 ms, while it runs.
    pub watch: &'a mut dyn FnMut(),
}

impl fmt::Debug for Care<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Care").field("limit_ns", &self.limit_ns).finish_non_exhaustive()
    }
}

/// Runs `command` with `request` on stdin until it answers, dies, or its time is up.
///
/// # Errors
/// When it cannot be started at all.
pub fn run(mut command: Command, request: &[u8], care: Care<'_>) -> Result<Ended, SysError> {
    let on = "the child of a case";
    let (answer_read, answer_write) = io::pipe().called("pipe", on)?;
    let answer_fd = answer_write.as_raw_fd();
    let heirlooms: Vec<RawFd> = care.heirlooms.iter().map(|one| one.number()).collect();
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let group_fd = care.group.map(AsRawFd::as_raw_fd);
    let set_up = move || {
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        if let Some(fd) = group_fd {
            // "0" is the process that writes: it is in the group before it allocates anything.
            // SAFETY: the parent holds the descriptor open meanwhile, and the text is static.
            let written = unsafe { libc::write(fd, c"0".as_ptr().cast(), 1) };
            checked(if written == 1 { 0 } else { -1 })?;
        }
        for number in &heirlooms {
            // SAFETY: changes a flag of a descriptor that the parent holds open meanwhile.
            checked(unsafe { libc::fcntl(*number, libc::F_SETFD, 0) })?;
        }
        if answer_fd == ANSWER_FD {
            // Already there: only the close-on-exec flag must go.
            // SAFETY: changes a flag of a descriptor that this process has.
            return checked(unsafe { libc::fcntl(ANSWER_FD, libc::F_SETFD, 0) }).map(drop);
        }
        // SAFETY: the child has nothing of its own on descriptor 3 between fork and exec.
        checked(unsafe { libc::dup2(answer_fd, ANSWER_FD) }).map(drop)
    };
    // SAFETY: the closure makes plain system calls only; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(set_up) };
    let mut child = command.spawn().called("spawn", on)?;
    drop::<PipeWriter>(answer_write);
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // A child that died early closes its end; its status will say more than EPIPE does.
    let _ = stdin.write_all(request);
    drop(stdin);
    attend(child, answer_read, care).called("wait", on)
}

/// Collects the answer until the child closes it, its time is up, or the user interrupts.
fn attend(mut child: Child, mut answer: PipeReader, care: Care<'_>) -> io::Result<Ended> {
    let Care { limit_ns, watch, .. } = care;
    let deadline = monotonic_raw_ns().saturating_add(limit_ns);
    let mut stderr = child.stderr.take().expect("stderr is piped");
    let (mut bytes, mut errors) = (Vec::new(), Vec::new());
    let (mut answer_open, mut errors_open) = (true, true);
    let mut verdict = None;
    while verdict.is_none() && (answer_open || errors_open) {
        watch();
        let now = monotonic_raw_ns();
        if interrupted() {
            verdict = Some(Ended::Interrupted);
        } else if now >= deadline {
            verdict = Some(Ended::TimedOut);
        } else {
            // Looks up at least every 200 ms for the interrupt flag.
            let wait = (deadline - now).min(200_000_000);
            let timeout = Timespec { tv_sec: 0, tv_nsec: wait.cast_signed() };
            let mut sources = Vec::with_capacity(2);
            if answer_open {
                sources.push(PollFd::new(&answer, PollFlags::IN));
            }
            if errors_open {
                sources.push(PollFd::new(&stderr, PollFlags::IN));
            }
            match poll(&mut sources, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => (),
                Err(error) => return Err(error.into()),
            }
            let ready: Vec<bool> = sources.iter().map(|s| !s.revents().is_empty()).collect();
            let answer_ready = answer_open && ready[0];
            let errors_ready = errors_open && ready[usize::from(answer_open)];
            if answer_ready {
                answer_open = drain(&mut answer, &mut bytes)?;
            }
            if errors_ready {
                errors_open = drain(&mut stderr, &mut errors)?;
            }
        }
    }
    if verdict.is_some() {
        let pid = Pid::from_child(&child);
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let status = child.wait()?;
    Ok(verdict.unwrap_or_else(|| judge(status, bytes, &errors)))
}

/// Reads what is there; `false` at the end of the stream.
fn drain(from: &mut impl Read, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 16384];
    let count = from.read(&mut buffer)?;
    into.extend_from_slice(&buffer[..count]);
    Ok(count > 0)
}

fn judge(status: ExitStatus, answer: Vec<u8>, errors: &[u8]) -> Ended {
    if status.success() && !answer.is_empty() {
        return Ended::Answered(answer);
    }
    let errors = String::from_utf8_lossy(errors);
    let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let how = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by {}", signal_name(signal)),
        (None, Some(0)) => "exited without an answer".to_owned(),
        (None, Some(code)) => format!("exited with {code}"),
        (None, None) => "ended in an unknown way".to_owned(),
    };
    // A panic says where on one line and why on the next; a plain error says it all on the last.
    let panic = errors.lines().skip_while(|line| !line.contains("panicked at")).take(2);
    let panic: Vec<&str> = panic.collect();
    let said = if panic.is_empty() { last.to_owned() } else { panic.join(" ") };
    let separator = if said.is_empty() { "" } else { ": " };
    Ended::Died(format!("the case's process {how}{separator}{said}"))
}

/// The name of a signal that a benchmark is likely to die of.
fn signal_name(signal: i32) -> String {
    match signal {
        libc::SIGSEGV => "SIGSEGV".to_owned(),
        libc::SIGBUS => "SIGBUS".to_owned(),
        libc::SIGKILL => "SIGKILL".to_owned(),
        libc::SIGABRT => "SIGABRT".to_owned(),
        libc::SIGILL => "SIGILL".to_owned(),
        libc::SIGFPE => "SIGFPE".to_owned(),
        libc::SIGTERM => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    }
}

/// In a child: the request, from stdin.
///
/// # Errors
/// When stdin cannot be read.
pub fn request() -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    io::stdin().lock().read_to_end(&mut request)?;
    Ok(request)
}

/// In a child: answers, once, on the descriptor that [`run`] gave it.
///
/// # Errors
/// When the parent is gone, or the process was not started by [`run`].
pub fn answer(bytes: &[u8]) -> io::Result<()> {
    // SAFETY: only asks whether the descriptor is open.
    checked(unsafe { libc::fcntl(ANSWER_FD, libc::F_GETFD) })?;
    // SAFETY: descriptor 3 is open, was made for this by the parent, and nothing else here owns it.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(ANSWER_FD) });
    file.write_all(bytes)
}

/// From now on a panic in any thread ends the whole process, after its message: the other workers
/// of a case would wait at a barrier for the one that is gone.
pub fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        std::process::abort();
    }));
}

/// Makes the calling process the first that the kernel ends when memory runs out.
pub fn volunteer_for_oom() {
    // Raising one's own score needs no privilege; where /proc is missing there is nothing to do.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit_ns: u64) -> Ended {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let care = Care { limit_ns, heirlooms: &[], group: None, watch: &mut || () };
        run(command, b"hello", care).unwrap()
    }

    const LONG: u64 = 600_000_000_000;

    #[test]
    fn an_answer_comes_back_on_its_own_descriptor() {
        let _alone = crate::alone();
        let Ended::Answered(bytes) = shell("echo noise; cat >&3", LONG) else { panic!() };
        assert_eq!(bytes, b"hello");
    }

    #[test]
    fn what_is_handed_down_has_the_number_that_it_has_here_and_nothing_else_crosses() {
        let _alone = crate::alone();
        let mut file = crate::memory::memfd::create("pagelab-test").unwrap();
        file.write_all(b"old").unwrap();
        let (mine, other) = (Heirloom::new(&file).unwrap(), Heirloom::new(&file).unwrap());
        let (number, closed) = (mine.number(), other.number());
        assert!(number >= HEIRLOOM_FD_MIN);
        let mut command = Command::new("bash");
        let script = format!(
            "cat /proc/self/fd/{number} >&3; test -e /proc/self/fd/{closed} && echo both >&3; :"
        );
        command.args(["-c", &script]);
        let mut watched = 0;
        let watch = &mut || watched += 1;
        let care = Care { limit_ns: LONG, heirlooms: &[&mine], group: None, watch };
        let Ended::Answered(bytes) = run(command, b"", care).unwrap() else { panic!() };
        assert_eq!(bytes, b"old");
        assert!(watched > 0);
    }

    #[test]
    fn a_child_knocks_at_the_door_of_its_group_before_it_runs() {
        let _alone = crate::alone();
        let door = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("cat {} >&3", door.path().display())]);
        let group = Some(door.as_file());
        let care = Care { limit_ns: LONG, heirlooms: &[], group, watch: &mut || () };
        let Ended::Answered(bytes) = run(command, b"", care).unwrap() else { panic!() };
        assert_eq!(bytes, b"0");
    }

    #[test]
    fn only_what_was_handed_down_can_be_taken() {
        let file = Heirloom::new(&crate::memory::memfd::create("pagelab-test").unwrap()).unwrap();
        // It closes on exec here, as everything does that this process opened by itself.
        assert!(inherited(file.number()).is_err());
        assert!(inherited(1).is_err() && inherited(-1).is_err() && inherited(9999).is_err());
    }

    #[test]
    fn a_death_is_named() {
        let _alone = crate::alone();
        for (script, name) in
            [("kill -SEGV $$", "SIGSEGV"), ("kill -BUS $$", "SIGBUS"), ("exit 9", "with 9")]
        {
            let Ended::Died(why) = shell(script, LONG) else { panic!("{script}") };
            assert!(why.contains(name), "{why}");
        }
    }

    #[test]
    fn what_it_said_last_is_part_of_the_reason() {
        let _alone = crate::alone();
        let Ended::Died(why) = shell("echo no such pool >&2; exit 1", LONG) else { panic!() };
        assert!(why.ends_with("no such pool"), "{why}");
    }

    #[test]
    fn a_child_that_hangs_is_ended_with_all_it_started() {
        let _alone = crate::alone();
        assert!(matches!(shell("sleep 1000 & sleep 1000", 1), Ended::TimedOut));
    }
}
