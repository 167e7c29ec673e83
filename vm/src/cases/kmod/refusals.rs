//! Every wrong argument and its errno, as `memtype/kmod/uapi/pagelab.h` names it.
//!
//! The one idea: each row changes one thing in an argument that is right, so that nothing else can
//! be the reason. What is right is asked for too, at the end of each group.

use anyhow::{Context, Result, ensure};
use pagelab_sys::vm::hostile::{
    Door, Errno, Ground, Mapping, Node, Nowhere, PRIVATE, READ, fork_as,
};

use super::{
    abi::{
        ALLOC, Alloc, CONTIGUOUS, COPY, DROP, Device, EAGER, FREEZE, INFO, Info, MIB, PAGE, QUERY,
        RESERVED, SCATTERED, SEGMENT, UC_MINUS, VERSION, WB, WC, WT, ZERO_AT_FAULT,
    },
    agreed, end,
    frames::is_in_node,
    load, refused,
};
use crate::{
    guest::{Guest, NOBODY, set, text},
    verdict::Verdict,
};

const SOME: Alloc = Alloc::pages(WC, 64 << 10);

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    let loaded = load(guest, "")?;
    let info = Device::open()?.info()?;
    allocs(guest, &info);
    if info.reserved_bytes > 0 {
        reserved(guest, &info);
    } else {
        let want = Alloc { layout: RESERVED, ..SOME };
        guest.part("alloc: no region", refused(Device::open()?.alloc(&want), Errno::NXIO));
    }
    numbers(guest)?;
    queries(guest)?;
    mmaps(guest)?;
    end(loaded)?;
    Verdict::ok("every row has its errno")
}

fn allocs(guest: &Guest, info: &Info) {
    let rows: &[(&str, Alloc, Errno)] = &[
        ("no bytes", Alloc { bytes: 0, ..SOME }, Errno::INVAL),
        ("bytes no multiple of the leaf", Alloc { bytes: 4097, ..SOME }, Errno::INVAL),
        ("all bytes there are", Alloc { bytes: !0xfff, ..SOME }, Errno::TOOBIG),
        ("half of all bytes there are", Alloc { bytes: 1 << 63, ..SOME }, Errno::TOOBIG),
        ("more than the limit", Alloc { bytes: info.limit_bytes + 4096, ..SOME }, Errno::TOOBIG),
        ("node -2", Alloc { node: -2, ..SOME }, Errno::INVAL),
        ("lowest node", Alloc { node: i32::MIN, ..SOME }, Errno::INVAL),
        ("highest node", Alloc { node: i32::MAX, ..SOME }, Errno::INVAL),
        ("a node that is offline", Alloc { node: 63, ..SOME }, Errno::NODEV),
        ("memtype UC", Alloc { memtype: 4, ..SOME }, Errno::INVAL),
        ("memtype WP", Alloc { memtype: 5, ..SOME }, Errno::INVAL),
        ("highest memtype", Alloc { memtype: u32::MAX, ..SOME }, Errno::INVAL),
        ("WT of ordinary memory", Alloc { memtype: WT, ..SOME }, Errno::OPNOTSUPP),
        ("layout 3", Alloc { layout: 3, ..SOME }, Errno::INVAL),
        ("highest layout", Alloc { layout: u32::MAX, ..SOME }, Errno::INVAL),
        ("leaf 0", Alloc { leaf_shift: 0, ..SOME }, Errno::INVAL),
        ("leaf 13", Alloc { leaf_shift: 13, ..SOME }, Errno::INVAL),
        ("leaf 39", Alloc { leaf_shift: 39, ..SOME }, Errno::INVAL),
        ("leaf 76", Alloc { leaf_shift: 76, ..SOME }, Errno::INVAL),
        ("highest leaf", Alloc { leaf_shift: u32::MAX, ..SOME }, Errno::INVAL),
        ("2 MiB leaf of 64 KiB", Alloc { leaf_shift: 21, ..SOME }, Errno::INVAL),
        ("an unknown flag", Alloc { flags: 8, ..SOME }, Errno::INVAL),
        ("the highest flag", Alloc { flags: 1 << 31 | 1, ..SOME }, Errno::INVAL),
        ("pad0", Alloc { pad0: 1, ..SOME }, Errno::INVAL),
        ("pad[0]", Alloc { pad: [1, 0, 0], ..SOME }, Errno::INVAL),
        ("pad[2]", Alloc { pad: [0, 0, 1 << 63], ..SOME }, Errno::INVAL),
        ("an offset of ordinary memory", Alloc { offset: 4096, ..SOME }, Errno::INVAL),
    ];
    let whole = Alloc { flags: SEGMENT, memtype: WB, layout: CONTIGUOUS, ..SOME };
    let segments = [
        ("an eager segment", Alloc { flags: SEGMENT | EAGER, ..whole }),
        ("a segment of scattered frames", Alloc { layout: SCATTERED, ..whole }),
        ("a segment of WC", Alloc { memtype: WC, ..whole }),
        ("a segment of 4097 bytes", Alloc { bytes: 4097, ..whole }),
        ("zeroed at fault, and no segment", Alloc { flags: ZERO_AT_FAULT, ..whole }),
    ];
    let segments = segments.iter().map(|(what, want)| (what, want, &Errno::INVAL));
    for (what, want, errno) in
        rows.iter().map(|(what, want, errno)| (what, want, errno)).chain(segments)
    {
        guest.part(&format!("alloc: {what}"), alloc(want, *errno));
    }
}

