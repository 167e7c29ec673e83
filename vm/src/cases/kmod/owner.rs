//! A segment belongs to the process that maps it first; other processes with its file are refused.
//!
//! DROP takes leaves out of the mappings of the calling process only. If another process could
//! clear the bits of a leaf that is in use, its contents would be lost at the next split.

use std::os::unix::net::UnixStream;

use anyhow::{Context, Result, ensure};
use pagelab_sys::vm::hostile::{
    End, Errno, Ground, Mapping, Node, Tally, Touch, fork, touch_in_a_child,
};

use super::{
    abi::{Alloc, CONTIGUOUS, Device, MIB, PAGE, SEGMENT, WB, WC, ZERO_AT_FAULT},
    agreed, agrees, end, ended,
    frames::{all_back, parameter},
    load, refused,
};
use crate::{
    guest::{Guest, until},
    verdict::Verdict,
};

const LEAF: usize = 2 * MIB;
const BYTES: usize = 2 * LEAF;
/// `MADV_DOFORK` of the UAPI.
const MADV_DOFORK: i32 = 11;

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    let loaded = load(guest, "")?;
    guest.part("DROP by another process", dropped_by_another());
    guest.part("mmap by another process", mapped_by_another());
    guest.part("MADV_DOFORK", madvised());
    guest.part("SCM_RIGHTS: a segment", sent_segment());
    guest.part("SCM_RIGHTS: other memory", sent_memory());
    guest.part("SCM_RIGHTS: under way", under_way());
    end(loaded)?;
    Verdict::ok("the first that maps it")
}

/// A segment with a word of its own in every page.
fn segment() -> Result<(Device, Ground)> {
    let shift = if Device::open()?.info()?.offers(WB, CONTIGUOUS, 21) { 21 } else { 12 };
    let flags = SEGMENT | ZERO_AT_FAULT;
    let want = Alloc { layout: CONTIGUOUS, leaf_shift: shift, flags, ..Alloc::pages(WB, BYTES) };
    let device = Device::with(&want)?;
    let ground = Ground::reserve(BYTES, LEAF)?;
    ground.map(0, &device.0, Mapping::shared(BYTES))?;
    pages().for_each(|at| ground.store(at, at as u64 | 1));
    Ok((device, ground))
}

fn pages() -> impl Iterator<Item = usize> {
    (0..BYTES).step_by(PAGE)
}

/// Splits each leaf; the rest of it keeps what was written.
fn outlasts_splits(ground: &Ground) -> Result<()> {
    let hole = |at: usize| at % LEAF == 17 * PAGE;
    pages().filter(|at| hole(*at)).try_for_each(|at| ground.unmap(at, PAGE))?;
    for at in pages().filter(|at| !hole(*at)) {
        let found = ground.load(at);
        ensure!(found == at as u64 | 1, "the page at {at:#x} holds {found:#x}");
    }
    Ok(())
}

/// Whether the answer is the refusal that another process gets.
fn is_refused<T>(answer: Result<T, Errno>) -> bool {
    answer.err() == Some(Errno::PERM)
}

fn maps(node: &Node) -> Result<Ground, Errno> {
    Ground::anywhere(node, Mapping::shared(PAGE))
}

fn dropped_by_another() -> Result<Verdict> {
    let (device, ground) = segment()?;
    agrees("a child with the file", || u8::from(!is_refused(device.forget(0, BYTES as u64))))?;
    outlasts_splits(&ground)?;
    device.forget(0, BYTES as u64).context("DROP by the process that maps it")?;
    ensure!(ground.load(0) == 0, "it was not dropped");
    Verdict::ok("EPERM, and the contents stay")
}

fn mapped_by_another() -> Result<Verdict> {
    let (device, ground) = segment()?;
    agrees("a child maps it", || u8::from(!is_refused(maps(&device.0))))?;
    maps(&device.0).context("its process maps it again")?;
    drop(ground);
    agrees("a child maps what its process had mapped", || u8::from(!is_refused(maps(&device.0))))?;
    // A segment without a mapping becomes the child's, until the file is closed.
    let want = Alloc { layout: CONTIGUOUS, flags: SEGMENT, ..Alloc::pages(WB, LEAF) };
    let device = Device::with(&want)?;
    agrees("a child has what nobody else maps", || {
        let mapped = maps(&device.0).map(|ground| ground.store(0, 1));
        u8::from(mapped.and(device.forget(0, PAGE as u64)).is_err())
    })?;
    refused(maps(&device.0).map(drop), Errno::PERM)?;
    refused(device.forget(0, PAGE as u64), Errno::PERM)
}

fn madvised() -> Result<Verdict> {
    let (_device, ground) = segment()?;
    let verdict = refused(ground.advise(0, BYTES, MADV_DOFORK), Errno::INVAL);
    let end = touch_in_a_child(&ground, &[Touch::Load(0)])?;
    ensure!(end == End::SEGMENTATION, "a child has it: {end:?}");
    verdict
}

/// A receiver of the file that neither allocated nor inherited it.
fn sent_segment() -> Result<Verdict> {
    let (here, there) = UnixStream::pair()?;
    let child = fork(|| {
        let Ok(device) = Node::receive(&there).map(Device) else { return 1 };
        let want = Alloc { layout: CONTIGUOUS, flags: SEGMENT, ..Alloc::pages(WB, LEAF) };
        let is_refused = is_refused(device.forget(0, BYTES as u64))
            && is_refused(maps(&device.0))
            && device.alloc(&want) == Err(Errno::BUSY)
            && device.info().is_ok();
        u8::from(!is_refused) * 2
    })?;
    let (device, ground) = segment()?;
    device.0.send(&here)?;
    agreed("the receiver", child)?;
    outlasts_splits(&ground)?;
    Verdict::ok("EPERM")
}

/// Memory that is no segment is shared with the receiver, and lives until the last close.
fn sent_memory() -> Result<Verdict> {
    let (here, there) = UnixStream::pair()?;
    let told = Tally::new()?;
    let child = fork(|| {
        let Ok(node) = Node::receive(&there) else { return 1 };
        let Ok(ground) = maps(&node) else { return 2 };
        told.add(0, 1);
        while told.get(1) == 0 {
            std::thread::yield_now();
        }
        u8::from(ground.load(0) != 7) * 3
    })?;
    let (device, ground) = Device::mapped(&Alloc::pages(WC, MIB))?;
    device.0.send(&here)?;
    ground.store(0, 7);
    drop((device, ground));
    let mut child = child;
    let end = ended(&mut child, || told.get(0) > 0)?;
    ensure!(end.is_none(), "it does not have it: {end:?}");
    ensure!(parameter("used_pages")? == 256, "freed under another process");
    told.add(1, 1);
    agreed("the receiver", child)?;
    all_back()?;
    Verdict::ok("shared, and freed with the last")
}

/// A file whose only reference is a message in a socket.
fn under_way() -> Result<Verdict> {
    let (here, there) = UnixStream::pair()?;
    let (device, ground) = segment()?;
    device.0.send(&here)?;
    drop((device, ground));
    ensure!(parameter("used_pages")? == (BYTES / PAGE) as u64, "freed under way");
    ensure!(pagelab_sys::vm::guest::unload_module("pagelab").is_err(), "unloaded under way");
    drop((here, there));
    ensure!(until(|| Ok(all_back().is_ok()))?, "it is still in use");
    Verdict::ok("kept, and freed with the socket")
}
