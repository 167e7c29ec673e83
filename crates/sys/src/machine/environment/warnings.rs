//! What about this machine makes results worse, and what to do about it.
//!
//! One idea: a warning is a function of recorded facts and ends in its cure, so that a report can
//! be made anywhere from the record alone. A fact that is not available warns of nothing.

use serde_json::Value;

use super::Fact;

/// The share of stolen time above which times are not to be trusted.
const STEAL_MAX: f64 = 0.01;

/// The facts by key.
struct Facts<'facts>(&'facts [Fact]);

impl Facts<'_> {
    fn value(&self, key: &str) -> &Value {
        self.0.iter().find(|fact| fact.key == key).map_or(&Value::Null, |fact| &fact.value)
    }

    fn text(&self, key: &str) -> &str {
        self.value(key).as_str().unwrap_or("")
    }

    fn number(&self, key: &str) -> f64 {
        self.value(key).as_f64().unwrap_or(0.0)
    }

    fn is_on(&self, key: &str) -> bool {
        self.value(key).as_bool() == Some(true)
    }

    fn members(&self, key: &str) -> usize {
        match self.value(key) {
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        }
    }
}

/// When a machine is warned of, and of what: `{}` is what the question answers.
type Rule = (fn(&Facts) -> Option<String>, &'static str);

const RULES: &[Rule] = &[
    (
        |f| Some(f.text("governor").to_owned()).filter(|g| !g.is_empty() && g != "performance"),
        "the frequency governor is {}, so the clock speed changes during the measurement; set it \
         with: cpupower frequency-set -g performance",
    ),
    (
        |f| when(f.is_on("turbo")),
        "turbo is on, so times depend on heat and on the other cores; to compare builds turn it \
         off: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > \
         /sys/devices/system/cpu/cpufreq/boost",
    ),
    (
        |f| when(f.text("thp_enabled") == "always"),
        "transparent huge pages are always on, so programs that did not ask for them get them; \
         for others' programs set: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    ),
    (
        // 2 is stopped, with every page unmerged.
        |f| when(f.value("ksm_run").as_i64() == Some(1)),
        "KSM merges pages, which then fault again when written; stop it with: echo 2 > \
         /sys/kernel/mm/ksm/run",
    ),
    (
        |f| when(f.number("numa_balancing") != 0.0 && f.members("numa_nodes") > 1),
        "NUMA balancing adds hinting faults and moves pages during the measurement; turn it off \
         with: sysctl kernel.numa_balancing=0",
    ),
    (
        |f| when(f.members("swap_devices") > 0),
        "swap is on, so pages may leave during the measurement; unless swap-in is what you \
         measure, turn it off with: swapoff -a",
    ),
    (
        |f| {
            let (load, cpus) = (f.number("load_1m"), f.number("cpu_count"));
            (cpus > 0.0 && load >= cpus).then(|| format!("{load} on {cpus} CPUs"))
        },
        "the load is {}, so the measurement waits for others; see who it is with: top, and wait \
         or stop them",
    ),
    (
        |f| {
            let share = f.number("steal_share");
            (share > STEAL_MAX).then(|| format!("{:.1}", share * 100.0))
        },
        "the host has given {} % of this machine's time to other guests since boot; use a \
         dedicated host, or trust medians only",
    ),
    (
        |f| when(f.is_on("init_on_alloc")),
        "the kernel clears every page it allocates for itself too (init_on_alloc=1); for \
         comparable results boot with init_on_alloc=0",
    ),
    (
        |f| when(f.is_on("init_on_free")),
        "the kernel clears every page it frees (init_on_free=1), so unmapping costs as much as \
         faulting; for comparable results boot with init_on_free=0",
    ),
    (
        |f| {
            let is_on = |value: &Value| !matches!(value.as_str(), Some("0" | "off" | "N" | "n"));
            let set = f.value("debug_parameters").as_object()?.iter();
            let on: Vec<&str> =
                set.filter(|(_, value)| is_on(value)).map(|(name, _)| name.as_str()).collect();
            (!on.is_empty()).then(|| on.join(", "))
        },
        "the kernel checks its own memory ({}), which makes faults slower; boot without",
    ),
    (
        |f| when(f.is_on("kpti")),
        "page-table isolation is on, so every fault switches page tables twice; results compare \
         only with machines that do the same (boot with nopti to measure without)",
    ),
    (
        |f| when(f.number("page_reporting_kib") > 0.0),
        "free page reporting gives freed memory back to the host, so a first touch may fault \
         there as well; look at warm-host results, or boot the guest without a balloon that has \
         free-page-reporting",
    ),
    (
        |f| {
            let source = f.text("clocksource");
            // kvm-clock is read off the counter, which the host vouches for.
            let trusted = matches!(source, "" | "tsc" | "kvm-clock");
            (f.text("architecture") == "x86_64" && !trusted).then(|| source.to_owned())
        },
        "the kernel does not trust the time stamp counter (clocksource {}); times are coarser; \
         see why with: dmesg | grep -i tsc",
    ),
    (
        |f| f.value("cgroup_cpu_limit").as_f64().map(|limit| limit.to_string()),
        "the cgroup stops this process after {} CPUs' worth of each period; run it outside, or \
         raise cpu.max",
    ),
];

/// One sentence for every fact that is known to spoil results; empty for a quiet machine.
pub fn warnings(facts: &[Fact]) -> Vec<String> {
    let facts = Facts(facts);
    RULES.iter().filter_map(|(when, says)| Some(says.replace("{}", &when(&facts)?))).collect()
}

/// The answer of a question that fills nothing in.
fn when(is_so: bool) -> Option<String> {
    is_so.then(String::new)
}
