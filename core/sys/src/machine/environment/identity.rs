//! What the machine is. A difference in one of these means another machine or another kernel.

use serde_json::{Value, json};

use super::{Own, map_of};
use crate::machine::{Topology, Tree};

pub(super) const OWN: &[Own] = own! { |t|
    "architecture" => std::env::consts::ARCH;
    "cpu_count" => Topology::of(t.clone()).cpus().online.len();
    "sockets" => Topology::of(t.clone()).sockets();
    "threads_per_core" => on_first_cpu(t, |topology, cpu| topology.siblings(cpu).len().into());
    "cache_l1d_bytes" => on_first_cpu(t, |topology, cpu| topology.caches(cpu).l1d.into());
    "cache_l2_bytes" => on_first_cpu(t, |topology, cpu| topology.caches(cpu).l2.into());
    "cache_llc_bytes" => on_first_cpu(t, |topology, cpu| topology.caches(cpu).llc.into());
    "physical_address_bits" => address_bits(t, 0);
    "virtual_address_bits" => address_bits(t, 1);
    "base_page_bytes" => rustix::param::page_size();
    "numa_nodes" => nodes(t);
    "numa_distances" => {
        let nodes = Topology::of(t.clone()).nodes();
        let rows: Vec<Vec<u32>> = nodes.into_iter().map(|node| node.distances).collect();
        if rows.is_empty() { Value::Null } else { json!(rows) }
    };
    "memory_tiers" => map_of(t, "sys/devices/virtual/memory_tiering", |tier| {
            let path = format!("sys/devices/virtual/memory_tiering/{tier}/nodelist");
            Some((tier.to_owned(), t.text(path)?.into()))
        });
    "timer_hz" => timer_hz();
    "hypervisor" => hypervisor(t);
    "product" => product(t);
};

/// What holds for the first CPU that is online.
fn on_first_cpu(tree: &Tree, read: fn(&Topology, usize) -> Value) -> Value {
    let topology = Topology::of(tree.clone());
    let first = topology.cpus().online.first().copied();
    first.map_or(Value::Null, |cpu| read(&topology, cpu))
}

/// `address sizes : 48 bits physical, 48 bits virtual`.
fn address_bits(tree: &Tree, part: usize) -> Value {
    let sizes = tree.field("proc/cpuinfo", "address sizes");
    let bits = |text: &str| text.split(',').nth(part)?.split_whitespace().next()?.parse().ok();
    sizes.and_then(|text| bits(&text)).map_or(Value::Null, |bits: u32| bits.into())
}

/// Without their sizes, which grow while the machine runs where the kernel initialises lazily.
fn nodes(tree: &Tree) -> Value {
    let nodes = Topology::of(tree.clone()).nodes();
    let node = |node: crate::machine::topology::Node| {
        let cpus = crate::machine::format_list(&node.cpus);
        json!({ "id": node.id, "cpus": cpus })
    };
    let nodes: Vec<Value> = nodes.into_iter().map(node).collect();
    if nodes.is_empty() { Value::Null } else { nodes.into() }
}

/// The coarse clock advances once a tick, so its resolution is the length of one.
fn timer_hz() -> Value {
    let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    if tick.tv_sec != 0 || tick.tv_nsec <= 0 {
        return Value::Null;
    }
    // 300 Hz has a tick of 3333333 ns: round.
    ((1_000_000_000 + tick.tv_nsec / 2) / tick.tv_nsec).into()
}

/// The name in CPUID leaf `0x4000_0000`, else what `/sys/hypervisor` says; `"none"` on bare metal.
fn hypervisor(tree: &Tree) -> Value {
    if let Some(kind) = tree.text("sys/hypervisor/type") {
        return kind.into();
    }
    #[cfg(target_arch = "x86_64")]
    {
        let cpuid = raw_cpuid::CpuId::new();
        if let Some(info) = cpuid.get_hypervisor_info() {
            return hypervisor_name(&info.identify()).into();
        }
        if cpuid.get_feature_info().is_some_and(|features| !features.has_hypervisor()) {
            return "none".into();
        }
    }
    Value::Null
}

#[cfg(target_arch = "x86_64")]
fn hypervisor_name(hypervisor: &raw_cpuid::Hypervisor) -> String {
    match hypervisor {
        raw_cpuid::Hypervisor::Unknown(ebx, ecx, edx) => {
            let bytes: Vec<u8> =
                [ebx, ecx, edx].into_iter().flat_map(|r| r.to_le_bytes()).collect();
            String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
        }
        known => format!("{known:?}").to_lowercase(),
    }
}

fn product(tree: &Tree) -> Value {
    let read = |name: &str| {
        let text = tree.text(format!("sys/class/dmi/id/{name}"));
        text.or_else(|| tree.text(format!("sys/devices/virtual/dmi/id/{name}")))
    };
    match (read("sys_vendor"), read("product_name")) {
        (Some(vendor), Some(product)) => format!("{vendor} {product}").into(),
        (vendor, product) => vendor.or(product).into(),
    }
}
