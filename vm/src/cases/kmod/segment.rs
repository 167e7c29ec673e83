//! Segments: memory of one program, zeroed by the fault that first maps it, split anywhere.
//!
//! The one idea: what was written outlasts every split of a leaf; what was never written, or was
//! dropped, is zero. Each part writes to every page, does one thing, and looks at every page again.

use anyhow::{Context, Result, ensure};
use pagelab_sys::{
    process::crew,
    time::usage,
    vm::hostile::{End, Errno, Ground, Mapping, READ, Touch, WRITE, touch_in_a_child},
};

use super::{
    abi::{Alloc, CONTIGUOUS, Device, Info, MIB, PAGE, RESERVED, SEGMENT, WB, ZERO_AT_FAULT},
    end, load, load_whole, refused,
};
use crate::{guest::Guest, verdict::Verdict};

const LEAF: usize = 2 * MIB;
/// Of a field: three leaves of 2 MiB, and three pages more.
const BYTES: usize = 3 * LEAF + 3 * PAGE;
/// Where in its ground a field is mapped.
const AT: usize = LEAF;

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    let loaded = load(guest, "")?;
    let info = Device::open()?.info()?;
    for (layout, name) in [(CONTIGUOUS, "contiguous"), (RESERVED, "reserved")] {
        if layout == RESERVED && info.reserved_bytes == 0 {
            continue;
        }
        for (flags, zeroed) in [(0, "by ALLOC"), (ZERO_AT_FAULT, "at fault")] {
            let shift = if info.offers(WB, layout, 21) { 21 } else { 12 };
            let want = segment(layout, shift, BYTES, flags);
            guest.part(&format!("{name}, zeroed {zeroed}: faults"), counted(&want));
            guest.part(&format!("{name}, zeroed {zeroed}: used before"), used_before(&want));
            for (part, body) in PARTS {
                let verdict = Field::new(&want).and_then(|field| body(&field));
                guest.part(&format!("{name}, zeroed {zeroed}: {part}"), verdict);
            }
        }
    }
    guest.part("no segment", no_segment());
    end(loaded)?;
    Verdict::ok("contents outlast splits")
}

/// The published sizes of leaves, on memory that was used before.
pub(super) fn run_large(guest: &Guest) -> Result<Verdict> {
    let loaded = load_whole(guest)?;
    let info = Device::open()?.info()?;
    let bytes = (1 << 30) + LEAF + PAGE;
    for shift in [12, 21, 30].into_iter().filter(|shift| info.offers(WB, RESERVED, *shift)) {
        let want = segment(RESERVED, shift, bytes, ZERO_AT_FAULT);
        guest.part(&format!("faults with leaves of 2^{shift}"), counted(&want));
    }
    if info.offers(WB, RESERVED, 30) {
        guest.part("a leaf of 1 GiB that is split", split_largest(bytes));
    }
    end(loaded)?;
    Verdict::ok(leaves(&info))
}

fn leaves(info: &Info) -> String {
    let offered = [(12, "4k"), (21, "2m"), (30, "1g")];
    let offered = offered.iter().filter(|(shift, _)| info.offers(WB, RESERVED, *shift));
    offered.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
}

fn segment(layout: u32, leaf_shift: u32, bytes: usize, flags: u32) -> Alloc {
    Alloc { layout, leaf_shift, flags: SEGMENT | flags, ..Alloc::pages(WB, bytes) }
}

/// A segment, mapped whole, with a word of its own in every page.
struct Field {
    device: Device,
    ground: Ground,
    want: Alloc,
}

/// A part that needs nothing else.
type Part = fn(&Field) -> Result<Verdict>;

const PARTS: &[(&str, Part)] = &[
    ("a hole", hole),
    ("protection", protection),
    ("moving", moving),
    ("dropping", dropping),
    ("dropping beside touches", beside),
    ("fork", fork),
    ("askew", askew),
];

/// What the page at an offset of the segment holds.
fn word(page: usize) -> u64 {
    page as u64 | 1
}

impl Field {
    fn new(want: &Alloc) -> Result<Self> {
        let device = Device::with(want)?;
        let ground = Ground::reserve(8 * LEAF, LEAF)?;
        ground.map(AT, &device.0, Mapping::shared(BYTES)).context("mapping")?;
        let field = Self { device, ground, want: *want };
        field.is_zero(0, BYTES)?;
        field.write(0, BYTES);
        Ok(field)
    }

