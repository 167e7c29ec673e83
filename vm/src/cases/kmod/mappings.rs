//! What happens to a mapping after mmap: fork, moves, holes, protection, advice.
//!
//! The one idea: whatever a process does to its mappings, a page is of the type that was asked for
//! or is not there at all. A touch that must fail is made by a child, which dies of it.

use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use pagelab_sys::vm::hostile::{
    End, Errno, Ground, Mapping, POPULATE, READ, SHARED, Touch, WRITE, touch_in_a_child,
};

use super::{
    abi::{Alloc, CONTIGUOUS, Device, EAGER, MIB, PAGE, RESERVED, TYPES, UC_MINUS, WB, WC},
    agrees, end, load, refused,
};
use crate::{guest::Guest, verdict::Verdict};

const GOOD: Mapping = Mapping::shared(MIB);
/// `MADV_*` of the UAPI.
const MADV_NOHUGEPAGE: i32 = 15;

/// Advice, by number, and its answer.
const ADVICE: &[(&str, i32, Option<Errno>)] = &[
    ("MADV_NORMAL", 0, None),
    ("MADV_DONTNEED", 4, Some(Errno::INVAL)),
    ("MADV_FREE", 8, Some(Errno::INVAL)),
    ("MADV_MERGEABLE", 12, None),
    ("MADV_WIPEONFORK", 18, Some(Errno::INVAL)),
    ("MADV_COLD", 20, Some(Errno::INVAL)),
    ("MADV_PAGEOUT", 21, Some(Errno::INVAL)),
    ("MADV_COLLAPSE", 25, Some(Errno::INVAL)),
    ("MADV_DODUMP", 17, Some(Errno::INVAL)),
];

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    let loaded = load(guest, "")?;
    let info = Device::open()?.info()?;
    for memtype in [WB, UC_MINUS, WC] {
        let want = Alloc::pages(memtype, MIB);
        battery(guest, TYPES[memtype as usize], &want);
    }
    battery(guest, "eager wc", &Alloc { flags: EAGER, ..Alloc::pages(WC, MIB) });
    if info.reserved_bytes > 0 {
        for memtype in 0..4 {
            let want = Alloc { layout: RESERVED, ..Alloc::pages(memtype, MIB) };
            battery(guest, &format!("reserved {}", TYPES[memtype as usize]), &want);
        }
    }
    for (layout, name) in [(CONTIGUOUS, "contiguous"), (RESERVED, "reserved")] {
        let there = layout != RESERVED || info.reserved_bytes > 0;
        for memtype in (0..4).filter(|memtype| there && info.offers(*memtype, layout, 21)) {
            for flags in [0, EAGER] {
                let want =
                    Alloc { layout, leaf_shift: 21, flags, ..Alloc::pages(memtype, 8 * MIB) };
                let filled = if flags == 0 { "on-demand" } else { "eager" };
                let name = format!("large {name} {} {filled}", TYPES[memtype as usize]);
                guest.part(&name, large(&want));
            }
        }
    }
    guest.part("reading where nothing was written", hole());
    guest.part("MAP_POPULATE", populate());
    end(loaded)?;
    Verdict::ok("types kept, or refused")
}

/// One allocation of 1 MiB mapped in the middle of 4 MiB of addresses.
struct Field {
    device: Device,
    ground: Ground,
    memtype: u32,
}

impl Field {
    fn new(want: &Alloc) -> Result<Self> {
        let device = Device::with(want)?;
        let ground = Ground::reserve(4 * MIB, 2 * MIB)?;
        ground.map(MIB, &device.0, GOOD).context("mapping")?;
        for at in (0..MIB).step_by(PAGE) {
            ground.store(MIB + at, at as u64);
        }
        Ok(Self { device, ground, memtype: want.memtype })
    }

    /// The page there is that of the allocation at `page`, and has the type.
    fn is(&self, at: usize, page: usize) -> Result<()> {
        ensure!(self.ground.load(at) == page as u64, "another page at {at:#x}");
        let leaf = self.device.leaf(&self.ground, at)?;
        ensure!((leaf.memtype, leaf.shift) == (self.memtype, 12), "at {at:#x}: {leaf:x?}");
        Ok(())
    }

