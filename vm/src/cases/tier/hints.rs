//! The kernel's hint faults as a source: pages that it marks wherever they lie, and moves none of.
//!
//! The one idea: mode 3 marks pages of both tiers, and without a budget it promotes nothing where
//! the fast node has less than 1 GiB free (Linux 6.1). So what goes up is ours.

use std::{process::Stdio, thread, time::Duration};

use anyhow::{Result, ensure};
use pagelab_sys::{machine::Tree, process::interrupt};

use super::{BALANCING, SEEDS, bytes, target::Target};
use crate::{
    guest::{Guest, set, text},
    verdict::Verdict,
};

const SETTINGS: [(&str, &str); 5] = [
    ("/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps", "0"),
    ("/sys/kernel/debug/sched/numa_balancing/scan_delay_ms", "100"),
    ("/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms", "100"),
    ("/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms", "200"),
    (BALANCING, "3"),
];

pub(in crate::cases) fn hints(guest: &Guest) -> Result<Verdict> {
    set(BALANCING, "0")?;
    let refused = guest.run(&["tier", "promote", "--pid", "1", "--source", "hint-faults"])?;
    ensure!(refused.code == 3 && refused.stderr.contains("numa_balancing=3"), "{}", refused.stderr);
    let before: Vec<String> =
        SETTINGS.iter().map(|(path, _)| text(path)).collect::<Result<_, _>>()?;
    for (path, value) in SETTINGS {
        set(path, value)?;
    }
    let found = watched(guest);
    for ((path, _), value) in SETTINGS.iter().zip(before).rev() {
        set(path, &value)?;
    }
    found
}

/// Promotes until what is hot is there. The target never sleeps: the kernel marks pages as their
/// thread runs, and a pass that the host interrupts costs it seconds of that.
fn watched(guest: &Guest) -> Result<Verdict> {
    let promotions = || counter("pgpromote_success");
    let before = promotions();
    let mut target = Target::start(bytes(guest), SEEDS[0], "busy")?;
    let pid = target.pid();
    let words = ["tier", "promote", "--pid", &pid, "--source", "hint-faults", "--interval", "0.2"];
    let mut command = guest.pagelab(&[&words[..], &["--for", "600", "--format", "json"]].concat());
    let mut engine = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // Linux 6.1 to 6.4 do not say where a page lies that was marked just now, so what was
    // seen on the fast node once counts.
    let mut hot = 0;
    while engine.try_wait()?.is_none() {
        let [now, all_hot, ..] = target.places()?;
        hot = hot.max(now);
        if hot * 100 >= all_hot * 99 {
            break;
        }
        thread::sleep(Duration::from_millis(250));
    }
    interrupt(engine.id());
    let ran = engine.wait_with_output()?;
    let [now, all_hot, cold, all_cold] = target.places()?;
    let hot = hot.max(now);
    let found = format!("{hot} of {all_hot} hot, {cold} of {all_cold} others");
    let [told, said] =
        [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    guest.note(format!("{found}; {told}{said}"));
    target.end()?;
    ensure!(hot * 100 >= all_hot * 99, "{found}");
    ensure!(cold * 100 <= all_cold, "{found}");
    let kernels = promotions() - before;
    ensure!(kernels * 100 <= all_hot as u64, "the kernel itself promoted {kernels} pages");
    Verdict::ok(format!("{found}; {kernels} by the kernel"))
}

/// A count of `/proc/vmstat`; 0 for one that there is not.
fn counter(name: &str) -> u64 {
    Tree::machine().field_number("proc/vmstat", name).unwrap_or(0)
}