    fn write(&self, from: usize, to: usize) {
        (from..to).step_by(PAGE).for_each(|page| self.ground.store(AT + page, word(page)));
    }

    /// All of these pages hold what was written, where they were mapped first.
    fn holds(&self, from: usize, to: usize) -> Result<()> {
        (from..to).step_by(PAGE).try_for_each(|page| self.is(AT + page, page))
    }

    /// What is mapped there is this page of the segment.
    fn is(&self, at: usize, page: usize) -> Result<()> {
        let found = self.ground.load(at);
        ensure!(found == word(page), "page {page:#x} at {at:#x} holds {found:#x}");
        Ok(())
    }

    fn is_zero(&self, from: usize, to: usize) -> Result<()> {
        let mut bytes = [0xff; PAGE];
        for page in (from..to).step_by(PAGE) {
            self.ground.copy_out(AT + page, &mut bytes)?;
            ensure!(bytes == [0; PAGE], "page {page:#x} is not zero");
        }
        Ok(())
    }

    /// The leaf there is as large as can be, or of the size of a page.
    fn leaf(&self, at: usize, is_largest: bool) -> Result<()> {
        let wanted = if is_largest { self.want.leaf_shift } else { 12 };
        let found = self.device.leaf(&self.ground, at)?;
        ensure!(found.shift == wanted, "2^{wanted} was expected at {at:#x}: {found:x?}");
        Ok(())
    }
}

/// Faults of a first touch of everything, by the sizes of leaves that fit.
fn counted(want: &Alloc) -> Result<Verdict> {
    let bytes = usize::try_from(want.bytes)?;
    let (mut rest, mut expected) = (bytes, 0);
    for shift in [30, 21, 12].into_iter().filter(|shift| *shift <= want.leaf_shift) {
        expected += (rest >> shift) as u64;
        rest %= 1 << shift;
    }
    let (device, ground) = touched(want, bytes, expected)?;
    let first = device.leaf(&ground, 0)?.phys;
    for at in (0..bytes).step_by((bytes / 2048).max(PAGE) / PAGE * PAGE) {
        let found = device.leaf(&ground, at)?;
        ensure!(found.phys == first + at as u64, "the frame at {at:#x} is no base + offset");
    }
    Verdict::ok(format!("{expected} faults for {bytes} bytes"))
}

/// A mapping, all of it touched, by so many faults and then by none. A thread has one of its own
/// now and then, as when the kernel moves a page of it to make room for contiguous frames: what
/// is more than it should be counts when it comes every time.
fn touched(want: &Alloc, bytes: usize, expected: u64) -> Result<(Device, Ground)> {
    const TRIES: u32 = 20;
    let faults = |ground: &Ground| {
        let before = usage::thread().minor_faults;
        (0..bytes).step_by(PAGE).for_each(|at| ground.store(at, word(at)));
        usage::thread().minor_faults - before
    };
    let mut tries = 0;
    loop {
        let device = Device::with(want)?;
        let ground = device.map(bytes, 0)?;
        let counted = [faults(&ground), faults(&ground)];
        if counted == [expected, 0] {
            return Ok((device, ground));
        }
        tries += 1;
        let is_less = counted[0] < expected;
        ensure!(!is_less && tries < TRIES, "{counted:?} faults, {expected} were expected");
    }
}

/// The same frames once more: whoever had them before is not seen.
fn used_before(want: &Alloc) -> Result<Verdict> {
    for round in 0..2 {
        let (device, ground) = Device::mapped(want)?;
        for at in (0..BYTES).step_by(PAGE) {
            ensure!(ground.load(at + 8) == 0, "page {at:#x} of round {round} is not zero");
            let mut bytes = [0xa5; PAGE];
            bytes[0] = round;
            ground.copy_in(at, &bytes)?;
        }
        drop(device);
    }
    Verdict::ok("zeroes")
}

