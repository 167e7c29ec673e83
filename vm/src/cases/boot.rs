//! The machine is the one that was asked for.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{
    guest::{Guest, text},
    kernel_log::KernelLog,
    verdict::Verdict,
};

/// The kernel that checks itself.
const SANITIZED: &str = "sanitized";

pub(super) fn kernel(guest: &Guest) -> Result<Verdict> {
    let release = text("/proc/sys/kernel/osrelease")?;
    let asked = guest.kernel();
    // `6.1-rt` is `6.1.0-56-rt-amd64`.
    let (version, flavour) = asked.split_once('-').unwrap_or((&asked, ""));
    let is_it = release.starts_with(&format!("{version}.")) && release.contains(flavour);
    let any = ["newest", SANITIZED, &release].contains(&asked.as_str());
    ensure!(is_it || any, "{release} runs, not {asked}");
    let huge = Path::new("/sys/kernel/mm/transparent_hugepage").exists();
    let wanted = asked != "6.1-rt";
    ensure!(huge == wanted || !guest.is_ours(), "transparent huge pages: {huge}, not {wanted}");
    Verdict::ok(release)
}

pub(super) fn sanitized(guest: &Guest) -> Result<Verdict> {
    ensure!(guest.kernel() == SANITIZED, "{} is another kernel", guest.kernel());
    let log = KernelLog::from_the_start().context("/dev/kmsg")?.news();
    for words in ["KernelAddressSanitizer initialized", "page_poison=1"] {
        ensure!(log.iter().any(|line| line.contains(words)), "the log does not say {words}");
    }
    lockdep()?;
    Verdict::ok("KASAN, lockdep and page poisoning")
}

/// Whether lockdep, where the kernel has it, is on: it goes off at the first thing that it finds.
pub(super) fn lockdep() -> Result<()> {
    const STATS: &str = "/proc/lockdep_stats";
    if !Path::new(STATS).exists() {
        return Ok(());
    }
    let stats = text(STATS)?;
    let is_on = stats.lines().find_map(|line| line.trim().strip_prefix("debug_locks:"));
    ensure!(is_on.is_some_and(|one| one.trim() == "1"), "lockdep is off: {is_on:?}");
    Ok(())
}
