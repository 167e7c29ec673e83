//! Machines with a second memory node: they are what they should be, and memory lands where a case
//! says.

use anyhow::{Context, Result, ensure};
use pagelab_record::Outcome;

use super::valid;
use crate::{
    guest::{Guest, names, text},
    verdict::Verdict,
};

const NODES: &str = "/sys/devices/system/node";
const TIERS: &str = "/sys/devices/virtual/memory_tiering";

pub(super) fn kinds(guest: &Guest) -> Result<Verdict> {
    let case = [("kind", "numa-hint,migrate"), ("size", "4m"), ("rounds", "5")];
    let records = guest.records("fault/latency", &case)?;
    for record in &records {
        let kind = record.case.get("kind").unwrap_or("?");
        guest.part(kind, valid(record).map(|()| Verdict::Ok(String::new())));
    }
    ensure!(records.len() == 2, "{} records of two cases", records.len());
    Verdict::ok(format!("{} kinds", records.len()))
}

pub(super) fn nodes(_: &Guest) -> Result<Verdict> {
    let memory = text(&format!("{NODES}/has_memory"))?;
    ensure!(memory == "0-1", "nodes with memory: {memory}");
    let cpus = text(&format!("{NODES}/has_cpu"))?;
    ensure!(cpus == "0", "nodes with a CPU: {cpus}");
    let far = text(&format!("{NODES}/node1/meminfo"))?;
    let total = far.lines().find(|line| line.contains("MemTotal:")).context("no MemTotal")?;
    let distances = text(&format!("{NODES}/node0/distance"))?;
    Verdict::ok(format!("{}; distances {distances}", total.trim()))
}

pub(super) fn tiers(_: &Guest) -> Result<Verdict> {
    let tier = |name: String| {
        let nodes = text(&format!("{TIERS}/{name}/nodelist")).ok()?;
        Some(format!("{name}: {nodes}"))
    };
    let tiers: Vec<String> = names(TIERS, "memory_tier").into_iter().filter_map(tier).collect();
    ensure!(tiers.len() == 2, "{tiers:?}");
    Verdict::ok(tiers.join(", "))
}

pub(super) fn placement(guest: &Guest) -> Result<Verdict> {
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
