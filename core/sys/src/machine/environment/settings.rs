//! How the machine is set up. A difference in one of these may explain a result.

use serde_json::{Value, json};

use super::{Own, boot_parameter, by_pool, map_of, on_or_off};
use crate::machine::{
    Topology, Tree, format_list,
    frequency::Frequency,
    proc::{InUse, in_use},
    topology::{cgroup, memory},
};

const CPU: &str = "sys/devices/system/cpu";

pub(super) const OWN: &[Own] = own! { |t|
    "kernel_config" => config(t);
    "preemption" => preemption(t);
    "preemption_now" => {
        // `none voluntary (full) lazy`; debugfs, so root only.
        let modes = t.text("sys/kernel/debug/sched/preempt");
        let modes = modes.or_else(|| boot_parameter(t, "preempt").map(|mode| format!("({mode})")));
        let now = modes.as_deref().and_then(|modes| modes.split(['(', ')']).nth(1));
        now.map(str::to_owned)
    };
    "mitigations" => map_of(t, "sys/devices/system/cpu/vulnerabilities", |name| {
            let state = t.text(format!("{CPU}/vulnerabilities/{name}"))?;
            Some((name.to_owned(), state.into()))
        });
    "kpti" => {
        let flags = t.field("proc/cpuinfo", "flags");
        flags.map(|flags| flags.split_whitespace().any(|flag| flag == "pti"))
    };
    "thp_this_process" =>
        t.field("proc/self/status", "THP_enabled").and_then(|text| on_or_off(&text));
    "hugetlb_pools" => by_pool(t, |pool| pool.pages);
    "swap_devices" => swaps(t);
    "governor" => governors(t);
    "turbo" => Frequency::of(t.clone()).turbo().map(|turbo| turbo.is_on);
    "allowed_cpus" => format_list(&Topology::of(t.clone()).cpus().allowed);
    "memlock_bytes" => {
        let limits = t.text("proc/self/limits").unwrap_or_default();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
        match line.and_then(|line| line.split_whitespace().next()) {
            Some("unlimited") => "unlimited".into(),
            Some(bytes) => bytes.parse::<u64>().ok().into(),
            None => Value::Null,
        }
    };
    "cgroup_memory_limit" => memory::lowest_limit(t);
    "cgroup_cpu_limit" => cpu_limit(t);
    "user_id" => {
        // real, effective, saved, of the file system
        let ids = t.field("proc/self/status", "Uid");
        let effective = |ids: String| ids.split_whitespace().nth(1)?.parse::<u32>().ok();
        ids.and_then(effective)
    };
    "container" => container(t);
};

/// Where the configuration was found and a hash of the file, to compare with and not to read.
fn config(tree: &Tree) -> Value {
    let release = tree.text("proc/sys/kernel/osrelease").unwrap_or_default();
    for path in ["proc/config.gz".to_owned(), format!("boot/config-{release}")] {
        if let Some(bytes) = tree.bytes(&path) {
            return format!("/{path} fnv1a:{:016x}", fnv1a(&bytes)).into();
        }
    }
    Value::Null
}

/// Fowler-Noll-Vo 1a of 64 bits: enough to tell two files apart that nobody made to collide.
fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// What the kernel was built with, as its version names it.
fn preemption(tree: &Tree) -> Value {
    let Some(version) = tree.text("proc/sys/kernel/version") else { return Value::Null };
    let model = version.split_whitespace().find(|word| word.starts_with("PREEMPT"));
    model.unwrap_or("none or voluntary").into()
}

/// The distinct governors of all frequency policies.
fn governors(tree: &Tree) -> Value {
    let policies = Frequency::of(tree.clone()).governors().into_iter();
    let mut governors: Vec<String> = policies.map(|governor| governor.now).collect();
    governors.sort();
    governors.dedup();
    if governors.is_empty() { Value::Null } else { governors.join(",").into() }
}

/// Type and size of every swap device; its use is a volatile fact.
fn swaps(tree: &Tree) -> Value {
    if !tree.path("proc/swaps").exists() {
        return Value::Null;
    }
    let bytes = |one: &InUse| one.size_kib << 10;
    let device = |one: &InUse| json!({ "path": one.path, "kind": one.kind, "bytes": bytes(one) });
    in_use(tree).iter().map(device).collect::<Vec<_>>().into()
}

/// The tightest limit on the way up, in CPUs; `None` when there is none.
fn cpu_limit(tree: &Tree) -> Option<f64> {
    let group = cgroup::find(tree, "cpu")?;
    let limit = |directory: &std::path::PathBuf| {
        let (quota, period) = if group.unified {
            let text = tree.text(directory.join("cpu.max"))?;
            let (quota, period) = text.split_once(' ')?;
            // The quota may be `max`.
            (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
        } else {
            let read = |name: &str| tree.number::<f64>(directory.join(name));
            (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?)
        };
        (quota > 0.0 && period > 0.0).then_some(quota / period)
    };
    group.path.iter().filter_map(limit).min_by(f64::total_cmp)
}

/// The kind of container, by the traces that each leaves; `"none seen"` is not a proof.
fn container(tree: &Tree) -> Value {
    let exists = |path: &str| tree.path(path).exists();
    let cgroups = tree.text("proc/self/cgroup").unwrap_or_default();
    let kinds = ["kubepods", "docker", "lxc", "containerd", "libpod"];
    if exists(".dockerenv") {
        "docker".into()
    } else if exists("run/.containerenv") {
        "podman".into()
    } else {
        kinds.into_iter().find(|kind| cgroups.contains(kind)).unwrap_or("none seen").into()
    }
}
