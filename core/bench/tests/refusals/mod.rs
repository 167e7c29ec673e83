//! Refusals of workloads, each met by an example: included by the tests of every part.

use pagelab_bench::{Row, plan::complete};

/// Parameters and their values.
pub(crate) type Pairs = &'static [(&'static str, &'static str)];

/// Of each workload, in the order of its rows: a case that meets a row and no row before it, and a
/// neighbour that is accepted.
pub(crate) type Examples = &'static [(&'static str, &'static [(Pairs, Pairs)])];

/// Nothing meets a row that a workload shares with others.
pub(crate) const NEVER: Pairs = &[];

/// Every refusal has a case that meets it and a neighbour that is accepted. `others` are rows of a
/// workload that are in no table; they stand last.
pub(crate) fn meet(workloads: &[Row], examples: Examples, others: fn(&str) -> usize) {
    for workload in workloads {
        let name = workload.name();
        let of_name = examples.iter().find(|(known, _)| *known == name);
        let (rows, examples) = (workload.refusals(), of_name.map_or(&[][..], |(_, all)| all));
        assert_eq!(rows.len() - others(name), examples.len(), "{name}: {rows:#?}");
        for ((says, instead), (meets, neighbour)) in rows.into_iter().zip(examples) {
            if *meets != NEVER {
                let error = complete(*workload, meets).unwrap_err();
                assert_eq!(error, format!("{says}: {instead}"), "{name} {meets:?}");
            }
            let accepted = complete(*workload, neighbour);
            assert!(accepted.is_ok(), "{name} {neighbour:?}: {accepted:?}");
        }
    }
}
