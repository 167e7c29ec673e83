//! `pagelab tier promote` on machines with two tiers: what is written goes up, what is not stays.
//!
//! The one idea: the target is this program, which knows which of its pages are hot, because it
//! drew them by a seed, and asks the kernel itself where they are. The engine knows neither. NUMA
//! balancing, which stock kernels turn on where they find two nodes, is off: it promotes, too.

mod damon;
mod full;
mod hints;
mod program;
pub(crate) mod target;

use std::{fs, process::Stdio, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use pagelab_sys::{memory::move_pages, time::monotonic_raw_ns};

use self::target::Target;
pub(super) use self::{
    damon::damon,
    full::full,
    hints::hints,
    program::{explain, program},
};
use crate::{
    guest::{Guest, scratch, set},
    verdict::Verdict,
};

/// Bytes of the target on an emulated machine whose slow node may really be slow.
const BYTES: usize = 32 << 20;
/// The same where each access to the slow node is a call of the emulator's.
const BYTES_SLOW: usize = 8 << 20;
/// The seeds of the sets that are drawn.
const SEEDS: [u64; 2] = [17, 4711];
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

fn bytes(guest: &Guest) -> usize {
    if guest.machine() == "cxl" { BYTES_SLOW } else { BYTES }
}

pub(super) fn promote(guest: &Guest) -> Result<Verdict> {
    set(BALANCING, "0")?;
    // Else a page that was split is made one again.
    let naps = "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs";
    set(naps, "3600000")?;
    for (pages, seed) in KINDS {
        guest.part(&format!("{pages} {seed}"), promoted(guest, pages, seed));
    }
    // A figure, not a verdict.
    if guest.soak() {
        guest.part("mover", mover(guest));
    }
    Verdict::ok("what was written is on the fast node")
}

/// Pages of the target, and the seed of the hot ones.
const KINDS: [(&str, u64); 4] =
    [("base", SEEDS[0]), ("base", SEEDS[1]), ("huge", SEEDS[0]), ("sparse", SEEDS[1])];

fn promoted(guest: &Guest, pages: &str, seed: u64) -> Result<Verdict> {
    let mut target = Target::start(bytes(guest), seed, pages)?;
    let pid = target.pid();
    // A page that was split waits for eight looks.
    let (rule, passes) = if pages == "sparse" { ("split", "14") } else { ("whole", "8") };
    let (mut found, mut again, mut places) = (String::new(), String::new(), [0; 4]);
    // A target that did not run meanwhile wrote nothing.
    for _ in 0..ENGINES {
        let log = scratch();
        let words = ["tier", "promote", "--pid", &pid, "--passes", passes, "--interval", "0.2"];
        let more = ["--large", rule, "--log", &log, "--format", "json"];
        let ran = guest.done(&[&words[..], &more].concat())?;
        places = target.places()?;
        let [hot, all_hot, cold, all_cold] = places;
        found = format!("{hot} of {all_hot} hot, {cold} of {all_cold} others");
        guest.note(format!("{pages} {seed}: {found}; {}", ran.stdout));
        again = replayed(guest, &log)?;
        if hot * 100 >= all_hot * 99 {
            break;
        }
    }
    let [hot, all_hot, cold, all_cold] = places;
    if rule == "split" {
        let vmstat = fs::read_to_string("/proc/vmstat")?;
        let splits = vmstat.lines().filter(|line| line.starts_with("thp_split_page"));
        guest.note(splits.collect::<Vec<_>>().join(", "));
    }
    target.end()?;
    ensure!(hot * 100 >= all_hot * 99, "{hot} of {all_hot} hot pages were promoted");
    ensure!(cold * 100 <= all_cold, "{cold} of {all_cold} others were promoted");
    Verdict::ok(format!("{found}; {again}"))
}

/// What replaying a log says, which comes to the same; the log is gone afterwards.
fn replayed(guest: &Guest, log: &str) -> Result<String> {
    let ran = guest.run(&["tier", "replay", log])?;
    let _ = fs::remove_file(log);
    ensure!(ran.code == 0, "the replay: {}{}", ran.stdout, ran.stderr);
    Ok(ran.stdout.trim().to_owned())
}

/// Engines, one after the other, that are given to a target whose host is busy.
const ENGINES: usize = 20;

/// Bytes of a target whose hot pages fill a call of the mover's.
const BYTES_MOVED: usize = 128 << 20;
/// Pages that a call moves, as the mover's do.
const BATCH: usize = 4096;
/// Rounds of the mover beside bare calls.
const ROUNDS: usize = 4;

/// The mover beside bare calls of the kernel, in turns, for the same pages: what it takes is said,
/// and nothing is asserted of it.
fn mover(guest: &Guest) -> Result<Verdict> {
    let mut target = Target::start(BYTES_MOVED, SEEDS[0], "base")?;
    let (pid, addresses) = (target.pid(), target.hot()?);
    let words = ["tier", "promote", "--pid", &pid, "--passes", "6", "--interval", "0.2"];
    let bare = |node| -> Result<(u64, u64)> {
        let (nodes, mut status) = (vec![node; BATCH], vec![0; BATCH]);
        let begin = monotonic_raw_ns();
        for some in addresses.chunks(BATCH) {
            move_pages(pid.parse()?, some, &nodes[..some.len()], &mut status[..some.len()])?;
        }
        Ok((addresses.len() as u64, monotonic_raw_ns() - begin))
    };
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let mut took = [0.0; 2];
        for arm in [round % 2, 1 - round % 2] {
            let (pages, ns) = if arm == 0 {
                bare(0)?
            } else {
                let ran = guest.done(&[&words[..], &["--format", "json"]].concat())?;
                let told: serde_json::Value = serde_json::from_str(&ran.stdout)?;
                let number = |name: &str| told[name].as_u64().context(ran.stdout.clone());
                (number("promoted")?, number("run_ns")?)
            };
            took[arm] = ns as f64 / pages as f64;
            let [hot, all_hot, ..] = target.places()?;
            ensure!(hot * 100 >= all_hot * 99, "round {round}, arm {arm}: {hot} of {all_hot}");
            bare(1)?;
        }
        guest.note(format!("a page took {:.0} ns bare, {:.0} ns by the mover", took[0], took[1]));
        ratios.push(took[0] / took[1] * 100.0);
    }
    target.end()?;
    ratios.sort_by(f64::total_cmp);
    let shares = ratios.iter().map(|ratio| format!("{ratio:.1}"));
    Verdict::ok(format!("{} % of bare calls", shares.collect::<Vec<_>>().join(", ")))
}

