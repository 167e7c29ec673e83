//! The program on a rung, a single time.
//!
//! The one idea: from `execve` to the end is its time, by the kernel's account and the clock's; it
//! is looked at meanwhile, never stopped. What it started and left behind is ended before anybody
//! else runs. Its output goes to files of the rung, so nothing of ours is in its way.

use std::{ffi::OsString, os::unix::process::CommandExt, process::Command};

use pagelab_cli::program::Program;
use pagelab_interpose::preload::{Counts, SHEET, SHEET_BYTES};
use pagelab_sys::{
    counts::Counters,
    knobs::MemoryGroup,
    machine::{Tree, proc::in_use},
    process::{
        CounterPage,
        launch::{Before, Ended, Waiting},
        tree,
    },
    time::monotonic_raw_ns,
};

use super::{
    attend::{self, Attended, Stopped, Watch},
    load::{Load, Ready},
    look::{Expected, Eyes, Seen},
    maps::Weight,
    outside::{Collapsed, Collapsing},
    rungs::Start,
    streams::{PATIENCE, Streams, last_words},
};
use crate::{
    explain::{eyes::Eyes as Watching, walks::Sampler, watch::Watched},
    fit::logged::{Log, Logged},
    stat::Stat,
};

/// What came of a run.
#[derive(Debug)]
pub struct Once {
    /// From its first instruction to its end, nanoseconds; of a server, its client's.
    pub elapsed_ns: u64,
    /// What its client says of it.
    pub scores: Vec<f64>,
    /// Of it and those that it waited for.
    pub ended: Ended,
    /// Of its memory.
    pub seen: Seen,
    /// What the machine counted meanwhile.
    pub counters: Counters,
    /// Of its output.
    pub digest: u64,
    /// What was collapsed from outside.
    pub collapsed: Collapsed,
    /// What the preloaded library counted, where there was one.
    pub counts: Option<Counts>,
    /// Processes that it left behind.
    pub left: usize,
    /// Faults of the child before it became the program.
    pub before_exec: u64,
    /// The most that was charged to its memory cgroup, page cache included.
    pub group_peak: Option<u64>,
    /// Its faults, where it was watched.
    pub watched: Option<Watched>,
    /// Who asked for memory, where that was noted.
    pub logged: Option<Logged>,
}

impl Once {
    /// Its exit code, or 256 and the signal that ended it.
    pub fn exit(&self) -> u64 {
        let signal = self.ended.signal().unwrap_or(0);
        self.ended.status.code().map_or_else(
            || u64::from(signal.unsigned_abs()) + 256,
            |code| u64::from(code.unsigned_abs()),
        )
    }
}

/// How a run is to be.
#[derive(Debug)]
pub struct Run<'r> {
    /// What runs.
    pub program: &'r Program,
    /// On what.
    pub start: &'r Start,
    /// Nanoseconds that it took on this rung before, or as it is set up; `None` where nobody knows.
    pub usual_ns: Option<u64>,
    /// Nanoseconds after which it is ended; without, after many times as long as it took before.
    pub limit_ns: Option<u64>,
    /// How it has to end, as [`Once::exit`] says; `None` where anything will do.
    pub exit: Option<u64>,
    /// What is done around it.
    pub around: &'r Around,
    /// The memory cgroup that it runs in.
    pub group: Option<&'r MemoryGroup>,
    /// A variable that marks it and all that it starts as ours to end.
    pub mark: (&'r str, &'r str),
    /// Whether its faults are received, as `explain` does: its time is that of no rung then.
    pub is_watched: bool,
}

/// What is done around every run.
#[derive(Debug, Clone, Default)]
pub struct Around {
    /// A command of a shell before it.
    pub setup: Option<OsString>,
    /// And one after it, whatever came of it.
    pub cleanup: Option<OsString>,
    /// The load on it, where it serves.
    pub load: Option<Load>,
}

