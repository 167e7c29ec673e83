//! `pagelab try` on real kernels: every rung takes there, or says why not.
//!
//! The one idea: the program that is tried is this one, which holds memory of both kinds and
//! waits: static, so that what needs a dynamic loader is skipped, and what comes from outside or
//! from the machine's settings is what is left to show.

use std::{env, fs, os::fd::AsRawFd, path::Path, thread::sleep, time::Duration};

use anyhow::{Context, Result, ensure};
use pagelab_record::{Data, Measured, Outcome, Record, journal, vocabulary::tried};
use pagelab_sys::{
    Area,
    machine::{FreeMemory, Tree},
    memory::{Backing, Layout, memfd},
};

use super::valid;
use crate::{
    guest::{Guest, scratch, text},
    verdict::Verdict,
};

/// The words that make this program the one that is tried.
pub(crate) const HOLD: &str = "__hold";
/// Bytes of each kind that it holds, and for how many seconds: the next where no look has found its
/// pages yet. An emulated machine may be too slow to look before, and beside others to look at all.
const HELD: usize = 8 << 20;
const WAITS_S: [&str; 5] = ["2", "8", "32", "128", "512"];

/// Holds anonymous and shared memory for a moment.
pub(crate) fn hold(seconds: &str) -> Result<()> {
    let file = memfd::create("held")?;
    file.set_len(HELD as u64)?;
    let shared = Backing::File { fd: file.as_raw_fd(), shared: true, from: 0 };
    let areas = [Backing::Anonymous, shared]
        .map(|backing| Area::mapped(Layout::contiguous(HELD), backing, 2 << 20));
    for area in areas.iter().flatten() {
        area.fill(|| 1);
    }
    sleep(Duration::from_secs(seconds.parse()?));
    for area in areas {
        area.context("its memory")?.release()?;
    }
    Ok(())
}

/// Rungs whose pages come on every kernel that has them: nothing is in their way on a machine that
/// has just been booted.
const SURE: [&str; 3] = ["thp-always", "shmem-thp", "collapse"];

/// The free blocks of 2 MiB of which one may be left where free memory was broken up: others free
/// some meanwhile.
const BLOCKS: u64 = 16;

/// A program that maps 16 MiB and stores to all of it.
const MAPS: [&str; 3] = ["/bin/maps", "own", "16"];

pub(super) fn fragmented(guest: &Guest) -> Result<Verdict> {
    let free = FreeMemory::of(&Tree::machine(), 0).context("/proc/buddyinfo")?.blocks(2 << 20);
    let records = recorded(guest, &["--rung", "maps-thp", "--fragmented"], &MAPS)?;
    let measured = records.iter().filter_map(Record::measured);
    let blocks: Vec<u64> =
        measured.flat_map(|measured| values(measured, tried::FREE_BLOCKS)).collect();
    ensure!(
        blocks.len() >= 3 && blocks.iter().all(|left| left * BLOCKS <= free),
        "{blocks:?} of {free} blocks"
    );
    Verdict::ok(format!("{blocks:?} of {free} free blocks of 2 MiB before its runs"))
}

/// What `try` records of one round of a program.
fn recorded(guest: &Guest, flags: &[&str], program: &[&str]) -> Result<Vec<Record>> {
    let run = scratch();
    let words = ["try", "-q", "--no-prediction", "--rounds", "1", "-o", &run];
    let ran = guest.done(&[&words[..], flags, &["--"], program].concat())?;
    let contents = journal::read(&Path::new(&run).join(journal::FILE)).context(ran.stderr)?;
    let _ = fs::remove_dir_all(&run);
    Ok(contents.records)
}

pub(super) fn rungs(guest: &Guest) -> Result<Verdict> {
    let settings = [
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "/proc/sys/vm/nr_hugepages",
    ];
    let read = || settings.iter().map(|path| text(path)).collect::<Result<Vec<_>>>();
    let before = read()?;
    let program = env::current_exe()?.to_string_lossy().into_owned();
    let records = recorded(guest, &[], &[&program, HOLD, WAITS_S[0]])?;
    let (mut took, mut not) = (Vec::new(), Vec::new());
    for record in &records {
        // What was predicted has records of its own.
        let Some(name) = record.case.get("rung") else { continue };
        let outcome = told(record, name);
        let list = if outcome.as_ref().is_ok_and(|(is_taken, _)| *is_taken) {
            &mut took
        } else {
            &mut not
        };
        list.push(name.to_owned());
        guest.part(name, outcome.and_then(|(_, why)| Verdict::ok(why)));
    }
    ensure!(read()? == before, "settings were {before:?} and are {:?}", read()?);
    for name in SURE {
        if !is_measured(&records, name) || took.iter().any(|one| one == name) {
            continue;
        }
        let mut waits = WAITS_S[1..].iter();
        let takes = loop {
            let Some(wait) = waits.next() else { break false };
            let records = recorded(guest, &["--rung", name], &[&program, HOLD, wait])?;
            let mut of_it = records.iter().filter(|one| one.case.get("rung") == Some(name));
            let outcome = of_it.find_map(|one| told(one, name).ok());
            guest.note(format!("{name}, held for {wait} s: {outcome:?}"));
            if outcome.is_some_and(|(is_taken, _)| is_taken) {
                break true;
            }
        };
        ensure!(takes, "{name} did not take");
        took.push(name.to_owned());
        not.retain(|one| one != name);
    }
    ensure!(read()? == before, "settings were {before:?} and are {:?}", read()?);
    Verdict::ok(format!("took: {}; not: {}", took.join(", "), not.join(", ")))
}

/// Whether a rung was run.
fn is_measured(records: &[Record], name: &str) -> bool {
    let is_it = |record: &&Record| record.case.get("rung") == Some(name);
    records.iter().filter(is_it).any(|record| record.measured().is_some())
}

/// Whether a rung took, and what is told of it; an error where nothing is.
fn told(record: &Record, name: &str) -> Result<(bool, String)> {
    let measured = match &record.outcome {
        Outcome::Skipped { need, cure } => {
            ensure!(!cure.is_empty(), "{need} has no cure");
            return Ok((false, format!("needs {need}")));
        }
        Outcome::Failed { reason } => anyhow::bail!("it failed: {reason}"),
        Outcome::Measured(measured) => measured,
    };
    valid(record)?;
    let counted = |name: &str| measured.counter(name).unwrap_or(0);
    if counted(tried::SAMPLES) == 0 {
        return Ok((false, "not proven: no look was cheap enough here".to_owned()));
    }
    if [tried::PLAIN, tried::AS_SET_UP].contains(&name) {
        return Ok((true, format!("{} looks", counted(tried::SAMPLES))));
    }
    let large = large(measured);
    if large > 0 {
        return Ok((true, format!("{large} bytes in its pages")));
    }
    let why = [tried::REFUSED, tried::REFUSAL, tried::FALLBACKS, tried::ELIGIBLE];
    let why = why.map(|name| format!("{name} {}", counted(name)));
    Ok((false, format!("did not take: {}", why.join(", "))))
}

/// The most bytes in the pages of the rung.
fn large(measured: &Measured) -> u64 {
    values(measured, tried::LARGE).into_iter().max().unwrap_or(0)
}

/// What a series says in all rounds.
fn values(measured: &Measured, name: &str) -> Vec<u64> {
    let series = measured.series.iter().filter(|series| series.name == name);
    let values = series.flat_map(|series| match &series.data {
        Data::Values(values) => values.clone(),
        Data::Histogram(_) | Data::Summary(_) => Vec::new(),
    });
    values.collect()
}
