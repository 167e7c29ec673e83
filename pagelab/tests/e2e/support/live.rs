//! A command that goes on while the test does something to it.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use pagelab_sys::machine::proc::Stat;

use super::{Ended, Lab, Machine, binary, let_in, until};

/// A process beside `pagelab`, killed with the test, however that ends.
#[derive(Debug)]
pub(crate) struct Beside(pub(crate) Child);

impl Beside {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Where it has ended this does nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running `pagelab`, in a process group of its own; ended with the test.
#[derive(Debug)]
pub(crate) struct Live {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
    _machine: Option<Machine>,
}

impl Live {
    /// Starts it; what it says goes to files, so that a full pipe never holds it up.
    pub(crate) fn start(lab: &Lab, words: &[&str]) -> Self {
        Self::start_as(&binary(), lab, words)
    }

    /// The same with another file as the program.
    pub(crate) fn start_as(program: &Path, lab: &Lab, words: &[&str]) -> Self {
        // They say nothing of a program while other tests change the machine's settings.
        let needs_it = words.first().is_some_and(|word| ["explain", "try"].contains(word));
        let machine = (needs_it && let_in().is_none()).then(Machine::alone);
        let name = words.last().unwrap_or(&"command").replace('/', "-");
        let (stdout, stderr) =
            (lab.path(format!("{name}.stdout")), lab.path(format!("{name}.stderr")));
        let child = Command::new(program)
            .args(words)
            .current_dir(lab.path("."))
            .envs(let_in())
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        Self { child, stdout, stderr, _machine: machine }
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it goes on.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The process that measures a case for it, once there is one; fails when it ends before.
    pub(crate) fn case(&mut self) -> u32 {
        until("the process of a case", || {
            let found = self.find_case();
            assert!(found.is_some() || self.is_running(), "ended early:\n{}", self.said());
            found
        })
    }

    /// The process that measures a case for it, if there is one now.
    pub(crate) fn find_case(&self) -> Option<u32> {
        child_of(self.pid(), "__case")
    }

    /// The watchdog that it has started.
    pub(crate) fn watchdog(&self) -> u32 {
        until("the watchdog", || child_of(self.pid(), "__knob-watchdog"))
    }

    /// Starts runs until one of them is stopped in the middle of a case, and returns both.
    ///
    /// A run may end before a test that waits for a processor gets to stop it; `start` removes what
    /// such a run left.
    pub(crate) fn halted(mut start: impl FnMut() -> Self) -> (Self, u32) {
        until("a run that is stopped before it ends", || {
            let mut run = start();
            let case = run.try_halt()?;
            Some((run, case))
        })
    }

    /// Stops the process of a case in the middle of its work and returns it.
    ///
    /// From here on the run waits: nothing is measured until somebody acts. For a run that does not
    /// end by itself; [`Live::halted`] is for others.
    pub(crate) fn halt_case(&mut self) -> u32 {
        let case = self.try_halt();
        case.unwrap_or_else(|| panic!("ended early:\n{}", self.said()))
    }

    /// The same; none when the run ended before a case could be stopped.
    fn try_halt(&mut self) -> Option<u32> {
        until("a case that stops", || {
            let Some(case) = self.find_case() else {
                return (!self.is_running()).then_some(None);
            };
            signal("STOP", case);
            // A case that ended in between is gone or a zombie; the next one will do.
            let state = until("the case to stop or end", || {
                let state = state(case);
                (state != Some('R') && state != Some('S') && state != Some('D')).then_some(state)
            });
            (state == Some('T')).then_some(Some(case))
        })
    }

    /// Ends its process group, and with it everything that shares it, as a terminal's owner would.
    pub(crate) fn kill_group(&self) {
        shell(&format!("kill -KILL -{}", self.pid()));
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let status = until("the end of the run", || self.child.try_wait().unwrap());
        Ended {
            code: status.code(),
            stdout: fs::read_to_string(&self.stdout).unwrap(),
            stderr: fs::read_to_string(&self.stderr).unwrap(),
        }
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Where it has ended this does nothing; its case dies with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal; that the process has ended meanwhile is no mistake.
pub(crate) fn signal(name: &str, pid: u32) {
    shell(&format!("kill -{name} {pid}"));
}

fn shell(script: &str) {
    // The shell's own `kill`: not every machine has the program.
    Command::new("sh").args(["-c", script]).stderr(Stdio::null()).status().unwrap();
}

/// A child of this process by its part, the first word that it was started with.
fn child_of(parent: u32, part: &str) -> Option<u32> {
    let is_it = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(part.as_bytes())
            && Stat::of(*pid).is_some_and(|stat| {
                stat.number(4) == Some(parent.into()) && stat.state() != Some('Z')
            })
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is_it)
}

/// The state letter of a process, while there is one.
pub(crate) fn state(pid: u32) -> Option<char> {
    Stat::of(pid)?.state()
}
