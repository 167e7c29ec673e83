//! The tables of all parts, taken together.

use std::collections::BTreeSet;

use pagelab_bench::{
    Kind, Role, Table,
    plan::{Overrides, Planned, complete, of_suite},
};
use pagelab_cli::{part, published::published};
use pagelab_sys::time::ClockChoice;

use super::*;

/// Every workload.
fn workloads() -> Table {
    part::set(PARTS);
    part::workloads()
}

#[test]
fn all_publications_can_be_read() {
    part::set(PARTS);
    for source in part::publications() {
        assert!(!published(source.name).unwrap().is_empty(), "{}", source.name);
    }
}

#[test]
fn names_are_unique_and_have_a_collection() {
    let names: BTreeSet<&str> = workloads().iter().map(|workload| workload.name()).collect();
    assert_eq!(names.len(), workloads().len());
    assert!(names.iter().all(|name| name.split('/').count() == 2));
    for name in names {
        assert!(part::views().of(name).workloads.contains(&name), "no report shows {name}");
    }
}

#[test]
fn every_default_is_canonical_and_every_default_case_is_accepted() {
    for workload in workloads() {
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
        let case = complete(*workload, &[]).unwrap();
        assert_eq!(workload.accept(&case).map(drop), Ok(()), "{}", workload.name());
    }
}

#[test]
fn the_vocabulary_knows_which_parameters_count_in_thousands() {
    for param in workloads().iter().flat_map(|workload| workload.params()) {
        let is_known = pagelab_record::units::COUNTS.contains(&param.name);
        match param.kind {
            Kind::Ops => assert!(is_known, "{}", param.name),
            Kind::Size | Kind::Page | Kind::Touch => assert!(!is_known, "{}", param.name),
            _ => {}
        }
    }
}

#[test]
fn auto_is_a_size_only_where_a_workload_chooses_one() {
    for workload in workloads() {
        for param in workload.params().iter().filter(|param| matches!(param.kind, Kind::Size)) {
            let found = complete(*workload, &[(param.name, "auto")]);
            let chosen = param.default == "auto";
            assert_eq!(found.is_ok(), chosen, "{} {}", workload.name(), param.name);
        }
    }
}

#[test]
fn every_built_in_suite_can_be_planned_and_runs_the_limits() {
    part::set(PARTS);
    for (name, _) in part::suites() {
        let suite = part::suite(name).unwrap();
        assert_eq!(suite.name, *name);
        let plan = of_suite(&suite, ClockChoice::Raw, Overrides::default()).unwrap();
        let limits = plan.cases.iter().filter(|c| c.workload.about().is_limit).count();
        let wanted = match *name {
            // Set against itself, it needs nothing beside it.
            "aa" => 2,
            // Of the caches it has what a page is cleared in.
            "quick" => 6,
            // What is simulated is no share of this machine.
            _ if plan.cases.iter().all(Planned::is_simulated) => 0,
            _ => 14,
        };
        assert_eq!(limits, wanted, "{name}");
        if *name == "quick" {
            assert!(plan.cases.iter().all(|c| c.method.forks >= 8), "two runs can be compared");
        }
    }
}