fn hole(field: &Field) -> Result<Verdict> {
    let Field { ground, device, .. } = field;
    let page = LEAF + 17 * PAGE;
    ground.unmap(AT + page, PAGE)?;
    refused(ground.copy_in(AT + page, &[1; 8]), Errno::FAULT)?;
    // The rest of the leaf comes back, in pages and with what it held; the others stay.
    field.holds(0, page)?;
    field.holds(page + PAGE, BYTES)?;
    field.leaf(AT, true)?;
    field.leaf(AT + page + PAGE, false)?;
    field.leaf(AT + 2 * LEAF, true)?;
    // Nothing was dropped: what is mapped there again is the frame with its contents.
    let how = Mapping { offset: page as u64, ..Mapping::shared(PAGE) };
    ground.map(AT + page, &device.0, how)?;
    field.is(AT + page, page)?;
    // The ends, too.
    ground.unmap(AT, PAGE)?;
    ground.unmap(AT + BYTES - PAGE, PAGE)?;
    field.holds(PAGE, BYTES - PAGE)?;
    field.leaf(AT + PAGE, false)?;
    Verdict::ok("the rest is there")
}

fn protection(field: &Field) -> Result<Verdict> {
    let ground = &field.ground;
    let (from, to) = (LEAF / 2, LEAF + LEAF / 2);
    ground.protect(AT + from, to - from, READ)?;
    field.holds(0, BYTES)?;
    refused(ground.copy_in(AT + from, &[1; 8]), Errno::FAULT)?;
    refused(ground.copy_in(AT + to - PAGE, &[1; 8]), Errno::FAULT)?;
    field.write(0, from);
    field.write(to, BYTES);
    ground.protect(AT, BYTES, READ | WRITE)?;
    field.holds(0, BYTES)?;
    field.write(0, BYTES);
    field.holds(0, BYTES)?;
    field.leaf(AT + 2 * LEAF, true)?;
    Verdict::ok("contents stay")
}

fn moving(field: &Field) -> Result<Verdict> {
    let ground = &field.ground;
    // Half a leaf to where it is askew, a whole one to where it is not.
    let (half, there) = (LEAF / 2, AT + 4 * LEAF);
    ground.remap(AT + half, half, there + PAGE, half).context("half a leaf")?;
    (half..LEAF).step_by(PAGE).try_for_each(|page| field.is(there + PAGE + page - half, page))?;
    field.holds(0, half)?;
    ground.remap(AT + LEAF, LEAF, there + LEAF, LEAF).context("a leaf")?;
    (LEAF..2 * LEAF).step_by(PAGE).try_for_each(|page| field.is(there + page, page))?;
    field.holds(2 * LEAF, BYTES)?;
    field.leaf(there + PAGE, false)?;
    field.leaf(there + LEAF, true)?;
    Verdict::ok("contents move along")
}

fn dropping(field: &Field) -> Result<Verdict> {
    let Field { device, .. } = field;
    let (from, to) = (LEAF - 3 * PAGE, LEAF + 5 * PAGE);
    device.forget(from as u64, (to - from) as u64)?;
    field.holds(0, from)?;
    field.holds(to, BYTES)?;
    field.is_zero(from, to)?;
    // The mapping was not split: its leaves are whole again.
    [0, LEAF, 2 * LEAF].into_iter().try_for_each(|at| field.leaf(AT + at, true))?;
    field.write(0, BYTES);
    device.forget(0, BYTES as u64)?;
    field.is_zero(0, BYTES)?;
    for (offset, bytes) in [
        (0, 0),
        (1, PAGE as u64),
        (0, PAGE as u64 + 1),
        (BYTES as u64, PAGE as u64),
        (0, (BYTES + PAGE) as u64),
        (PAGE as u64, !0xfff),
        (!0xfff, PAGE as u64),
    ] {
        refused(device.forget(offset, bytes), Errno::INVAL)
            .with_context(|| format!("{bytes:#x} bytes at {offset:#x}"))?;
    }
    Verdict::ok("zeroes where it was dropped, nowhere else")
}

