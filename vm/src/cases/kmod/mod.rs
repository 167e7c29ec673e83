//! The kernel module on real kernels: what it refuses, what it gives, and what it survives.
//!
//! The one idea: nothing is believed because it was asked for. What memory is comes from the page
//! table (`PAGELAB_IOC_QUERY`), from the kernel's own records of the frame, and from touching it.

mod abi;
mod door;
mod faults;
mod frames;
mod freeze;
mod hostile;
mod killed;
mod legacy;
mod life;
mod lockdown;
mod mappings;
mod owner;
mod refusals;
mod segment;
mod splits;
mod table;
mod tool;

use anyhow::{Result, bail, ensure};
use pagelab_sys::vm::hostile::{End, Errno, Forked, fork};

use super::Run;
use crate::{
    guest::{Guest, Loaded, until},
    verdict::Verdict,
};

use frames::all_back;

/// Where the reserved region of the machine begins, how much of it most cases use, and all of it.
const REGION: u64 = 4 << 30;
const REGION_BYTES: u64 = 1 << 30;
const REGION_WHOLE: u64 = 3 << 30;

/// The functions, by the names of their cases.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("kmod/door", door::run),
    ("kmod/table", table::run),
    ("kmod/table-1g", table::run_large),
    ("kmod/refusals", refusals::run),
    ("kmod/nodes", refusals::nodes),
    ("kmod/life", life::run),
    ("kmod/mappings", mappings::run),
    ("kmod/segment", segment::run),
    ("kmod/segment-1g", segment::run_large),
    ("kmod/segment-fault", faults::run),
    ("kmod/owner", owner::run),
    ("kmod/freeze", freeze::run),
    ("kmod/splits", splits::run),
    ("kmod/killed", killed::run),
    ("kmod/lockdown", lockdown::run),
    ("kmod/legacy", legacy::run),
    ("kmod/tool", tool::run),
    ("kmod/hostile", hostile::run),
];

/// Loads the module as DKMS has it, without the nodes of the older driver unless they are asked
/// for; on a machine that hides memory from the kernel, with the first GiB of that memory.
pub(super) fn load(guest: &Guest, more: &str) -> Result<Loaded> {
    load_bare(guest, &format!("legacy=0 {more}"))
}

/// The same with all memory that is hidden.
pub(super) fn load_whole(guest: &Guest) -> Result<Loaded> {
    load_with(guest, REGION_WHOLE, "legacy=0")
}

/// As [`load`], without `legacy=0`.
fn load_bare(guest: &Guest, more: &str) -> Result<Loaded> {
    load_with(guest, REGION_BYTES, more)
}

fn load_with(guest: &Guest, bytes: u64, more: &str) -> Result<Loaded> {
    match guest.machine() {
        "reserved" => {
            guest.load("pagelab", &format!("phys={REGION:#x} phys_len={bytes:#x} {more}"))
        }
        _ => guest.load("pagelab", more),
    }
}

/// Unloads the module, once all of its memory is back.
pub(super) fn end(loaded: Loaded) -> Result<()> {
    all_back()?;
    loaded.unload()
}

/// A child does this, and ends with 0: it found what it should.
fn agrees(what: &str, body: impl FnOnce() -> u8) -> Result<()> {
    agreed(what, fork(body)?)
}

/// The same of one that was started before.
fn agreed(what: &str, child: Forked) -> Result<()> {
    let end = child.wait()?;
    ensure!(end == End::Exited(0), "{what}: {end:?}");
    Ok(())
}

/// How a child ended; nothing, where it has not when something else is so, or in time.
fn ended(child: &mut Forked, or: impl Fn() -> bool) -> Result<Option<End>> {
    let mut end = None;
    until(|| {
        end = child.has_ended()?;
        Ok(end.is_some() || or())
    })?;
    Ok(end)
}

/// The call was refused, and with this errno.
fn refused<T: std::fmt::Debug>(answer: Result<T, Errno>, errno: Errno) -> Result<Verdict> {
    match answer {
        Err(given) if given == errno => Verdict::ok(name_of(errno)),
        Err(given) => bail!("{} instead of {}", name_of(given), name_of(errno)),
        Ok(answer) => bail!("it was done ({answer:?}) instead of {}", name_of(errno)),
    }
}

fn name_of(errno: Errno) -> String {
    let names = [
        (Errno::ACCESS, "EACCES"),
        (Errno::AGAIN, "EAGAIN"),
        (Errno::BUSY, "EBUSY"),
        (Errno::FAULT, "EFAULT"),
        (Errno::INVAL, "EINVAL"),
        (Errno::NODEV, "ENODEV"),
        (Errno::NOENT, "ENOENT"),
        (Errno::NOMEM, "ENOMEM"),
        (Errno::NOTTY, "ENOTTY"),
        (Errno::NXIO, "ENXIO"),
        (Errno::OPNOTSUPP, "EOPNOTSUPP"),
        (Errno::OVERFLOW, "EOVERFLOW"),
        (Errno::PERM, "EPERM"),
        (Errno::TIME, "ETIME"),
        (Errno::TOOBIG, "E2BIG"),
    ];
    let name = names.iter().find(|(known, _)| *known == errno);
    name.map_or_else(|| errno.to_string(), |(_, name)| (*name).to_owned())
}
