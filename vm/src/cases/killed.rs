//! Settings that only a guest's cases change, after the run that changed them was killed.
//!
//! The one idea: SIGKILL leaves a run no moment to tidy up, so that whatever is as before was put
//! back by its watchdog.

use std::{process::Stdio, thread::sleep, time::Duration};

use anyhow::{Result, bail, ensure};

use crate::{
    guest::{Folder, Guest, meminfo_kb, text, until},
    verdict::Verdict,
};

/// So many that a run does not end by itself before it is killed.
const ROUNDS: (&str, &str) = ("rounds", "100");

pub(super) fn hinted(guest: &Guest) -> Result<Verdict> {
    let settings = [
        "/proc/sys/kernel/numa_balancing",
        "/sys/kernel/debug/sched/numa_balancing/scan_delay_ms",
        "/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms",
        "/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms",
    ];
    killed(guest, &[("kind", "numa-hint"), ("size", "32m"), ROUNDS], &settings)
}

pub(super) fn fragmented(guest: &Guest) -> Result<Verdict> {
    let settings = [
        "/proc/sys/vm/compaction_proactiveness",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/mm/transparent_hugepage/defrag",
    ];
    let free = || Ok::<_, anyhow::Error>(meminfo_kb("MemAvailable")? >> 10);
    let before = free()?;
    let case = [("pressure", "fragmented"), ("page", "2m"), ("size", "32m"), ROUNDS];
    let verdict = killed(guest, &case, &settings)?;
    // A sixteenth is kept of what is broken up.
    let is_free = until(|| Ok(free()? + before / 32 >= before))?;
    ensure!(is_free, "{before} MiB were available, {} are afterwards", free()?);
    Ok(verdict)
}

/// Kills a run of this case of `fault/latency` as soon as it has changed a setting.
fn killed(guest: &Guest, case: &[(&str, &str)], settings: &[&str]) -> Result<Verdict> {
    let read = || settings.iter().map(|path| text(path)).collect::<Result<Vec<_>>>();
    let before = read()?;
    let folder = Folder::with_suite("fault/latency", case)?;
    let words = folder.words();
    let mut command = guest.pagelab(&words.each_ref().map(String::as_str));
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let begun = until(|| Ok(read()? != before || run.try_wait()?.is_some()))?;
    // In the middle of the case, not of its settings.
    sleep(Duration::from_millis(300));
    let during = read()?;
    let has_ended = run.try_wait()?;
    run.kill()?;
    run.wait()?;
    ensure!(begun && has_ended.is_none(), "it ended by itself: {has_ended:?}");
    let changed: Vec<_> = settings
        .iter()
        .zip(before.iter().zip(&during))
        .filter(|(_, (before, during))| before != during)
        .map(|(path, _)| path.rsplit('/').next().unwrap_or(path))
        .collect();
    if changed.is_empty() {
        bail!("none of {settings:?} was changed");
    }
    if !until(|| Ok(read()? == before))? {
        bail!("{settings:?} were {before:?}, and are {:?}", read()?);
    }
    Verdict::ok(format!("{} put back", changed.join(", ")))
}
