//! What the machine happens to be doing. Differences in these are normal; large ones make noise.

use serde_json::{Value, json};

use super::{Own, by_pool, object};
use crate::machine::{Topology, Tree, proc::zones, topology::cgroup};

/// Blocks of at least this order hold a 2 MiB page of 4 KiB base pages.
const HUGE_ORDER: usize = 9;

pub(super) const OWN: &[Own] = own! { |t|
    "numa_node_bytes" => {
        let nodes = Topology::of(t.clone()).nodes().into_iter();
        object(nodes.map(|node| (node.id.to_string(), node.memory.into())))
    };
    "memory_budget" => {
        let budget = Topology::of(t.clone()).memory_budget();
        json!({ "bytes": budget.bytes, "limited_by": budget.limited_by })
    };
    "swap_used_bytes" => {
        let field = |key| t.field_number("proc/meminfo", key);
        let used = || Some((field("SwapTotal")?.saturating_sub(field("SwapFree")?)) << 10);
        used()
    };
    "free_huge_blocks" => free_blocks(t);
    "hugetlb_free" => by_pool(t, |pool| pool.free);
    "steal_ticks" => cpu_ticks(t).map(|(steal, _)| steal);
    "steal_share" => {
        let share = |(steal, all): (u64, u64)| (all > 0).then(|| steal as f64 / all as f64);
        cpu_ticks(t).and_then(share)
    };
    "uptime_seconds" => t.text("proc/uptime").and_then(|text| first::<f64>(&text));
    "cpu_mhz" => frequencies(t);
    "cgroup_path" => cgroup::own_path(t);
};

/// The first word of a text.
fn first<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.split_whitespace().next()?.parse().ok()
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
    for (order, count) in zones(&text).flat_map(|zone| zone.blocks().enumerate()) {
        by_order.resize(by_order.len().max(order + 1), 0);
        by_order[order] += count;
    }
    let huge = by_order.iter().enumerate().skip(HUGE_ORDER);
    Value::Object(huge.map(|(order, count)| (order.to_string(), (*count).into())).collect())
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
