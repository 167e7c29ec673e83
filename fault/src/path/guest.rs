//! The first process of the machine: it measures one case and tells of it.
//!
//! The one idea: the case runs as it does on any host, by the same runner in a process of its own,
//! with its knobs and its proof. Which case it is, is handed in last: until then every case has
//! the same machine, which may be saved there. Whatever comes of it is told by a message to whoever
//! emulates the machine; a first process that gave up would be a panic of the kernel.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::Read as _,
    path::Path,
    thread,
    time::Duration,
};

use pagelab_bench::{
    plan::{Overrides, of_cases},
    runner::{Attempt, Runner},
    suite::Entry,
};
use pagelab_sys::{
    knobs::WATCHDOG_COMMAND,
    loops::marks::{routine, say},
    time::ClockChoice,
    vm::{firmware, guest as kernel},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::inside::{FILES, Inside};

/// What the emulator hands its orders in as.
pub(super) const ORDERS: &str = "opt/pagelab/orders";
/// The hidden word that the first process is called with.
pub(super) const COMMAND: &str = "__path-guest";

/// File systems of the kernel, and where programs look for them.
const MOUNTS: &[(&str, &str)] = &[
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/tmp"),
    ("tmpfs", "/var/tmp"),
    ("tmpfs", "/run"),
    ("tmpfs", "/dev/shm"),
    ("debugfs", "/sys/kernel/debug"),
    ("tracefs", "/sys/kernel/tracing"),
];
/// The machine's disk.
const DISK: &str = "/dev/nvme0n1";
/// Where cgroups are.
const GROUPS: &str = "/sys/fs/cgroup";
/// Milliseconds in which a driver finds it.
const DISK_MS_MAX: u64 = 5000;
/// The arm of the window whose length is known.
pub(super) const ROUTINE: &str = "routine";
/// Nanoseconds of a step of the clock that has no time.
const STEP_NS: u64 = 1;

/// What the machine is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Orders {
    /// The case that it measures.
    pub inside: Inside,
    /// Whether the machine has a disk, with an empty file system.
    pub has_disk: bool,
    /// Whether it does so in a memory cgroup of its own.
    pub has_group: bool,
    /// Files of modules, in the order of loading.
    pub load: Vec<String>,
}

/// The first process; `child` is the hidden word of the process of a case. Never returns.
pub fn main(child: &str) -> ! {
    let told = conduct(child).unwrap_or_else(|why| json!({ "failed": why }));
    tell(&told);
    kernel::leave(0)
}

fn tell(what: &Value) {
    say(what.to_string().as_bytes());
}

fn conduct(child: &str) -> Result<Value, String> {
    for (kind, on) in MOUNTS {
        // What a kernel was built without, a case that needs it will miss.
        let mounted = kernel::mount(kind, on);
        if ["/proc", "/sys", "/dev", "/tmp", "/run"].contains(on) {
            mounted.map_err(|error| error.to_string())?;
        }
    }
    // A page that is marked for a hint is not present, and no emulator reads a message there. What
    // measures hints turns it on for itself; a kernel without it has no such page.
    let _ = fs::write("/proc/sys/kernel/numa_balancing", "0");
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let release = read("/proc/sys/kernel/osrelease");
    let about = json!({ "kernel": { "release": release, "command": read("/proc/cmdline") } });
    let mut symbols = symbols_now();
    // All that is the same for every case is done: a machine that is saved goes on from here.
    firmware::stop().map_err(|error| error.to_string())?;
    let orders = firmware::handed(ORDERS).map_err(|error| error.to_string())?;
    let orders = orders.ok_or_else(|| format!("the emulator hands in no {ORDERS}"))?;
    let orders: Orders =
        serde_json::from_slice(&orders).map_err(|error| format!("{ORDERS}: {error}"))?;
    for module in &orders.load {
        kernel::load_module(Path::new(module), "").map_err(|error| error.to_string())?;
    }
    if !orders.load.is_empty() {
        // Modules have symbols, too.
        symbols = symbols_now();
    }
    if orders.has_disk {
        disk()?;
    }
    if orders.has_group {
        join()?;
    }
    tell(&about);
    say(&symbols);
    drop(symbols);
    tell(&json!({ "repetition": { "arm": ROUTINE, "number": 0 } }));
    routine();
    let (workload, case) = orders.inside.entry()?;
    let axes = case.0.iter().map(|(name, value)| (name.to_string(), vec![value.to_string()]));
    let entry = Entry::new(workload, axes.collect());
    // Nothing has a time here: not even how long a step of the clock is says anything.
    let clock = ClockChoice::Scripted { step_ns: STEP_NS };
    let once = Overrides { forks: "1".parse().ok(), ..Overrides::default() };
    let plan = of_cases(&entry, clock, once)?;
    let planned = plan.cases.first().ok_or("no case was planned")?;
    let mut runner = Runner::new("guest", &[child], &[WATCHDOG_COMMAND]);
    runner.take_knobs(&plan.cases).map_err(|error| error.to_string())?;
    match runner.run(planned, &mut |_| ()).map_err(|error| error.to_string())? {
        Attempt::Done(record) => Ok(json!({ "record": record })),
        Attempt::Interrupted => Err("it was interrupted".to_owned()),
    }
}

/// Mounts the disk, once its driver has found it.
fn disk() -> Result<(), String> {
    for _ in 0..DISK_MS_MAX {
        if Path::new(DISK).exists() {
            return kernel::mount_disk(DISK, "ext4", FILES).map_err(|error| error.to_string());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Err("the kernel found no disk (CONFIG_BLK_DEV_NVME=y, CONFIG_EXT4_FS=y)".to_owned())
}

/// Goes into a memory cgroup below the root: what is touched from now on is charged to it.
fn join() -> Result<(), String> {
    let lacks = |what: &str, why: &dyn std::fmt::Display| {
        format!("no memory cgroup (CONFIG_MEMCG=y, no cgroup_disable=memory): {what}: {why}")
    };
    let write = |file: &str, text: &str| {
        fs::write(format!("{GROUPS}/{file}"), text).map_err(|error| lacks(file, &error))
    };
    kernel::mount("cgroup2", GROUPS).map_err(|error| lacks(GROUPS, &error))?;
    write("cgroup.subtree_control", "+memory")?;
    fs::create_dir_all(format!("{GROUPS}/own")).map_err(|error| lacks("mkdir", &error))?;
    write("own/cgroup.procs", "0")?;
    let mine = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    if mine.lines().any(|line| line == "0::/own") {
        return Ok(());
    }
    Err(lacks("/proc/self/cgroup", &mine.trim()))
}

/// A message with what the kernel says of its symbols, as it says it: megabytes, which whoever
/// emulates us reads a hundred times as fast.
fn symbols_now() -> Vec<u8> {
    let mut message = b"{\"symbols\":\"".to_vec();
    // Without them functions are addresses, which the record says.
    let _ = File::open("/proc/kallsyms").and_then(|mut file| file.read_to_end(&mut message));
    message.extend_from_slice(b"\"}");
    message
}

/// Whether this process is the first of a machine that is to be watched. The kernel hands on words
/// that it does not know itself, before ours.
pub fn is_first(words: &[OsString]) -> bool {
    std::process::id() == 1 && words.iter().any(|word| word == COMMAND)
}
