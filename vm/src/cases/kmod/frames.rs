//! What the kernel knows of a frame behind the module's back.
//!
//! The one idea: the kernel records the memory type of each frame of ordinary memory in two flags
//! of its `struct page`, and `/proc/kpageflags` prints them. That is a second opinion on what
//! `PAGELAB_IOC_QUERY` says, and the only one on frames that were given back.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use anyhow::{Context, Result, ensure};

use super::abi::{TYPES, UC_MINUS, WB, WC, WT};
use crate::guest::{set, text};

/// `KPF_ARCH`: `PG_arch_1`.
const ARCH: u64 = 1 << 38;
/// `KPF_UNCACHED` before 6.12 and `KPF_ARCH_2` since: `PG_uncached`, then `PG_arch_2`.
const SECOND: u64 = 1 << 39 | 1 << 41;

/// Reads the types that the kernel has recorded.
#[derive(Debug)]
pub(super) struct Recorded(File);

impl Recorded {
    pub(super) fn open() -> Result<Self> {
        File::open("/proc/kpageflags").map(Self).context("/proc/kpageflags")
    }

    /// The type recorded for the frame of a physical address.
    pub(super) fn of(&self, phys: u64) -> Result<u32> {
        let mut raw = [0; 8];
        self.0.read_exact_at(&mut raw, phys / 4096 * 8).context("/proc/kpageflags")?;
        Ok(type_in(u64::from_ne_bytes(raw)))
    }

    /// How many frames of each type there are on the whole machine.
    pub(super) fn census(&self) -> Result<[u64; 4]> {
        let mut counts = [0; 4];
        let mut raw = vec![0; 1 << 20];
        let mut at = 0;
        loop {
            let bytes = self.0.read_at(&mut raw, at).context("/proc/kpageflags")?;
            if bytes == 0 {
                return Ok(counts);
            }
            for flags in raw[..bytes].chunks_exact(8) {
                let flags = u64::from_ne_bytes(std::array::from_fn(|byte| flags[byte]));
                counts[type_in(flags) as usize] += 1;
            }
            at += bytes as u64;
        }
    }

    /// All of these frames have this type.
    pub(super) fn all_are(&self, frames: &[u64], memtype: u32) -> Result<()> {
        for phys in frames {
            let recorded = self.of(*phys)?;
            let name = |memtype: u32| TYPES[memtype as usize];
            ensure!(
                recorded == memtype,
                "the kernel has {} for the frame at {phys:#x}, not {}",
                name(recorded),
                name(memtype)
            );
        }
        Ok(())
    }
}

fn type_in(flags: u64) -> u32 {
    match (flags & ARCH != 0, flags & SECOND != 0) {
        (false, false) => WB,
        (true, false) => WC,
        (false, true) => UC_MINUS,
        (true, true) => WT,
    }
}

/// kB that are free once the page cache is dropped: those that `MemFree` counts, and those on the
/// lists of each CPU, which on a recent kernel may be hundreds of MiB.
pub(super) fn free_kb() -> Result<u64> {
    set("/proc/sys/vm/drop_caches", "3")?;
    shrink_caches();
    let zones = text("/proc/zoneinfo")?;
    let pages: u64 = zones
        .lines()
        .filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("pages free").or(line.strip_prefix("count:"))
        })
        .filter_map(|number| number.trim().parse::<u64>().ok())
        .sum();
    ensure!(pages > 0, "/proc/zoneinfo: {zones}");
    Ok(pages * 4)
}

/// Has each cache of objects give back what it has not handed out. KASAN keeps what was freed, up
/// to a 32nd of memory, and gives that up for a cache that is shrunk.
fn shrink_caches() {
    let caches = std::fs::read_dir("/sys/kernel/slab").into_iter().flatten().flatten();
    // Links are other names of the same.
    for cache in caches.filter(|cache| cache.file_type().is_ok_and(|kind| kind.is_dir())) {
        // Where a kernel refuses, its caches are what they are.
        let _ = std::fs::write(cache.path().join("shrink"), "1");
    }
}

/// A counter of the module below `/sys`.
pub(super) fn parameter(name: &str) -> Result<u64> {
    let path = format!("/sys/module/pagelab/parameters/{name}");
    text(&path)?.parse().with_context(|| path)
}

/// Nothing of ordinary memory is in use, and nothing was lost.
pub(super) fn all_back() -> Result<()> {
    let (used, lost) = (parameter("used_pages")?, parameter("leaked_pages")?);
    ensure!(used == 0 && lost == 0, "{used} pages are still in use, {lost} are lost");
    Ok(())
}

/// Whether a physical address lies in a memory node.
pub(super) fn is_in_node(phys: u64, node: u32) -> Result<bool> {
    let block = text("/sys/devices/system/memory/block_size_bytes")?;
    let block = u64::from_str_radix(&block, 16).context("the size of a memory block")?;
    let entry = format!("/sys/devices/system/node/node{node}/memory{}", phys / block);
    Ok(Path::new(&entry).exists())
}
