//! DAMON: its migration as a mode, a kill in the middle of it, and a monitor that somebody runs.
//!
//! The one idea: whoever has a monitor keeps it as it is, whatever pagelab is asked to do; what
//! pagelab had set up itself is gone afterwards, also after a kill.

use std::{fs, path::Path, process::Stdio, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use pagelab_record::Outcome;
use serde_json::Value;

use super::{BALANCING, SEEDS, bytes, target::Target};
use crate::{
    cases::balancing::Gone,
    guest::{self, Folder, Guest, set, text},
    verdict::Verdict,
};

const MONITORS: &str = "/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds";
const FOLDER: &str = "/sys/kernel/mm/damon/admin/kdamonds/0";
/// The kernel's own monitor, which lets no other run beside it (since Linux 6.17).
const STAT: &str = "/sys/module/damon_stat/parameters/enabled";

pub(in crate::cases) fn damon(guest: &Guest) -> Result<Verdict> {
    set(BALANCING, "0")?;
    let before = state();
    guest.part("migrates", migrates(guest));
    ensure!(state() == before, "{:?} was {before:?}", state());
    guest.part("killed", killed(guest, &before));
    guest.part("of somebody", of_somebody(guest));
    Verdict::ok("it moves pages, and is gone afterwards")
}

fn state() -> [Option<String>; 2] {
    [MONITORS, STAT].map(|path| text(path).ok())
}

/// What is accessed goes up.
fn migrates(guest: &Guest) -> Result<Verdict> {
    // Again with the most: it samples by time, and a host may pause.
    let tries = ["2m", "16m", "128m", "128m", "128m", "128m"];
    // It looks at some pages of a region; how many that brings is its own affair.
    Verdict::ok(Gone::until(guest, "damon", "4k", &tries, 50)?.to_string())
}

/// Runs that are killed, at moments that are drawn by the seed.
const KILLS: usize = 6;
/// Between what a kill waits for and the kill.
const MOMENT_MS: u64 = 200;

/// A run that was killed leaves no monitor, wherever it was: before it had one, while it made one,
/// while that was on.
fn killed(guest: &Guest, before: &[Option<String>; 2]) -> Result<Verdict> {
    let is_on = || text(&format!("{FOLDER}/state")).is_ok_and(|state| state == "on");
    let mut random = fastrand::Rng::with_seed(SEEDS[0]);
    let mut moments = Vec::new();
    for nth in 0..KILLS {
        let case = [("mode", "damon"), ("size", "16m"), ("accesses", "16g"), ("threads", "1")];
        let folder = Folder::with_suite("tier/micro", &case)?;
        let words = folder.words();
        let mut command = guest.pagelab(&words.each_ref().map(String::as_str));
        let mut run = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let begun = match nth % 3 {
            0 => until(is_on),
            1 => until(|| state() != *before),
            _ => true,
        };
        thread::sleep(Duration::from_millis(random.u64(..MOMENT_MS)));
        let (found, was_on, ended) = (state(), is_on(), run.try_wait()?);
        run.kill()?;
        run.wait()?;
        let mut said = String::new();
        if let (Some(_), Some(stdout)) = (ended, &mut run.stdout) {
            std::io::Read::read_to_string(stdout, &mut said)?;
        }
        ensure!(begun && ended.is_none(), "kill {nth}: no monitor, or it ended: {said}");
        ensure!(until(|| state() == *before), "kill {nth}: {:?} was {before:?}", state());
        moments.push(if was_on {
            "on"
        } else if found == *before {
            "none"
        } else {
            "some"
        });
    }
    ensure!(moments.contains(&"on"), "no monitor was on: {moments:?}");
    Verdict::ok(format!("none is left of those that were {}", moments.join(", ")))
}

/// A monitor that somebody runs is read, shown and named, and stays.
fn of_somebody(guest: &Guest) -> Result<Verdict> {
    let was = text(STAT).ok();
    if was.is_some() {
        set(STAT, "N")?;
    }
    let mut target = Target::start(bytes(guest), SEEDS[0], "base")?;
    let begun = begin(&target.pid());
    let told = begun.and_then(|()| told(guest, target.number()));
    let is_left = text(&format!("{FOLDER}/state"));
    let _ = set(&format!("{FOLDER}/state"), "off");
    set(MONITORS, "0")?;
    if let Some(was) = was {
        set(STAT, &was)?;
    }
    let [hot, _, cold, _] = target.places()?;
    target.end()?;
    ensure!(is_left? == "on", "the monitor was disturbed");
    ensure!(hot + cold == 0, "{} pages moved by regions", hot + cold);
    told
}

/// A monitor of a process, by addresses, whose scheme only counts.
fn begin(pid: &str) -> Result<()> {
    let context = format!("{FOLDER}/contexts/0");
    let scheme = format!("{context}/schemes/0");
    for (path, value) in [
        (MONITORS.to_owned(), "1"),
        (format!("{FOLDER}/contexts/nr_contexts"), "1"),
        (format!("{context}/operations"), "vaddr"),
        (format!("{context}/targets/nr_targets"), "1"),
        (format!("{context}/targets/0/pid_target"), pid),
        (format!("{context}/schemes/nr_schemes"), "1"),
        (format!("{scheme}/action"), "stat"),
        (format!("{scheme}/access_pattern/sz/max"), "18446744073709551615"),
        (format!("{scheme}/access_pattern/nr_accesses/max"), "4294967295"),
        (format!("{scheme}/access_pattern/age/max"), "4294967295"),
        (format!("{FOLDER}/state"), "on"),
    ] {
        set(&path, value)?;
    }
    Ok(())
}

/// What pagelab says of it.
fn told(guest: &Guest, pid: u32) -> Result<Verdict> {
    let regions = format!("{FOLDER}/contexts/0/schemes/0/tried_regions");
    let are_some = || {
        let asked = set(&format!("{FOLDER}/state"), "update_schemes_tried_regions");
        asked.is_ok() && Path::new(&format!("{regions}/0/start")).exists()
    };
    ensure!(until(are_some), "no regions: {:?}", fs::read_dir(&regions)?.count());
    let json = |words: &[&str]| -> Result<Value> {
        let ran = guest.done(words)?;
        serde_json::from_str(&ran.stdout).with_context(|| ran.stdout)
    };
    let sources = json(&["tier", "sources", "--format", "json"])?;
    let mut rows = sources.as_array().into_iter().flatten();
    let row = rows.find(|row| row["name"] == "damon").context("no such source")?;
    ensure!(row["lack"].is_null() && row["granularity"] == "regions", "{row}");
    let status = json(&["tier", "status", "--once", "--json"])?;
    let mut reasons = status["reasons"].as_array().into_iter().flatten();
    ensure!(reasons.any(|why| why["reason"] == "another-monitor"), "{}", status["reasons"]);
    let hottest = status["hottest"].as_array().context("no regions")?;
    let is_his = |one: &&Value| one["pid"] == pid && one["by"] == "damon";
    let shown = hottest.iter().filter(is_his).count();
    let word = pid.to_string();
    let promote = guest.run(&["tier", "promote", "--pid", &word, "--source", "damon"])?;
    ensure!(promote.code == 3 && promote.stderr.contains("regions"), "{}", promote.stderr);
    let case = [("mode", "damon"), ("size", "2m"), ("accesses", "4"), ("threads", "1")];
    for record in guest.records("tier/micro", &case)? {
        let Outcome::Skipped { need, .. } = &record.outcome else {
            anyhow::bail!("it was run: {:?}", record.outcome)
        };
        ensure!(need.contains("DAMON"), "it was skipped for {need}");
    }
    Verdict::ok(format!("{shown} of {} hot regions shown are the target's", hottest.len()))
}

/// As [`guest::until`], of what cannot fail.
fn until(mut is_so: impl FnMut() -> bool) -> bool {
    guest::until(|| Ok(is_so())).unwrap_or(false)
}
