//! The lane itself: what it must notice.

use anyhow::{Result, bail};

use crate::{
    guest::{Guest, set},
    verdict::Verdict,
};

pub(super) fn panic(_: &Guest) -> Result<Verdict> {
    set("/proc/sysrq-trigger", "c")?;
    bail!("the kernel survived a crash that was asked for")
}
