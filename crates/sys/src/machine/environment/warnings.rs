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

/// One sentence for every fact that is known to spoil results; empty for a quiet machine.
pub fn warnings(facts: &[Fact]) -> Vec<String> {
    let facts = Facts(facts);
    let rules = [
        governor,
        turbo,
        thp,
        ksm,
        numa_balancing,
        swap,
        load,
        steal,
        init_on_alloc,
        init_on_free,
        debug,
        kpti,
        page_reporting,
        clocksource,
        cpu_limit,
    ];
    rules.into_iter().filter_map(|rule| rule(&facts)).collect()
}

fn governor(facts: &Facts) -> Option<String> {
    let governor = facts.text("governor");
    (!governor.is_empty() && governor != "performance").then(|| {
        format!(
            "the frequency governor is {governor}, so the clock speed changes during the \
             measurement; set it with: cpupower frequency-set -g performance"
        )
    })
}

fn turbo(facts: &Facts) -> Option<String> {
    facts.is_on("turbo").then(|| {
        "turbo is on, so times depend on heat and on the other cores; to compare builds turn it \
         off: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > \
         /sys/devices/system/cpu/cpufreq/boost"
            .to_owned()
    })
}

fn thp(facts: &Facts) -> Option<String> {
    (facts.text("thp_enabled") == "always").then(|| {
        "transparent huge pages are always on, so programs that did not ask for them get them; \
         for others' programs set: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
            .to_owned()
    })
}

fn ksm(facts: &Facts) -> Option<String> {
    // 2 is stopped, with every page unmerged.
    (facts.value("ksm_run").as_i64() == Some(1)).then(|| {
        "KSM merges pages, which then fault again when written; stop it with: echo 2 > \
         /sys/kernel/mm/ksm/run"
            .to_owned()
    })
}

fn numa_balancing(facts: &Facts) -> Option<String> {
    let on = facts.number("numa_balancing") != 0.0;
    (on && facts.members("numa_nodes") > 1).then(|| {
        "NUMA balancing adds hinting faults and moves pages during the measurement; turn it off \
         with: sysctl kernel.numa_balancing=0"
            .to_owned()
    })
}

fn swap(facts: &Facts) -> Option<String> {
    (facts.members("swap_devices") > 0).then(|| {
        "swap is on, so pages may leave during the measurement; unless swap-in is what you \
         measure, turn it off with: swapoff -a"
            .to_owned()
    })
}

fn load(facts: &Facts) -> Option<String> {
    let (load, cpus) = (facts.number("load_1m"), facts.number("cpu_count"));
    (cpus > 0.0 && load >= cpus).then(|| {
        format!(
            "the load is {load} on {cpus} CPUs, so the measurement waits for others; see who it \
             is with: top, and wait or stop them"
        )
    })
}

fn steal(facts: &Facts) -> Option<String> {
    let share = facts.number("steal_share");
    (share > STEAL_MAX).then(|| {
        format!(
            "the host has given {:.1} % of this machine's time to other guests since boot; use a \
             dedicated host, or trust medians only",
            share * 100.0
        )
    })
}

fn init_on_alloc(facts: &Facts) -> Option<String> {
    facts.is_on("init_on_alloc").then(|| {
        "the kernel clears every page it allocates for itself too (init_on_alloc=1); for \
         comparable results boot with init_on_alloc=0"
            .to_owned()
    })
}

fn init_on_free(facts: &Facts) -> Option<String> {
    facts.is_on("init_on_free").then(|| {
        "the kernel clears every page it frees (init_on_free=1), so unmapping costs as much as \
         faulting; for comparable results boot with init_on_free=0"
            .to_owned()
    })
}

fn debug(facts: &Facts) -> Option<String> {
    let set = facts.value("debug_parameters").as_object()?;
    let on: Vec<&str> = set
        .iter()
        .filter(|(_, value)| !matches!(value.as_str(), Some("0" | "off" | "N" | "n")))
        .map(|(name, _)| name.as_str())
        .collect();
    (!on.is_empty()).then(|| {
        format!(
            "the kernel checks its own memory ({}), which makes faults slower; boot without",
            on.join(", ")
        )
    })
}

fn kpti(facts: &Facts) -> Option<String> {
    facts.is_on("kpti").then(|| {
        "page-table isolation is on, so every fault switches page tables twice; results compare \
         only with machines that do the same (boot with nopti to measure without)"
            .to_owned()
    })
}

fn page_reporting(facts: &Facts) -> Option<String> {
    (facts.number("page_reporting_kib") > 0.0).then(|| {
        "free page reporting gives freed memory back to the host, so a first touch may fault \
         there as well; look at warm-host results, or boot the guest without a balloon that has \
         free-page-reporting"
            .to_owned()
    })
}

fn clocksource(facts: &Facts) -> Option<String> {
    let source = facts.text("clocksource");
    // kvm-clock is read off the counter, which the host vouches for.
    let trusted = matches!(source, "tsc" | "kvm-clock");
    (facts.text("architecture") == "x86_64" && !source.is_empty() && !trusted).then(|| {
        format!(
            "the kernel does not trust the time stamp counter (clocksource {source}); times are \
             coarser; see why with: dmesg | grep -i tsc"
        )
    })
}

fn cpu_limit(facts: &Facts) -> Option<String> {
    let limit = facts.value("cgroup_cpu_limit").as_f64()?;
    Some(format!(
        "the cgroup stops this process after {limit} CPUs' worth of each period; run it outside, \
         or raise cpu.max"
    ))
}
