//! Whatever is recorded in an emulated machine says so.

use anyhow::{Context, Result, ensure};
use pagelab_record::Nature;

use super::valid;
use crate::{guest::Guest, verdict::Verdict};

pub(super) fn emulated(guest: &Guest) -> Result<Verdict> {
    let records = guest.records("limit/syscall", &[])?;
    let first = records.first().context("the run left no record")?;
    for record in &records {
        ensure!(record.nature == Nature::Emulated, "{} is {:?}", record.workload, record.nature);
    }
    valid(first)?;
    let told = &first.host.identity;
    let says = |key: &str| told.get(key).cloned().unwrap_or_default();
    Verdict::ok(format!("hypervisor {}, {}", says("hypervisor"), says("cpu_model")))
}
