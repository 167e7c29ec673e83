//! What the machine is. A difference in one of these means another machine or another kernel.

use serde_json::{Value, json};

use super::{Probe, map_of, meminfo_bytes};
use crate::machine::{Topology, Tree};

pub(super) const PROBES: &[Probe] = facts! { Identity |t|
    "architecture": "decides page sizes, fences and the format of page tables" =>
        std::env::consts::ARCH;
    "cpu_vendor": "decides fences, page-walk caches and fault microcode" => cpuinfo(t, "vendor_id");
    "cpu_model": "names the part that every time belongs to" => cpuinfo(t, "model name");
    "cpu_family": "names the generation when the model name does not" =>
        cpuinfo_number(t, "cpu family");
    "cpu_model_number": "tells parts of one generation apart" => cpuinfo_number(t, "model");
    "cpu_stepping": "errata and their workarounds differ by stepping" =>
        cpuinfo_number(t, "stepping");
    "microcode": "an update can add the cost of a mitigation" => cpuinfo(t, "microcode");
    "cpu_features": "decides how the kernel clears and copies a page" => features(t);
    "cpu_count": "bounds the threads that fault at the same time" =>
        Topology::of(t.clone()).cpus().online.len();
    "sockets": "lines that cross a socket cost several times more" =>
        Topology::of(t.clone()).sockets();
    "threads_per_core": "threads of one core share its caches and its page walker" =>
        on_first_cpu(t, |topology, cpu| topology.siblings(cpu).len().into());
    "cache_l1d_bytes": "a buffer that fits measures this cache" =>
        on_first_cpu(t, |topology, cpu| topology.caches(cpu).l1d.into());
    "cache_l2_bytes": "a buffer that fits measures this cache" =>
        on_first_cpu(t, |topology, cpu| topology.caches(cpu).l2.into());
    "cache_llc_bytes": "below four times this size DRAM is not measured" =>
        on_first_cpu(t, |topology, cpu| topology.caches(cpu).llc.into());
    "physical_address_bits": "bounds the memory that can be mapped" => address_bits(t, 0);
    "virtual_address_bits": "57 bits mean five levels of page table, one more per walk" =>
        address_bits(t, 1);
    "base_page_bytes": "is the unit of every base-page fault" => rustix::param::page_size();
    "memory_bytes": "bounds the regions that can be measured" => meminfo_bytes(t, "MemTotal");
    "numa_nodes": "memory of another node is farther away" => nodes(t);
    "numa_distances": "says how much farther, by the firmware's word" => {
        let nodes = Topology::of(t.clone()).nodes();
        let rows: Vec<Vec<u32>> = nodes.into_iter().map(|node| node.distances).collect();
        if rows.is_empty() { Value::Null } else { json!(rows) }
    };
    "memory_tiers": "says which nodes the kernel promotes to and demotes from" =>
        map_of(t, "sys/devices/virtual/memory_tiering", |tier| {
            let path = format!("sys/devices/virtual/memory_tiering/{tier}/nodelist");
            Some((tier.to_owned(), t.text(path)?.into()))
        });
    "kernel_release": "the fault path changes with every release" =>
        t.text("proc/sys/kernel/osrelease");
    "kernel_version": "tells builds of one release apart" => t.text("proc/sys/kernel/version");
    "kernel_build": "another compiler lays the fault path out differently" =>
        t.text("proc/version");
    "timer_hz": "every tick interrupts the measured loop" => timer_hz();
    "hypervisor":
        "under one a fault can also be a fault of the host, and page walks are two-dimensional" =>
        hypervisor(t);
    "product": "names the machine or the cloud's type of it" => product(t);
};

fn cpuinfo(tree: &Tree, key: &str) -> Value {
    tree.field("proc/cpuinfo", key).into()
}

fn cpuinfo_number(tree: &Tree, key: &str) -> Value {
    tree.field_number("proc/cpuinfo", key).into()
}

/// What holds for the first CPU that is online.
fn on_first_cpu(tree: &Tree, read: fn(&Topology, usize) -> Value) -> Value {
    let topology = Topology::of(tree.clone());
    let first = topology.cpus().online.first().copied();
    first.map_or(Value::Null, |cpu| read(&topology, cpu))
}

/// The flags, of the hundred that there are, that change how memory is cleared, walked or timed.
fn features(tree: &Tree) -> Value {
    const OF_INTEREST: &[&str] = &[
        "avx2",
        "avx512f",
        "clzero",
        "constant_tsc",
        "erms",
        "fsrm",
        "fzrm",
        "invlpgb",
        "invpcid",
        "la57",
        "movdir64b",
        "nonstop_tsc",
        "pcid",
        "pdpe1gb",
        "rdpid",
        "rdtscp",
        "smap",
    ];
    let Some(flags) = tree.field("proc/cpuinfo", "flags") else { return Value::Null };
    let present: Vec<&str> = flags.split_whitespace().collect();
    let found: Vec<_> = OF_INTEREST.iter().filter(|flag| present.contains(flag)).collect();
    json!(found)
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
