//! How long frames live, and what they are afterwards.
//!
//! The one idea: the addresses of frames are noted while a process has them; after it let go, the
//! kernel's own records of exactly these frames say what they are now.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use pagelab_sys::vm::hostile::{End, Errno, Forked, Ground, fork};

use super::{
    abi::{Alloc, CONTIGUOUS, Device, EAGER, MIB, PAGE, RESERVED, UC_MINUS, WB, WC},
    agreed, end,
    frames::{Recorded, all_back, free_kb, parameter},
    load, refused,
};
use crate::{guest::Guest, verdict::Verdict};

/// Free memory moves by itself: slabs, tables, what other processes do.
const NOISE_KB: u64 = 8 << 10;

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    let loaded = load(guest, "")?;
    let hides_memory = Device::open()?.info()?.reserved_bytes > 0;
    guest.part("wb again after uc-", wb_again(UC_MINUS, 0));
    guest.part("wb again after wc", wb_again(WC, 0));
    guest.part("wb again after wc contiguous", wb_again(WC, CONTIGUOUS));
    guest.part("free pages come back", come_back());
    guest.part("a mapping outlives its descriptor", outlives());
    guest.part("a child outlives its parent", child_outlives());
    guest.part("killed while it maps", killed());
    guest.part("killed while it allocates", interrupted_alloc());
    if hides_memory {
        guest.part("reserved: the next one gets zeroes", zeroes_next());
        guest.part("reserved: each type after each", each_after_each());
    }
    end(loaded)?;
    let loaded = load(guest, "limit_mb=16")?;
    guest.part("the limit is for all files", limit());
    end(loaded)?;
    Verdict::ok("nothing is left")
}

/// Fills every page and tells the frames.
fn fill(device: &Device, ground: &Ground, bytes: usize) -> Result<Vec<u64>> {
    (0..bytes)
        .step_by(PAGE)
        .map(|at| {
            ground.store(at, 0xdead_beef_dead_beef);
            Ok(device.leaf(ground, at)?.phys)
        })
        .collect()
}

fn wb_again(memtype: u32, layout: u32) -> Result<Verdict> {
    let bytes = 8 * MIB;
    let recorded = Recorded::open()?;
    let device = Device::with(&Alloc { layout, ..Alloc::pages(memtype, bytes) })?;
    // Before anybody maps it: the kernel's own mapping is first.
    let ground = device.map(bytes, 0)?;
    let frames = fill(&device, &ground, bytes)?;
    recorded.all_are(&frames, memtype)?;
    drop((ground, device));
    recorded.all_are(&frames, WB)?;
    all_back()?;
    let (next, ground) = Device::mapped(&Alloc { layout, ..Alloc::pages(WB, bytes) })?;
    let mut again = 0;
    for at in (0..bytes).step_by(PAGE) {
        ensure!(ground.load(at) == 0, "somebody's data at {at:#x}");
        let leaf = next.leaf(&ground, at)?;
        ensure!(leaf.memtype == WB, "{leaf:x?}");
        again += usize::from(frames.contains(&leaf.phys));
    }
    Verdict::ok(format!("{again} of {} frames came again, all WB and zeroed", frames.len()))
}

/// The first time builds what stays: tables of the direct map, caches of the allocator. Later
/// others may take or give back memory meanwhile, but not each time.
fn come_back() -> Result<Verdict> {
    const ROUNDS: u32 = 10;
    let bytes = 64 * MIB;
    let mut found = String::new();
    for _ in 0..ROUNDS {
        let before = free_kb()?;
        let (device, ground) = Device::mapped(&Alloc { flags: EAGER, ..Alloc::pages(WC, bytes) })?;
        let pages = parameter("used_pages")?;
        ensure!(pages == (bytes / PAGE) as u64, "used_pages is {pages}");
        let during = free_kb()?;
        drop((ground, device));
        all_back()?;
        let after = free_kb()?;
        let is_taken = before + NOISE_KB >= during + (64 << 10);
        let is_first = found.is_empty();
        found = format!("{before} kB, {during} kB, {after} kB");
        if !is_first && is_taken && after + NOISE_KB >= before {
            return Verdict::ok(found);
        }
    }
    bail!("free in each of {ROUNDS} rounds as in the last: {found}")
}

fn outlives() -> Result<Verdict> {
    let (device, ground) = Device::mapped(&Alloc::pages(UC_MINUS, MIB))?;
    let other = device.map(PAGE, MIB - PAGE)?;
    ground.store(MIB - 8, 5);
    drop(device);
    ensure!(parameter("used_pages")? == 256, "freed under a mapping");
    ensure!(other.load(PAGE - 8) == 5, "another page");
    drop(ground);
    ensure!(parameter("used_pages")? == 256, "freed under the other mapping");
    other.store(0, 6);
    drop(other);
    all_back()?;
    Verdict::ok("freed with the last mapping")
}

