//! How the machine is set up. A difference in one of these may explain a result.

use serde_json::{Value, json};

use super::{Probe, boot_parameter, by_pool, map_of, number, on_or_off, switch};
use crate::machine::{
    Topology, Tree, format_list,
    topology::{cgroup, memory},
};

const THP: &str = "sys/kernel/mm/transparent_hugepage";
const CPU: &str = "sys/devices/system/cpu";

pub(super) const PROBES: &[Probe] = facts! { Setting |t|
    // The kernel as booted.
    "kernel_command_line": "carries every boot-time choice" => t.text("proc/cmdline");
    "kernel_config": "a debug option can double the cost of a fault" => config(t);
    "preemption": "decides where a fault can be interrupted" => preemption(t);
    "preemption_now": "the mode that a dynamic kernel runs in" => {
        // `none voluntary (full) lazy`; debugfs, so root only.
        let modes = t.text("sys/kernel/debug/sched/preempt");
        let modes = modes.or_else(|| boot_parameter(t, "preempt").map(|mode| format!("({mode})")));
        let now = modes.as_deref().and_then(|modes| modes.split(['(', ')']).nth(1));
        now.map(str::to_owned)
    };
    "mitigations": "several add a cost to every entry into the kernel" =>
        map_of(t, "sys/devices/system/cpu/vulnerabilities", |name| {
            let state = t.text(format!("{CPU}/vulnerabilities/{name}"))?;
            Some((name.to_owned(), state.into()))
        });
    "kpti": "two page-table switches for every fault" => {
        let flags = t.field("proc/cpuinfo", "flags");
        flags.map(|flags| flags.split_whitespace().any(|flag| flag == "pti"))
    };
    "init_on_alloc": "every allocated page is cleared, also by the kernel" =>
        boot_switch(t, "init_on_alloc");
    "init_on_free": "every freed page is cleared: unmapping costs as faulting" =>
        boot_switch(t, "init_on_free");
    "debug_parameters": "checks every page or object that is touched" => debug(t);
    "clocksource": "decides what reading the time costs" =>
        t.text("sys/devices/system/clocksource/clocksource0/current_clocksource");
    // Huge pages.
    "thp_enabled": "decides which faults are huge" => t.choice(format!("{THP}/enabled"));
    "thp_defrag": "decides which faults wait for compaction" => t.choice(format!("{THP}/defrag"));
    "thp_shmem_enabled": "decides which shared-memory faults are huge" =>
        t.choice(format!("{THP}/shmem_enabled"));
    "thp_use_zero_page": "a read fault maps one shared huge page of zeros" =>
        switch(t, &format!("{THP}/use_zero_page"));
    "thp_this_process": "prctl can forbid huge pages to a process tree" =>
        t.field("proc/self/status", "THP_enabled").and_then(|text| on_or_off(&text));
    "mthp_enabled": "decides which faults are served with middle sizes" => by_size(t, "enabled");
    "mthp_shmem_enabled": "the same for shared memory" => by_size(t, "shmem_enabled");
    "khugepaged_defrag": "khugepaged may compact, and take the CPU for it" =>
        switch(t, &format!("{THP}/khugepaged/defrag"));
    "khugepaged_scan_sleep_ms": "how soon base pages are collapsed behind a measurement's back" =>
        number(t, &format!("{THP}/khugepaged/scan_sleep_millisecs"));
    "hugetlb_pools": "hugetlb faults need pages in these" => by_pool(t, |pool| pool.pages);
    // Reclaim and placement.
    "overcommit_memory": "2 refuses large mappings that are never touched" =>
        number(t, "proc/sys/vm/overcommit_memory");
    "swappiness": "decides whether anonymous pages leave under pressure" =>
        number(t, "proc/sys/vm/swappiness");
    "page_cluster": "a swap-in reads 2^n pages" => number(t, "proc/sys/vm/page-cluster");
    "compaction_proactiveness": "background compaction makes and takes time" =>
        number(t, "proc/sys/vm/compaction_proactiveness");
    "zone_reclaim_mode": "reclaims locally before it takes remote memory" =>
        number(t, "proc/sys/vm/zone_reclaim_mode");
    "watermark_scale_factor": "decides when kswapd wakes" =>
        number(t, "proc/sys/vm/watermark_scale_factor");
    "min_free_kbytes": "memory that no fault can have" => number(t, "proc/sys/vm/min_free_kbytes");
    "max_map_count": "bounds the mappings of one process" => number(t, "proc/sys/vm/max_map_count");
    "numa_balancing": "adds hinting faults and migrations of its own" =>
        number(t, "proc/sys/kernel/numa_balancing");
    "numa_demotion": "reclaim moves cold pages to a slower node" =>
        switch(t, "sys/kernel/mm/numa/demotion_enabled");
    "ksm_run": "merged pages fault again on the next write" => number(t, "sys/kernel/mm/ksm/run");
    "zswap": "swap-ins come from compressed memory, not from the device" =>
        switch(t, "sys/module/zswap/parameters/enabled");
    "lru_gen": "which pages are found cold, and by which walk" =>
        t.text("sys/kernel/mm/lru_gen/enabled");
    "swap_devices": "without one no page is swapped, with one any may be" => swaps(t);
    "page_reporting_order": "free blocks of this order go back to the host" =>
        number(t, "sys/module/page_reporting/parameters/page_reporting_order");
    // CPU.
    "governor": "anything but performance ramps up during the measurement" => governors(t);
    "turbo": "the frequency depends on heat and on the neighbours" => turbo(t);
    "smt": "a busy sibling takes half of the core" => t.text(format!("{CPU}/smt/control"));
    "idle_driver": "waking from a deep state costs more than a fault" =>
        t.text(format!("{CPU}/cpuidle/current_driver"));
    "isolated_cpus": "nothing else is scheduled on these" => t.text(format!("{CPU}/isolated"));
    "nohz_full_cpus": "a lone task on these is not interrupted by the tick" =>
        t.text(format!("{CPU}/nohz_full"));
    "rt_runtime_us": "throttles a SCHED_FIFO measurement" =>
        number(t, "proc/sys/kernel/sched_rt_runtime_us");
    // What this process may do.
    "allowed_cpus": "bounds the CPUs that can be measured" =>
        format_list(&Topology::of(t.clone()).cpus().allowed);
    "aslr": "2 gives every process another layout" =>
        number(t, "proc/sys/kernel/randomize_va_space");
    "perf_event_paranoid": "above 1 the kernel's share is not counted" =>
        number(t, "proc/sys/kernel/perf_event_paranoid");
    "unprivileged_userfaultfd": "0 hides the kernel's own faults from users" =>
        number(t, "proc/sys/vm/unprivileged_userfaultfd");
    "memlock_bytes": "bounds what can be locked" => {
        let limits = t.text("proc/self/limits").unwrap_or_default();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
        match line.and_then(|line| line.split_whitespace().next()) {
            Some("unlimited") => "unlimited".into(),
            Some(bytes) => bytes.parse::<u64>().ok().into(),
            None => Value::Null,
        }
    };
    "cgroup_memory_limit": "near it every fault reclaims" => memory::lowest_limit(t);
    "cgroup_cpu_limit": "above it the process is stopped for the period" => cpu_limit(t);
    "capabilities": "decides which counters and knobs can be used" =>
        t.field("proc/self/status", "CapEff");
    "seccomp": "filters every system call; 2 also costs time in each" =>
        t.field_number("proc/self/status", "Seccomp");
    "user_id": "root can set knobs and read frames" => {
        // real, effective, saved, of the file system
        let ids = t.field("proc/self/status", "Uid");
        let effective = |ids: String| ids.split_whitespace().nth(1)?.parse::<u32>().ok();
        ids.and_then(effective)
    };
    "container": "limits and neighbours may be out of sight" => container(t);
};

