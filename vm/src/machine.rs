//! What has to be done inside a machine before its second memory node, or its disk, is there.
//!
//! The one idea: the same files that an administrator writes, in the same order. A machine whose
//! firmware describes everything needs nothing here; its QEMU arguments are in
//! `xtask/src/vm/machines.toml`.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::guest::{names, set, text};

/// How often, every 50 ms, a device is looked for before the set-up has failed.
const ATTEMPTS: u32 = 12_000;
const DAX: &str = "/sys/bus/dax";
const CXL: &str = "/sys/bus/cxl/devices";
/// The disk of the machine `disk`, and where programs look for files that outlive a reboot.
const DISK: &str = "/dev/vda";
const SCRATCH: &str = "/var/tmp";
const BLOCKS: &str = "/sys/devices/system/memory";
/// Bytes of the device in the machine `cxl`.
const CXL_BYTES: &str = "0x20000000";

/// Makes the machine what its name says.
pub(crate) fn set_up(machine: &str) -> Result<()> {
    match machine {
        "disk" => {
            let device = wait("a disk", || Path::new(DISK).exists().then_some(DISK))?;
            Ok(pagelab_sys::vm::guest::mount_disk(device, "ext4", SCRATCH)?)
        }
        "daxkmem" => {
            wait("a dax device", || names(&format!("{DAX}/devices"), "dax").into_iter().next())?;
            hand_to_kmem()?;
            online()
        }
        "cxl" => {
            let endpoint = wait("the decoder of a CXL endpoint", endpoint)?;
            region(&endpoint).context("making a CXL region")?;
            wait("a dax device", || names(&format!("{DAX}/devices"), "dax").into_iter().next())?;
            online()
        }
        _ => Ok(()),
    }
}

/// Gives every dax device that another driver has to kmem, which makes memory of it.
fn hand_to_kmem() -> Result<()> {
    for name in names(&format!("{DAX}/devices"), "dax") {
        let driver = fs::read_link(format!("{DAX}/devices/{name}/driver")).unwrap_or_default();
        if driver.ends_with("kmem") {
            continue;
        }
        if driver.file_name().is_some() {
            set(&format!("{DAX}/drivers/device_dax/unbind"), &name)?;
        }
        set(&format!("{DAX}/drivers/kmem/new_id"), &name)?;
    }
    Ok(())
}

/// Brings every memory block online, movable, until the second node has memory.
fn online() -> Result<()> {
    wait("memory on node 1", || {
        for block in names(BLOCKS, "memory") {
            let state = format!("{BLOCKS}/{block}/state");
            if text(&state).is_ok_and(|state| state == "offline") {
                // A block that its driver has not finished adding refuses; it is asked again.
                let _ = fs::write(&state, "online_movable");
            }
        }
        let nodes = text("/sys/devices/system/node/has_memory").unwrap_or_default();
        let offline = names(BLOCKS, "memory").into_iter().any(|block| {
            text(&format!("{BLOCKS}/{block}/state")).is_ok_and(|state| state == "offline")
        });
        (nodes == "0-1" && !offline).then_some(())
    })
}

/// The first decoder of the endpoint, which has the highest number of them all: `decoder2.0`.
fn endpoint() -> Option<String> {
    let decoders = names(CXL, "decoder").into_iter().filter(|name| name.ends_with(".0"));
    let number = |name: &String| {
        let digits = name.strip_prefix("decoder")?.split('.').next()?;
        digits.parse::<u32>().ok()
    };
    let last = decoders.max_by_key(number)?;
    // The root and the switch come first; the endpoint appears when the memory device is bound.
    (number(&last)? >= 2).then_some(last)
}

/// A volatile region over the whole device, as `Documentation/driver-api/cxl` has it.
fn region(endpoint: &str) -> Result<()> {
    let root = format!("{CXL}/decoder0.0");
    let name = text(&format!("{root}/create_ram_region"))?;
    set(&format!("{root}/create_ram_region"), &name)?;
    let region = format!("{CXL}/{name}");
    set(&format!("{region}/interleave_granularity"), "256")?;
    set(&format!("{region}/interleave_ways"), "1")?;
    set(&format!("{CXL}/{endpoint}/mode"), "ram")?;
    set(&format!("{CXL}/{endpoint}/dpa_size"), CXL_BYTES)?;
    set(&format!("{region}/size"), CXL_BYTES)?;
    set(&format!("{region}/target0"), endpoint)?;
    set(&format!("{region}/commit"), "1")?;
    let bound: PathBuf = Path::new(&region).join("driver");
    if !bound.exists() {
        set("/sys/bus/cxl/drivers/cxl_region/bind", &name)?;
    }
    ensure!(bound.exists(), "no driver took {name}");
    Ok(())
}

/// Looks again until it is there.
fn wait<T>(what: &str, look: impl Fn() -> Option<T>) -> Result<T> {
    for _ in 0..ATTEMPTS {
        if let Some(found) = look() {
            return Ok(found);
        }
        thread::sleep(Duration::from_millis(50));
    }
    anyhow::bail!("{what} did not appear")
}