fn child_outlives() -> Result<Verdict> {
    let (device, ground) = Device::mapped(&Alloc::pages(WC, MIB))?;
    ground.store(0, 1);
    let child = fork(|| {
        while ground.load(0) != 2 {
            std::thread::yield_now();
        }
        ground.store(8, 3);
        u8::from(device.leaf(&ground, 0).is_err())
    })?;
    // A mapping of the parent's own, so that it can let the first one go.
    let second = device.map(PAGE, 0)?;
    drop((ground, device));
    second.store(0, 2);
    agreed("the child", child)?;
    ensure!(second.load(8) == 3, "the child had another page");
    drop(second);
    all_back()?;
    Verdict::ok("the child shares it, and holds it")
}

fn killed() -> Result<Verdict> {
    for flags in [0, EAGER] {
        let child = fork(|| {
            let held = Device::mapped(&Alloc { flags, ..Alloc::pages(WC, 32 * MIB) });
            let Ok((_device, ground)) = held else { return 1 };
            for at in (0..32 * MIB).step_by(PAGE) {
                ground.store(at, 1);
            }
            loop {
                std::thread::yield_now();
            }
        })?;
        killed_with_pages(child, 0)?;
    }
    Verdict::ok("kill -9 is a close")
}

/// Kills a child so long after the first page was taken: all of them come back.
fn killed_with_pages(child: Forked, wait_ms: u64) -> Result<()> {
    while parameter("used_pages")? == 0 {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(wait_ms));
    let end = child.kill()?;
    ensure!(end == End::Killed(9), "{end:?}");
    all_back()
}

fn limit() -> Result<Verdict> {
    let limit = Device::open()?.info()?.limit_bytes;
    ensure!(limit == 16 << 20, "INFO says {limit}");
    let first = Device::with(&Alloc::pages(WC, 9 * MIB))?;
    let second = Device::open()?;
    refused(second.alloc(&Alloc::pages(WC, 9 * MIB)), Errno::NOMEM)?;
    refused(second.alloc(&Alloc::pages(WC, 17 * MIB)), Errno::TOOBIG)?;
    let third = Device::with(&Alloc::pages(WC, 7 * MIB))?;
    refused(second.alloc(&Alloc::pages(WC, PAGE)), Errno::NOMEM)?;
    drop((first, third));
    second.alloc(&Alloc::pages(WB, 16 * MIB)).context("after the others left")?;
    Verdict::ok("9 and 7 of 16 MiB, and not a page more")
}

/// Ended while it takes pages, while it types them, and while it has them.
fn interrupted_alloc() -> Result<Verdict> {
    let recorded = Recorded::open()?;
    let before = recorded.census()?;
    let bytes = usize::try_from(Device::open()?.info()?.limit_bytes)? / 4 / PAGE * PAGE;
    for wait in [0, 10, 40, 160] {
        for want in [Alloc::pages(WC, bytes), Alloc::pages(UC_MINUS, bytes)] {
            let child = fork(|| match Device::with(&want) {
                Ok(_device) => loop {
                    std::thread::yield_now();
                },
                Err(_) => 1,
            })?;
            killed_with_pages(child, wait)?;
        }
    }
    ensure!(recorded.census()?[1..] == before[1..], "frames of a type are left");
    Verdict::ok(format!("{bytes} bytes, ended at four times"))
}

fn part_of_region(memtype: u32, bytes: usize) -> Result<(Device, Ground)> {
    Device::mapped(&Alloc { layout: RESERVED, ..Alloc::pages(memtype, bytes) })
}

fn zeroes_next() -> Result<Verdict> {
    let bytes = 4 * MIB;
    let (device, ground) = part_of_region(WC, bytes)?;
    let frames = fill(&device, &ground, bytes)?;
    drop((ground, device));
    let (device, ground) = part_of_region(WB, bytes)?;
    for at in (0..bytes).step_by(8) {
        ensure!(ground.load(at) == 0, "somebody's data at {at:#x}");
    }
    ensure!(device.leaf(&ground, 0)?.phys == frames[0], "other frames");
    Verdict::ok(format!("{} frames, the same ones", frames.len()))
}

fn each_after_each() -> Result<Verdict> {
    for first in 0..4 {
        for second in 0..4 {
            drop(part_of_region(first, MIB)?);
            let (device, ground) = part_of_region(second, MIB)?;
            ground.store(0, 1);
            let leaf = device.leaf(&ground, 0)?;
            ensure!(leaf.memtype == second, "type {second} after type {first}: {leaf:x?}");
        }
    }
    Verdict::ok("16 successions")
}