    fn touch(&self, touch: Touch) -> Result<End> {
        Ok(touch_in_a_child(&self.ground, &[touch])?)
    }
}

/// A part that needs nothing but a mapping.
type Part = fn(&Field) -> Result<Verdict>;

fn battery(guest: &Guest, name: &str, want: &Alloc) {
    let parts: &[(&str, Part)] = &[
        ("fork", fork),
        ("moving", moving),
        ("growing", growing),
        ("holes", holes),
        ("protection", protection),
        ("references", references),
        ("advice", advice),
        ("twice", twice),
        ("walks", |field| walks(&field.device, &field.ground, MIB)),
    ];
    for (part, body) in parts {
        guest.part(&format!("{name}: {part}"), Field::new(want).and_then(|field| body(&field)));
    }
}

fn fork(field: &Field) -> Result<Verdict> {
    let Field { ground, device, .. } = field;
    agrees("the child", || {
        let same = (0..MIB).step_by(PAGE).all(|at| field.is(MIB + at, at).is_ok());
        ground.store(MIB + 8, 77);
        // What it maps itself is of the type too.
        let again = ground.map(0, &device.0, Mapping { bytes: PAGE, ..GOOD });
        u8::from(!same || again.is_err() || field.is(0, 0).is_err())
    })?;
    ensure!(ground.load(MIB + 8) == 77, "the child wrote to another page");
    Verdict::ok("shared")
}

fn moving(field: &Field) -> Result<Verdict> {
    let Field { ground, device, .. } = field;
    // A page from the middle, then all that is behind it, then a piece that becomes shorter.
    ground.remap(MIB + 8 * PAGE, PAGE, 3 * MIB, PAGE).context("a page")?;
    field.is(3 * MIB, 8 * PAGE)?;
    let rest = MIB - 9 * PAGE;
    ground.remap(MIB + 9 * PAGE, rest, 2 * MIB, rest).context("the rest")?;
    field.is(2 * MIB, 9 * PAGE)?;
    field.is(2 * MIB + rest - PAGE, MIB - PAGE)?;
    field.is(MIB, 0)?;
    ground.remap(2 * MIB, 4 * PAGE, 3 * MIB + 8 * PAGE, PAGE).context("a shorter piece")?;
    field.is(3 * MIB + 8 * PAGE, 9 * PAGE)?;
    let left = device.query(ground.start() + MIB + 8 * PAGE);
    refused(left, Errno::FAULT)?;
    ensure!(field.touch(Touch::Load(MIB + 8 * PAGE))? == End::SEGMENTATION, "it is still there");
    Verdict::ok("the type moves along")
}

fn growing(field: &Field) -> Result<Verdict> {
    let ground = &field.ground;
    refused(ground.remap(MIB, MIB, 2 * MIB, MIB + PAGE), Errno::FAULT)?;
    refused(ground.remap(2 * MIB - PAGE, PAGE, 3 * MIB, 2 * PAGE), Errno::FAULT)?;
    // An old length of 0 asks for a second mapping of something shared.
    refused(ground.remap(MIB, 0, 3 * MIB, PAGE), Errno::FAULT)?;
    field.is(MIB, 0)?;
    Verdict::ok("EFAULT")
}

fn holes(field: &Field) -> Result<Verdict> {
    let ground = &field.ground;
    ground.unmap(MIB + 16 * PAGE, 16 * PAGE)?;
    ground.unmap(MIB, PAGE)?;
    ground.unmap(2 * MIB - PAGE, PAGE)?;
    for (at, end) in [
        (0, End::SEGMENTATION),
        (PAGE, End::Exited(0)),
        (15 * PAGE, End::Exited(0)),
        (16 * PAGE, End::SEGMENTATION),
        (31 * PAGE, End::SEGMENTATION),
        (32 * PAGE, End::Exited(0)),
        (MIB - PAGE, End::SEGMENTATION),
    ] {
        let found = field.touch(Touch::Store(MIB + at, at as u64))?;
        ensure!(found == end, "{found:?} at {at:#x} instead of {end:?}");
    }
    field.is(MIB + 32 * PAGE, 32 * PAGE)?;
    // What is mapped into the hole is the same frame.
    let page = Mapping { bytes: PAGE, offset: 16 * PAGE as u64, ..GOOD };
    ground.map(MIB + 16 * PAGE, &field.device.0, page)?;
    field.is(MIB + 16 * PAGE, 16 * PAGE)?;
    Verdict::ok("a hole is a hole, the rest is there")
}

