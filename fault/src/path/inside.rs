//! Which case the machine measures, and what the machine has for it.
//!
//! The one idea: whatever a workload of this program measures touch by touch can be counted, so a
//! kind is a case of another workload: of `fault/latency`, or of `fault/userfaultfd` where the
//! program resolves its faults itself, in its signal handler, so that no other task takes part.

use pagelab_bench::{Kind, Param, Workload, plan::complete};
use pagelab_record::Case;
use serde::{Deserialize, Serialize};

use crate::{latency::LATENCY, userfaultfd::USERFAULTFD};
use pagelab_mappings::{
    FaultKind,
    kinds::{self, KINDS},
};

/// Kinds that the program resolves: what `fault/userfaultfd` calls the handler and the operation.
const RESOLVED: &[(&str, [&str; 2])] = &[
    ("userfaultfd-copy", ["sigbus", "copy"]),
    ("userfaultfd-zeropage", ["sigbus", "zeropage"]),
    ("userfaultfd-continue", ["sigbus", "continue"]),
    ("userfaultfd-wp", ["sigbus", "wp"]),
    ("userfaultfd-wp-async", ["none", "wp-async"]),
    ("userfaultfd-move", ["sigbus", "move"]),
];

/// Where cases of the machine have their files: on its disk, where there is one.
pub(super) const FILES: &str = "/var/tmp";

const NAMES: &[&str] = &{
    let mut names = [""; KINDS.len() + RESOLVED.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = if at < KINDS.len() { KINDS[at].name } else { RESOLVED[at - KINDS.len()].0 };
        at += 1;
    }
    names
};

/// The parameter.
pub(super) const KIND: Param = Param::axis("kind", Kind::Choice(NAMES), "write")
    .asks(kinds::ASKING)
    .help("what the touch finds, as in fault/latency; or who resolves it, as in fault/userfaultfd");

/// A case of another workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inside {
    workload: String,
    case: Case,
}

/// What a machine has beside a processor and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) has_two_nodes: bool,
    pub(super) has_disk: bool,
    /// Whether it loads modules, where the kernel came with some.
    pub(super) has_modules: bool,
}

impl Parts {
    /// Those for a kind.
    pub(super) fn of(kind: &str) -> Self {
        // What the program resolves itself is about plain memory.
        let kind = KINDS.iter().find(|row| row.name == kind).unwrap_or(&FaultKind::PLAIN);
        Self {
            has_two_nodes: kind.uses_two_nodes,
            has_disk: kind.uses_dir,
            has_modules: !kind.modules.is_empty(),
        }
    }
}

impl Inside {
    /// The case that a case of ours stands for.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn of(asked: &Case) -> Result<Self, String> {
        let word = |name| asked.get(name).expect("the case is complete");
        let kind = word("kind");
        let mut pairs = ["page", "size", "rounds"].map(|name| (name, word(name))).to_vec();
        let resolved = RESOLVED.iter().find(|row| row.0 == kind);
        let workload: &dyn Workload = if let Some((_, [handler, op])) = resolved {
            pairs.extend([("handler", *handler), ("op", *op)]);
            &USERFAULTFD
        } else {
            let row = kinds::kind_of(asked);
            pairs.push(("kind", kind));
            pairs.extend(row.in_machine);
            if row.uses_dir {
                pairs.push(("dir", FILES));
            }
            &LATENCY
        };
        let case = complete(workload, &pairs)?;
        Ok(Self { workload: workload.about().name.to_owned(), case })
    }

    /// The workload, and what its case says.
    ///
    /// # Errors
    /// When it is of another build.
    pub(super) fn entry(&self) -> Result<(&'static dyn Workload, &Case), String> {
        let all: [&'static dyn Workload; 2] = [&LATENCY, &USERFAULTFD];
        let found = all.into_iter().find(|one| one.about().name == self.workload);
        let workload = found.ok_or_else(|| format!("no workload is called {}", self.workload))?;
        Ok((workload, &self.case))
    }
}

#[cfg(test)]
mod tests {
    use pagelab_bench::Read as _;

    use super::*;
    use crate::path::PATH;

    fn inside(pairs: &[(&str, &str)]) -> Result<Inside, String> {
        Inside::of(&complete(&PATH, pairs)?)
    }

    #[test]
    fn a_kind_is_a_case_of_the_workload_that_knows_it() {
        let copy = inside(&[("kind", "userfaultfd-copy")]).unwrap();
        let (workload, case) = copy.entry().unwrap();
        assert_eq!(workload.about().name, "fault/userfaultfd");
        assert!(case.is("handler", "sigbus") && case.is("op", "copy") && case.is("size", "8m"));
        let (workload, case) = (inside(&[("kind", "swap")]).unwrap(), "lz4");
        let (workload, found) = workload.entry().map(|(w, c)| (w.about().name, c.clone())).unwrap();
        assert!(workload == "fault/latency" && found.is("algorithm", case));
        assert!(found.is("content", "alike"));
    }

    #[test]
    fn what_the_workload_refuses_is_refused() {
        let error = inside(&[("kind", "userfaultfd-copy"), ("page", "64k")]).unwrap_err();
        assert!(error.contains("page"), "{error}");
        assert!(inside(&[("kind", "read"), ("page", "64k")]).is_err());
    }

    #[test]
    fn every_kind_has_its_parts() {
        assert!(Parts::of("mkwrite").has_disk && Parts::of("migrate").has_two_nodes);
        assert!(Parts::of("swap").has_modules && !Parts::of("userfaultfd-copy").has_modules);
    }
}
