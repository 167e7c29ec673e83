//! `/dev/memcache_wb`, `_uc` and `_wc`: what a program written for them finds.
//!
//! The one idea: [`program`] is such a program, call by call: open, ioctl 0, map the whole, store
//! and verify. It knows nothing of the module behind. The rest asks the kernel what the program
//! cannot.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use pagelab_sys::{
    process::crew,
    vm::hostile::{Door, Errno, Ground, Mapping, Node, PRIVATE},
};

use super::{
    abi::{Device, MIB, PAGE, TYPES, UC_MINUS, WB, WC},
    door::mode,
    frames::{Recorded, parameter},
    load, load_bare, refused,
};
use crate::{guest::Guest, kernel_log::KernelLog, verdict::Verdict};

const NODES: [(Door, u32); 3] =
    [(Door::LegacyWb, WB), (Door::LegacyUc, UC_MINUS), (Door::LegacyWc, WC)];

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    guest.part("without parameters", given(guest, "", 16 * MIB));
    guest.part("legacy=0", none(guest));
    for (parameters, mib) in [
        ("legacy=0 legacy=1", 16),
        ("size_mb=3", 3),
        ("size_mb=5 numa_node=0", 5),
        ("numa_node=0", 16),
    ] {
        guest.part(parameters, given(guest, parameters, mib * MIB));
    }
    guest.part("frames", frames(guest, 7 * MIB));
    let loaded = load(guest, "size_mb=2")?;
    for (door, _) in NODES {
        guest.part(&format!("mode of {}", door.path()), mode(door));
    }
    guest.part("the last close leaves zeroes", zeroed());
    guest.part("opened while it is zeroed", while_zeroed());
    guest.part("refusals", refusals());
    guest.part("an offset is ignored", offset());
    guest.part("open while unloading", busy());
    guest.part("the other interface", other());
    loaded.unload()?;
    ensure!(NODES.iter().all(|(door, _)| Node::open(*door, true).is_err()), "nodes are left");
    Verdict::ok("as their programs know them")
}

fn none(guest: &Guest) -> Result<Verdict> {
    let loaded = load(guest, "")?;
    for (door, _) in NODES {
        refused(Node::open(door, true), Errno::NOENT)?;
    }
    loaded.unload()?;
    Verdict::ok("no nodes")
}

fn given(guest: &Guest, parameters: &str, bytes: usize) -> Result<Verdict> {
    let mut log = KernelLog::from_now()?;
    let loaded = load_bare(guest, parameters)?;
    let told = log.news();
    for (door, memtype) in NODES {
        let name = door.path();
        let has = |lines: &[String]| {
            let (node, size) = (name.strip_prefix("/dev/").unwrap_or(name), bytes.to_string());
            lines.iter().any(|line| line.contains(node) && line.contains(&size))
        };
        ensure!(has(&told), "the size of {name} is not logged: {told:?}");
        let (node, ground) = program(door, bytes).with_context(|| name.to_owned())?;
        let told = log.news();
        ensure!(has(&told), "mmap of {name} is not logged: {told:?}");
        // Nodes that do not answer QUERY are left to the kernel's records: see `frames`.
        let asked = node.query(ground.start()) != Err(Errno::NOTTY);
        for at in (0..bytes).step_by(PAGE).filter(|_| asked) {
            let leaf = node.leaf(&ground, at).with_context(|| name.to_owned())?;
            ensure!((leaf.memtype, leaf.shift) == (memtype, 12), "{name} at {at:#x}: {leaf:x?}");
        }
    }
    let (used, pages) = (parameter("used_pages")?, (bytes / PAGE) as u64);
    ensure!(used == 3 * pages, "{used} pages in use, not three times {pages}");
    loaded.unload()?;
    Verdict::ok(format!("three times {bytes} bytes"))
}

/// The kernel records as many more frames of each type as there are, and none afterwards. It puts
/// what it has recorded into every entry of such a mapping.
fn frames(guest: &Guest, bytes: usize) -> Result<Verdict> {
    let recorded = Recorded::open()?;
    let before = recorded.census()?;
    let loaded = load(guest, &format!("size_mb={}", bytes / MIB))?;
    let during = recorded.census()?;
    let pages = (bytes / PAGE) as u64;
    for memtype in [UC_MINUS, WC] {
        let more = during[memtype as usize] - before[memtype as usize];
        ensure!(more == pages, "{more} more frames are {}, not {pages}", TYPES[memtype as usize]);
    }
    loaded.unload()?;
    ensure!(recorded.census()?[1..] == before[1..], "frames of a type are left");
    Verdict::ok(format!("{pages} more are UC-, as many WC"))
}

/// What a benchmark written for the nodes does; returns its file and its mapping.
fn program(door: Door, expected: usize) -> Result<(Device, Ground)> {
    let node = Node::open(door, true).context("open")?;
    let mut size = [0; 8];
    node.call(0, &mut size).context("ioctl 0")?;
    let bytes = usize::try_from(u64::from_ne_bytes(size))?;
    ensure!(bytes == expected, "ioctl 0 says {bytes}");
    let ground = Ground::anywhere(&node, Mapping::shared(bytes)).context("mmap")?;
    // A word of each cache line: an emulated processor takes seconds for all of them.
    let lines = bytes / 64;
    for round in 0..2_u64 {
        let mut sum = 0_u64;
        for line in 0..lines {
            ground.store(64 * line, line as u64 + round);
        }
        for line in 0..lines {
            sum = sum.wrapping_add(ground.load(64 * line));
        }
        let n = lines as u64;
        let right = (n * (n - 1) / 2).wrapping_add(round * n);
        ensure!(sum == right, "round {round}: {sum:#x} instead of {right:#x}");
    }
    Ok((Device(node), ground))
}

