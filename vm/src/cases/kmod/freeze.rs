//! A frozen segment: whatever touches it waits, and nothing waits for ever.
//!
//! `FREEZE` takes the leaves out of the page table and lets faults wait; `COPY` reads the frames
//! meanwhile. Each part lets threads touch the segment by one way and says when they may go on.

use std::{
    fs::File,
    sync::atomic::{AtomicUsize, Ordering},
    thread::{scope, sleep},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use pagelab_sys::{
    process::crew,
    time::monotonic_raw_ns,
    vm::hostile::{End, Errno, Ground, Tally, fork},
};

use super::{
    abi::{
        Alloc, CONTIGUOUS, COPY, Device, FREEZE, FREEZE_MOST, MIB, PAGE, RESERVED, SEGMENT, SHIFTS,
        WB, ZERO_AT_FAULT,
    },
    agrees, end, ended,
    frames::all_back,
    load, refused,
};
use crate::{guest::Guest, verdict::Verdict};

/// Of a segment: leaves of 2 MiB, and pages.
const BYTES: usize = 6 * MIB + 3 * PAGE;
/// Longer than any part takes.
const LONG_MS: u32 = 60_000;
/// Time in which a thread that need not wait has done its part, mostly.
const SHORT: Duration = Duration::from_millis(200);
/// Where a thread touches it.
const TOUCHED: usize = 4 * MIB + 5 * PAGE;

/// A way to touch a segment at an offset.
type Touch = fn(&Device, &Ground) -> Result<(), Errno>;

const TOUCHES: &[(&str, Touch)] = &[
    ("a load", |_, ground| {
        ground.load(TOUCHED);
        Ok(())
    }),
    ("a store", |_, ground| {
        ground.store(TOUCHED, 7);
        Ok(())
    }),
    ("a futex", |_, ground| ground.add_by_futex(TOUCHED)),
    ("a read of a file", |_, ground| {
        let file = File::open("/proc/self/exe").map_err(|_| Errno::NOENT)?;
        ground.read_file(TOUCHED, PAGE, &file).map(drop)
    }),
    ("DROP", |device, _| device.forget(TOUCHED as u64, PAGE as u64)),
];

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    let loaded = load(guest, "")?;
    let info = Device::open()?.info()?;
    for (layout, name) in [(CONTIGUOUS, "contiguous"), (RESERVED, "reserved")] {
        if layout == RESERVED && info.reserved_bytes == 0 {
            continue;
        }
        for shift in SHIFTS.into_iter().filter(|shift| *shift < 30) {
            if !info.offers(WB, layout, shift) {
                continue;
            }
            let want = segment(layout, shift);
            let name = format!("{name}, leaves of 2^{shift}");
            for (what, touch) in TOUCHES {
                guest.part(&format!("{name}: {what} waits"), waits(&want, *touch));
                guest.part(&format!("{name}: {what} is killed"), killed(&want, *touch));
            }
            guest.part(&format!("{name}: the time is over"), over(&want));
            guest.part(&format!("{name}: copies"), copies(&want));
        }
    }
    guest.part("refusals", refusals());
    end(loaded)?;
    Verdict::ok("nothing waits for ever")
}

fn segment(layout: u32, leaf_shift: u32) -> Alloc {
    let flags = SEGMENT | ZERO_AT_FAULT;
    Alloc { layout, leaf_shift, flags, ..Alloc::pages(WB, BYTES) }
}

/// What the page at an offset holds.
fn word(page: usize) -> u64 {
    page as u64 | 1
}

/// A segment with a word of its own in every page.
fn filled(want: &Alloc) -> Result<(Device, Ground)> {
    let (device, ground) = Device::mapped(want)?;
    (0..BYTES).step_by(PAGE).for_each(|page| ground.store(page, word(page)));
    Ok((device, ground))
}

/// Memory for a copy.
fn staging() -> Result<(Device, Ground)> {
    Device::mapped(&Alloc::pages(WB, BYTES.next_multiple_of(PAGE)))
}

/// Two threads touch it; neither is done before it is thawed, and the contents are those of before.
fn waits(want: &Alloc, touch: Touch) -> Result<Verdict> {
    let (device, ground) = filled(want)?;
    let (_to, copy) = staging()?;
    let done = AtomicUsize::new(0);
    device.freeze(LONG_MS).context("FREEZE")?;
    let (early, refused) = scope(|threads| -> Result<(usize, Errno)> {
        let both = [(); 2].map(|()| {
            threads.spawn(|| {
                let came = touch(&device, &ground);
                done.fetch_add(1, Ordering::SeqCst);
                came
            })
        });
        let other = threads.spawn(|| device.freeze(1)).join();
        sleep(SHORT);
        let early = done.load(Ordering::SeqCst);
        let copied = device.copy(ground.start(), BYTES as u64, copy.start());
        let again = device.freeze(LONG_MS);
        // A map of another kind comes and goes meanwhile.
        let mapped = staging().map(drop);
        let thawed = device.freeze(0);
        for thread in both {
            thread.join().expect("a thread").context("what waited")?;
        }
        ensure!(copied.context("COPY")? == BYTES as u64, "{copied:?} bytes");
        again.context("FREEZE again")?;
        mapped.context("a map")?;
        thawed.context("thaw")?;
        Ok((early, other.expect("a thread").err().context("another thread froze it")?))
    })?;
    ensure!(early == 0, "{early} of 2 threads did not wait");
    ensure!(refused == Errno::BUSY, "another thread that freezes it: {refused}");
    for page in (0..BYTES).step_by(PAGE) {
        let found = copy.load(page);
        ensure!(found == word(page), "page {page:#x} of the copy holds {found:#x}");
        let is_touched = page / PAGE == TOUCHED / PAGE;
        ensure!(is_touched || ground.load(page) == word(page), "page {page:#x} afterwards");
    }
    let leaf = device.leaf(&ground, 0)?;
    ensure!(leaf.shift == want.leaf_shift, "{leaf:x?} afterwards");
    Verdict::ok("until it is thawed")
}

