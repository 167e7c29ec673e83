//! Watching a program: from its first instruction, or for a while.
//!
//! The one idea: whatever ends the watching (the program's end, the time, an interrupt), what was
//! seen until then is a result. Where perf is not allowed the program still runs, and what the
//! kernel counts for everybody (`wait4`, `/proc/PID/stat`) is all that is known.

use std::{
    ffi::OsString,
    io::{self, IsTerminal},
    process::Command,
    time::Duration,
};

use pagelab_record::walks::Looks;
use pagelab_sys::{
    SysError,
    counts::perf::Told,
    machine::proc::threads,
    process::{
        forget_interrupts, interrupted,
        launch::{Ended, Other, Running, Waiting},
    },
    time::monotonic_raw_ns,
};

use super::{
    counts::Seen,
    eyes::{Eyes, Sight},
    kind::Kind,
    walks::Sampler,
};
use crate::stat::Stat;

/// Between two looks at the rings.
pub(crate) const LOOK: Duration = Duration::from_millis(4);

/// What is watched.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A program with its arguments, from its start to its end.
    Program(Vec<OsString>),
    /// A process that runs, with all its threads, for so long.
    Process {
        /// Its number.
        pid: u32,
        /// At most so long.
        at_most: Duration,
    },
}

/// What is looked for beside its faults.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish {
    /// Whole stacks of callers.
    pub stacks: bool,
    /// The pages that it walks to.
    pub walks: bool,
}

/// What was seen.
#[derive(Debug)]
pub struct Watched {
    /// The faults, by everything.
    pub seen: Seen,
    /// What became of minor faults, of major ones, and of mappings; why, where perf was not
    /// allowed.
    pub told: Result<[Told; 3], String>,
    /// What the session could see.
    pub sight: Sight,
    /// How the program ended; `None` for one that runs on.
    pub ended: Option<Ended>,
    /// Faults that the kernel counted for the process: minor, major.
    pub counted: (u64, u64),
    /// Bytes that the program's memory cgroups had left when they had least; `None` without a
    /// limit.
    pub room: Option<u64>,
    /// Faults of the child before it became the program.
    pub before_exec: u64,
    /// Nanoseconds of watching.
    pub elapsed_ns: u64,
    /// Nanoseconds on the CPU, user and system.
    pub cpu_ns: (u64, u64),
    /// Whether the user ended the watching before the program ended.
    pub cut_short: bool,
    /// The pages that it walked to, or why they were not seen; `None` where nobody asked.
    pub walks: Option<Result<Looks, String>>,
}

impl Default for Watched {
    /// Nothing was seen.
    fn default() -> Self {
        Self {
            seen: Seen::default(),
            told: Err(String::new()),
            sight: Sight::default(),
            ended: None,
            counted: (0, 0),
            room: None,
            before_exec: 0,
            elapsed_ns: 0,
            cpu_ns: (0, 0),
            cut_short: false,
            walks: None,
        }
    }
}

