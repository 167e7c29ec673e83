//! `pagelab tier promote`: our engine on a live process, or on all of a group.
//!
//! The one idea: it promises nothing. It looks every `--interval`, moves what the policy asks for,
//! and says at the end what moved, what did not and why; a log that is asked for has all of it.

mod follow;
mod kept;
mod program;
mod sum;

use std::{ffi::OsString, path::PathBuf};

use clap::Args;
use pagelab_bench::asked::Seconds;
use pagelab_live::{
    Large, Options, Reason,
    source::{self, Reach, SOURCES, Source},
    status,
    target::{self, Refused},
};
use pagelab_record::units::parse_bytes;
use pagelab_sys::{
    files::folder::Target,
    machine::{
        Tree,
        tiers::{MemoryNode, memory_nodes},
    },
    process::{catch_interrupts, interrupted, launch::Ended},
    time::monotonic_raw_ns,
};
use pagelab_tier::PolicySpec;

pub(super) use self::kept::Kept;
use self::{program::Started, sum::Sum};
use pagelab_cli::{
    args::{Format, Run},
    exit::{Exit, Failure},
    output,
};

/// Move the pages that a process uses to the fast memory.
///
/// Looks which pages were used since it last looked, lets a policy of `tier simulate` decide,
/// and moves them there. Ends with the process, after --for, or by Ctrl-C. Nothing of
/// the machine is set. A program after -- is started with a library in it, and all that it starts
/// is followed; what came of it follows on stderr. Not yet seen on hardware.
#[derive(Debug, Args)]
pub(super) struct Promote {
    /// The process.
    #[arg(long, value_name = "PID", required_unless_present_any = ["cgroup", "program"])]
    #[arg(conflicts_with_all = ["cgroup", "program"])]
    pid: Option<u32>,
    /// All processes of a group of version 2 and of those below it.
    #[arg(long, value_name = "DIR", conflicts_with = "program")]
    cgroup: Option<PathBuf>,
    /// The policy and its parameters, as in tier simulate.
    #[arg(long, value_name = "NAME", default_value = "history")]
    policy: String,
    #[command(flatten)]
    asked: Asked,
    /// End after so many seconds.
    #[arg(long = "for", value_name = "SECONDS")]
    duration: Option<Seconds>,
    /// End after so many looks.
    #[arg(long, value_name = "COUNT")]
    passes: Option<u64>,
    /// Promote from this memory node only.
    #[arg(long, value_name = "NODE")]
    from: Option<usize>,
    /// Promote to this memory node only.
    #[arg(long, value_name = "NODE")]
    to: Option<usize>,
    /// Write everything that was seen and decided to this file, for tier replay.
    #[arg(long, value_name = "FILE", conflicts_with = "cgroup")]
    log: Option<PathBuf>,
    /// A program to start, and its arguments, after --.
    #[arg(last = true, num_args = 1.., value_name = "PROGRAM")]
    program: Vec<OsString>,
    /// Where the log is kept in memory, instead.
    #[arg(skip)]
    kept: Option<Kept>,
}

/// What an engine is told, whoever starts it.
#[derive(Debug, Clone, Args)]
pub(super) struct Asked {
    #[arg(long, value_name = "NAME", help = format!("Who says which pages are used [{}]", names()))]
    source: Option<String>,
    /// Bytes a second that are moved, at most, such as 100m.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(super) limit: Option<u64>,
    /// What becomes of large pages that are hot: whole moves them as they are, split has the kernel
    /// split them, and moves the base pages that are used.
    #[arg(long, value_name = "RULE", default_value = "whole")]
    large: Large,
    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value = "1")]
    interval: Seconds,
    #[command(flatten)]
    pub(super) format: Format,
}

impl Asked {
    /// Whether what was asked for makes sense, and there are such a policy and such a source.
    pub(super) fn makes_sense(&self, policy: &str) -> Result<PolicySpec, Failure> {
        if self.limit == Some(0) {
            return Err(usage!("--limit 0 would move nothing: leave it out for no limit"));
        }
        let policy = PolicySpec::parse(policy)?;
        let is_unknown = |name: &&String| !SOURCES.iter().any(|source| source.name == **name);
        self.source.as_ref().filter(is_unknown).map_or(Ok(policy), |name| {
            Err(usage!("no source is called `{name}`; there are {}", names()))
        })
    }
}

/// A program that ran once under an engine.
#[derive(Debug)]
pub(super) struct Once {
    pub(super) sum: Sum,
    pub(super) ended: Ended,
    /// From before it was started.
    pub(super) ns: u64,
    complaints: Vec<String>,
}

impl Once {
    /// Says what could not be known, and why.
    pub(super) fn warn(&self) {
        self.complaints.iter().for_each(|complaint| output::warn(complaint));
        if !self.sum.has_looked() {
            output::warn("the program ended before anything could be known of it");
        }
    }

    /// Ends as the program ended, where a signal did that; else its exit code.
    pub(super) fn exit(&self) -> Exit {
        Exit::like(&self.ended)
    }
}

fn names() -> String {
    let names: Vec<&str> = SOURCES.iter().map(|source| source.name).collect();
    names.join(", ")
}

