//! The node and the module itself: who may open it, what it says, what it is not loaded with.

use std::os::unix::fs::{FileTypeExt, MetadataExt};

use anyhow::{Context, Result, bail, ensure};
use pagelab_sys::vm::hostile::{Door, Errno, Ground, Mapping, Node, Nowhere, fork_as};

use super::{
    REGION, REGION_BYTES,
    abi::{Alloc, Device, MIB, SPOKEN, VERSION, WC},
    agreed, agrees, end,
    frames::parameter,
    load, refused,
};
use crate::{
    guest::{Guest, NOBODY, text},
    verdict::Verdict,
};

/// Parameters with which the module must not load, and why.
const NO_PARAMETERS: &[(&str, &str)] = &[
    ("phys=0x100000000", "a region without a length"),
    ("phys_len=0x40000000", "a region without a start"),
    ("phys=0x100001000 phys_len=0x200000", "a start that is no multiple of 2 MiB"),
    ("phys=0x100000000 phys_len=0x1000", "a length that is no multiple of 2 MiB"),
    ("phys=0x1000000 phys_len=0x200000", "memory that the kernel uses"),
    ("phys=0xfffffffffe000000 phys_len=0x4000000", "a region that wraps round"),
    ("phys=0xa0000000 phys_len=0x200000", "addresses with nothing behind them"),
    ("numa_node=-2", "a node below -1"),
    ("numa_node=999999", "a node that cannot be"),
    ("numa_node=7", "a node without memory"),
    ("size_mb=4294967295", "more than the limit"),
    ("size_mb=x", "no number"),
];

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    for (parameters, why) in NO_PARAMETERS {
        guest.part(&format!("not loaded with {why}"), not_loaded(guest, parameters));
    }
    if guest.machine() == "reserved" {
        guest.part("reserved memory is as it was", untouched(guest));
    }
    let loaded = load(guest, "")?;
    guest.part("mode", mode(Door::Pagelab));
    guest.part("unprivileged", unprivileged());
    guest.part("version", version());
    guest.part("parameters", parameters());
    guest.part("unloading while open", while_open());
    guest.part("unloading while mapped", while_mapped());
    end(loaded)?;
    ensure!(Device::open().is_err(), "the node outlives the module");
    Verdict::ok("as documented")
}

fn not_loaded(guest: &Guest, parameters: &str) -> Result<Verdict> {
    match guest.load("pagelab", parameters) {
        Ok(loaded) => {
            loaded.unload()?;
            bail!("it was loaded with {parameters}")
        }
        Err(error) => {
            ensure!(!std::path::Path::new("/sys/module/pagelab").exists(), "half of it is left");
            ensure!(!std::path::Path::new(Door::Pagelab.path()).exists(), "the node is left");
            let iomem = text("/proc/iomem")?;
            ensure!(!iomem.contains("pagelab"), "the claim is left");
            Verdict::ok(format!("{error:#}"))
        }
    }
}

/// Whoever reserved memory may use it: loading and unloading leave every word, with and without the
/// parameters that name it.
fn untouched(guest: &Guest) -> Result<Verdict> {
    let bytes = usize::try_from(REGION_BYTES)?;
    let look = || -> Result<Ground> {
        let memory = Node::open(Door::Memory, true).context("opening /dev/mem")?;
        let how = Mapping { offset: REGION, ..Mapping::shared(bytes) };
        Ground::anywhere(&memory, how).context("mapping the region")
    };
    let word = |at: usize| !(at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let looks = || (0..bytes).step_by(MIB);
    let ground = look()?;
    looks().for_each(|at| ground.store(at, word(at)));
    drop(ground);
    for (parameters, what) in
        [(String::new(), "unnamed"), (format!("phys={REGION:#x} phys_len={bytes:#x}"), "named")]
    {
        guest.load("pagelab", &parameters)?.unload()?;
        let ground = look()?;
        for at in looks() {
            let found = ground.load(at);
            ensure!(found == word(at), "{what}, the word at {at:#x} became {found:#x}");
        }
    }
    Verdict::ok(format!("{} words, unnamed and named", looks().count()))
}

pub(super) fn mode(door: Door) -> Result<Verdict> {
    let node = std::fs::metadata(door.path())?;
    ensure!(node.file_type().is_char_device(), "it is no character device");
    let access = (node.mode() & 0o7777, node.uid(), node.gid());
    ensure!(access == (0o600, 0, 0), "mode, user and group are {access:?}");
    Verdict::ok("0600 root root")
}

fn unprivileged() -> Result<Verdict> {
    let child = fork_as(NOBODY, || {
        let read = Node::open(Door::Pagelab, false).err();
        let write = Node::open(Door::Pagelab, true).err();
        u8::from(read != Some(Errno::ACCESS) || write != Some(Errno::ACCESS))
    })?;
    agreed("nobody, who may not open the node", child)?;
    Verdict::ok("EACCES")
}

fn version() -> Result<Verdict> {
    let node = Node::open(Door::Pagelab, false).context("opening for reading")?;
    let mut version = [0; 4];
    node.call(VERSION, &mut version)?;
    ensure!(u32::from_ne_bytes(version) == SPOKEN, "{version:?}");
    refused(node.call_nowhere(VERSION, Nowhere::of(0)), Errno::FAULT)
}

fn parameters() -> Result<Verdict> {
    ensure!(parameter("uapi")? == u64::from(SPOKEN), "uapi");
    for name in ["uapi", "used_pages", "leaked_pages", "size_mb", "limit_mb", "phys_len"] {
        let path = format!("/sys/module/pagelab/parameters/{name}");
        ensure!(std::fs::write(&path, "1").is_err(), "{path} can be written");
    }
    let version = text("/sys/module/pagelab/version")?;
    Verdict::ok(format!("module {version}"))
}

fn while_open() -> Result<Verdict> {
    let device = Device::open()?;
    ensure!(pagelab_sys::vm::guest::unload_module("pagelab").is_err(), "it was unloaded");
    ensure!(device.info()?.version == SPOKEN, "it is gone");
    Verdict::ok("refused")
}

fn while_mapped() -> Result<Verdict> {
    let (device, ground) = Device::mapped(&Alloc::pages(WC, MIB))?;
    drop(device);
    ensure!(pagelab_sys::vm::guest::unload_module("pagelab").is_err(), "it was unloaded");
    ground.store(8, 7);
    agrees("what a child sees", || u8::from(ground.load(8) != 7))?;
    Verdict::ok("refused")
}
