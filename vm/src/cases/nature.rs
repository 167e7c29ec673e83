//! Whatever is recorded in an emulated machine says so.

use anyhow::{Context, Result, ensure};
use pagelab_record::Nature;

use super::valid;
use crate::{
    case::{ALL, Case, Machine, Place, RECENT},
    guest::Guest,
    verdict::Verdict,
};

pub(super) const EMULATED: Case = Case {
    name: "nature/emulated",
    about: "A record is emulated also where the machine hides its hypervisor.",
    places: &[Place::at(Machine::Base, ALL), Place::at(Machine::Cxl, RECENT)],
    run: emulated,
    ..Case::DEFAULT
};

fn emulated(guest: &Guest) -> Result<Verdict> {
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
