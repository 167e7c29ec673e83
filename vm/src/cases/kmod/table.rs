//! The table of what this kernel can do, cell by cell: type, layout, leaf.
//!
//! The one idea: a cell that is offered must be given, and be what was asked for on every page; one
//! that is not offered must be refused. Large cells are sampled.

use anyhow::{Context, Result, ensure};
use pagelab_sys::vm::hostile::{Errno, Ground};

use super::{
    abi::{
        Alloc, CONTIGUOUS, Device, EAGER, Info, LAYOUTS, Leaf, PAGE, RESERVED, SCATTERED, SHIFTS,
        SPOKEN, TYPES, UC_MINUS, WB, WC, WT,
    },
    end,
    frames::Recorded,
    load, load_whole, refused,
};
use crate::{guest::Guest, verdict::Verdict};

/// Pages that are looked at one by one; of more, as many are sampled.
const LOOKS_MAX: usize = 2048;

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    let loaded = load(guest, "")?;
    let info = Device::open()?.info()?;
    check_info(guest, &info)?;
    for memtype in 0..4 {
        for layout in 0..3 {
            for shift in SHIFTS {
                for flags in [0, EAGER] {
                    let bytes = if shift == 12 { 2 << 20 } else { 3 << shift };
                    let want =
                        Alloc { layout, leaf_shift: shift, flags, ..Alloc::pages(memtype, bytes) };
                    // Memory of this size takes an emulated processor seconds: table-1g has it.
                    if shift < 30 || !info.offers(memtype, layout, shift) {
                        guest.part(&name(&want), cell(&info, &want));
                    }
                }
            }
        }
    }
    end(loaded)?;
    Verdict::ok(format!("leaves {:x?}", info.leaves))
}

/// The cells at 1 GiB: once each, with a second leaf to look into where there is one.
pub(super) fn run_large(guest: &Guest) -> Result<Verdict> {
    let loaded = load_whole(guest)?;
    let info = Device::open()?.info()?;
    let cells = [
        (WB, RESERVED, 2, 0),
        (UC_MINUS, RESERVED, 1, EAGER),
        (WC, RESERVED, 1, 0),
        (WT, RESERVED, 1, 0),
        (WB, CONTIGUOUS, 1, EAGER),
        (WC, SCATTERED, 1, 0),
    ];
    for (memtype, layout, leaves, flags) in cells {
        let want = Alloc { leaf_shift: 30, layout, flags, ..Alloc::pages(memtype, leaves << 30) };
        guest.part(&name(&want), cell(&info, &want));
    }
    end(loaded)?;
    Verdict::ok(format!("{} MiB of reserved memory", info.reserved_bytes >> 20))
}

fn check_info(guest: &Guest, info: &Info) -> Result<()> {
    ensure!(info.version == SPOKEN && info.page_size == 4096 && info.pad == [0; 4], "{info:?}");
    let hidden = match guest.machine() {
        "reserved" => (super::REGION, super::REGION_BYTES),
        _ => (0, 0),
    };
    ensure!((info.reserved_phys, info.reserved_bytes) == hidden, "{info:?}");
    let memory = crate::guest::meminfo_kb("MemTotal")? * 1024;
    ensure!(info.limit_bytes > 0 && info.limit_bytes < memory, "{info:?} of {memory}");
    // Every kernel has these; without them nothing below would be tested.
    for memtype in 0..3 {
        for layout in [SCATTERED, CONTIGUOUS] {
            ensure!(info.offers(memtype, layout, 12), "{} is missing", TYPES[memtype as usize]);
        }
    }
    // The kernel exports no way to make its own mapping of RAM write-through.
    ensure!(info.leaves[WT as usize][..2] == [0, 0], "WT of ordinary memory: {info:?}");
    // What inserts large leaves loses the bit of PAT that WT needs: they would be UC.
    ensure!(info.leaves[WT as usize][2] == 1 << 12, "WT of reserved memory: {info:?}");
    let large = !guest.kernel().starts_with("6.1-") && guest.kernel() != "6.1";
    ensure!(info.offers(0, RESERVED, 21) == large, "2 MiB of reserved memory: {info:?}");
    ensure!(info.offers(0, RESERVED, 30) == large, "1 GiB of reserved memory: {info:?}");
    Ok(())
}

fn name(want: &Alloc) -> String {
    let size = ["4k", "2m", "1g"][(want.leaf_shift as usize - 12) / 9];
    let filled = if want.flags & EAGER == 0 { "on-demand" } else { "eager" };
    let [memtype, layout] = [TYPES[want.memtype as usize], LAYOUTS[want.layout as usize]];
    format!("{memtype} {layout} {size} {filled}")
}

