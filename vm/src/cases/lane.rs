//! The lane itself: what it must notice.

use anyhow::{Result, bail};

use crate::{
    case::{Case, Ending, Kernel, Machine, Place},
    guest::{Guest, set},
    verdict::Verdict,
};

pub(super) const PANIC: Case = Case {
    name: "lane/panic",
    about: "A kernel that panics is seen, with its log.",
    places: &[Place::at(Machine::Base, &[Kernel::V6_12])],
    alone: true,
    ending: Ending::Panic,
    run: panic,
    ..Case::DEFAULT
};

fn panic(_: &Guest) -> Result<Verdict> {
    set("/proc/sysrq-trigger", "c")?;
    bail!("the kernel survived a crash that was asked for")
}