/// Refused, and the file is as good as before.
fn alloc(want: &Alloc, errno: Errno) -> Result<Verdict> {
    let device = Device::open()?;
    let verdict = refused(device.alloc(want), errno)?;
    device.alloc(&SOME).context("a good ALLOC after the refusal")?;
    Ok(verdict)
}

fn reserved(guest: &Guest, info: &Info) {
    let some = Alloc { layout: RESERVED, ..SOME };
    let end = info.reserved_bytes;
    let rows: &[(&str, Alloc, Errno)] = &[
        ("a node", Alloc { node: 0, ..some }, Errno::INVAL),
        ("offset no multiple of the leaf", Alloc { offset: 1, ..some }, Errno::INVAL),
        ("offset behind the end", Alloc { offset: end + 4096, ..some }, Errno::TOOBIG),
        ("offset at the end", Alloc { offset: end, ..some }, Errno::TOOBIG),
        ("highest offset", Alloc { offset: !0xfff, ..some }, Errno::TOOBIG),
        ("over the end", Alloc { offset: end - 4096, ..some }, Errno::TOOBIG),
        ("more than the region", Alloc { bytes: end + 4096, ..some }, Errno::TOOBIG),
        ("wraps round", Alloc { offset: 4096, bytes: !0xfff, ..some }, Errno::TOOBIG),
    ];
    for (what, want, errno) in rows {
        guest.part(&format!("reserved: {what}"), alloc(want, *errno));
    }
    guest.part("reserved: taken", taken());
}

fn taken() -> Result<Verdict> {
    let at = |offset: u64, memtype: u32| Alloc { layout: RESERVED, offset, memtype, ..SOME };
    let holder = Device::with(&at(1 << 20, WC))?;
    let before = (1 << 20) - SOME.bytes;
    for offset in [before + 4096, 1 << 20, (1 << 20) + SOME.bytes - 4096] {
        for memtype in [WB, WC] {
            refused(Device::open()?.alloc(&at(offset, memtype)), Errno::BUSY)?;
        }
    }
    // Neighbours are free, of whatever type, and the place itself is once it is given back.
    let _before = Device::with(&at(before, UC_MINUS))?;
    let _behind = Device::with(&at((1 << 20) + SOME.bytes, WB))?;
    drop(holder);
    Device::with(&at(1 << 20, UC_MINUS))?;
    Verdict::ok("EBUSY while it overlaps")
}