impl Run for Promote {
    /// Runs until the end.
    fn run(self) -> Result<Exit, Failure> {
        self.asked.makes_sense(&self.policy)?;
        if let Some(pid) = self.pid {
            target::check(pid).map_err(refused)?;
        }
        // What is asked for makes sense: whether this host can do it is another question.
        let tree = Tree::machine();
        let nodes = self.nodes(&tree)?;
        let source = self.source(&tree)?;
        let options = self.options(nodes);
        for other in status::others(&tree) {
            output::warn(&format!("{other}; {}", other.cure()));
        }
        let log = output::Named::of(self.log.as_ref())?.map(|log| log.target);
        if self.program.is_empty() {
            catch_interrupts();
            let sum = self.follow(source, &options, None, log)?;
            output::drawn(&self.drawn(&sum))?;
            return Ok(if interrupted() { Exit::Interrupted } else { Exit::Good });
        }
        let once = self.once(source, &options, log)?;
        once.warn();
        self.drawn(&once.sum).lines().for_each(output::warn);
        Ok(once.exit())
    }
}

impl Promote {
    /// What `promote -- PROGRAM` would be told, with a policy and a place for the log.
    pub(super) fn of_program(
        asked: &Asked,
        program: &[OsString],
        policy: &str,
        kept: Option<Kept>,
    ) -> Self {
        Self {
            pid: None,
            cgroup: None,
            policy: policy.to_owned(),
            asked: asked.clone(),
            duration: None,
            passes: None,
            from: None,
            to: None,
            log: None,
            program: program.to_vec(),
            kept,
        }
    }

    pub(super) fn options(&self, nodes: Vec<MemoryNode>) -> Options {
        let Asked { limit, large, .. } = self.asked;
        Options { policy: self.policy.clone(), limit, large, nodes }
    }

    /// Runs the program to its end, under an engine.
    pub(super) fn once(
        &self,
        source: &'static Source,
        options: &Options,
        log: Option<Target>,
    ) -> Result<Once, Failure> {
        let began = monotonic_raw_ns();
        let mut started = Started::new(&self.program, Some(source))?;
        let followed = self.follow(source, options, Some(&mut started), log);
        // Whatever became of the engine, the program runs to its end.
        let complaints = started.complaints();
        let ended = started.end()?;
        let ns = ended.at_ns.saturating_sub(began);
        Ok(Once { sum: followed?, ended, ns, complaints })
    }

    /// Runs the program to its end with nobody beside.
    pub(super) fn alone(&self) -> Result<Once, Failure> {
        let began = monotonic_raw_ns();
        let ended = Started::new(&self.program, None)?.end()?;
        let ns = ended.at_ns.saturating_sub(began);
        Ok(Once { sum: Sum::default(), ended, ns, complaints: Vec::new() })
    }

    fn drawn(&self, sum: &Sum) -> String {
        match self.asked.format.format.as_str() {
            "json" => format!("{}\n", sum.json()),
            _ => sum.text(),
        }
    }

    /// The nodes that pages move between.
    pub(super) fn nodes(&self, tree: &Tree) -> Result<Vec<MemoryNode>, Failure> {
        let all = memory_nodes(tree);
        let known = |id: usize| all.iter().find(|node| node.id == id);
        for id in [self.from, self.to].into_iter().flatten() {
            if known(id).is_none() {
                let there: Vec<String> = all.iter().map(|node| node.id.to_string()).collect();
                let there = there.join(", ");
                return Err(usage!("there is no memory node {id}; there are {there}"));
            }
        }
        // A program that is started says where it is hot also where nothing can move.
        let may_stay = !self.program.is_empty() && self.from.is_none() && self.to.is_none();
        if may_stay && all.iter().all(|node| node.tier == 0) {
            return Ok(all);
        }
        if all.len() < 2 {
            return Err(nothing(&Reason::OneNode));
        }
        if all.iter().all(|node| node.tier == 0) {
            return Err(nothing(&Reason::SameTier { nodes: all.len() }));
        }
        let top = |node: &MemoryNode| self.to.map_or(node.tier == 0, |to| node.id == to);
        let tier = all.iter().filter(|node| top(node)).map(|node| node.tier).max().unwrap_or(0);
        let lower = |node: &MemoryNode| {
            self.from.map_or(node.tier > tier, |from| node.id == from) && !top(node)
        };
        if let Some(from) = self.from.and_then(known).filter(|from| from.tier <= tier) {
            return Err(usage!("node {} is not in a lower tier than where pages go", from.id));
        }
        let chosen: Vec<MemoryNode> =
            all.iter().filter(|node| top(node) || lower(node)).cloned().collect();
        if !chosen.iter().any(lower) {
            return Err(usage!("no node is in a lower tier than that of --to"));
        }
        // The tiers that are left count from 0.
        let lift = |node: MemoryNode| MemoryNode { tier: node.tier - tier, ..node };
        Ok(chosen.into_iter().map(lift).collect())
    }

    pub(super) fn source(&self, tree: &Tree) -> Result<&'static Source, Failure> {
        self.asked
            .large
            .probe(tree)
            .map_err(|lack| host!("--large split: {}; to have it: {}", lack.what, lack.cure))?;
        let reach = if self.program.is_empty() { Reach::Foreign } else { Reach::Own };
        source::choose(self.asked.source.as_deref(), reach, tree).map_err(|lacks| {
            let lack = |(name, lack): &(String, source::Lack)| {
                format!("{name}: {}; to have it: {}", lack.what, lack.cure)
            };
            let lacks: Vec<String> = lacks.iter().map(lack).collect();
            let text = format!("nothing here says which pages are used: {}", lacks.join("; "));
            host!(text)
        })
    }
}

/// A target that cannot be one: the argument is wrong, or the rights are.
fn refused(why: Refused) -> Failure {
    match why {
        Refused::Forbidden(_) => Failure::host(why),
        why => Failure::usage(why),
    }
}

fn nothing(reason: &Reason) -> Failure {
    let text = format!("nothing can be promoted: {reason}; {}", reason.cure());
    host!(text)
}
