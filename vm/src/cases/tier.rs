//! `pagelab tier promote` on machines with two tiers: what is written goes up, what is not stays.
//!
//! The one idea: the target is this program, which knows which of its pages are hot, because it
//! drew them by a seed, and asks the kernel itself where they are. The engine knows neither.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use pagelab_sys::{
    Area,
    machine::{Tree, tiers::free_pages},
    memory::{Advice, Backing, Layout, nodes_of},
};

use crate::{
    guest::{Guest, scratch},
    verdict::Verdict,
};

/// The word that makes this program the target: then bytes, the seed, and `huge`, `base`, or `full`
/// for base pages beside memory that fills the fast node and is never used again.
pub(crate) const HEAT: &str = "__heat";
const PAGE: usize = 4096;
const HUGE: usize = 2 << 20;
/// Bytes of the target on an emulated machine whose slow node may really be slow.
const BYTES: usize = 32 << 20;
/// The seeds of the sets that are drawn.
const SEEDS: [u64; 2] = [17, 4711];

/// Writes to its hot pages until it is told otherwise.
pub(crate) fn heat(bytes: &str, seed: &str, pages: &str) -> Result<()> {
    let (bytes, seed): (usize, u64) = (bytes.parse()?, seed.parse()?);
    let unit = if pages == "huge" { HUGE } else { PAGE };
    let layout = Layout::contiguous(bytes);
    let mut area = Area::reserve(layout, Backing::Anonymous, HUGE, 0)?;
    area.open()?;
    area.map(false)?;
    area.advise(if unit == HUGE { Advice::HugePage } else { Advice::NoHugePage })?;
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
            Ok(_) | Err(TryRecvError::Disconnected) => break,
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
const LEFT: u64 = 512;

/// Takes what is free of the fast node.
fn fill() -> Result<Area> {
    let free = free_pages(&Tree::machine(), 0).saturating_sub(LEFT);
    let bytes = usize::try_from(free)? * PAGE / HUGE * HUGE;
    let mut area = Area::reserve(Layout::contiguous(bytes), Backing::Anonymous, HUGE, 0)?;
    area.open()?;
    area.map(false)?;
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
struct Target {
    process: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Target {
    fn start(bytes: usize, seed: u64, pages: &str) -> Result<Self> {
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

    fn places(&mut self) -> Result<[usize; 4]> {
        let line = self.ask("places")?;
        let numbers: Vec<usize> = line.split(' ').flat_map(str::parse).collect();
        numbers.try_into().map_err(|_| anyhow::anyhow!("it says: {line}"))
    }

    /// Its memory is as it left it.
    fn end(mut self) -> Result<()> {
        let line = self.ask("end")?;
        ensure!(line == "correct", "the target says: {line}");
        ensure!(self.process.wait()?.success(), "the target failed");
        Ok(())
    }
}

pub(super) fn promote(guest: &Guest) -> Result<Verdict> {
    for (pages, seed) in [("base", SEEDS[0]), ("base", SEEDS[1]), ("huge", SEEDS[0])] {
        guest.part(&format!("{pages} {seed}"), promoted(guest, pages, seed));
    }
    Verdict::ok("what was written is on the fast node")
}

fn promoted(guest: &Guest, pages: &str, seed: u64) -> Result<Verdict> {
    let mut target = Target::start(BYTES, seed, pages)?;
    let pid = target.process.id().to_string();
    let log = scratch();
    let path = log.to_string_lossy().into_owned();
    let words = ["tier", "promote", "--pid", &pid, "--passes", "8", "--interval", "0.2", "--log"];
    let ran = guest.run(&[&words[..], &[&path, "--format", "json"]].concat())?;
    ensure!(ran.code == 0, "exit code {}: {}", ran.code, ran.stderr);
    let [hot, all_hot, cold, all_cold] = target.places()?;
    let found = format!("{hot} of {all_hot} hot, {cold} of {all_cold} others");
    guest.note(format!("{pages} {seed}: {found}; {}", ran.stdout));
    target.end()?;
    ensure!(hot * 100 >= all_hot * 99, "{hot} of {all_hot} hot pages were promoted");
    ensure!(cold * 100 <= all_cold, "{cold} of {all_cold} others were promoted");
    let again = guest.run(&["tier", "replay", &path])?;
    let _ = fs::remove_file(&log);
    ensure!(again.code == 0, "the replay: {}{}", again.stdout, again.stderr);
    Verdict::ok(format!("{found}; {}", again.stdout.trim()))
}

/// Each source inside a program that this kernel has: loads alone, and stores.
pub(super) fn program(guest: &Guest) -> Result<Verdict> {
    let listed = guest.run(&["tier", "sources", "--format", "json"])?;
    let sources: serde_json::Value = serde_json::from_str(&listed.stdout)?;
    let has = |name: &str| {
        let rows = sources.as_array().into_iter().flatten();
        rows.filter(|row| row["name"] == name).any(|row| row["lack"].is_null())
    };
    ensure!(has("prot-none"), "no library: {}", listed.stdout);
    // A machine that has a part of a processor takes seconds to look at everything.
    for (source, what, ms) in [("prot-none", "load", "40000"), ("write-protect", "store", "12000")]
    {
        if source == "prot-none" || has(source) {
            guest.part(source, inside(guest, source, what, ms));
        }
    }
    Verdict::ok("what was used is on the fast node")
}

fn inside(guest: &Guest, source: &str, what: &str, ms: &str) -> Result<Verdict> {
    let (pages, log) = (scratch(), scratch());
    let [pages, log] = [pages, log].map(|path| path.to_string_lossy().into_owned());
    let seed = SEEDS[1].to_string();
    let words = ["tier", "promote", "--source", source, "--interval", "0.5", "--log", &log, "--"];
    let hot = ["/bin/hot", "16", &seed, ms, what, &pages, "1"];
    let ran = guest.run(&[&words[..], &hot].concat())?;
    ensure!(ran.code == 0, "exit code {}: {}{}", ran.code, ran.stdout, ran.stderr);
    let mut lines = ran.stdout.lines();
    let counts: Vec<usize> =
        lines.next().unwrap_or_default().split(' ').flat_map(str::parse).collect();
    ensure!(lines.next() == Some("correct"), "the program says: {}", ran.stdout);
    let [hot, all_hot, cold, all_cold] = counts[..] else { anyhow::bail!("{}", ran.stdout) };
    let found = format!("{hot} of {all_hot} hot, {cold} of {all_cold} others");
    guest.note(format!("{source}: {found}; {}", ran.stderr));
    ensure!(hot * 100 >= all_hot * 99, "{found}");
    ensure!(cold * 100 <= all_cold, "{found}");
    let again = guest.run(&["tier", "replay", &log])?;
    let _ = (fs::remove_file(&log), fs::remove_file(&pages));
    ensure!(again.code == 0, "the replay: {}{}", again.stdout, again.stderr);
    Verdict::ok(found)
}

/// Passes of the engine over a full fast node.
const PASSES: &str = "40";

pub(super) fn full(guest: &Guest) -> Result<Verdict> {
    let mut target = Target::start(BYTES, SEEDS[1], "full")?;
    let pid = target.process.id().to_string();
    let log = scratch();
    let path = log.to_string_lossy().into_owned();
    let words = ["tier", "promote", "--pid", &pid, "--passes", PASSES, "--interval", "0.5"];
    let ran = guest.run(&[&words[..], &["--log", &path, "--format", "json"]].concat())?;
    ensure!(ran.code == 0, "exit code {}: {}", ran.code, ran.stderr);
    let [hot, all_hot, cold, all_cold] = target.places()?;
    let (moves, seconds, pages) = at_rest(&fs::read_to_string(&log)?)?;
    let _ = fs::remove_file(&log);
    let found = format!("{hot} of {all_hot} hot, {cold} of {all_cold} others of the same area");
    guest.note(format!("{found}; {moves} of {pages} pages in {seconds} s; {}", ran.stdout));
    target.end()?;
    ensure!(hot * 100 >= all_hot * 95, "{found}");
    // No more than a hundredth of all pages in a minute.
    ensure!(moves as f64 * 60.0 <= seconds * pages as f64 / 100.0, "{moves} in {seconds} s");
    Verdict::ok(format!("{found}; {moves} moves in the last {seconds:.0} s"))
}

/// What moved in the last quarter of a log's passes, their seconds, and pages that were placed.
fn at_rest(log: &str) -> Result<(u64, f64, u64)> {
    let lines: Vec<serde_json::Value> =
        log.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let counts = |line: &serde_json::Value, key: &str| -> u64 {
        let of = |entry: &serde_json::Value| entry[1].as_u64().unwrap_or(0);
        line[key].as_array().map_or(0, |entries| entries.iter().map(of).sum())
    };
    let times: Vec<u64> = lines.iter().filter_map(|line| line["world"]["now"].as_u64()).collect();
    let late = *times.get(times.len() * 3 / 4).context("no passes")?;
    let from = lines.iter().position(|line| line["world"]["now"] == late).unwrap_or(0);
    let moves = lines[from..].iter().map(|line| counts(line, "moved")).sum();
    let pages = lines.iter().map(|line| counts(line, "placed")).max().unwrap_or(0);
    let last = times.last().copied().unwrap_or(late);
    Ok((moves, (last - late) as f64 / 1e9, pages))
}

/// Machine, target and reasons, as they are.
pub(super) fn status(guest: &Guest) -> Result<Verdict> {
    let target = Target::start(BYTES, SEEDS[0], "base")?;
    let ran = guest.run(&["tier", "status", "--once", "--json"])?;
    ensure!(ran.code == 0, "exit code {}: {}", ran.code, ran.stderr);
    let status: serde_json::Value = serde_json::from_str(&ran.stdout)?;
    let processes = status["processes"].as_array().context("no processes")?;
    let found = processes.iter().find(|one| one["pid"] == target.process.id());
    let lower = found.and_then(|one| one["tiers"]["1"].as_u64()).context("no bytes in tier 1")?;
    ensure!(lower >= BYTES as u64, "{lower} bytes in tier 1");
    let shown = guest.run(&["tier", "status", "--once"])?;
    ensure!(shown.stdout.contains("tier 1"), "{}", shown.stdout);
    target.end()?;
    Verdict::ok(format!("{} MiB in tier 1; {}", lower >> 20, status["reasons"]))
}

pub(super) fn killed(guest: &Guest) -> Result<Verdict> {
    let mut target = Target::start(BYTES, SEEDS[0], "base")?;
    let pid = target.process.id().to_string();
    let log = scratch();
    let path = log.to_string_lossy().into_owned();
    let words = ["tier", "promote", "--pid", &pid, "--interval", "0.2", "--limit", "8m", "--log"];
    let mut command = guest.pagelab(&[&words[..], &[&path]].concat());
    let mut engine = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut some = 0;
    for _ in 0..200 {
        some = target.places()?[0];
        if some > 0 {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    engine.kill()?;
    engine.wait()?;
    ensure!(some > 0, "nothing had moved when the engine was killed");
    // A second engine takes over: the first one's claim went with it.
    let ran = guest.run(&["tier", "promote", "--pid", &pid, "--passes", "2"])?;
    ensure!(ran.code == 0, "after the kill: {}", ran.stderr);
    let again = guest.run(&["tier", "replay", &path])?;
    let _ = fs::remove_file(&log);
    ensure!(again.code == 0, "the replay: {}{}", again.stdout, again.stderr);
    target.end()?;
    Verdict::ok(format!("{some} pages had moved; {}", again.stdout.trim()))
}