fn numbers(guest: &Guest) -> Result<()> {
    let node = Node::open(Door::Pagelab, true)?;
    let unknown = [
        ("0", 0),
        ("the next one", 0xc030_dc07),
        ("another magic", ALLOC & !0xff00),
        ("ALLOC that reads", ALLOC | 0x8000_0000),
        ("a shorter ALLOC", ALLOC - (8 << 16)),
        ("a longer INFO", INFO + (8 << 16)),
        ("TCGETS", 0x5401),
        ("the highest", u32::MAX),
    ];
    for (what, number) in unknown {
        let answer = node.call(number, &mut [0; 64]);
        guest.part(&format!("ioctl: {what}"), refused(answer, Errno::NOTTY));
    }
    let calls = [
        ("VERSION", VERSION),
        ("INFO", INFO),
        ("ALLOC", ALLOC),
        ("QUERY", QUERY),
        ("DROP", DROP),
        ("FREEZE", FREEZE),
        ("COPY", COPY),
    ];
    for (what, number) in calls {
        for (place, bits) in [("null", 0), ("the kernel's half", 0xffff_8880_0000_0001)] {
            let answer = node.call_nowhere(number, Nowhere::of(bits));
            guest.part(&format!("{what}: an argument in {place}"), refused(answer, Errno::FAULT));
        }
    }
    Ok(())
}

fn queries(guest: &Guest) -> Result<()> {
    let device = Device::with(&SOME)?;
    guest.part("alloc: twice", refused(device.alloc(&SOME), Errno::BUSY));
    guest.part("alloc: twice, by a duplicate", {
        refused(Device(device.0.duplicate()?).alloc(&SOME), Errno::BUSY)
    });
    let ground = device.map(PAGE, 0)?;
    ground.store(0, 1);
    let other = Device::with(&SOME)?;
    let rows = [
        ("nothing", 0),
        ("the kernel's half", 0xffff_8880_0000_0000),
        ("no canonical address", 1 << 55),
        ("ordinary memory", std::ptr::from_ref(&SOME) as usize),
    ];
    for (what, address) in rows {
        guest.part(&format!("query: {what}"), refused(device.query(address), Errno::FAULT));
    }
    let stranger = other.query(ground.start());
    guest.part("query: a mapping of another file", refused(stranger, Errno::FAULT));
    for place in [32, 40] {
        let mut raw = [0; 48];
        raw[..8].copy_from_slice(&(ground.start() as u64).to_ne_bytes());
        raw[place] = 1;
        let answer = device.0.call(QUERY, &mut raw);
        guest.part(&format!("query: reserved byte {place}"), refused(answer, Errno::INVAL));
    }
    guest.part("query: unprivileged", unprivileged(&device, &ground));
    guest.part("info: unprivileged", unprivileged_info(&device));
    let address = ground.start();
    drop(ground);
    guest.part("query: unmapped", refused(device.query(address), Errno::FAULT));
    Ok(())
}

/// INFO gives the address of the reserved region to `CAP_SYS_ADMIN` only.
fn unprivileged_info(device: &Device) -> Result<Verdict> {
    let known = device.info()?;
    let child = fork_as(NOBODY, || match device.info() {
        Ok(info) => {
            u8::from((info.reserved_phys, info.reserved_bytes) != (0, known.reserved_bytes))
        }
        Err(_) => 2,
    })?;
    agreed("nobody", child)?;
    Verdict::ok(format!("{} bytes, and no address", known.reserved_bytes))
}

/// Whoever was handed the file may ask for the type, but not where the frame is.
fn unprivileged(device: &Device, ground: &Ground) -> Result<Verdict> {
    let found = device.leaf(ground, 8)?;
    ensure!(found.phys != 0, "root is not told: {found:?}");
    let child = fork_as(NOBODY, || match device.leaf(ground, 8) {
        Ok(leaf) => u8::from(leaf.phys != 0 || leaf.memtype != found.memtype),
        Err(_) => 2,
    })?;
    agreed("nobody", child)?;
    Verdict::ok("the type, and no address")
}