/// Machine, target and reasons, as they are.
pub(super) fn status(guest: &Guest) -> Result<Verdict> {
    set(BALANCING, "0")?;
    let bytes = bytes(guest);
    let target = Target::start(bytes, SEEDS[0], "base")?;
    let ran = guest.done(&["tier", "status", "--once", "--json"])?;
    let status: serde_json::Value = serde_json::from_str(&ran.stdout)?;
    let processes = status["processes"].as_array().context("no processes")?;
    let found = processes.iter().find(|one| one["pid"] == target.number());
    let lower = found.and_then(|one| one["tiers"]["1"].as_u64()).context("no bytes in tier 1")?;
    ensure!(lower >= bytes as u64, "{lower} bytes in tier 1");
    let shown = guest.run(&["tier", "status", "--once"])?;
    ensure!(shown.stdout.contains("tier 1"), "{}", shown.stdout);
    target.end()?;
    Verdict::ok(format!("{} MiB in tier 1; {}", lower >> 20, status["reasons"]))
}

pub(super) fn killed(guest: &Guest) -> Result<Verdict> {
    set(BALANCING, "0")?;
    let mut target = Target::start(bytes(guest), SEEDS[0], "base")?;
    let pid = target.pid();
    let log = scratch();
    let words = ["tier", "promote", "--pid", &pid, "--interval", "0.2", "--limit", "8m", "--log"];
    let mut command = guest.pagelab(&[&words[..], &[&log]].concat());
    let mut engine = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut some = 0;
    while some == 0 && engine.try_wait()?.is_none() {
        thread::sleep(Duration::from_millis(50));
        some = target.places()?[0];
    }
    engine.kill()?;
    engine.wait()?;
    ensure!(some > 0, "nothing had moved when the engine was killed");
    // A second engine takes over: the first one's claim went with it.
    guest.done(&["tier", "promote", "--pid", &pid, "--passes", "2"])?;
    let again = replayed(guest, &log)?;
    target.end()?;
    Verdict::ok(format!("{some} pages had moved; {again}"))
}