/// Threads that touch pages of the same leaves for the first time, while one drops its own.
fn beside(field: &Field) -> Result<Verdict> {
    const THREADS: usize = 4;
    let Field { device, ground, .. } = field;
    device.forget(0, BYTES as u64)?;
    let lost = crew::threads(THREADS, |thread| {
        let mine = || (0..BYTES).step_by(PAGE).skip(thread).step_by(THREADS);
        let mut lost = 0;
        if thread > 0 {
            mine().for_each(|page| ground.store(AT + page, word(page)));
            return mine().filter(|page| ground.load(AT + page) != word(*page)).count();
        }
        for page in mine() {
            ground.store(AT + page, word(page));
            let is_forgotten = device.forget(page as u64, PAGE as u64).is_ok();
            lost += usize::from(!is_forgotten || ground.load(AT + page) != 0);
        }
        lost
    })?;
    ensure!(
        lost.iter().sum::<usize>() == 0,
        "pages of each thread that held something else: {lost:?}"
    );
    let others = (0..BYTES).step_by(PAGE).enumerate().filter(|(index, _)| index % THREADS > 0);
    for (_, page) in others {
        field.is(AT + page, page)?;
    }
    Verdict::ok(format!("{THREADS} threads"))
}

fn fork(field: &Field) -> Result<Verdict> {
    for at in [AT, AT + LEAF + PAGE, AT + BYTES - PAGE] {
        let end = touch_in_a_child(&field.ground, &[Touch::Load(at)])?;
        ensure!(end == End::SEGMENTATION, "a child has it: {end:?}");
    }
    field.holds(0, BYTES)?;
    Verdict::ok("a child has none of it")
}

/// Where address and offset do not lie alike in a leaf there are pages only.
fn askew(field: &Field) -> Result<Verdict> {
    let Field { device, ground, .. } = field;
    let there = 5 * LEAF;
    ground.map(there + PAGE, &device.0, Mapping::shared(LEAF))?;
    (0..LEAF).step_by(PAGE).try_for_each(|page| field.is(there + PAGE + page, page))?;
    field.leaf(there + PAGE, false)?;
    // The kernel chooses an address that lies as the offset does.
    let part = device.map(2 * LEAF, LEAF - PAGE)?;
    let leaf = 1 << field.want.leaf_shift;
    ensure!((part.start() + PAGE).is_multiple_of(leaf), "{:#x} is askew", part.start());
    ensure!(part.load(PAGE) == word(LEAF) && part.load(0) == word(LEAF - PAGE), "another page");
    let found = device.leaf(&part, PAGE)?;
    ensure!(found.shift == field.want.leaf_shift, "{found:x?}");
    Verdict::ok("pages where it must be, leaves where it can be")
}

fn no_segment() -> Result<Verdict> {
    refused(Device::open()?.forget(0, PAGE as u64), Errno::NXIO)?;
    refused(Device::with(&Alloc::pages(WB, MIB))?.forget(0, PAGE as u64), Errno::NXIO)
}

/// One page out of a leaf of 1 GiB: 2 MiB around it in pages, the rest by leaves of 2 MiB.
fn split_largest(bytes: usize) -> Result<Verdict> {
    let device = Device::with(&segment(RESERVED, 30, bytes, ZERO_AT_FAULT))?;
    let ground = Ground::reserve(3 << 30, 1 << 30)?;
    ground.map(0, &device.0, Mapping::shared(bytes))?;
    let looks = || (0..bytes).step_by(MIB + PAGE);
    looks().for_each(|at| ground.store(at, word(at)));
    let page = 300 * LEAF + 7 * PAGE;
    let shift = |at| device.leaf(&ground, at).map(|leaf| leaf.shift);
    ensure!((shift(0)?, shift(1 << 30)?) == (30, 21), "no leaf of 1 GiB");
    ground.unmap(page, PAGE)?;
    for at in looks().filter(|at| at / PAGE != page / PAGE) {
        ensure!(ground.load(at) == word(at), "the page at {at:#x} lost what it held");
    }
    ground.store(page + PAGE, 1);
    ensure!((shift(0)?, shift(page + PAGE)?) == (21, 12), "leaves beside the hole");
    // The leaf of 2 MiB behind it moves with what it holds.
    ground.store(1 << 30, 77);
    ground.remap(1 << 30, LEAF, 2 << 30, LEAF)?;
    ensure!(ground.load(2 << 30) == 77 && shift(2 << 30)? == 21, "after the move");
    Verdict::ok("2^21 and 2^12 beside the hole")
}