/// A process whose threads wait dies at once.
fn killed(want: &Alloc, touch: Touch) -> Result<Verdict> {
    let begun = Tally::new()?;
    let mut child = fork(|| {
        let Ok((device, ground)) = filled(want) else { return 1 };
        if device.freeze(FREEZE_MOST).is_err() {
            return 2;
        }
        let touched = crew::threads(2, |_| {
            begun.add(0, 1);
            touch(&device, &ground)
        });
        3 + u8::from(touched.is_err())
    })?;
    let is_waiting = ended(&mut child, || begun.get(0) == 2)?;
    ensure!(is_waiting.is_none(), "it does not wait: {is_waiting:?}");
    sleep(SHORT / 2);
    child.send_kill()?;
    let end = ended(&mut child, || false)?;
    if end.is_none() {
        // Dropping it would wait for its end.
        std::mem::forget(child);
    }
    ensure!(end == Some(End::Killed(9)), "{end:?}");
    all_back()?;
    Verdict::ok("at once")
}

/// Nobody thaws it.
fn over(want: &Alloc) -> Result<Verdict> {
    const TIME: Duration = Duration::from_millis(500);
    let (device, ground) = filled(want)?;
    let begun = monotonic_raw_ns();
    // By a thread that ends.
    let milliseconds = u32::try_from(TIME.as_millis())?;
    scope(|threads| threads.spawn(|| device.freeze(milliseconds)).join()).expect("a thread")?;
    ground.store(0, 5);
    let took = Duration::from_nanos(monotonic_raw_ns() - begun);
    ensure!(took >= TIME, "it took {took:?}");
    refused(device.freeze(0), Errno::TIME)?;
    device.freeze(0).context("a second thaw")?;
    // The thread that froze it does not wait, and may not set the time anew once it is over.
    device.freeze(milliseconds)?;
    ground.store(PAGE, 6);
    sleep(TIME + SHORT);
    refused(device.freeze(LONG_MS), Errno::TIME)?;
    ensure!((ground.load(0), ground.load(PAGE)) == (5, 6), "what was stored");
    Verdict::ok(format!("after {} ms", took.as_millis()))
}

/// What was never touched or was dropped is not copied.
fn copies(want: &Alloc) -> Result<Verdict> {
    let (device, ground) = Device::mapped(want)?;
    let (_to, copy) = staging()?;
    let (from, to) = (ground.start(), copy.start());
    ensure!(device.copy(from, BYTES as u64, to)? == 0, "nothing was touched");
    ground.store(TOUCHED, 9);
    let leaf = 1_u64 << want.leaf_shift;
    ensure!(device.copy(from, BYTES as u64, to)? == leaf, "one leaf was touched");
    ensure!(copy.load(TOUCHED) == 9, "the copy holds {}", copy.load(TOUCHED));
    ground.store(0, 1);
    device.forget(0, 2 * MIB as u64)?;
    ensure!(device.copy(from, BYTES as u64, to)? == leaf, "a leaf was dropped");
    // A part of it that is no multiple of a leaf, to where a segment is.
    ensure!(device.copy(from + TOUCHED, PAGE as u64, from)? == PAGE as u64);
    ensure!(ground.load(0) == 9, "a copy to the segment itself");
    ground.unmap(PAGE, PAGE)?;
    refused(device.copy(from, 2 * PAGE as u64, to), Errno::FAULT)?;
    refused(device.copy(from + TOUCHED, PAGE as u64, 8), Errno::FAULT)?;
    Verdict::ok("what was touched")
}

fn refusals() -> Result<Verdict> {
    let (device, ground) = filled(&segment(CONTIGUOUS, 12))?;
    refused(Device::open()?.freeze(1), Errno::NXIO)?;
    let (other, memory) = staging()?;
    refused(other.freeze(1), Errno::NXIO)?;
    refused(other.copy(memory.start(), PAGE as u64, ground.start()), Errno::NXIO)?;
    refused(device.copy(memory.start(), PAGE as u64, ground.start()), Errno::FAULT)?;
    refused(Device::with(&segment(CONTIGUOUS, 12))?.freeze(1), Errno::PERM)?;
    refused(device.freeze(FREEZE_MOST + 1), Errno::INVAL)?;
    refused(device.freeze(u32::MAX), Errno::INVAL)?;
    for byte in 4..32 {
        let mut raw = [0; 32];
        raw[byte] = 1;
        refused(device.0.call(FREEZE, &mut raw), Errno::INVAL)
            .with_context(|| format!("reserved byte {byte}"))?;
    }
    let (at, to) = (ground.start() as u64, memory.start() as u64);
    let good = [at, PAGE as u64, to, 0, 0, 0];
    for (field, value) in
        [(0, at + 1), (0, !0xfff), (1, 0), (1, 1), (1, !0xfff), (2, !0), (3, 1), (4, 1), (5, 1)]
    {
        let mut words = good;
        words[field] = value;
        let mut raw: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
        refused(device.0.call(COPY, &mut raw), Errno::INVAL)
            .with_context(|| format!("field {field} is {value:#x}"))?;
    }
    device.freeze(LONG_MS)?;
    agrees("a child with the file", || {
        let is_refused = device.freeze(0) == Err(Errno::PERM)
            && device.freeze(1) == Err(Errno::PERM)
            && device.copy(ground.start(), PAGE as u64, memory.start()) == Err(Errno::FAULT);
        u8::from(!is_refused)
    })?;
    device.freeze(0)?;
    Verdict::ok("each has its errno")
}
