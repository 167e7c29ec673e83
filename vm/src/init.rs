//! The first process of a guest: mounts, modules, the machine's set-up, the cases, and the end.
//!
//! The one idea: whatever happens here, the lane hears of it. Results go to the second serial line,
//! which nothing else writes to; the last line is `@@done rc=N`, and the machine leaves through
//! the debug port with the same N. A first process that gave up would be a kernel panic.

use std::{
    fs::{File, OpenOptions},
    io::Write,
};

use anyhow::{Context, Result};
use pagelab_sys::vm::guest as kernel;
use serde_json::json;

use crate::{
    conduct,
    guest::{ORDERS, Orders},
    kernel_log::{KernelLog, is_complaint},
    machine,
    verdict::{Line, Verdict},
};

/// The serial line for results; the console is the first.
const RESULTS: &str = "/dev/ttyS1";

/// File systems of the kernel, and where programs look for them.
const MOUNTS: &[(&str, &str)] = &[
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/tmp"),
    ("tmpfs", "/run"),
    ("tmpfs", "/dev/shm"),
    ("debugfs", "/sys/kernel/debug"),
    ("tracefs", "/sys/kernel/tracing"),
    ("cgroup2", "/sys/fs/cgroup"),
];

/// Never returns.
pub(crate) fn init() -> ! {
    // A case may lock the kernel down, which forbids it.
    kernel::open_ports();
    // The exit device takes 0 to 60; the lane wants 0 only.
    let status = match results().and_then(|mut lane| boot(&mut lane)) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            eprintln!("init: {error:#}");
            2
        }
    };
    kernel::leave(status)
}

/// Mounts what there is, then opens the line to the lane.
fn results() -> Result<File> {
    for (kind, on) in MOUNTS {
        kernel::mount(kind, on)?;
    }
    let line = OpenOptions::new().write(true).open(RESULTS).context(RESULTS)?;
    kernel::make_raw(&line)?;
    Ok(line)
}

/// Whether all was well.
fn boot(lane: &mut File) -> Result<bool> {
    let outcome = conduct_all(lane);
    let good = match &outcome {
        Ok(good) => *good,
        Err(error) => {
            tell(lane, &json!({ "error": format!("{error:#}") }));
            false
        }
    };
    writeln!(lane, "@@done rc={}", u8::from(!good)).context(RESULTS)?;
    Ok(good)
}

fn conduct_all(lane: &mut File) -> Result<bool> {
    let orders = std::fs::read_to_string(ORDERS).context(ORDERS)?;
    let orders: Orders = serde_json::from_str(&orders).context(ORDERS)?;
    let release = crate::guest::text("/proc/sys/kernel/osrelease")?;
    let uptime = crate::guest::text("/proc/uptime")?;
    tell(lane, &json!({ "boot": { "release": release, "uptime": uptime } }));
    for module in &orders.load {
        kernel::load_module(&std::path::Path::new("/modules").join(module), "")?;
    }
    machine::set_up(&orders.machine).with_context(|| format!("machine {}", orders.machine))?;
    let mut log = Some(KernelLog::from_the_start().context("/dev/kmsg")?);
    let early = log.as_mut().map(KernelLog::news).unwrap_or_default();
    let mut good = true;
    for line in early.iter().filter(|line| is_complaint(line)) {
        good = false;
        tell(lane, &json!({ "error": format!("while booting the kernel says: {line}") }));
    }
    for name in &orders.cases {
        let mut say = |line: &Line| {
            let uptime = crate::guest::text("/proc/uptime").unwrap_or_default();
            tell(lane, &json!({ "case": name, "line": line, "uptime": uptime }));
        };
        let outcome = conduct::one(name, &mut log, &mut say);
        good &= !matches!(outcome, Verdict::Fail(_));
    }
    Ok(good)
}

fn tell(lane: &mut File, said: &serde_json::Value) {
    // Nobody is left to hear of a lost line; the lane misses it and fails the boot.
    let _ = writeln!(lane, "@@{said}");
}
