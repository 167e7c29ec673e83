//! The process whose pages are promoted: this program again, which knows which of them are hot.

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use pagelab_sys::{
    Area,
    machine::{Topology, Tree, tiers::free_pages},
    memory::{Advice, Backing, Layout, nodes_of},
    process::Pinned,
};

/// The word that makes this program the target: then bytes, the seed, and `base`; `busy` for base
/// pages that are written without a pause; `huge`; `sparse` for huge pages of which an eighth of
/// the base pages is hot; or `full` for base pages beside memory that fills the fast node and is
/// never used again.
pub(crate) const HEAT: &str = "__heat";
/// How long a processor's lists of free pages may be: a node's pages by this number, each.
pub(super) const LISTS: &str = "/proc/sys/vm/percpu_pagelist_high_fraction";
const PAGE: usize = 4096;
const HUGE: usize = 2 << 20;

/// Writes to its hot pages until it is told otherwise.
pub(crate) fn heat(bytes: &str, seed: &str, pages: &str) -> Result<()> {
    let (bytes, seed): (usize, u64) = (bytes.parse()?, seed.parse()?);
    let unit = if pages == "huge" { HUGE } else { PAGE };
    let layout = Layout::contiguous(bytes);
    let area = Area::mapped(layout, Backing::Anonymous, HUGE)?;
    let is_huge = matches!(pages, "huge" | "sparse");
    area.advise(if is_huge { Advice::HugePage } else { Advice::NoHugePage })?;
    area.bind(1)?;
    for at in (0..bytes).step_by(PAGE) {
        area.set_word(at, at as u64);
    }
    let _cold = if pages == "full" { Some(fill()?) } else { None };
    area.unbind()?;
    let hot = hot(bytes / unit, seed);
    let told = lines();
    let mut turn = 0_u64;
    loop {
        turn += 1;
        for unit_number in &hot {
            area.set_word(unit_number * unit + 8, turn);
        }
        match told.try_recv() {
            Ok(line) if line == "places" => println!("{}", places(&area, &hot, unit)?),
            Ok(line) if line == "hot" => {
                let at = |number: &usize| (area.base() + number * unit).to_string();
                println!("{}", hot.iter().map(at).collect::<Vec<_>>().join(" "));
            }
            Ok(_) | Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) if pages == "busy" => (),
            Err(TryRecvError::Empty) => thread::sleep(Duration::from_millis(5)),
        }
    }
    for at in (0..bytes).step_by(PAGE) {
        ensure!(area.word(at) == at as u64, "the page at {at:#x} has changed");
    }
    ensure!(hot.iter().all(|number| area.word(number * unit + 8) == turn), "a store was lost");
    println!("correct");
    Ok(())
}

/// Pages of the fast node that filling it leaves above the watermarks: fewer than are hot.
const LEFT: u64 = 256;
/// How often what is free is looked for at most.
const ROUNDS: usize = 600;
/// It is full when so many looks in a row find nothing.
const QUIET: usize = 10;
/// Reading it has each processor do what it does every second: give pages of its lists back.
const REFRESH: &str = "/proc/sys/vm/stat_refresh";
/// Bytes that a processor takes and gives back to have its lists emptied.
const GIVEN_BACK: usize = 2 << 20;

/// Takes what is free of the fast node. Free pages in a processor's lists are of no node's count
/// and come back to it late (`decay_pcp_high` in `mm/page_alloc.c`, Linux 6.7): where [`LISTS`] are
/// short, whatever is given back there empties them.
fn fill() -> Result<Vec<Area>> {
    for cpu in Topology::machine().cpus().online {
        let _here = Pinned::to(cpu)?;
        drop(taken(GIVEN_BACK)?);
    }
    let (mut all, mut quiet) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let free = free_pages(&Tree::machine(), 0).saturating_sub(LEFT);
        quiet = if free > 0 { 0 } else { quiet + 1 };
        if quiet == QUIET {
            break;
        }
        if free > 0 {
            all.push(taken(usize::try_from(free)? * PAGE)?);
        }
        std::fs::read(REFRESH).context(REFRESH)?;
        thread::sleep(Duration::from_millis(50));
    }
    Ok(all)
}

/// So many bytes of the fast node.
fn taken(bytes: usize) -> Result<Area> {
    let area = Area::mapped(Layout::contiguous(bytes), Backing::Anonymous, HUGE)?;
    area.advise(Advice::NoHugePage)?;
    area.bind(0)?;
    for at in (0..bytes).step_by(PAGE) {
        area.set_word(at, 1);
    }
    area.unbind()?;
    Ok(area)
}

/// An eighth of so many units.
fn hot(units: usize, seed: u64) -> BTreeSet<usize> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut hot = BTreeSet::new();
    while hot.len() < units.div_ceil(8) {
        hot.insert(random.usize(..units));
    }
    hot
}

/// Four numbers: hot pages on node 0 and in all, others on node 0 and in all. Of huge pages the
/// kernel is asked page by page, too.
fn places(area: &Area, hot: &BTreeSet<usize>, unit: usize) -> Result<String> {
    let pages = area.layout().bytes() / PAGE;
    let addresses: Vec<usize> = (0..pages).map(|page| area.base() + page * PAGE).collect();
    let mut nodes = vec![-1; pages];
    nodes_of(&addresses, &mut nodes)?;
    let mut counts = [0_usize; 4];
    for (page, node) in nodes.iter().enumerate() {
        let kind = if hot.contains(&(page * PAGE / unit)) { 0 } else { 2 };
        counts[kind] += usize::from(*node == 0);
        counts[kind + 1] += 1;
    }
    Ok(counts.map(|count| count.to_string()).join(" "))
}

fn lines() -> Receiver<String> {
    let (tell, told) = channel();
    thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    told
}

/// The target, and the pipes to it.
pub(super) struct Target {
    process: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Target {
    pub(super) fn start(bytes: usize, seed: u64, pages: &str) -> Result<Self> {
        let words = [HEAT.to_owned(), bytes.to_string(), seed.to_string(), pages.to_owned()];
        let mut command = Command::new(env::current_exe()?);
        let piped = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = piped.spawn()?;
        let asks = process.stdin.take().context("its input")?;
        let answers = BufReader::new(process.stdout.take().context("its output")?);
        let mut target = Self { process, asks, answers };
        let [hot, _, cold, _] = target.places()?;
        ensure!(hot + cold == 0, "{} pages are on the fast node at the start", hot + cold);
        Ok(target)
    }

    fn ask(&mut self, what: &str) -> Result<String> {
        writeln!(self.asks, "{what}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Hot pages on the fast node and in all, and others on the fast node and in all.
    pub(super) fn places(&mut self) -> Result<[usize; 4]> {
        let line = self.ask("places")?;
        let numbers: Vec<usize> = line.split(' ').flat_map(str::parse).collect();
        numbers.try_into().map_err(|_| anyhow::anyhow!("it says: {line}"))
    }

    /// The addresses of its hot pages.
    pub(super) fn hot(&mut self) -> Result<Vec<u64>> {
        let line = self.ask("hot")?;
        Ok(line.split(' ').map(str::parse).collect::<Result<_, _>>()?)
    }

    pub(super) fn number(&self) -> u32 {
        self.process.id()
    }

    /// The same as a word.
    pub(super) fn pid(&self) -> String {
        self.number().to_string()
    }

    /// Its memory is as it left it.
    pub(super) fn end(mut self) -> Result<()> {
        let line = self.ask("end")?;
        ensure!(line == "correct", "the target says: {line}");
        ensure!(self.process.wait()?.success(), "the target failed");
        Ok(())
    }
}
