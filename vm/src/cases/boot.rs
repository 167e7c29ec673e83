//! The machine is the one that was asked for.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::{
    guest::{Guest, text},
    verdict::Verdict,
};

pub(super) fn kernel(guest: &Guest) -> Result<Verdict> {
    let release = text("/proc/sys/kernel/osrelease")?;
    let asked = guest.kernel();
    // `6.1-rt` is `6.1.0-56-rt-amd64`.
    let (version, flavour) = asked.split_once('-').unwrap_or((&asked, ""));
    let is_it = release.starts_with(&format!("{version}.")) && release.contains(flavour);
    ensure!(is_it || asked == "newest" || asked == release, "{release} runs, not {asked}");
    let huge = Path::new("/sys/kernel/mm/transparent_hugepage").exists();
    let wanted = asked != "6.1-rt";
    ensure!(huge == wanted || !guest.is_ours(), "transparent huge pages: {huge}, not {wanted}");
    Verdict::ok(release)
}
