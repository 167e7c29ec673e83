//! The workloads, and the one loop that measures them.
//!
//! A [`Workload`] turns a case into trials, one for each arm; [`measure`] repeats them in a fresh
//! process and [`runner`] turns what comes back into a record. Nothing here draws or prints.

pub mod asked;
pub mod emu;
pub mod fault;
mod grid;
pub mod inputs;
pub mod limit;
pub mod measure;
pub mod memtype;
pub mod meter;
pub mod need;
pub mod params;
pub mod partial;
pub mod plan;
pub mod remedy;
mod request;
pub mod runner;
pub mod suite;
pub mod tier;
pub mod trace;
pub mod workload;

pub use need::Need;
pub use params::{Kind, Param, Role};
pub use remedy::Remedy;
pub use workload::{Error, Trial, Workload};

/// Every workload, in the order `pagelab list` prints them.
///
/// Help, completion, documentation and tests are views of this list.
pub const WORKLOADS: &[&dyn Workload] = &[
    &limit::timer::Timer,
    &limit::syscall::Syscall,
    &limit::bulk::CLEAR,
    &limit::bulk::COPY,
    &limit::bulk::READ,
    &fault::throughput::Throughput,
    &fault::latency::Latency,
    &fault::userfaultfd::Userfaultfd,
    &fault::stages::Stages,
    &emu::replay::EmuReplay,
    &emu::verify::EmuVerify,
    &trace::stats::TraceStats,
    &memtype::bandwidth::Bandwidth,
    &memtype::latency::Latency,
    &memtype::order::Order,
    &tier::simulation::Simulation,
];

/// The workload of that name.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn workload(name: &str) -> Result<&'static dyn Workload, String> {
    WORKLOADS.iter().copied().find(|workload| workload.name() == name).ok_or_else(|| {
        let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name()).collect();
        format!("no workload is called `{name}`; there are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_have_a_collection() {
        let names: BTreeSet<&str> = WORKLOADS.iter().map(|workload| workload.name()).collect();
        assert_eq!(names.len(), WORKLOADS.len());
        assert!(names.iter().all(|name| name.split('/').count() == 2));
        let shared: BTreeSet<&str> = pagelab_record::vocabulary::workload::ALL.into();
        assert_eq!(names, shared, "a report knows them by these names");
    }

    #[test]
    fn every_default_is_canonical_and_every_default_case_is_accepted() {
        for workload in WORKLOADS {
            for param in workload.params() {
                // A list is as canonical as each of its parts.
                let parts: Vec<&str> = match param.role {
                    Role::Axis => vec![param.default],
                    Role::Arms | Role::List => param.default.split(',').collect(),
                };
                for part in parts {
                    assert_eq!(param.canonical(part).as_deref(), Ok(part), "{}", param.name);
                }
            }
            let case = plan::complete(*workload, &[]).unwrap();
            assert_eq!(workload.refuse(&case), Ok(()), "{}", workload.name());
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let Err(error) = workload("fault/tput") else { panic!() };
        assert!(error.contains("fault/tput") && error.contains("fault/throughput"), "{error}");
    }
}
