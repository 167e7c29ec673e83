//! `pagelab check`, whole, as root; and what is left of a run for a user without rights.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};
use pagelab_record::Outcome;

use super::valid;
use crate::{
    guest::{Guest, LIMIT_S, Ran},
    verdict::Verdict,
};

pub(super) fn everything(guest: &Guest) -> Result<Verdict> {
    let before = settings();
    // Each case counts its faults by an event of its own, and the first and the last one open have
    // the kernel patch itself, which an emulated second processor may run into half done.
    let _open = pagelab_sys::counts::perf::FaultCounter::open();
    let ran = guest.run(&["check", "--ktap", "--time-limit", LIMIT_S])?;
    let (ok, skipped) = parts(guest, &ran)?;
    ensure!(ran.code == 0, "exit code {}: {}", ran.code, ran.stderr);
    ensure!(settings() == before, "a setting was not put back: {before:?}, then {:?}", settings());
    Verdict::ok(format!("{ok} hold, {skipped} skipped"))
}

pub(super) fn unprivileged(guest: &Guest) -> Result<Verdict> {
    let case = [("page", "4k,64k,hugetlb-2m"), ("size", "4m"), ("rounds", "1")];
    let (records, code) = guest.records_of_nobody("fault/throughput", &case)?;
    ensure!(code == 0, "pagelab run: exit code {code}");
    let mut skipped = Vec::new();
    for record in &records {
        let page = record.case.get("page").unwrap_or("?");
        match &record.outcome {
            Outcome::Skipped { need, cure } => {
                ensure!(!cure.is_empty(), "{page}: {need} has no cure");
                skipped.push(page);
            }
            _ => valid(record).with_context(|| page.to_owned())?,
        }
    }
    // Nobody may fill a pool or change a policy.
    ensure!(skipped == ["64k", "hugetlb-2m"], "skipped: {skipped:?}");
    let ran = guest.run_as_nobody(&["doctor"])?;
    ensure!(ran.code == 0, "pagelab doctor: exit code {}: {}", ran.code, ran.stderr);
    Verdict::ok(format!("{skipped:?} skipped, the rest is valid; doctor ends with 0"))
}

/// Says each line of the test protocol as a part; how many are fine and how many are skips.
fn parts(guest: &Guest, ran: &Ran) -> Result<(usize, usize)> {
    let mut lines = ran.stdout.lines();
    let version = lines.next().with_context(|| ran.stderr.clone())?;
    ensure!(version == "KTAP version 1", "it says {version}: {}", ran.stderr);
    let (mut note, mut ok, mut skipped, mut planned) = (String::new(), 0, 0, 0);
    for line in lines {
        if let Some(count) = line.strip_prefix("1..") {
            planned = count.parse().context("the plan is no number")?;
        } else if let Some(text) = line.strip_prefix("# ") {
            text.clone_into(&mut note);
        } else {
            let (good, rest) = match line.strip_prefix("not ") {
                Some(rest) => (false, rest),
                None => (true, line),
            };
            let rest = rest.strip_prefix("ok ").with_context(|| line.to_owned())?;
            let (_, name) = rest.split_once(' ').with_context(|| line.to_owned())?;
            match name.split_once(" # SKIP ") {
                Some((name, why)) => {
                    skipped += 1;
                    let why = why.strip_prefix("needs ").unwrap_or(why);
                    let (need, cure) = why.split_once(": ").unwrap_or((why, ""));
                    guest.part(name, Verdict::skip(need, cure));
                }
                None if good => {
                    ok += 1;
                    guest.part(name, Verdict::ok(&note));
                }
                None => guest.part(name, Err(anyhow::anyhow!("{note}"))),
            }
        }
    }
    ensure!(planned > 0, "nothing was planned: {}", ran.stderr);
    Ok((ok, skipped))
}

/// What a run may change: policies of huge pages and sizes of pools.
fn settings() -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for folder in ["/sys/kernel/mm/transparent_hugepage", "/sys/kernel/mm/hugepages"] {
        collect(Path::new(folder), &mut settings);
    }
    settings
}

fn collect(folder: &Path, settings: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            // Counters of what happened, not settings.
            if name != "stats" {
                collect(&path, settings);
            }
        } else if let Ok(value) = fs::read_to_string(&path)
            && ["enabled", "shmem_enabled", "defrag", "nr_hugepages"].iter().any(|one| name == *one)
        {
            settings.insert(path.display().to_string(), value);
        }
    }
}
