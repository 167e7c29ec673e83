//! A program that is started to be promoted, with the library in it where the source wants that.
//!
//! The one idea: it keeps terminal, input and output, and gets the signals that are sent to us; it
//! ends when it does, and its exit code is ours. All programs that it starts are followed, as long
//! as they load the library.

use std::{cell::RefCell, collections::BTreeSet, ffi::OsString, rc::Rc, time::Duration};

use anyhow::Context;
use pagelab_cli::program::Program;
use pagelab_interpose::heat::PACKAGE;
use pagelab_live::{
    source::{Opens, Sees, Shared, Source},
    yard::Yard,
};
use pagelab_sys::process::{
    launch::{Ended, Running, Waiting},
    relay,
};

use pagelab_cli::{exit::Failure, preload};

/// What sees a program without a library in it.
const OTHER_SOURCES: &str = "--source soft-dirty, hint-faults or page-idle see it from outside";
/// The least memory that is looked at for loads.
const SAMPLED: u64 = 1 << 20;

/// A program that was started.
#[derive(Debug)]
pub(super) struct Started {
    pid: u32,
    running: Running,
    yard: Option<Shared>,
    ended: Option<Ended>,
}

impl Started {
    /// Starts it, for a source where there is one.
    ///
    /// # Errors
    /// When there is no such program, or no library.
    pub(super) fn new(words: &[OsString], source: Option<&Source>) -> Result<Self, Failure> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(usage!("no program after --"));
        };
        let name = || program.to_string_lossy().into_owned();
        let mut command = std::process::Command::new(program);
        command.args(arguments);
        let inside = source.filter(|source| matches!(source.opens, Opens::Inside(_)));
        // What cannot be looked at is started, and says itself why it is none.
        let looked = inside.and_then(|source| Some((source, Program::of(words).ok()?)));
        if let Some((source, why)) =
            looked.and_then(|(source, program)| Some((source, program.refuses_preload()?)))
        {
            let (name, source) = (name(), source.name);
            return Err(usage!("{name} {why}, and the source {source} is one: {OTHER_SOURCES}"));
        }
        let yard = inside.map(|source| prepare(&mut command, source)).transpose()?;
        relay::begin();
        let waiting = Waiting::prepare(command).with_context(name).map_err(Failure::host)?;
        relay::to(waiting.pid());
        let pid = waiting.pid();
        let running = waiting.go().with_context(name).map_err(Failure::usage)?;
        Ok(Self { pid, running, yard, ended: None })
    }

    /// The process that it began as.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Where the library speaks, where there is one.
    pub(super) fn yard(&self) -> Option<&Shared> {
        self.yard.as_ref()
    }

    /// The processes that can be looked at.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn pids(&self) -> Result<BTreeSet<u32>, String> {
        let Some(yard) = &self.yard else { return Ok(BTreeSet::from([self.pid])) };
        let programs = yard.borrow().programs().map_err(|why| format!("the yard: {why}"))?;
        let is_there = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).is_dir();
        Ok(programs.into_iter().map(|program| program.pid).filter(is_there).collect())
    }

    /// Waits so long, or to its end; whether it runs.
    ///
    /// # Errors
    /// When it is not our child any more.
    pub(super) fn runs_for(&mut self, at_most: Duration) -> Result<bool, Failure> {
        if self.ended.is_none() {
            self.ended = self.running.wait(at_most).map_err(Failure::internal)?;
        }
        Ok(self.ended.is_none())
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it is not our child any more.
    pub(super) fn end(mut self) -> Result<Ended, Failure> {
        loop {
            self.runs_for(Duration::from_secs(1))?;
            if let Some(ended) = self.ended {
                return Ok(ended);
            }
        }
    }

    /// What the library could not do.
    pub(super) fn complaints(&self) -> Vec<String> {
        let Some(yard) = &self.yard else { return Vec::new() };
        let yard = yard.borrow();
        let mut found = Vec::new();
        let programs = yard.programs().unwrap_or_default();
        if programs.is_empty() {
            let why = "no program loaded the library: it is static, of another libc, or setuid";
            found.push(why.to_owned());
        }
        for program in programs {
            if program.left_out > 0 {
                found.push(format!(
                    "process {}: {} large allocations have locks in them and were left out",
                    program.pid, program.left_out
                ));
            }
        }
        for (count, what) in [
            (yard.without_row().unwrap_or(0), "programs were started after the first thousand"),
            (yard.lost().unwrap_or(0), "pages were accessed that there was no room to note"),
        ] {
            if count > 0 {
                found.push(format!("{count} {what}"));
            }
        }
        found
    }
}

/// Has the library loaded into a program; where it will speak.
fn prepare(command: &mut std::process::Command, source: &Source) -> Result<Shared, Failure> {
    let library = preload::library(PACKAGE)?;
    preload::set(command, &library);
    let is_sampled = source.sees == Sees::Accesses;
    let yard = Yard::new(is_sampled.then_some(SAMPLED));
    let yard = yard.context("memory to share").map_err(Failure::host)?;
    let (variable, path) = yard.variable();
    command.env(variable, path);
    Ok(Rc::new(RefCell::new(yard)))
}
