//! One machine from its start to its end: QEMU's command line, a time limit, its output.
//!
//! The console goes to a file and results to a serial line of their own, so that neither can cut
//! the other in two. The limits count only time in which the host had a processor for QEMU. The
//! process is ended by its handle, never by name.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result};

use super::{
    machines::{self, Machine},
    verdict::{FOR_THE_LANE, Recording},
};
use crate::shell;

/// How QEMU is started.
#[derive(Debug, Clone)]
pub(super) struct Qemu {
    /// The program.
    pub(super) program: PathBuf,
    /// Folders of its firmware, where they are not its own.
    pub(super) data: Vec<PathBuf>,
}

/// What a machine is started with.
#[derive(Debug)]
pub(super) struct Start<'a> {
    pub(super) machine: &'a Machine,
    pub(super) memory_mib: u32,
    pub(super) parameters: &'a [String],
    pub(super) kernel: &'a Path,
    pub(super) initrd: &'a Path,
    /// The disk's, where the machine has one.
    pub(super) image: &'a Path,
    /// Where the console goes.
    pub(super) console: &'a Path,
    pub(super) limit: Duration,
    /// How long nothing may come from the first process.
    pub(super) silent: Duration,
}

/// How often the time that a machine had is counted.
const TICK: Duration = Duration::from_secs(1);

/// What every kernel is told. Warnings go to the console too, because a WARN is one.
///
/// `no_timer_check`: on a busy host the kernel's check of the timer can lose a race and panic.
const PARAMETERS: &str =
    "console=ttyS0 loglevel=5 panic=-1 oops=panic mitigations=off no_timer_check";

impl Qemu {
    /// The command that starts a machine.
    pub(super) fn command(&self, start: &Start<'_>) -> Command {
        let mut command = Command::new(&self.program);
        for folder in &self.data {
            command.arg("-L").arg(folder);
        }
        let image = start.image.display().to_string();
        let own = start.machine.arguments(start.memory_mib).into_iter();
        command.args(own.map(|word| word.replace(machines::IMAGE, &image)));
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        // Else ksmd goes through the guests wherever somebody turns it on, as tests beside do.
        command.args(["-machine", "mem-merge=off"]);
        command.arg("-serial").arg(format!("file:{}", start.console.display()));
        command.args(["-serial", "stdio", "-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        command.arg("-kernel").arg(start.kernel).arg("-initrd").arg(start.initrd);
        let own = start.machine.parameters.as_str();
        let words =
            [PARAMETERS, own].into_iter().chain(start.parameters.iter().map(String::as_str));
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        command.arg("-append").arg(words.join(" "));
        command
    }

    /// Runs a machine to its end, or to the end of its time.
    pub(super) fn run(&self, start: &Start<'_>) -> Result<Recording> {
        let _ = fs::remove_file(start.console);
        let recording = attend(&mut mortal(self.command(start)), start.limit, start.silent)?;
        let console = fs::read(start.console).unwrap_or_default();
        Ok(Recording { console: String::from_utf8_lossy(&console).replace('\r', ""), ..recording })
    }
}

/// The command, so that it dies with the thread that starts it: a lane that is killed leaves no
/// machine behind. Where `setpriv` is missing, it ends when its guest does.
fn mortal(command: Command) -> Command {
    if shell::find("setpriv").is_none() {
        return command;
    }
    let mut mortal = shell::program("setpriv", ["--pdeathsig", "KILL"]);
    mortal.arg(command.get_program()).args(command.get_args());
    mortal
}

/// Runs a command to its end, or ends it when its time is up: `limit` from the start, and `silent`
/// to its first line for the lane.
fn attend(command: &mut Command, limit: Duration, silent: Duration) -> Result<Recording> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().with_context(|| format!("starting {}", shell::line(command)))?;
    let (results, timed_out) = listen(&mut child, limit, silent);
    if timed_out {
        child.kill().context("ending QEMU")?;
    }
    let status = child.wait().context("waiting for QEMU")?;
    Ok(Recording { status: status.code(), timed_out, results, console: String::new() })
}

/// Collects what QEMU prints, on both streams, until it ends or its time is up.
fn listen(child: &mut Child, limit: Duration, silent: Duration) -> (String, bool) {
    let (lines, inbox) = mpsc::channel();
    let stdout = child.stdout.take().map(|stream| forward(stream, lines.clone()));
    let stderr = child.stderr.take().map(|stream| forward(stream, lines));
    let mut said = String::new();
    let mut patience = Patience { left: limit, silent: Some(silent) };
    let mut delays = Delays { process: child.id(), threads: HashMap::new() };
    let timed_out = loop {
        let (line, took) = shell::timed(|| inbox.recv_timeout(TICK.min(patience.most())));
        // Where this process was not woken in time, the machine had no processor either.
        patience.spend(took.min(TICK).saturating_sub(delays.longest()));
        match line {
            Ok(line) => {
                patience.hear(&line);
                said.push_str(&line);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => (),
            Err(mpsc::RecvTimeoutError::Disconnected) => break false,
        }
        if patience.most().is_zero() {
            break true;
        }
    };
    if !timed_out {
        for thread in [stdout, stderr].into_iter().flatten() {
            let _ = thread.join();
        }
    }
    (said, timed_out)
}

/// How much longer a machine is waited for.
#[derive(Debug)]
struct Patience {
    left: Duration,
    /// Until its first line for the lane; `None` once that has come.
    silent: Option<Duration>,
}

impl Patience {
    fn most(&self) -> Duration {
        self.silent.map_or(self.left, |silent| silent.min(self.left))
    }

    fn spend(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
        self.silent = self.silent.map(|silent| silent.saturating_sub(time));
    }

    fn hear(&mut self, line: &str) {
        self.silent = self.silent.filter(|_| !line.starts_with(FOR_THE_LANE));
    }
}

/// How long the threads of a process were runnable and waited for a processor: the second number of
/// `/proc/PID/task/TID/schedstat`, in nanoseconds (`Documentation/scheduler/sched-stats.rst`).
#[derive(Debug)]
struct Delays {
    process: u32,
    threads: HashMap<PathBuf, u64>,
}

impl Delays {
    /// The longest wait of a thread since the last call.
    fn longest(&mut self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process)).into_iter().flatten();
        let grown = threads.flatten().filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            let delay = text.split(' ').nth(1)?.trim().parse().ok()?;
            let before = self.threads.insert(thread.path(), delay);
            Some(delay.saturating_sub(before.unwrap_or_default()))
        });
        Duration::from_nanos(grown.max().unwrap_or_default())
    }
}