/// Why nothing could be watched.
#[derive(Debug, thiserror::Error)]
pub enum Blocked {
    /// There is no such program, or it may not be executed.
    #[error("{program}: {source}")]
    Program {
        /// Which.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// There is no such process.
    #[error("no process has the number {0}")]
    NoProcess(u32),
    /// The process is not to be watched by this user.
    #[error("process {pid} may not be watched: {source}")]
    Denied {
        /// Which.
        pid: u32,
        /// Why.
        source: SysError,
    },
    /// Something else.
    #[error(transparent)]
    Sys(#[from] SysError),
}

impl Blocked {
    /// Whether the limit of open files is in the way, and not a right.
    pub fn is_out_of_descriptors(&self) -> bool {
        let Self::Denied { source, .. } = self else { return false };
        source.source.raw_os_error() == Some(EMFILE)
    }
}

/// `EMFILE`: too many open files of this process.
const EMFILE: i32 = 24;

/// Watches, with what somebody asks for beside faults.
///
/// # Errors
/// When there is nothing that could be watched.
pub fn watch(subject: &Subject, wish: Wish) -> Result<Watched, Blocked> {
    match subject {
        Subject::Program(words) => program(words, wish),
        Subject::Process { pid, at_most } => process(*pid, *at_most, wish),
    }
}

fn program(words: &[OsString], wish: Wish) -> Result<Watched, Blocked> {
    let name = words.first().cloned().unwrap_or_default();
    let not_started =
        |source| Blocked::Program { program: name.to_string_lossy().into_owned(), source };
    let mut command = Command::new(&name);
    command.args(&words[1..]);
    let waiting = Waiting::prepare(command).map_err(not_started)?;
    let pid = waiting.pid();
    let mut eyes = Eyes::on_exec(pid, false);
    if let (Ok(eyes), true) = (&mut eyes, wish.stacks) {
        eyes.keep_stacks();
    }
    let before_exec = Stat::of(pid).unwrap_or_default().faults.0;
    let begun_ns = monotonic_raw_ns();
    let mut running = waiting.go().map_err(not_started)?;
    let sampler = wish.walks.then(|| Sampler::of(pid, true));
    let (ended, cut_short) = attend(&mut running, &mut eyes)?;
    let walks = sampler.map(Sampler::close);
    Ok(Watched { cut_short, walks, ..Watched::of(ended, begun_ns, before_exec, eyes)? })
}

impl Watched {
    /// What a program came to that began then, and took so many faults before it became the
    /// program; `None` of one that somebody left before its end.
    pub(crate) fn of(
        ended: Option<Ended>,
        begun_ns: u64,
        before_exec: u64,
        eyes: Result<Eyes, SysError>,
    ) -> Result<Self, SysError> {
        let end_ns = ended.map_or_else(monotonic_raw_ns, |ended| ended.at_ns);
        let usage = ended.map(|ended| ended.usage).unwrap_or_default();
        let watched = Self {
            ended,
            counted: (usage.minor_faults, usage.major_faults),
            before_exec,
            elapsed_ns: end_ns.saturating_sub(begun_ns),
            cpu_ns: (usage.user_ns, usage.system_ns),
            ..Self::default()
        };
        watched.seen_by(eyes)
    }

    /// Minor faults of which nobody knows what they were: those of an unknown kind, and those that
    /// came faster than they were read.
    pub(crate) fn unknown(&self) -> u64 {
        let groups = self.seen.groups.iter().filter(|(group, _)| group.kind == Kind::Unknown);
        let lost =
            self.told.as_ref().map_or(0, |[minor, ..]| minor.counted.saturating_sub(minor.samples));
        groups.map(|(_, count)| count.faults).sum::<u64>() + lost
    }

    /// The same with what was seen of it.
    fn seen_by(self, eyes: Result<Eyes, SysError>) -> Result<Self, SysError> {
        match eyes {
            Ok(eyes) => {
                let room = eyes.room();
                let (seen, told, sight) = eyes.close()?;
                Ok(Self { seen, told: Ok(told), sight, room, ..self })
            }
            Err(error) => Ok(Self { told: Err(error.to_string()), ..self }),
        }
    }
}

/// Waits for the end of the program while looking at the rings.
fn attend(
    running: &mut Running,
    eyes: &mut Result<Eyes, SysError>,
) -> Result<(Option<Ended>, bool), Blocked> {
    // An interrupt from a terminal has reached the program already: it is in the same group.
    let mut ignored = u32::from(io::stdin().is_terminal());
    let mut told_to_end = false;
    loop {
        let ended = running.wait(LOOK);
        let ended = ended.map_err(|error| SysError::new("wait4", "the program", error))?;
        if let Ok(eyes) = eyes {
            eyes.look();
        }
        if ended.is_some() {
            return Ok((ended, false));
        }
        if interrupted() {
            forget_interrupts();
            if ignored > 0 {
                ignored -= 1;
            } else if told_to_end {
                return Ok((None, true));
            } else {
                running.interrupt();
                told_to_end = true;
            }
        }
    }
}

fn process(pid: u32, at_most: Duration, wish: Wish) -> Result<Watched, Blocked> {
    let other = Other::of(pid).map_err(|error| match error.raw_os_error() {
        Some(3) => Blocked::NoProcess(pid),
        _ => Blocked::Sys(SysError::new("pidfd_open", pid.to_string(), error)),
    })?;
    let mut eyes = match Eyes::on_process(pid, threads_of(pid)) {
        Ok(eyes) => eyes,
        Err(source) => return Err(Blocked::Denied { pid, source }),
    };
    if wish.stacks {
        eyes.keep_stacks();
    }
    let before = Stat::of(pid).unwrap_or_default();
    eyes.start()?;
    let sampler = wish.walks.then(|| Sampler::of(pid, false));
    let start = monotonic_raw_ns();
    let limit = u64::try_from(at_most.as_nanos()).unwrap_or(u64::MAX);
    let mut cut_short = false;
    let mut after = before;
    while monotonic_raw_ns() - start < limit && !other.wait(LOOK) {
        eyes.look();
        after = Stat::of(pid).unwrap_or(after);
        if interrupted() {
            forget_interrupts();
            cut_short = true;
            break;
        }
    }
    let since = |after: (u64, u64), before: (u64, u64)| {
        (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1))
    };
    let watched = Watched {
        counted: since(after.faults, before.faults),
        elapsed_ns: monotonic_raw_ns() - start,
        cpu_ns: since(after.cpu_ns, before.cpu_ns),
        cut_short,
        walks: sampler.map(Sampler::close),
        ..Watched::default()
    };
    Ok(watched.seen_by(Ok(eyes))?)
}

fn threads_of(pid: u32) -> Vec<u32> {
    threads(pid).ok().filter(|threads| !threads.is_empty()).unwrap_or_else(|| vec![pid])
}