fn mmaps(guest: &Guest) -> Result<()> {
    let good = Mapping::shared(PAGE);
    let map = |device: &Device, how: Mapping| Ground::anywhere(&device.0, how).map(|_| ());
    guest.part("mmap: before ALLOC", refused(map(&Device::open()?, good), Errno::NXIO));
    let device = Device::with(&SOME)?;
    let bytes = usize::try_from(SOME.bytes)?;
    let end = SOME.bytes;
    let rows = [
        ("MAP_PRIVATE", Mapping { flags: PRIVATE, ..good }, Errno::INVAL),
        ("MAP_PRIVATE to read", Mapping { flags: PRIVATE, protection: READ, ..good }, Errno::INVAL),
        ("no kind", Mapping { flags: 0, ..good }, Errno::INVAL),
        ("no bytes", Mapping { bytes: 0, ..good }, Errno::INVAL),
        ("longer than the allocation", Mapping { bytes: bytes + PAGE, ..good }, Errno::INVAL),
        ("offset no multiple of a page", Mapping { offset: 1, ..good }, Errno::INVAL),
        ("offset at the end", Mapping { offset: end, ..good }, Errno::INVAL),
        ("over the end", Mapping { offset: end - 4096, bytes: 2 * PAGE, ..good }, Errno::INVAL),
        ("a far offset", Mapping { offset: 1 << 50, ..good }, Errno::INVAL),
        ("highest offset", Mapping { offset: !0xfff, ..good }, Errno::OVERFLOW),
    ];
    for (what, how, errno) in rows {
        guest.part(&format!("mmap: {what}"), refused(map(&device, how), errno));
    }
    let reader = Device(Node::open(Door::Pagelab, false)?);
    reader.alloc(&SOME).context("ALLOC by a reader")?;
    guest.part("mmap: to write, of a reader's file", refused(map(&reader, good), Errno::ACCESS));
    map(&reader, Mapping { protection: READ, ..good }).context("to read, of a reader's file")?;
    map(&device, Mapping { offset: end - 4096, ..good }).context("the last page")?;
    if device.info()?.offers(WC, CONTIGUOUS, 21) {
        large_mmaps(guest)?;
    }
    Ok(())
}

/// A mapping consists of whole leaves.
fn large_mmaps(guest: &Guest) -> Result<()> {
    let leaf = 2 * MIB;
    let device =
        Device::with(&Alloc { leaf_shift: 21, layout: CONTIGUOUS, ..Alloc::pages(WC, 2 * leaf) })?;
    let good = Mapping::shared(leaf);
    let rows = [
        ("part of a leaf", Mapping { bytes: PAGE, ..good }, 0),
        ("an offset within a leaf", Mapping { offset: 4096, ..good }, 0),
        ("an address within a leaf", good, PAGE),
    ];
    for (what, how, at) in rows {
        let ground = Ground::reserve(2 * leaf, leaf)?;
        let answer = ground.map(at, &device.0, how);
        guest.part(&format!("mmap: {what}"), refused(answer, Errno::INVAL));
    }
    Ok(())
}

pub(super) fn nodes(guest: &Guest) -> Result<Verdict> {
    // All of memory, not half of it: more than a node has must not be more than the module gives.
    let loaded = load(guest, "limit_mb=1048576")?;
    for node in 0..2 {
        guest.part(&format!("node {node}"), on_node(node));
    }
    let offline = Device::open()?.alloc(&Alloc { node: 2, ..SOME });
    guest.part("a node that is offline", refused(offline, Errno::NODEV));
    guest.part("a node that is full", full());
    end(loaded)?;
    Verdict::ok(text("/sys/devices/system/node/has_memory")?)
}

fn on_node(node: u32) -> Result<Verdict> {
    let bytes = 8 * MIB;
    for (layout, memtype) in [(0, WB), (0, UC_MINUS), (CONTIGUOUS, WC)] {
        let node_asked = i32::try_from(node)?;
        let want = Alloc { node: node_asked, layout, ..Alloc::pages(memtype, bytes) };
        let (device, ground) = Device::mapped(&want)?;
        for at in (0..bytes).step_by(PAGE) {
            ground.store(at, 1);
            let phys = device.leaf(&ground, at)?.phys;
            ensure!(is_in_node(phys, node)?, "{phys:#x} is not in node {node}");
        }
    }
    Verdict::ok("every frame is there")
}

/// What a node has not, no other node gives instead.
fn full() -> Result<Verdict> {
    let text = text("/sys/devices/system/node/node1/meminfo")?;
    let line = text.lines().find(|line| line.contains("MemTotal")).context("MemTotal")?;
    let kb: u64 = line.split_whitespace().rev().nth(1).context("kB")?.parse()?;
    set("/proc/sys/vm/drop_caches", "3")?;
    let want = Alloc { node: 1, bytes: kb * 1024 / 4096 * 4096 + 4096, ..SOME };
    refused(Device::open()?.alloc(&want), Errno::NOMEM)
}