fn refusals() -> Result<Verdict> {
    let good = Mapping::shared(2 * MIB);
    for (door, _) in NODES {
        let node = Node::open(door, true)?;
        for number in [1, 0x5401, super::abi::INFO, super::abi::ALLOC] {
            refused(node.call(number, &mut [0; 160]), Errno::NOTTY)?;
        }
        let map = |how| Ground::anywhere(&node, how).map(|_| ());
        refused(map(Mapping { bytes: 2 * MIB + PAGE, ..good }), Errno::INVAL)?;
        refused(map(Mapping { flags: PRIVATE, ..good }), Errno::INVAL)?;
        map(Mapping { bytes: PAGE, ..good }).context("a part")?;
    }
    Verdict::ok("ENOTTY, EINVAL")
}

/// What one program stored, another sees while both are there, and none that comes after them.
fn zeroed() -> Result<Verdict> {
    let bytes = 2 * MIB;
    for (door, _) in NODES {
        let open = || -> Result<(Node, Ground)> {
            let node = Node::open(door, true).with_context(|| door.path().to_owned())?;
            let how = Mapping::shared(bytes);
            let ground = Ground::anywhere(&node, how)?;
            Ok((node, ground))
        };
        let (first, ground) = open()?;
        (0..bytes).step_by(8).for_each(|at| ground.store(at, !0));
        let (second, shared) = open()?;
        drop((first, ground));
        ensure!(shared.load(bytes - 8) == !0, "{}: zeroed under a second program", door.path());
        // A mapping keeps it open.
        drop(second);
        let (third, seen) = open()?;
        ensure!(seen.load(0) == !0, "{}: zeroed under a mapping", door.path());
        drop((third, seen, shared));
        let (_node, next) = open()?;
        for at in (0..bytes).step_by(8) {
            let found = next.load(at);
            ensure!(found == 0, "{}: the next program reads {found:#x} at {at:#x}", door.path());
        }
    }
    Verdict::ok("three nodes, every word")
}

/// Opening a node while it is zeroed is `EBUSY`. A wait would block the nodes of all misc devices:
/// the kernel holds one lock for them while a driver's `open` runs.
fn while_zeroed() -> Result<Verdict> {
    const ROUNDS: usize = 20_000;
    let (door, _) = NODES[0];
    let is_seen = AtomicBool::new(false);
    // Each close that leaves no open file zeroes the node.
    let answers = crew::threads(2, |_| {
        for _ in 0..ROUNDS {
            match Node::open(door, true) {
                Ok(node) => drop(node),
                Err(Errno::BUSY) => is_seen.store(true, Ordering::Relaxed),
                Err(errno) => return Err(errno),
            }
            if is_seen.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    })?;
    answers.into_iter().collect::<Result<(), _>>()?;
    ensure!(is_seen.into_inner(), "open waits for the zeroes");
    Node::open(door, true).context("afterwards")?;
    Verdict::ok("EBUSY")
}

fn offset() -> Result<Verdict> {
    let node = Node::open(Door::LegacyWc, true)?;
    let how = Mapping::shared(MIB);
    let first = Ground::anywhere(&node, how)?;
    first.store(0, 41);
    let other = Ground::anywhere(&node, Mapping { offset: MIB as u64, ..how })?;
    ensure!(other.load(0) == 41, "it begins elsewhere");
    let ground = Ground::reserve(4 * MIB, MIB)?;
    ground.map(0, &node, Mapping { offset: MIB as u64, ..how })?;
    // A piece of it moves: it still is what it was.
    first.store(5 * PAGE, 42);
    ground.remap(5 * PAGE, PAGE, 2 * MIB, PAGE)?;
    ensure!(ground.load(2 * MIB) == 42, "another page after a move");
    Verdict::ok("page 0")
}

fn busy() -> Result<Verdict> {
    let node = Node::open(Door::LegacyUc, true)?;
    let ground = Ground::anywhere(&node, Mapping::shared(PAGE))?;
    drop(node);
    ensure!(pagelab_sys::vm::guest::unload_module("pagelab").is_err(), "unloaded under a mapping");
    ground.store(0, 1);
    Verdict::ok("refused")
}

/// `/dev/pagelab` is there as well, and knows nothing of these mappings.
fn other() -> Result<Verdict> {
    let device = Device::with(&super::abi::Alloc::pages(WC, MIB))?;
    let node = Node::open(Door::LegacyWc, true)?;
    let ground = Ground::anywhere(&node, Mapping::shared(PAGE))?;
    ground.store(0, 1);
    refused(device.query(ground.start()), Errno::FAULT)?;
    drop((device, ground, node));
    ensure!(parameter("used_pages")? == 3 * 512, "the nodes' own pages");
    Verdict::ok("EFAULT")
}