fn forward(
    stream: impl std::io::Read + Send + 'static,
    lines: mpsc::Sender<String>,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut bytes = Vec::new();
        while stream.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
            if lines.send(String::from_utf8_lossy(&bytes).replace('\r', "")).is_err() {
                return;
            }
            bytes.clear();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_command_line_names_machine_kernel_and_parameters() {
        let qemu = Qemu { program: "q".into(), data: vec!["/firmware".into()] };
        let start = Start {
            machine: machines::find("reserved").unwrap(),
            memory_mib: 0,
            parameters: &["hugepages=1".to_owned()],
            kernel: Path::new("k"),
            initrd: Path::new("i"),
            image: Path::new("d"),
            console: Path::new("c"),
            limit: Duration::from_secs(1),
            silent: Duration::from_secs(1),
        };
        let line = shell::line(&qemu.command(&start));
        assert!(line.contains("-L /firmware"), "{line}");
        assert!(line.contains("no_timer_check memmap=3G$4G hugepages=1'"), "{line}");
        assert!(line.contains("-kernel k -initrd i"), "{line}");
        assert!(line.contains("-serial file:c -serial stdio"), "{line}");
    }

    #[test]
    fn what_it_says_and_its_status_are_recorded() {
        let mut command = shell::program("sh", ["-c", "echo '@@done rc=0'; echo oh >&2; exit 1"]);
        let recording = attend(&mut command, MINUTE, MINUTE).unwrap();
        assert_eq!((recording.status, recording.timed_out), (Some(1), false));
        assert!(recording.results.contains("@@done rc=0\n") && recording.results.contains("oh\n"));
    }

    #[test]
    fn what_dies_with_its_parent_is_the_same_command() {
        let mut command = mortal(shell::program("sh", ["-c", "echo $0; exit 3", "a b"]));
        let recording = attend(&mut command, MINUTE, MINUTE).unwrap();
        assert_eq!((recording.status, &*recording.results), (Some(3), "a b\n"));
    }

    #[test]
    fn a_machine_that_hangs_is_ended() {
        let mut command = shell::program("sh", ["-c", "echo begun; exec sleep 1000"]);
        let recording = attend(&mut command, Duration::from_millis(300), MINUTE).unwrap();
        assert_eq!((recording.status, recording.timed_out), (None, true));
    }

    #[test]
    fn a_machine_whose_first_process_never_speaks_is_ended_early() {
        let short = Duration::from_millis(300);
        let mut silent = shell::program("sh", ["-c", "echo qemu: warning; exec sleep 1000"]);
        let recording = attend(&mut silent, MINUTE, short).unwrap();
        assert!(recording.timed_out && recording.results.starts_with("qemu: warning"));
    }

    #[test]
    fn a_machine_that_has_spoken_has_its_time_whatever_came_before() {
        let of = |seconds| Duration::from_secs(seconds);
        let mut patience = Patience { left: of(60), silent: Some(of(10)) };
        patience.hear("qemu: warning\n");
        patience.spend(of(4));
        assert_eq!(patience.most(), of(6));
        patience.hear("@@begun\n");
        assert_eq!(patience.most(), of(56));
        patience.spend(of(56));
        assert!(patience.most().is_zero());
    }

    #[test]
    fn waits_of_a_process_for_a_processor_are_read() {
        let mut delays = Delays { process: std::process::id(), threads: HashMap::new() };
        delays.longest();
        assert!(!delays.threads.is_empty(), "this kernel has no schedstat");
        let mut nothing = Delays { process: u32::MAX, threads: HashMap::new() };
        assert_eq!(nothing.longest(), Duration::ZERO);
    }
}
