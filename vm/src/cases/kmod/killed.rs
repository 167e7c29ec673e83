//! SIGKILL during a system call: a copy to a fresh segment, `FUTEX_WAKE_OP`, a large ALLOC.
//!
//! A fault in kernel mode that returns without a page is taken again, whatever signals are pending.
//! A fault handler that gives up because of a signal must return an error, or the process spins.

use std::{
    fs::{self, File},
    thread::sleep,
    time::Duration,
};

use anyhow::{Result, bail, ensure};
use pagelab_sys::vm::hostile::{End, Errno, Forked, Ground, Tally, fork};

use super::{
    abi::{
        Alloc, CONTIGUOUS, Device, Info, LAYOUTS, MIB, RESERVED, SEGMENT, SHIFTS, WB, ZERO_AT_FAULT,
    },
    end, ended,
    frames::all_back,
    load_whole,
};
use crate::{
    guest::{Guest, scratch},
    verdict::Verdict,
};

/// Pauses before the kill, so that it comes at different moments of the work.
const PAUSES_MS: [u64; 5] = [0, 3, 15, 60, 240];
/// Of a segment with leaves of 4K and 2M.
const BYTES: usize = 256 * MIB;
/// Of an ALLOC that is killed.
const MUCH: usize = 384 * MIB;

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    let loaded = load_whole(guest)?;
    let info = Device::open()?.info()?;
    for want in segments(&info) {
        let name = format!("{}, leaves of 2^{}", LAYOUTS[want.layout as usize], want.leaf_shift);
        guest.part(&format!("in mid-read: {name}"), in_mid_read(&want));
        guest.part(&format!("FUTEX_WAKE_OP on a fresh page: {name}"), futex(&want));
    }
    guest.part("in a large contiguous ALLOC", in_alloc());
    end(loaded)?;
    Verdict::ok("each died")
}

/// Each size of leaf that there is, on reserved memory where there is some.
fn segments(info: &Info) -> Vec<Alloc> {
    let layout = if info.reserved_bytes > 0 { RESERVED } else { CONTIGUOUS };
    // A machine in use may have no free GiB in one piece.
    let is_here =
        |shift: &u32| info.offers(WB, layout, *shift) && (*shift < 30 || layout == RESERVED);
    let segment = |leaf_shift: u32| {
        let bytes = BYTES.max(1 << leaf_shift);
        let flags = SEGMENT | ZERO_AT_FAULT;
        Alloc { layout, leaf_shift, flags, ..Alloc::pages(WB, bytes) }
    };
    SHIFTS.into_iter().filter(is_here).map(segment).collect()
}

/// Kills children that repeat a call on a fresh segment, each after another pause.
fn killed_in(want: &Alloc, act: impl Fn(&Ground, usize) -> Result<(), Errno>) -> Result<()> {
    let bytes = usize::try_from(want.bytes)?;
    let begun = Tally::new()?;
    for (index, pause) in PAUSES_MS.into_iter().enumerate() {
        let child = fork(|| {
            let Ok((device, ground)) = Device::mapped(want) else { return 1 };
            begun.add(index, 1);
            while act(&ground, bytes).is_ok() && device.forget(0, bytes as u64).is_ok() {}
            2
        })?;
        ends(child, pause, || begun.get(index) > 0)?;
    }
    all_back()
}

/// Kills a child once it has begun; it must end by that signal.
fn ends(mut child: Forked, pause_ms: u64, has_begun: impl Fn() -> bool) -> Result<()> {
    let end = ended(&mut child, has_begun)?;
    sleep(Duration::from_millis(pause_ms));
    ensure!(end.is_none(), "it ended by itself: {end:?}");
    child.send_kill()?;
    let end = ended(&mut child, || false)?;
    if end.is_none() {
        // Dropping it would wait for its end.
        std::mem::forget(child);
        bail!("killed after {pause_ms} ms, it does not die");
    }
    ensure!(end == Some(End::Killed(9)), "{end:?}");
    Ok(())
}

fn in_mid_read(want: &Alloc) -> Result<Verdict> {
    let path = scratch();
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    file.set_len(want.bytes)?;
    killed_in(want, |ground, bytes| {
        let copied = ground.read_file(0, bytes, &file)?;
        if copied == bytes { Ok(()) } else { Err(Errno::IO) }
    })?;
    Verdict::ok(format!("killed at {} moments", PAUSES_MS.len()))
}

/// `FUTEX_WAKE_OP` on a page that is not mapped yet.
fn futex(want: &Alloc) -> Result<Verdict> {
    let (device, ground) = Device::mapped(want)?;
    let last = ground.bytes() - 8;
    for at in [0, last] {
        ground.add_by_futex(at)?;
        ensure!(ground.load(at) == 1, "the word at {at:#x} is {}", ground.load(at));
    }
    drop((device, ground));
    killed_in(want, |ground, _| ground.add_by_futex(last))?;
    Verdict::ok("added, and killed")
}

fn in_alloc() -> Result<Verdict> {
    let large = Alloc { layout: CONTIGUOUS, ..Alloc::pages(WB, MUCH) };
    for want in [large, Alloc { flags: SEGMENT | ZERO_AT_FAULT, ..large }] {
        let begun = Tally::new()?;
        for (index, pause) in PAUSES_MS.into_iter().enumerate() {
            let child = fork(|| {
                begun.add(index, 1);
                while Device::with(&want).is_ok() {}
                1
            })?;
            ends(child, pause, || begun.get(index) > 0)?;
            all_back()?;
        }
    }
    Verdict::ok(format!("{MUCH} bytes"))
}