fn protection(field: &Field) -> Result<Verdict> {
    let ground = &field.ground;
    ground.protect(MIB, MIB, READ)?;
    field.is(MIB, 0)?;
    ensure!(field.touch(Touch::Store(MIB, 1))? == End::SEGMENTATION, "a store to PROT_READ");
    ground.protect(MIB, PAGE, 0)?;
    ensure!(field.touch(Touch::Load(MIB))? == End::SEGMENTATION, "a load of PROT_NONE");
    refused(ground.copy_in(MIB, &[1; 8]), Errno::FAULT)?;
    ground.protect(MIB, MIB, READ | WRITE)?;
    for at in (0..MIB).step_by(PAGE) {
        field.is(MIB + at, at)?;
        ground.store(MIB + at, at as u64);
    }
    // PROT_NONE from the start, eager or not, then opened.
    ground.map(3 * MIB, &field.device.0, Mapping { protection: 0, ..GOOD })?;
    ground.protect(3 * MIB, MIB, READ | WRITE)?;
    field.is(3 * MIB + 5 * PAGE, 5 * PAGE)?;
    Verdict::ok("the type outlasts it")
}

fn references(field: &Field) -> Result<Verdict> {
    refused(field.ground.pin(MIB, PAGE), Errno::FAULT)?;
    refused(field.ground.pin(MIB, 16 * PAGE), Errno::FAULT)?;
    field.is(MIB, 0)?;
    Verdict::ok("EFAULT")
}

fn advice(field: &Field) -> Result<Verdict> {
    for (name, advice, errno) in ADVICE {
        let answer = field.ground.advise(MIB, MIB, *advice);
        // An older kernel may not know it, or have been built without it.
        let known = answer != Err(Errno::INVAL);
        ensure!(answer.err() == *errno || !known, "{name}: {answer:?}");
        field.is(MIB, 0)?;
        field.is(2 * MIB - PAGE, MIB - PAGE)?;
    }
    field.ground.lock(MIB, MIB).context("mlock")?;
    field.is(MIB, 0)?;
    Verdict::ok("nothing was dropped")
}

/// Two mappings of one page are one page of one type.
fn twice(field: &Field) -> Result<Verdict> {
    let Field { ground, device, .. } = field;
    ground.map(3 * MIB, &device.0, GOOD)?;
    for at in (0..MIB).step_by(PAGE) {
        field.is(3 * MIB + at, at)?;
        let [one, other] = [MIB + at, 3 * MIB + at].map(|at| device.leaf(ground, at));
        ensure!(one?.phys == other?.phys, "two frames for {at:#x}");
    }
    Verdict::ok("no alias")
}

/// Whoever walks page tables on behalf of `/proc` passes by.
fn walks(device: &Device, ground: &Ground, at: usize) -> Result<Verdict> {
    let before = device.leaf(ground, at)?;
    for file in ["smaps", "smaps_rollup", "numa_maps", "maps"] {
        let text = std::fs::read_to_string(format!("/proc/self/{file}")).context(file)?;
        ensure!(
            file == "smaps_rollup" || text.contains("pagelab"),
            "{file} has no mapping of ours"
        );
    }
    for what in ["1", "2", "3", "4", "5"] {
        // What a kernel was built without is refused there.
        let _ = std::fs::write("/proc/self/clear_refs", what);
    }
    let mut word = [0; 8];
    let memory = std::fs::File::open("/proc/self/mem")?;
    let address = (ground.start() + at) as u64;
    ensure!(memory.read_at(&mut word, address).is_err(), "/proc/self/mem reads it");
    let after = device.leaf(ground, at)?;
    let same =
        (after.memtype, after.shift, after.phys) == (before.memtype, before.shift, before.phys);
    ensure!(same, "{before:x?}, then {after:x?}");
    Verdict::ok("smaps, numa_maps, clear_refs, mem")
}

