//! Machines with a second memory node: they are what they should be, and memory lands where a case
//! says.

use anyhow::{Context, Result, ensure};
use pagelab_record::Outcome;

use super::valid;
use crate::{
    case::{ALL, Case, Kernel, Machine, Place, RECENT},
    guest::{Guest, names, text},
    verdict::Verdict,
};

const NODES: &str = "/sys/devices/system/node";
const TIERS: &str = "/sys/devices/virtual/memory_tiering";

const HMAT2: Place = Place::at(Machine::Hmat2, ALL);
const DAXKMEM: Place = Place::at(Machine::Daxkmem, ALL);
const CXL: Place = Place::at(Machine::Cxl, RECENT);

pub(super) const NODES_TWO: Case = Case {
    name: "numa/nodes",
    about: "The second node has memory and no CPU.",
    places: &[HMAT2, Place::at(Machine::Hmat2Small, &[Kernel::Newest]), DAXKMEM, CXL],
    run: nodes,
    ..Case::DEFAULT
};

pub(super) const TIERS_TWO: Case = Case {
    name: "numa/tiers",
    about: "The kernel puts the two nodes into two tiers.",
    places: &[
        // Before 6.7 the kernel does not make tiers of what the HMAT says.
        Place::at(Machine::Hmat2, RECENT),
        Place::at(Machine::Daxkmem, ALL),
        Place::at(Machine::Cxl, RECENT),
    ],
    run: tiers,
    ..Case::DEFAULT
};

pub(super) const PLACEMENT: Case = Case {
    name: "numa/placement",
    about: "Faults with mem-node=0, 1 and far leave every page on the node that was named.",
    places: &[HMAT2, DAXKMEM, CXL],
    native: true,
    run: placement,
    ..Case::DEFAULT
};

pub(super) const KINDS: Case = Case {
    name: "numa/kinds",
    about: "Marked pages take a NUMA hint fault each; moved pages are on the other node.",
    places: &[HMAT2],
    run: kinds,
    ..Case::DEFAULT
};

fn kinds(guest: &Guest) -> Result<Verdict> {
    let case = [("kind", "numa-hint,migrate"), ("size", "4m"), ("rounds", "2")];
    let records = guest.records("fault/latency", &case)?;
    for record in &records {
        let kind = record.case.get("kind").unwrap_or("?");
        guest.part(kind, valid(record).map(|()| Verdict::Ok(String::new())));
    }
    ensure!(records.len() == 2, "{} records of two cases", records.len());
    Verdict::ok(format!("{} kinds", records.len()))
}

fn nodes(_: &Guest) -> Result<Verdict> {
    let memory = text(&format!("{NODES}/has_memory"))?;
    ensure!(memory == "0-1", "nodes with memory: {memory}");
    let cpus = text(&format!("{NODES}/has_cpu"))?;
    ensure!(cpus == "0", "nodes with a CPU: {cpus}");
    let far = text(&format!("{NODES}/node1/meminfo"))?;
    let total = far.lines().find(|line| line.contains("MemTotal:")).context("no MemTotal")?;
    let distances = text(&format!("{NODES}/node0/distance"))?;
    Verdict::ok(format!("{}; distances {distances}", total.trim()))
}

fn tiers(_: &Guest) -> Result<Verdict> {
    let tier = |name: String| {
        let nodes = text(&format!("{TIERS}/{name}/nodelist")).ok()?;
        Some(format!("{name}: {nodes}"))
    };
    let tiers: Vec<String> = names(TIERS, "memory_tier").into_iter().filter_map(tier).collect();
    ensure!(tiers.len() == 2, "{tiers:?}");
    Verdict::ok(tiers.join(", "))
}

fn placement(guest: &Guest) -> Result<Verdict> {
    let case = [("mem-node", "0,1,far"), ("size", "4m"), ("rounds", "2")];
    let records = guest.records("fault/throughput", &case)?;
    for record in &records {
        if let Outcome::Skipped { need, cure } = &record.outcome
            && !guest.is_ours()
        {
            return Verdict::skip(need, cure);
        }
        let node = record.case.get("mem-node").unwrap_or("?");
        guest.part(&format!("mem-node={node}"), valid(record).map(|()| Verdict::Ok(String::new())));
    }
    ensure!(records.len() == 3, "{} records of three cases", records.len());
    Verdict::ok(format!("{} cases", records.len()))
}
