//! `pagelab tier promote`: our engine on a live process, or on all of a group.
//!
//! The one idea: it promises nothing. It looks every `--interval`, moves what the policy asks for,
//! and says at the end what moved, what did not and why; a log that is asked for has all of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{BufWriter, Write},
    path::PathBuf,
};

use clap::Args;
use pagelab_bench::asked::Seconds;
use pagelab_live::{
    Engine, Options, Pass, Reason,
    engine::{Ended, wait_until},
    source::{self, SOURCES, Source},
    status,
    target::{self, Refused},
};
use pagelab_record::units::parse_bytes;
use pagelab_sys::{
    machine::{
        Tree,
        tiers::{MemoryNode, memory_nodes},
    },
    process::{catch_interrupts, interrupted},
    time::monotonic_raw_ns,
};
use serde_json::json;

use crate::{
    args::{Format, Run},
    exit::{Exit, Failure},
    output,
};

/// Move the pages that a running process uses to the fast memory.
///
/// Looks which pages were written since it last looked, lets a policy of `tier simulate` decide,
/// and moves them there. Ends with the process, after --for, or by Ctrl-C. Nothing of
/// the machine is set. Not yet seen on hardware.
#[derive(Debug, Args)]
pub(super) struct Promote {
    /// The process.
    #[arg(long, value_name = "PID", required_unless_present = "cgroup", conflicts_with = "cgroup")]
    pid: Option<u32>,
    /// All processes of a group of version 2 and of those below it.
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
    #[arg(long, value_name = "NAME", help = format!("Who says which pages are used [{}]", names()))]
    source: Option<String>,
    /// The policy and its parameters, as in tier simulate.
    #[arg(long, value_name = "NAME", default_value = "history")]
    policy: String,
    /// Bytes a second that are moved, at most, such as 100m.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    limit: Option<u64>,
    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value = "1")]
    interval: Seconds,
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
    #[command(flatten)]
    format: Format,
}

fn names() -> String {
    let names: Vec<&str> = SOURCES.iter().map(|source| source.name).collect();
    names.join(", ")
}

/// What came of all processes together.
#[derive(Debug, Default)]
struct Sum {
    passes: u64,
    promoted: u64,
    demoted: u64,
    calls: u64,
    waited_ns: u64,
    failed: BTreeMap<i32, u64>,
    last: BTreeMap<u32, Pass>,
    reasons: Vec<Reason>,
    ended: Vec<String>,
}

impl Run for Promote {
    /// Runs until the end.
    fn run(self) -> Result<Exit, Failure> {
        if self.limit == Some(0) {
            let text = "--limit 0 would move nothing: leave it out for no limit";
            return Err(Failure::usage_text(text));
        }
        pagelab_tier::PolicySpec::parse(&self.policy).map_err(Failure::usage_text)?;
        if let Some(name) = &self.source
            && !SOURCES.iter().any(|source| source.name == name)
        {
            let text = format!("no source is called `{name}`; there are {}", names());
            return Err(Failure::usage_text(text));
        }
        if let Some(pid) = self.pid {
            target::check(pid).map_err(refused)?;
        }
        // What is asked for makes sense: whether this host can do it is another question.
        let tree = Tree::machine();
        let nodes = self.nodes(&tree)?;
        let source = self.source(&tree)?;
        let options = Options { policy: self.policy.clone(), limit: self.limit, nodes };
        for other in status::others(&tree) {
            output::warn(&format!("{other}; {}", other.cure()));
        }
        catch_interrupts();
        let sum = self.follow(source, &options)?;
        output::drawn(&match self.format.format.as_str() {
            "json" => format!("{}\n", sum.json()),
            _ => sum.text(),
        })?;
        Ok(if interrupted() { Exit::Interrupted } else { Exit::Good })
    }
}

impl Promote {
    /// The nodes that pages move between.
    fn nodes(&self, tree: &Tree) -> Result<Vec<MemoryNode>, Failure> {
        let all = memory_nodes(tree);
        let known = |id: usize| all.iter().find(|node| node.id == id);
        for id in [self.from, self.to].into_iter().flatten() {
            if known(id).is_none() {
                let there: Vec<String> = all.iter().map(|node| node.id.to_string()).collect();
                let there = there.join(", ");
                let text = format!("there is no memory node {id}; there are {there}");
                return Err(Failure::usage_text(text));
            }
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
            let text = format!("node {} is not in a lower tier than where pages go", from.id);
            return Err(Failure::usage_text(text));
        }
        let chosen: Vec<MemoryNode> =
            all.iter().filter(|node| top(node) || lower(node)).cloned().collect();
        if !chosen.iter().any(lower) {
            return Err(Failure::usage_text("no node is in a lower tier than that of --to"));
        }
        // The tiers that are left count from 0.
        let lift = |node: MemoryNode| MemoryNode { tier: node.tier - tier, ..node };
        Ok(chosen.into_iter().map(lift).collect())
    }