/// `init_on_alloc=1`; null when the command line leaves it to the kernel's configuration.
fn boot_switch(tree: &Tree, name: &str) -> Value {
    boot_parameter(tree, name).and_then(|value| on_or_off(&value)).into()
}

/// The parameters on the command line that make the kernel check its own memory.
fn debug(tree: &Tree) -> Value {
    const NAMES: &[&str] = &[
        "debug_pagealloc",
        "kasan",
        "kfence.sample_interval",
        "kmemleak",
        "page_owner",
        "page_poison",
        "page_table_check",
        "slab_debug",
        "slub_debug",
        "vm_debug",
    ];
    if tree.text("proc/cmdline").is_none() {
        return Value::Null;
    }
    let set = |name: &&str| Some(((*name).to_owned(), boot_parameter(tree, name)?.into()));
    Value::Object(NAMES.iter().filter_map(set).collect())
}

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

/// The setting of every transparent size that has this file.
fn by_size(tree: &Tree, file: &str) -> Value {
    map_of(tree, THP, |name| {
        let size = name.strip_prefix("hugepages-")?;
        Some((size.to_owned(), tree.choice(format!("{THP}/{name}/{file}"))?.into()))
    })
}

/// The distinct governors of all frequency policies.
fn governors(tree: &Tree) -> Value {
    let policies = tree.names(format!("{CPU}/cpufreq")).into_iter();
    let mut governors: Vec<String> = policies
        .filter_map(|policy| tree.text(format!("{CPU}/cpufreq/{policy}/scaling_governor")))
        .collect();
    governors.sort();
    governors.dedup();
    if governors.is_empty() { Value::Null } else { governors.join(",").into() }
}

fn turbo(tree: &Tree) -> Value {
    let no_turbo = tree.text(format!("{CPU}/intel_pstate/no_turbo"));
    match no_turbo.and_then(|text| on_or_off(&text)) {
        Some(no_turbo) => (!no_turbo).into(),
        None => switch(tree, &format!("{CPU}/cpufreq/boost")),
    }
}

/// Type and size of every swap device; its use is a volatile fact.
fn swaps(tree: &Tree) -> Value {
    let Some(text) = tree.text("proc/swaps") else { return Value::Null };
    let device = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [path, kind, kilobytes, ..] = words[..] else { return None };
        let bytes = kilobytes.parse::<u64>().ok()? << 10;
        Some(json!({ "path": path, "kind": kind, "bytes": bytes }))
    };
    text.lines().skip(1).filter_map(device).collect::<Vec<_>>().into()
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
