//! A full fast node: cold pages make room for hot ones, by our engine and by the kernel.

use std::{collections::BTreeSet, fs};

use anyhow::{Context, Result, ensure};
use pagelab_sys::{
    Area,
    machine::proc::counts,
    memory::{Advice, Backing, Layout},
};
use serde_json::Value;

use super::{
    BALANCING, SEEDS, bytes,
    target::{LISTS, Target},
};
use crate::{
    guest::{Guest, scratch, set, text},
    verdict::Verdict,
};

const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";

/// Passes of an engine over a full fast node, and seconds from one to the next.
const PASSES: &str = "40";
const INTERVAL: &str = "0.25";
const INTERVAL_S: f64 = 0.25;
/// Engines, one after the other: where the target hardly ran, the first has not come to rest.
const ENGINES: usize = 10;

pub(in crate::cases) fn full(guest: &Guest) -> Result<Verdict> {
    set(BALANCING, "0")?;
    let lists = text(LISTS)?;
    set(LISTS, "100000")?;
    let verdict = of_ours(guest);
    set(LISTS, &lists)?;
    verdict
}

fn of_ours(guest: &Guest) -> Result<Verdict> {
    let mut target = Target::start(bytes(guest), SEEDS[1], "full")?;
    let pid = target.pid();
    let (mut all_down, mut found, mut is_done) = (0, String::new(), false);
    for _ in 0..ENGINES {
        let log = scratch();
        let words = ["tier", "promote", "--pid", &pid, "--passes", PASSES, "--interval", INTERVAL];
        let ran = guest.done(&[&words[..], &["--log", &log, "--format", "json"]].concat())?;
        let [hot, all_hot, cold, all_cold] = target.places()?;
        let lines = fs::read_to_string(&log)?;
        let lines: Vec<Value> =
            lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let _ = fs::remove_file(&log);
        let (moves, passes, pages) = at_rest(&lines)?;
        let (down, came_back) = demoted(&lines);
        ensure!(came_back == 0, "{came_back} of {down} demoted pages had been promoted before");
        all_down += down;
        found = format!(
            "{hot} of {all_hot} hot, {cold} of {all_cold} others of the same area; {moves} moves \
             in the last {passes} passes"
        );
        guest.note(format!("{found}, of {pages} pages; {down} pages demoted; {}", ran.stdout));
        // No more than a hundredth of all pages in a minute.
        let is_at_rest = moves as f64 * 60.0 <= passes as f64 * INTERVAL_S * pages as f64 / 100.0;
        is_done = is_at_rest && hot * 100 >= all_hot * 95;
        if is_done {
            break;
        }
    }
    guest.part("the kernel demotes", by_the_kernel(&mut target));
    target.end()?;
    ensure!(is_done, "{found}");
    ensure!(all_down > 0, "nothing was demoted");
    Verdict::ok(found)
}

/// Pages, and how each went, of a list of `[first, pages, how, node]`.
fn moved(line: &Value) -> impl Iterator<Item = (std::ops::Range<u64>, &Value, u64)> {
    let all = line["moved"].as_array().into_iter().flatten();
    all.filter_map(|one| {
        let number = |at: usize| one[at].as_u64();
        Some((number(0)?..number(0)? + number(1)?, &one[2], number(3)?))
    })
}

/// Pages that went down, and those of them that had gone up before.
fn demoted(lines: &[Value]) -> (usize, usize) {
    let (mut up, mut down) = (BTreeSet::new(), BTreeSet::new());
    let mut came_back = 0;
    for (pages, _, node) in lines.iter().flat_map(moved).filter(|(_, how, _)| *how == "done") {
        for page in pages {
            if node == 0 {
                up.insert(page);
            } else {
                came_back += usize::from(up.contains(&page));
                down.insert(page);
            }
        }
    }
    (down.len(), came_back)
}

/// What moved in the last quarter of a log's passes, their number, and pages that were placed.
fn at_rest(lines: &[Value]) -> Result<(u64, usize, u64)> {
    let placed = |line: &Value| -> u64 {
        let of = |entry: &Value| entry[1].as_u64().unwrap_or(0);
        line["placed"].as_array().map_or(0, |entries| entries.iter().map(of).sum())
    };
    let times: Vec<u64> = lines.iter().filter_map(|line| line["world"]["now"].as_u64()).collect();
    let late = *times.get(times.len() * 3 / 4).context("no passes")?;
    let from = lines.iter().position(|line| line["world"]["now"] == late).unwrap_or(0);
    let late_ones = lines[from..].iter().flat_map(moved);
    let moves = late_ones.map(|(pages, ..)| pages.end - pages.start).sum();
    let pages = lines.iter().map(placed).max().unwrap_or(0);
    Ok((moves, times.len() - times.len() * 3 / 4, pages))
}

/// Bytes for which the kernel has to make room on the fast node.
const PRESSURE: usize = 48 << 20;
/// Bytes of that for each turn of the target over its hot pages.
const STEP: usize = 2 << 20;

/// The kernel's own demotion makes room on the fast node: what is hot stays there.
fn by_the_kernel(target: &mut Target) -> Result<Verdict> {
    let [hot, all_hot, ..] = target.places()?;
    set(DEMOTION, "1")?;
    let before = demotions()?;
    let area = Area::mapped(Layout::contiguous(PRESSURE), Backing::Anonymous, 2 << 20)?;
    area.advise(Advice::NoHugePage)?;
    area.bind(0)?;
    for at in (0..PRESSURE).step_by(4096) {
        // Hot is what is written between two looks of the kernel: the target answers behind a turn.
        if at % STEP == 0 {
            target.places()?;
        }
        area.set_word(at, 1);
    }
    let demoted = demotions()? - before;
    let [still, ..] = target.places()?;
    set(DEMOTION, "0")?;
    ensure!(demoted > 0, "the kernel demoted nothing");
    let found = format!("{demoted} pages; {still} of {hot} hot ones are still on the fast node");
    ensure!(hot.saturating_sub(still) * 100 <= all_hot, "{found}");
    Verdict::ok(found)
}

/// Pages that the kernel demoted since boot.
fn demotions() -> Result<u64> {
    let text = text("/proc/vmstat")?;
    let demoted = counts(&text).filter(|(name, _)| name.starts_with("pgdemote_"));
    Ok(demoted.map(|(_, count)| count).sum())
}