    fn source(&self, tree: &Tree) -> Result<&'static Source, Failure> {
        source::choose(self.source.as_deref(), tree).map_err(|lacks| {
            let lack = |(name, lack): &(String, source::Lack)| {
                format!("{name}: {}; to have it: {}", lack.what, lack.cure)
            };
            let lacks: Vec<String> = lacks.iter().map(lack).collect();
            let text = format!("nothing here says which pages are used: {}", lacks.join("; "));
            Failure::host(anyhow::anyhow!(text))
        })
    }

    fn log(&self) -> Result<Option<Box<dyn Write>>, Failure> {
        let Some(path) = &self.log else { return Ok(None) };
        let file = File::create_new(path).map_err(|why| {
            Failure::usage(anyhow::Error::new(why).context(format!("--log {}", path.display())))
        })?;
        Ok(Some(Box::new(BufWriter::new(file))))
    }

    /// The processes that are there now.
    fn pids(&self) -> Result<BTreeSet<u32>, String> {
        match (&self.pid, &self.cgroup) {
            (Some(pid), _) => Ok(BTreeSet::from([*pid])),
            (None, Some(folder)) => target::of_group(folder)
                .map(|pids| pids.into_iter().collect())
                .map_err(|why| format!("{}: {why}", folder.display())),
            (None, None) => Ok(BTreeSet::new()),
        }
    }

    fn follow(&self, source: &'static Source, options: &Options) -> Result<Sum, Failure> {
        let begin = monotonic_raw_ns();
        let seconds = |seconds: f64| {
            let nanoseconds = std::time::Duration::from_secs_f64(seconds).as_nanos();
            u64::try_from(nanoseconds).unwrap_or(u64::MAX)
        };
        let end = self.duration.map(|duration| begin.saturating_add(seconds(duration.get())));
        let mut engines: BTreeMap<u32, Engine> = BTreeMap::new();
        let mut known = BTreeSet::new();
        let mut sum = Sum::default();
        let mut next = begin;
        loop {
            let pids = match self.pids() {
                Ok(pids) => pids,
                Err(why) if sum.passes == 0 => return Err(Failure::usage_text(why)),
                Err(why) => {
                    sum.ended.push(why);
                    break;
                }
            };
            for &pid in pids.iter().filter(|pid| !known.contains(*pid)) {
                match Engine::new(pid, source, options.clone(), self.log()?) {
                    Ok(engine) => _ = engines.insert(pid, engine),
                    Err(Ended::Target(why)) if self.pid.is_some() => return Err(refused(why)),
                    Err(Ended::Io(why)) => return Err(Failure::host(why)),
                    // One of a group: the others go on.
                    Err(Ended::Target(why)) => sum.ended.push(why.to_string()),
                }
            }
            known = pids;
            sum.passes += 1;
            let mut ended = Vec::new();
            for (pid, engine) in &mut engines {
                match engine.pass() {
                    Ok(pass) => sum.add(*pid, pass, engine),
                    Err(Ended::Target(why)) => ended.push((*pid, why.to_string())),
                    Err(Ended::Io(why)) => return Err(Failure::host(why)),
                }
            }
            for (pid, why) in ended {
                if let Some(engine) = engines.remove(&pid) {
                    sum.take(&engine);
                }
                sum.ended.push(why);
            }
            let is_last = self.passes.is_some_and(|passes| sum.passes >= passes);
            if is_last || engines.is_empty() && self.pid.is_some() {
                break;
            }
            next = next.saturating_add(seconds(self.interval.get()));
            let wake = end.map_or(next, |end| next.min(end));
            if !wait_until(wake) || end.is_some_and(|end| monotonic_raw_ns() >= end) {
                break;
            }
            next = next.max(monotonic_raw_ns());
        }
        for engine in engines.values() {
            sum.take(engine);
        }
        Ok(sum)
    }
}

impl Sum {
    fn add(&mut self, pid: u32, pass: Pass, engine: &Engine) {
        self.promoted += pass.promoted;
        self.demoted += pass.demoted;
        self.reasons = engine.reasons(&pass);
        self.last.insert(pid, pass);
    }

    fn take(&mut self, engine: &Engine) {
        let tally = engine.tally();
        self.calls += tally.calls;
        self.waited_ns += tally.waited_ns;
        for (errno, pages) in &tally.failed {
            *self.failed.entry(*errno).or_default() += pages;
        }
    }

    fn json(&self) -> serde_json::Value {
        let reasons: Vec<_> = self.reasons.iter().map(|why| json!(why)).collect();
        let last: BTreeMap<String, _> = self
            .last
            .iter()
            .map(|(pid, pass)| {
                let Pass { present, used, promoted, demoted, .. } = *pass;
                let pass = json!({ "present": present, "used": used, "promoted": promoted,
                    "demoted": demoted });
                (pid.to_string(), pass)
            })
            .collect();
        json!({ "passes": self.passes, "promoted": self.promoted, "demoted": self.demoted,
            "calls": self.calls, "waited_ns": self.waited_ns, "failed": self.failed,
            "last": last, "reasons": reasons, "ended": self.ended })
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{} pages promoted, {} demoted, in {} passes and {} calls\n",
            self.promoted, self.demoted, self.passes, self.calls
        );
        for (errno, pages) in &self.failed {
            let why = match errno {
                0 => "for no reason that the kernel named".to_owned(),
                errno => std::io::Error::from_raw_os_error(*errno).to_string(),
            };
            text.push_str(&format!("{pages} pages stayed: {why}\n"));
        }
        for reason in &self.reasons {
            text.push_str(&format!("{reason}; {}\n", reason.cure()));
        }
        for why in &self.ended {
            text.push_str(&format!("ended: {why}\n"));
        }
        text
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
    Failure::host(anyhow::anyhow!(text))
}
