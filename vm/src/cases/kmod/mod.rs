//! The kernel module on real kernels: what it refuses, what it gives, and what it survives.
//!
//! The one idea: nothing is believed because it was asked for. What memory is comes from the page
//! table (`PAGELAB_IOC_QUERY`), from the kernel's own records of the frame, and from touching it.

mod abi;
mod door;
mod frames;
mod hostile;
mod legacy;
mod life;
mod mappings;
mod refusals;
mod table;
mod tool;

use anyhow::{Result, bail};
use pagelab_sys::vm::hostile::Errno;

use crate::{
    case::{ALL, Case, MODULE, Machine, Place},
    guest::{Guest, Loaded},
    verdict::Verdict,
};

const BASE: Place = Place::at(Machine::Base, MODULE);
const RESERVED: Place = Place::at(Machine::Reserved, MODULE);
const RESERVED_LARGE: Place = Place::at(Machine::ReservedLarge, ALL);
const TWO_NODES: Place = Place::at(Machine::Hmat2, ALL);

/// Where the reserved region of the machines begins.
const REGION: u64 = 4 << 30;

const OURS: Case = Case { modules: &["pagelab"], ..Case::DEFAULT };

pub(super) const DOOR: Case = Case {
    name: "kmod/door",
    about: "Who may open the node, what the module says of itself, what it does not load with.",
    places: &[BASE, RESERVED],
    run: door::run,
    ..OURS
};

pub(super) const TABLE: Case = Case {
    name: "kmod/table",
    about: "What INFO offers is what ALLOC gives: type, leaf and zeroes, proven for each cell.",
    places: &[BASE, RESERVED],
    run: table::run,
    ..OURS
};

pub(super) const TABLE_LARGE: Case = Case {
    name: "kmod/table-1g",
    about: "Leaves of 1 GiB, of reserved memory and of ordinary memory.",
    places: &[RESERVED_LARGE],
    run: table::run_large,
    ..OURS
};

pub(super) const REFUSALS: Case = Case {
    name: "kmod/refusals",
    about: "Each wrong argument has the errno that the header names.",
    places: &[BASE, RESERVED],
    run: refusals::run,
    ..OURS
};

pub(super) const NODES: Case = Case {
    name: "kmod/nodes",
    about: "A node that was asked for is the node of every frame; one that is offline is refused.",
    places: &[TWO_NODES],
    run: refusals::nodes,
    ..OURS
};

pub(super) const LIFE: Case = Case {
    name: "kmod/life",
    about: "Frames stay while anything maps them, then come back zeroed and WB.",
    places: &[BASE, RESERVED],
    run: life::run,
    ..OURS
};

pub(super) const MAPPINGS: Case = Case {
    name: "kmod/mappings",
    about: "fork, mremap, munmap, mprotect and madvise keep the type or are refused.",
    places: &[BASE, RESERVED],
    run: mappings::run,
    ..OURS
};

pub(super) const LEGACY: Case = Case {
    name: "kmod/legacy",
    about: "Programs written for the driver with three nodes run unmodified.",
    places: &[BASE],
    run: legacy::run,
    ..OURS
};

pub(super) const TOOL: Case = Case {
    name: "kmod/tool",
    about: "The tool measures memory of every type, and its witness agrees.",
    places: &[BASE],
    run: tool::run,
    ..OURS
};

pub(super) const HOSTILE: Case = Case {
    name: "kmod/hostile",
    // Half a minute on an idle host: the others would have little of a boot's 120 s left.
    alone: true,
    about: "Random calls from several processes and threads leave a quiet log and no page behind.",
    places: &[Place::at(Machine::Base, ALL), Place::at(Machine::Reserved, ALL)],
    run: hostile::run,
    ..OURS
};

/// Loads the module; on machines that hide memory from the kernel, with that memory.
fn load(guest: &Guest, more: &str) -> Result<Loaded> {
    let bytes: u64 = match guest.machine() {
        "reserved" => 1 << 30,
        "reserved-6g" => 3 << 30,
        _ => return guest.load("pagelab", more),
    };
    guest.load("pagelab", &format!("phys={REGION:#x} phys_len={bytes:#x} {more}"))
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
        (Errno::TOOBIG, "E2BIG"),
    ];
    let name = names.iter().find(|(known, _)| *known == errno);
    name.map_or_else(|| errno.to_string(), |(_, name)| (*name).to_owned())
}
