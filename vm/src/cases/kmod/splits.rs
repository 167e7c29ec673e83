//! Large leaves that are split, vetoed or write-protected during touches and faults.
//!
//! Pages keep what was written, or a touch ends with a signal; no fault repeats for ever. The lane
//! fails on a warning of the kernel, of which `DEBUG_VM` (the sanitized kernel) adds many.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread::sleep,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use pagelab_sys::{
    Area,
    memory::Layout,
    memtype::{self, Frames, MemoryType, Request},
    process::{Barrier, crew, disable_thp},
    uffd::{Ability, Mode, Uffd},
    vm::hostile::{End, Ground, Mapping, READ, WRITE, fork},
};

use super::{
    super::boot::lockdep,
    abi::{Alloc, Device, MIB, PAGE, RESERVED, SEGMENT, WB, ZERO_AT_FAULT},
    end, ended, load_whole,
};
use crate::{guest::Guest, verdict::Verdict};

const LEAF: usize = 2 * MIB;
const GIB: usize = 1 << 30;
/// Between pages that are looked at.
const STEP: usize = 4 * MIB + PAGE;
/// Threads that touch while another splits.
const TOUCHERS: usize = 2;

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    let loaded = load_whole(guest)?;
    for shift in [21, 30] {
        guest.part(&format!("a leaf of 2^{shift} under PROT_NONE"), under_prot_none(shift));
    }
    guest.part("touches beside splits of 1 GiB", touches_beside());
    guest.part("large leaves vetoed while one is zeroed", vetoed());
    guest.part("write-protected by userfaultfd", write_protected());
    end(loaded)?;
    lockdep()?;
    Verdict::ok("contents outlast it, or a signal ends it")
}

/// A segment of 1 GiB, mapped at the start of a ground.
fn segment(leaf_shift: u32) -> Result<(Device, Ground)> {
    let flags = SEGMENT | ZERO_AT_FAULT;
    let want = Alloc { layout: RESERVED, leaf_shift, flags, ..Alloc::pages(WB, GIB) };
    let device = Device::with(&want)?;
    let ground = Ground::reserve(GIB, GIB)?;
    ground.map(0, &device.0, Mapping::shared(GIB)).context("mapping")?;
    Ok((device, ground))
}

fn word(at: usize) -> u64 {
    at as u64 | 1
}

fn looks() -> impl Iterator<Item = usize> {
    (0..GIB).step_by(STEP)
}

/// Splits inside a leaf that is mapped and not present (`_PAGE_PROTNONE`).
fn under_prot_none(shift: u32) -> Result<Verdict> {
    let (device, ground) = segment(shift)?;
    looks().for_each(|at| ground.store(at, word(at)));
    ensure!(device.leaf(&ground, 0)?.shift == shift, "there is no such leaf");
    ground.protect(0, GIB, 0)?;
    let page = 300 * LEAF + 7 * PAGE;
    ground.unmap(page, PAGE)?;
    ground.protect(0, page, READ | WRITE)?;
    ground.protect(page + PAGE, GIB - page - PAGE, READ | WRITE)?;
    for at in looks().filter(|at| at / PAGE != page / PAGE) {
        let found = ground.load(at);
        ensure!(found == word(at), "the page at {at:#x} holds {found:#x}");
    }
    Verdict::ok("contents stay")
}

/// Faults between `may_split` and the split itself, which may install the leaf again.
fn touches_beside() -> Result<Verdict> {
    const ROUNDS: usize = 150;
    let (device, ground) = segment(30)?;
    looks().for_each(|at| ground.store(at, word(at)));
    let is_done = AtomicBool::new(false);
    let answers = crew::threads(1 + TOUCHERS, |thread| {
        if thread > 0 {
            let mut lost = 0;
            while !is_done.load(Ordering::Relaxed) {
                lost += looks().filter(|at| ground.load(*at) != word(*at)).count();
            }
            return Ok(lost);
        }
        let splits = (0..ROUNDS).try_for_each(|round| {
            // One leaf again, then a split of it: the same page mapped over itself.
            ground.map(0, &device.0, Mapping::shared(GIB))?;
            ground.load(0);
            let page = (round * 37 + 5) * PAGE;
            ground.map(page, &device.0, Mapping { offset: page as u64, ..Mapping::shared(PAGE) })
        });
        is_done.store(true, Ordering::Relaxed);
        splits.map(|()| 0)
    })?;
    let lost = answers.into_iter().sum::<Result<usize, _>>()?;
    ensure!(lost == 0, "{lost} looks found something else");
    Verdict::ok(format!("{ROUNDS} splits"))
}