/// Leaves of 2 MiB stay whole, or are refused, or are filled again as small ones of the same type.
fn large(want: &Alloc) -> Result<Verdict> {
    let leaf = 2 * MIB;
    let device = Device::with(want)?;
    let ground = Ground::reserve(8 * leaf, leaf)?;
    let how = Mapping { bytes: 3 * leaf, offset: leaf as u64, ..GOOD };
    ground.map(leaf, &device.0, how)?;
    let is = |at: usize, shift: u32| -> Result<()> {
        ground.store(at, at as u64);
        let found = device.leaf(&ground, at)?;
        let right = (found.memtype, found.shift) == (want.memtype, shift);
        ensure!(right, "2^{shift} was expected at {at:#x}: {found:x?}");
        Ok(())
    };
    (leaf..4 * leaf).step_by(leaf).try_for_each(|at| is(at + MIB, 21))?;
    refused(ground.unmap(leaf, PAGE), Errno::INVAL)?;
    refused(ground.unmap(leaf + MIB, leaf), Errno::INVAL)?;
    refused(ground.protect(leaf + MIB, MIB, READ), Errno::INVAL)?;
    refused(ground.remap(leaf, PAGE, 6 * leaf, PAGE), Errno::INVAL)?;
    refused(ground.remap(leaf, leaf, 6 * leaf + PAGE, leaf), Errno::INVAL)?;
    refused(ground.pin(leaf, PAGE), Errno::FAULT)?;
    walks(&device, &ground, leaf)?;
    is(leaf, 21)?;
    // Whole leaves may be taken out, moved and protected.
    ground.unmap(2 * leaf, leaf).context("a leaf taken out")?;
    ground.remap(3 * leaf, leaf, 6 * leaf, leaf).context("a leaf moved")?;
    is(6 * leaf, 21)?;
    ensure!(ground.load(6 * leaf + MIB) == (3 * leaf + MIB) as u64, "another leaf");
    ground.protect(leaf, leaf, READ)?;
    let stored = touch_in_a_child(&ground, &[Touch::Load(leaf), Touch::Store(leaf, 1)])?;
    ensure!(stored == End::SEGMENTATION, "a store to PROT_READ: {stored:?}");
    ground.protect(leaf, leaf, READ | WRITE)?;
    is(leaf + 8, 21)?;
    agrees("a child's leaves", || {
        u8::from(is(leaf + 16, 21).is_err() || is(6 * leaf + 16, 21).is_err())
    })?;
    // A process may forbid itself large leaves; what it then gets is of the same type.
    ground.map(5 * leaf, &device.0, Mapping { bytes: leaf, ..GOOD })?;
    let unfilled = device.query(ground.start() + 5 * leaf)?.shift == 0;
    ground.advise(5 * leaf, leaf, MADV_NOHUGEPAGE)?;
    if unfilled {
        is(5 * leaf, 12)?;
    }
    Verdict::ok("2 MiB throughout")
}

/// A load makes the page present: it is the frame and not a page of zeroes of the kernel's.
fn hole() -> Result<Verdict> {
    let (device, reader) = Device::mapped(&Alloc::pages(WC, MIB))?;
    let writer = device.map(MIB, 0)?;
    ensure!(reader.load(0) == 0, "it is not zero");
    let first = device.leaf(&reader, 0)?;
    writer.store(0, 9);
    ensure!(reader.load(0) == 9, "it is another page");
    ensure!(device.leaf(&writer, 0)?.phys == first.phys, "it moved");
    Verdict::ok("the frame itself")
}

fn populate() -> Result<Verdict> {
    for flags in [0, EAGER] {
        let device = Device::with(&Alloc { flags, ..Alloc::pages(WC, MIB) })?;
        let how = Mapping { flags: SHARED | POPULATE, ..GOOD };
        let ground = Ground::anywhere(&device.0, how)?;
        let before = device.query(ground.start())?.shift;
        ensure!(before == if flags == 0 { 0 } else { 12 }, "a leaf of 2^{before}");
        ground.store(0, 1);
        ensure!(device.leaf(&ground, 0)?.memtype == WC, "the type");
    }
    Verdict::ok("only eager is filled: nobody takes references")
}
