//! The tool itself, with the module and without it.

use anyhow::{Context, Result, ensure};
use pagelab_record::Outcome;

use super::{end, load};
use crate::{guest::Guest, verdict::Verdict};

/// Proven is what each iteration does, and an emulated machine tells no time.
const FEW: (&str, &str) = ("iterations", "3");

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    guest.part("doctor without the module", missing(guest));
    let loaded = load(guest, "")?;
    guest.part("doctor with the module", there(guest));
    for (workload, more) in [
        ("memtype/bandwidth", &[("size", "64k"), FEW][..]),
        ("memtype/latency", &[("size", "64k"), ("samples", "1k")]),
        ("memtype/order", &[("rounds", "1k")]),
    ] {
        guest.part(workload, measured(guest, workload, more));
    }
    end(loaded)?;
    let loaded = load(guest, "size_mb=1")?;
    guest.part("the nodes of the older driver", nodes(guest));
    loaded.unload()?;
    Verdict::ok("valid by its witness")
}

fn missing(guest: &Guest) -> Result<Verdict> {
    let ran = guest.run(&["doctor"])?;
    let text = ran.stdout + &ran.stderr;
    ensure!(text.contains("pagelab module"), "doctor knows no module: {text}");
    ensure!(text.contains("kmod"), "no cure: {text}");
    let skipped = guest.records("memtype/bandwidth", &[("type", "wc"), ("size", "64k")])?;
    let all = skipped.iter().all(|record| matches!(record.outcome, Outcome::Skipped { .. }));
    ensure!(all && !skipped.is_empty(), "without the module: {skipped:?}");
    Verdict::ok("missing, with its cure; wc is skipped")
}

fn there(guest: &Guest) -> Result<Verdict> {
    let ran = guest.run(&["doctor"])?;
    let line = ran.stdout.lines().find(|line| line.contains("pagelab module"));
    Verdict::ok(line.unwrap_or("no line").trim().to_owned())
}

/// As the older driver's own program measures: its nodes, their length by their ioctl.
fn nodes(guest: &Guest) -> Result<Verdict> {
    let tests = "write,write_ucfence,ntwrite_readback,read";
    let case =
        [("frames", "nodes"), ("size", "module"), ("type", "wb,uc,wc"), ("test", tests), FEW];
    let records = guest.records("memtype/bandwidth", &case)?;
    let mine = records.iter().filter(|record| record.workload == "memtype/bandwidth");
    let mut told = 0;
    for record in mine {
        super::super::valid(record).with_context(|| format!("{:?}", record.case))?;
        ensure!(record.case.get("size") == Some("1m"), "{:?}", record.case);
        let said = super::super::measured(record)?.counters.get("node_bytes");
        ensure!(said == Some(&(1 << 20)), "{:?}: {said:?}", record.case);
        told += 1;
    }
    ensure!(told == 12, "{told} cases instead of 12");
    Verdict::ok("twelve tests, valid by their witness")
}

fn measured(guest: &Guest, workload: &str, more: &[(&str, &str)]) -> Result<Verdict> {
    let records = guest.records(workload, &[&[("type", "wb,uc,wc")], more].concat())?;
    let mut claims = 0;
    for record in records.iter().filter(|record| record.workload == workload) {
        super::super::valid(record).with_context(|| format!("{:?}", record.case))?;
        claims += super::super::measured(record)?.witness.len();
    }
    ensure!(claims > 0, "nothing was claimed: {records:?}");
    Verdict::ok(format!("{claims} claims hold"))
}