/// `PR_SET_THP_DISABLE` and a touch of a base page while a fault zeroes the leaf around it.
fn vetoed() -> Result<Verdict> {
    /// Pauses before the veto, so that it comes while the leaf is zeroed.
    const PAUSES_MS: [u64; 7] = [0, 1, 3, 10, 30, 60, 120];
    let (device, ground) = segment(30)?;
    let (first, second) = (0, GIB / 2);
    for pause in PAUSES_MS {
        // Mapped anew: the page table of the last round would stay, and no leaf would come.
        device.forget(0, GIB as u64)?;
        ground.map(0, &device.0, Mapping::shared(GIB))?;
        let barrier = Barrier::new(2)?;
        let answers = crew::threads(2, |thread| {
            barrier.wait();
            if thread == 0 {
                ground.store(first, word(first));
                return Ok(());
            }
            sleep(Duration::from_millis(pause));
            disable_thp(true)?;
            ground.store(second, word(second));
            disable_thp(false)
        })?;
        answers.into_iter().collect::<Result<(), _>>()?;
        for (at, expected) in
            [(first, word(first)), (second, word(second)), (first + PAGE, 0), (GIB - PAGE, 0)]
        {
            let found = ground.load(at);
            ensure!(found == expected, "after {pause} ms {at:#x} holds {found:#x}");
        }
    }
    Verdict::ok(format!("{} moments", PAUSES_MS.len()))
}

/// Asynchronous write protection of a page that is not mapped yet: a touch is `SIGBUS`. Kernels
/// with a later fix refuse to register memory of a driver.
fn write_protected() -> Result<Verdict> {
    const SIGBUS: i32 = 7;
    const NOT_REGISTERED: i32 = 3;
    if !Ability::WriteProtectAsync.is_here() {
        return Verdict::skip("UFFD_FEATURE_WP_ASYNC", "boot Linux 6.7 or newer");
    }
    let mut child = fork(|| match protected() {
        Ok(Some(area)) => u8::from(area.word(LEAF) != 0),
        Ok(None) => 3,
        Err(_) => 2,
    })?;
    match ended(&mut child, || false)? {
        None => bail!("the fault repeats: {:?}", child.kill()?),
        Some(End::Killed(SIGBUS)) => Verdict::ok("SIGBUS"),
        Some(End::Exited(NOT_REGISTERED)) => Verdict::ok("not registered"),
        Some(end) => bail!("{end:?}"),
    }
}

/// Two leaves of 2 MiB, the second write-protected before anything is mapped there.
fn protected() -> Result<Option<Area>> {
    let request = Request {
        bytes: 2 * LEAF as u64,
        memory_type: MemoryType::Wb,
        frames: Frames::Reserved,
        leaf: LEAF as u64,
        node: None,
        eager: false,
        offset: 0,
        segment: true,
    };
    let segment = memtype::Device::open()?.segment(&request)?;
    let area = Area::mapped(Layout::contiguous(2 * LEAF), segment.backing(0), LEAF)?;
    let uffd = Uffd::open(&[Ability::WriteProtectAsync])?;
    if uffd.register(&area, 0, 2 * LEAF, Mode::WriteProtect).is_err() {
        return Ok(None);
    }
    uffd.protect(&area, LEAF, 2 * LEAF)?;
    // The registration lasts as long as the descriptor.
    std::mem::forget(uffd);
    Ok(Some(area))
}
