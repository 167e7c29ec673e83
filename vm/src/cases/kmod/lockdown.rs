//! `lockdown=integrity`: parameters that name a physical address are refused.
//!
//! The case locks the kernel down at run time, by securityfs: after `lockdown=integrity` on the
//! command line the guest could not open the debug port that ends its boot. Nothing undoes
//! lockdown, so it is the last case of its boot.

use anyhow::{Result, bail, ensure};
use pagelab_sys::vm::guest::mount;

use super::{
    REGION,
    abi::{Alloc, Device, MIB, TYPES, UC_MINUS, WB, WC},
    end, load,
};
use crate::{
    guest::{Guest, set, text},
    kernel_log::KernelLog,
    verdict::Verdict,
};

const SECURITY: &str = "/sys/kernel/security";

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    let loaded = load(guest, "")?;
    mount("securityfs", SECURITY)?;
    let lockdown = format!("{SECURITY}/lockdown");
    set(&lockdown, "integrity")?;
    ensure!(text(&lockdown)?.contains("[integrity]"), "it is {}", text(&lockdown)?);
    for memtype in [WB, UC_MINUS, WC] {
        guest.part(TYPES[memtype as usize], usable(memtype));
    }
    end(loaded)?;
    // The lane has a signing key for the kernel that it builds, and for no other.
    if guest.kernel() == "sanitized" {
        guest.load("pagelab", "legacy=0")?.unload()?;
        guest.part("a region by its address", not_loaded(guest, "module parameters"));
    } else {
        guest.part("an unsigned module", not_loaded(guest, "unsigned module loading"));
    }
    Verdict::ok("integrity")
}

fn usable(memtype: u32) -> Result<Verdict> {
    let (device, ground) = Device::mapped(&Alloc::pages(memtype, MIB))?;
    ground.store(8, 7);
    ensure!(ground.load(8) == 7 && device.leaf(&ground, 8)?.memtype == memtype, "the type");
    Verdict::ok("as without")
}

/// Loading fails, and the kernel logs this reason.
fn not_loaded(guest: &Guest, reason: &str) -> Result<Verdict> {
    let mut log = KernelLog::from_now()?;
    let parameters = format!("legacy=0 phys={REGION:#x} phys_len=0x40000000");
    match guest.load("pagelab", &parameters) {
        Ok(loaded) => {
            loaded.unload()?;
            bail!("it was loaded with {parameters}")
        }
        Err(error) => {
            let said = log.news();
            let is_lockdown = |line: &String| line.contains("Lockdown: ") && line.contains(reason);
            ensure!(said.iter().any(is_lockdown), "{error:#}: {said:?}");
            Verdict::ok(format!("{error:#}"))
        }
    }
}
