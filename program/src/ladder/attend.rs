//! Waiting for a program while looking at it, alone or under somebody's load.
//!
//! The one idea: one step waits, notices who interrupts, ends what takes too long, and looks when a
//! look is due; a program's end and a server's load are loops of that step.

use std::{ffi::OsString, fs::File, io, process::ExitStatus, thread, time::Duration};

use pagelab_sys::{
    SysError,
    process::{
        forget_interrupts, interrupted,
        launch::{Ended, Running},
        tree,
    },
    time::monotonic_raw_ns,
};

use super::{
    load::{self, Load},
    look::Eyes,
    outside::Collapsing,
    streams::{PATIENCE, Streams, last_words},
};
use crate::explain::{eyes, watch};

/// Between two questions whether a server is ready, or its client done.
pub(super) const ASK: Duration = Duration::from_millis(5);
/// Nanoseconds that a server may take until it is ready.
const READY_NS: u64 = 120_000_000_000;

/// Why there is nothing to tell of a run.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// It did not end in time.
    #[error("it had not ended after {0:.0} s, and was ended")]
    Late(f64),
    /// The kernel killed so many of its processes at a limit of so many bytes.
    #[error("out of memory: the kernel killed {0} of its processes at a limit of {1} bytes")]
    Memory(u64, u64),
    /// It could not be started.
    #[error("it cannot be started: {0}")]
    Start(io::Error),
    /// It ended otherwise than as set up; as [`Once::exit`](super::once::Once::exit) has it.
    #[error("{1}")]
    Otherwise(u64, String),
    /// There is nothing to compare.
    #[error("{0}")]
    Failed(String),
}

/// How a run went by.
pub(super) struct Attended {
    pub(super) ended: Ended,
    pub(super) elapsed_ns: u64,
    pub(super) scores: Vec<f64>,
}

/// A program that runs, and those who look at it.
pub(super) struct Watch {
    pub(super) running: Running,
    pub(super) eyes: Eyes,
    /// Those who receive its faults, in a run that counts for nothing, or why there are none.
    pub(super) watching: Option<Result<eyes::Eyes, SysError>>,
    pub(super) collapsing: Option<Collapsing>,
    pub(super) begun: u64,
    pub(super) limit_ns: Option<u64>,
}

impl Watch {
    /// Looks at it until it ends.
    pub(super) fn until_it_ends(&mut self) -> Result<Attended, Stopped> {
        loop {
            if let Some(ended) = self.step(Duration::MAX)? {
                let elapsed_ns = ended.at_ns.saturating_sub(self.begun);
                return Ok(Attended { ended, elapsed_ns, scores: Vec::new() });
            }
        }
    }

    /// Has it serve a client, and ends it.
    pub(super) fn under(
        &mut self,
        load: &Load,
        streams: &mut Streams,
    ) -> Result<Attended, Stopped> {
        let mut files = [&mut streams.output, &mut streams.complaints];
        while !load.ready.is_met(files.each_mut().map(|file| &mut **file)) {
            if self.step(ASK)?.is_some() {
                let words = last_words(files[1]);
                return Err(Stopped::Failed(format!("it ended before it was ready{words}")));
            }
            if monotonic_raw_ns() - self.begun > READY_NS {
                let _ = self.running.end(PATIENCE);
                let words = last_words(files[1]);
                return Err(Stopped::Failed(format!("it was not ready within two minutes{words}")));
            }
        }
        let begun = monotonic_raw_ns();
        let client = load::shell(&load.client, &streams.client).map_err(Stopped::Start)?;
        self.eyes.ignore(client.id());
        let waits = stamped(client).map_err(Stopped::Start)?;
        while !waits.is_finished() {
            if self.step(ASK)?.is_some() {
                let words = last_words(&mut streams.complaints);
                return Err(Stopped::Failed(format!("it ended while it was loaded{words}")));
            }
        }
        let (at_ns, status) = waits.join().map_err(|_| Stopped::Failed(NOBODY.to_owned()))?;
        let status = status.map_err(Stopped::Start)?;
        if !status.success() {
            let _ = self.running.end(PATIENCE);
            let words = last_words(&mut streams.client);
            return Err(Stopped::Failed(format!("its client failed ({status}){words}")));
        }
        // The last look sees all that it held under the load.
        self.look();
        let ended = self.running.end(PATIENCE).map_err(Stopped::Start)?;
        let ended = ended.ok_or_else(|| Stopped::Failed("it cannot be ended".to_owned()))?;
        let said = load::content(&mut streams.client).map_err(Stopped::Start)?;
        let score = |score: &load::Score| {
            let none = || Stopped::Failed(format!("its client says no {} above 0", score.name));
            score.of(&said).ok_or_else(none)
        };
        let scores = load.scores.iter().map(score).collect::<Result<_, _>>()?;
        Ok(Attended { ended, elapsed_ns: at_ns.saturating_sub(begun), scores })
    }

    /// Waits so long at most; how it ended, where it did.
    fn step(&mut self, at_most: Duration) -> Result<Option<Ended>, Stopped> {
        let gone_ns = monotonic_raw_ns() - self.begun;
        let left_ns = self.limit_ns.unwrap_or(u64::MAX).saturating_sub(gone_ns);
        let mut wait = Duration::from_nanos(self.eyes.rest_ns().min(left_ns)).min(at_most);
        if self.watching.is_some() {
            wait = wait.min(watch::LOOK);
        }
        let ended = self.running.wait(wait).map_err(Stopped::Start)?;
        if let Some(Ok(watching)) = &mut self.watching {
            watching.look();
        }
        if interrupted() {
            // From a terminal it has reached the program already: it is in the same group.
            forget_interrupts();
            self.running.interrupt();
            let _ = self.running.end(PATIENCE);
            return Err(Stopped::Interrupted);
        }
        if ended.is_some() {
            return Ok(ended);
        }
        if left_ns == 0 {
            let _ = self.running.end(PATIENCE);
            return Err(Stopped::Late(gone_ns as f64 / 1e9));
        }
        if self.eyes.rest_ns() == 0 {
            self.look();
        }
        Ok(None)
    }

    fn look(&mut self) {
        let all = self.eyes.look();
        if let Some(collapsing) = &mut self.collapsing {
            collapsing.go_on(&all);
        }
    }
}

/// Why a thread that waits has nothing to say.
const NOBODY: &str = "nobody waited for its client";

/// Waits for a child in a thread of its own; when and how it ended.
///
/// # Errors
/// When there can be no thread; the child runs on.
pub(super) fn stamped(
    mut child: std::process::Child,
) -> io::Result<thread::JoinHandle<(u64, io::Result<ExitStatus>)>> {
    thread::Builder::new().spawn(move || {
        let status = child.wait();
        (monotonic_raw_ns(), status)
    })
}

/// Runs a command of a shell that belongs to no run.
pub(super) fn command(command: &OsString, output: &mut File, which: &str) -> Result<(), Stopped> {
    let others = tree::below_us();
    let child = load::shell(command, output).map_err(Stopped::Start)?;
    let waits = stamped(child).map_err(Stopped::Start)?;
    while !waits.is_finished() {
        if interrupted() {
            forget_interrupts();
            tree::end_below_us(&others, PATIENCE);
            return Err(Stopped::Interrupted);
        }
        thread::sleep(ASK);
    }
    let (_, status) = waits.join().map_err(|_| Stopped::Failed(NOBODY.to_owned()))?;
    match status.map_err(Stopped::Start)? {
        status if status.success() => Ok(()),
        status => Err(Stopped::Failed(format!("{which} failed ({status}){}", last_words(output)))),
    }
}