fn cell(info: &Info, want: &Alloc) -> Result<Verdict> {
    let device = Device::open().context("opening")?;
    if !info.offers(want.memtype, want.layout, want.leaf_shift) {
        return refused(device.alloc(want), Errno::OPNOTSUPP);
    }
    if want.layout == RESERVED && info.reserved_bytes == 0 {
        return refused(device.alloc(want), Errno::NXIO);
    }
    match device.alloc(want) {
        // A gigabyte in one piece is not something that a machine in use must have.
        Err(Errno::NOMEM) if want.leaf_shift == 30 && want.layout != RESERVED => {
            return Verdict::ok("ENOMEM: no such run is free");
        }
        answer => answer.context("ALLOC")?,
    }
    given(info, &device, want)
}

/// Everything that is promised of memory that was given.
fn given(info: &Info, device: &Device, want: &Alloc) -> Result<Verdict> {
    let bytes = usize::try_from(want.bytes)?;
    let leaf = 1_usize << want.leaf_shift;
    let whole = device.map(bytes, 0)?;
    ensure!(whole.start().is_multiple_of(leaf), "the address {:#x} fits no leaf", whole.start());
    if want.flags & EAGER == 0 {
        let before = device.query(whole.start())?;
        ensure!(before.shift == 0 && before.phys == 0, "filled before it was touched: {before:?}");
    }
    let step = (bytes / LOOKS_MAX).max(PAGE) / PAGE * PAGE;
    let mut frames = Vec::new();
    for at in (0..bytes).step_by(step) {
        let eager = if want.flags & EAGER == 0 { None } else { Some(device.leaf(&whole, at)?) };
        zeroes(&whole, at)?;
        let found = device.leaf(&whole, at)?;
        is_as_asked(want, at, found)?;
        ensure!(eager.is_none_or(|eager| eager.phys == found.phys), "it moved at {at:#x}");
        whole.store(at, at as u64 + 1);
        whole.store(at + PAGE - 8, !(at as u64));
        frames.push((at, found.phys));
    }
    placement(info, want, &frames)?;
    if want.layout != RESERVED {
        let frames: Vec<u64> = frames.iter().map(|(_, phys)| *phys).collect();
        Recorded::open()?.all_are(&frames, want.memtype)?;
    }
    // The last leaf once more, through a mapping that begins there.
    let offset = bytes - leaf;
    let part = device.map(leaf, offset)?;
    for (at, phys) in frames.iter().filter(|(at, _)| *at >= offset) {
        let seen = (part.load(at - offset), part.load(at - offset + PAGE - 8));
        ensure!(seen == (*at as u64 + 1, !(*at as u64)), "{seen:x?} through the offset at {at:#x}");
        let found = device.leaf(&part, at - offset)?;
        is_as_asked(want, *at, found)?;
        ensure!(found.phys == *phys, "another frame through the offset at {at:#x}");
    }
    Verdict::ok(format!("{} pages looked at", frames.len()))
}

/// Word by word where there is time for it, otherwise as the kernel copies it.
fn zeroes(ground: &Ground, at: usize) -> Result<()> {
    let mut page = [0xff; PAGE];
    ground.copy_out(at, &mut page).with_context(|| format!("reading at {at:#x}"))?;
    ensure!(page == [0; PAGE] && ground.load(at) == 0, "the page at {at:#x} was not zeroed");
    Ok(())
}

fn is_as_asked(want: &Alloc, at: usize, found: Leaf) -> Result<()> {
    ensure!(
        (found.memtype, found.shift) == (want.memtype, want.leaf_shift),
        "at {at:#x} the page table has type {} and a leaf of 2^{}: {found:x?}",
        found.memtype,
        found.shift
    );
    let page = at as u64 % PAGE as u64;
    ensure!(found.phys != 0 && found.phys % PAGE as u64 == page, "{found:x?}");
    // Bits 12 to 51 of an entry are the frame's number; bit 12 of a large leaf is PAT.
    let number = (1_u64 << 52) - (1 << if found.shift == 12 { 12 } else { 13 });
    ensure!(found.entry & number == 0, "the entry tells the frame: {found:x?}");
    Ok(())
}

/// Contiguous is contiguous, reserved is in the region, and no frame is there twice.
fn placement(info: &Info, want: &Alloc, frames: &[(usize, u64)]) -> Result<()> {
    let first = frames[0].1;
    for (at, phys) in frames {
        let linear = first + *at as u64;
        let ok = match want.layout {
            RESERVED => *phys == info.reserved_phys + want.offset + *at as u64,
            CONTIGUOUS => *phys == linear,
            _ => true,
        };
        ensure!(ok, "the frame at {at:#x} is {phys:#x}, the first {first:#x}");
    }
    let mut sorted: Vec<u64> = frames.iter().map(|(_, phys)| *phys).collect();
    sorted.sort_unstable();
    ensure!(sorted.windows(2).all(|pair| pair[0] != pair[1]), "a frame is there twice");
    Ok(())
}