impl Run<'_> {
    /// Runs it, with what is done before and after.
    ///
    /// # Errors
    /// When there is nothing that could be compared.
    pub fn once(&self, streams: &mut Streams) -> Result<Once, Stopped> {
        if let Some(setup) = &self.around.setup {
            attend::command(setup, &mut streams.client, "--setup")?;
        }
        let came = self.alone(streams);
        if let Some(cleanup) = &self.around.cleanup {
            attend::command(cleanup, &mut streams.client, "--cleanup")?;
        }
        came
    }

    fn alone(&self, streams: &mut Streams) -> Result<Once, Stopped> {
        let ready = self.around.load.as_ref().map(|load| &load.ready);
        if let Some(port) = ready.and_then(Ready::is_taken) {
            let why = format!("somebody answers at port {port} before the program runs");
            return Err(Stopped::Failed(why));
        }
        let mut command = self.command();
        let sheet = self.start.preload.then(sheet).transpose().map_err(Stopped::Start)?;
        command.envs(sheet.as_ref().map(CounterPage::variable));
        let log = self.start.log.then(Log::new).transpose().map_err(Stopped::Start)?;
        command.envs(log.as_ref().map(Log::variable));
        streams.give(&mut command).map_err(Stopped::Start)?;
        let others = tree::below_us();
        let before = Counters::read(self.start.folio_kib());
        let door = self.group.map(MemoryGroup::door).transpose().map_err(Stopped::Start)?;
        let thp_disabled = self.start.thp.map(|allowed| !allowed);
        let ours = Weight::of(std::process::id()).unwrap_or_default().resident();
        let before_it = Before { thp_disabled, group: door.as_ref() };
        let waiting = Waiting::prepare_with(command, before_it).map_err(Stopped::Start)?;
        let pid = waiting.pid();
        let mut watching = self.is_watched.then(|| Watching::on_exec(pid, true));
        if let (Some(Ok(watching)), Some(_)) = (&mut watching, &log) {
            watching.keep_firsts();
        }
        let before_exec = Stat::of(pid).unwrap_or_default().faults.0;
        let begun = monotonic_raw_ns();
        let running = waiting.go().map_err(Stopped::Start)?;
        let sampler = (self.is_watched && !swaps()).then(|| Sampler::of(pid, true));
        let mut watch = Watch {
            running,
            eyes: Eyes::of(pid, &others, self.expected()),
            watching,
            collapsing: self.start.outside.map(Collapsing::of),
            begun,
            limit_ns: self.limit_ns.or(self.usual_ns.map(very_late)),
        };
        let attended = match &self.around.load {
            None => watch.until_it_ends(),
            Some(load) => watch.under(load, streams),
        };
        let walks = sampler.map(Sampler::close);
        let left = tree::end_below_us(&others, PATIENCE);
        let kills = self.group.map_or(0, MemoryGroup::kills);
        if let Some(group) = self.group.filter(|_| kills > 0) {
            return Err(Stopped::Memory(kills, group.limit));
        }
        let Attended { ended, elapsed_ns, scores } = attended?;
        let watching = watch.watching.take();
        let watched = watching.map(|eyes| Watched::of(Some(ended), begun, before_exec, eyes));
        let watched = watched.map(|came| came.map(|watched| Watched { walks, ..watched }));
        let once = Once {
            elapsed_ns,
            scores,
            ended,
            seen: watch.eyes.close().at_its_end(ended.peak, ours),
            counters: Counters::read(self.start.folio_kib()).since(&before),
            digest: streams.digest().unwrap_or(0),
            collapsed: watch.collapsing.map(Collapsing::close).unwrap_or_default(),
            counts: sheet.as_ref().map(|sheet| Counts(sheet.first())),
            left,
            before_exec,
            group_peak: self.group.and_then(MemoryGroup::peak),
            watched: watched.transpose().map_err(|error| Stopped::Failed(error.to_string()))?,
            logged: log.as_ref().map(Log::read),
        };
        match self.exit {
            // A server ends because we end it.
            Some(exit) if exit != once.exit() && self.around.load.is_none() => {
                Err(otherwise(&once, exit, streams))
            }
            _ => Ok(once),
        }
    }

    /// What starts it: its words, another build with its arguments, or the rung's own command,
    /// which a shell becomes.
    fn command(&self) -> Command {
        let mut command = if let Some(own) = &self.start.command {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &format!("exec {own}")]);
            command
        } else {
            let words = &self.program.words;
            let build = self.start.build.as_ref().map(|path| path.as_os_str());
            let first = build.unwrap_or(&words[0]);
            let mut command = Command::new(first);
            // Its name is as it was typed, whatever the path.
            command.args(&words[1..]).arg0(first);
            command
        };
        command.envs(self.start.environment.iter().map(|(key, value)| (key, value)));
        command.env(self.mark.0, self.mark.1);
        command
    }

    fn expected(&self) -> Expected {
        Expected {
            environment: self.start.environment.clone(),
            thp: self.start.thp,
            folio: self.start.folio_kib().map(|kib| kib << 10),
            preload: self.start.preload,
            whole_ns: self.usual_ns,
        }
    }
}

/// Whether the machine swaps: pages that seem idle for a moment may be swapped out, which nobody
/// asked for.
fn swaps() -> bool {
    !in_use(&Tree::machine()).is_empty()
}

/// A program that takes so many times as long as at first, and a minute, does not end.
fn very_late(usual_ns: u64) -> u64 {
    usual_ns.saturating_mul(20).saturating_add(60_000_000_000)
}

fn otherwise(once: &Once, expected: u64, streams: &mut Streams) -> Stopped {
    let (ended, expected) = (how(once.exit()), how(expected));
    let words = last_words(&mut streams.complaints);
    let why = format!("the program {ended}; as set up it {expected}{words}");
    Stopped::Otherwise(once.exit(), why)
}

/// How a program ended, by [`Once::exit`].
pub(super) fn how(exit: u64) -> String {
    match exit.checked_sub(256) {
        None => format!("exited with {exit}"),
        Some(signal) => format!("was ended by signal {signal}"),
    }
}

/// Where the preloaded library counts in one run.
fn sheet() -> std::io::Result<CounterPage> {
    CounterPage::new("pagelab-sheet", SHEET, SHEET_BYTES)
}
