//! What the machine happens to be doing. Differences in these are normal; large ones make noise.

use serde_json::{Value, json};

use super::{Probe, by_pool, meminfo_bytes, number, object};
use crate::machine::{Topology, Tree, topology::cgroup};

/// Blocks of at least this order hold a 2 MiB page of 4 KiB base pages.
const HUGE_ORDER: usize = 9;

pub(super) const PROBES: &[Probe] = facts! { Volatile |t|
    "load_1m": "others want the CPU" => load(t, 0);
    "load_5m": "others have wanted the CPU" => load(t, 1);
    "load_15m": "others have wanted the CPU for long" => load(t, 2);
    "running_processes": "more than the CPUs means waiting for one" =>
        t.field_number("proc/stat", "procs_running");
    "pressure_cpu_some_avg10": "percent of time that somebody waited" => pressure(t, "cpu");
    "pressure_memory_some_avg10": "faults wait for reclaim" => pressure(t, "memory");
    "pressure_io_some_avg10": "major faults wait in line" => pressure(t, "io");
    "memory_free_bytes": "below the watermarks faults reclaim" => meminfo_bytes(t, "MemFree");
    "memory_available_bytes": "bounds what can be touched without swap" =>
        meminfo_bytes(t, "MemAvailable");
    "numa_node_bytes": "bounds what can be bound to a node" => {
        let nodes = Topology::of(t.clone()).nodes().into_iter();
        object(nodes.map(|node| (node.id.to_string(), node.memory.into())))
    };
    "memory_budget": "bounds what this run may touch, and says why" => {
        let budget = Topology::of(t.clone()).memory_budget();
        json!({ "bytes": budget.bytes, "limited_by": budget.limited_by })
    };
    "swap_used_bytes": "pages are out, and may come back during a case" => {
        let field = |key| t.field_number("proc/meminfo", key);
        let used = || Some((field("SwapTotal")?.saturating_sub(field("SwapFree")?)) << 10);
        used()
    };
    "dirty_bytes": "writeback competes for memory bandwidth" => meminfo_bytes(t, "Dirty");
    "anon_huge_bytes": "how much anonymous memory is huge now" => meminfo_bytes(t, "AnonHugePages");
    "free_huge_blocks": "huge faults need one of these or compaction" => free_blocks(t);
    "hugetlb_free": "hugetlb faults take these" => by_pool(t, |pool| pool.free);
    "thp_counters": "huge faults served and refused so far" => counters(t, "thp_");
    "compaction_counters": "compaction that stood in a fault's way" => counters(t, "compact_");
    "oom_kills": "somebody ran out of memory since boot" =>
        t.field_number("proc/vmstat", "oom_kill");
    "steal_ticks": "time that the host gave to other guests" =>
        cpu_ticks(t).map(|(steal, _)| steal);
    "steal_share": "the same as a share of all time since boot" => {
        let share = |(steal, all): (u64, u64)| (all > 0).then(|| steal as f64 / all as f64);
        cpu_ticks(t).and_then(share)
    };
    "uptime_seconds": "a fresh boot is neither fragmented nor warm" =>
        t.text("proc/uptime").and_then(|text| first::<f64>(&text));
    "page_reporting_kib": "memory that the host has taken back so far" =>
        number(t, "sys/module/page_reporting/parameters/reported_kib");
    "page_reporting_passes": "how often the host was offered free memory" =>
        number(t, "sys/module/page_reporting/parameters/passes");
    "cpu_mhz": "the range over the CPUs at this moment" => frequencies(t);
    "cgroup_path": "names the group whose limits hold" => cgroup::own_path(t);
};

/// The first word of a text.
fn first<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.split_whitespace().next()?.parse().ok()
}

fn load(tree: &Tree, index: usize) -> Value {
    let text = tree.text("proc/loadavg");
    let load = |text: &str| text.split_whitespace().nth(index)?.parse::<f64>().ok();
    text.and_then(|text| load(&text)).into()
}

/// `some avg10=7.26 avg60=…`.
fn pressure(tree: &Tree, resource: &str) -> Value {
    let line = tree.field(format!("proc/pressure/{resource}"), "some");
    let line = line.as_deref().and_then(|line| line.strip_prefix("avg10="));
    line.and_then(first::<f64>).into()
}

/// Steal ticks and all ticks of all CPUs; guest time is in user already.
fn cpu_ticks(tree: &Tree) -> Option<(u64, u64)> {
    let line = tree.field("proc/stat", "cpu")?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).flat_map(str::parse).collect();
    Some((*ticks.get(7)?, ticks.iter().sum()))
}

/// Free blocks of order 9 and above in every zone, by order: `{"9": 3, "10": 837}`.
fn free_blocks(tree: &Tree) -> Value {
    let Some(text) = tree.text("proc/buddyinfo") else { return Value::Null };
    let mut by_order: Vec<u64> = Vec::new();
    for line in text.lines() {
        // `Node 0, zone   Normal   2339   4925 …`
        let counts = line.split_whitespace().skip(4);
        for (order, count) in counts.flat_map(str::parse::<u64>).enumerate() {
            by_order.resize(by_order.len().max(order + 1), 0);
            by_order[order] += count;
        }
    }
    let huge = by_order.iter().enumerate().skip(HUGE_ORDER);
    Value::Object(huge.map(|(order, count)| (order.to_string(), (*count).into())).collect())
}

/// The event counters of `/proc/vmstat` with this prefix.
fn counters(tree: &Tree, prefix: &str) -> Value {
    let Some(text) = tree.text("proc/vmstat") else { return Value::Null };
    let counter = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.strip_prefix(prefix)?.to_owned(), count.parse::<u64>().ok()?.into()))
    };
    Value::Object(text.lines().filter_map(counter).collect())
}

/// Lowest and highest frequency of any CPU now.
fn frequencies(tree: &Tree) -> Value {
    let Some(text) = tree.text("proc/cpuinfo") else { return Value::Null };
    let lines = text.lines().filter_map(|line| line.strip_prefix("cpu MHz"));
    let values = lines.filter_map(|line| line.split(':').nth(1)?.trim().parse::<f64>().ok());
    let range = values.fold(None, |range: Option<(f64, f64)>, mhz| {
        Some(range.map_or((mhz, mhz), |(low, high)| (low.min(mhz), high.max(mhz))))
    });
    range.map_or(Value::Null, |(low, high)| json!({ "min": low, "max": high }))
}
