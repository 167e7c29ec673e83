//! The machine is the one that was asked for.

use anyhow::{Result, ensure};

use crate::{
    case::{Case, Verdict},
    guest::{Guest, text},
};

pub(super) const KERNEL: Case = Case {
    name: "boot/kernel",
    about: "The kernel that runs is the one that was asked for.",
    native: true,
    run: kernel,
    ..Case::DEFAULT
};

fn kernel(guest: &Guest) -> Result<Verdict> {
    let release = text("/proc/sys/kernel/osrelease")?;
    let asked = guest.kernel();
    let is_it = asked == "newest" || release.starts_with(&format!("{asked}.")) || asked == release;
    ensure!(is_it, "{release} runs, {asked} was asked for");
    Verdict::ok(release)
}
