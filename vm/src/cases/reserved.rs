//! Memory that the kernel was told to leave alone.

use anyhow::{Context, Result, ensure};

use crate::{
    guest::{Guest, meminfo_kb, text},
    verdict::Verdict,
};

/// Where the hidden memory begins.
const START: u64 = 4 << 30;

/// Its bytes.
const BYTES: u64 = 3 << 30;

pub(super) fn hidden(_: &Guest) -> Result<Verdict> {
    let (start, end) = (START, START + BYTES - 1);
    let map = text("/proc/iomem")?;
    let ranges = map.lines().filter(|line| !line.starts_with(' ')).filter_map(range);
    let mut found = None;
    for (from, to, what) in ranges {
        ensure!(what != "System RAM" || to < start || from > end, "{from:x}-{to:x} is System RAM");
        // The kernel joins what touches: the firmware ends where the hidden memory begins.
        if from <= start && to == end {
            found = Some(what);
        }
    }
    let what = found.with_context(|| format!("/proc/iomem has no {start:x}-{end:x}:\n{map}"))?;
    ensure!(what == "Reserved", "{start:x}-{end:x} is {what}");
    let total = meminfo_kb("MemTotal")?;
    ensure!(total < 4 << 20, "{total} kB belong to the kernel");
    Verdict::ok(format!("{start:x}-{end:x} : {what}; MemTotal {total} kB"))
}

/// `100000000-13fffffff : Reserved`.
fn range(line: &str) -> Option<(u64, u64, &str)> {
    let (range, what) = line.split_once(" : ")?;
    let (from, to) = range.split_once('-')?;
    Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?, what))
}
