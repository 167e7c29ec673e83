//! `emu/replay`: how fast a trace is replayed into an emulated memory of 2^64 bytes.
//!
//! Every backend is an arm: one process alternates them over one trace. Inside the clock is the
//! whole trace once: from memory, or from opening its file to the digest. Making the empty memory,
//! preloading the image, getting the file into the page cache or out of it are outside.
//!
//! What a backend adds to `noop` is what it costs; what a reader adds to `memory` is what reading
//! costs. That all memories that remember return the same values is part of every repetition.

use std::rc::Rc;

use pagelab_bench::{
    Kind, Param,
    inputs::{Inputs, Supplied},
    need::{Need, Needed},
    refusal::{Refusal, listed, refuse},
    workload::{Error, Trial, Workload},
};
use pagelab_record::Case;
use pagelab_sys::process::sched::Pinned;

use super::{
    arm::{Arm, Backends},
    player::{Player, Stage},
    reader::Reader,
};
use crate::{
    fault::space::{self, cpus_of},
    needs::{Cpus, Memory},
    trace::{Medium, Trace, params as trace},
};

const PARAMS: &[Param] = &[
    trace::TRACE,
    trace::OPS,
    trace::SEED,
    trace::IMAGE,
    Param::axis("reader", Kind::Choice(Reader::WORDS), "memory")
        .help("how the trace is read: from memory, by read in pieces, or mapped"),
    Param::axis("cache", Kind::Choice(&["warm", "cold"]), "warm")
        .help("whether the trace's file is in the page cache at the start"),
    Param::arms("backend", Kind::Own(&Backends), "noop,base,tlb")
        .help("memories to compare; NAME/safe decodes with bounds checks, base is fast-mem's best"),
    space::CPU,
    space::ROUNDS,
];

/// What [`EmuReplay::refuse`] turns away, after what concerns any trace.
const REFUSALS: &[Refusal<Case>] = &[
    Refusal::new(
        |case| case.get("cache") == Some("cold") && Reader::of(case) == Reader::Memory,
        "cache=cold with reader=memory",
        "what is in memory has no page cache: name another reader",
    ),
    Refusal::new(
        |case| Arm::has_twins(&Arm::of(case)),
        "a backend named twice",
        "its two series would be one",
    ),
];

/// Bytes of pages that a typical guest has.
const PAGES_BYTES: u64 = 64 << 20;

/// See the module's documentation.
#[derive(Debug)]
pub struct EmuReplay;

impl Workload for EmuReplay {
    fn name(&self) -> &'static str {
        "emu/replay"
    }

    fn summary(&self) -> &'static str {
        "replaying a trace into an emulated memory of 2^64 bytes: every backend, every reader"
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
    }

    fn resolve(&self, case: Case) -> Case {
        Arm::resolve(trace::resolve(case), |_| true)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        refuse(REFUSALS, case)?;
        refuse(trace::REFUSALS, case)
    }

    fn refusals(&self) -> Vec<(&'static str, &'static str)> {
        listed(REFUSALS).chain(listed(trace::REFUSALS)).collect()
    }

    fn needs(&self, case: &Case) -> Vec<Needed> {
        let mut needs = vec![Memory(self.footprint(case)).needed()];
        if let Some(cpus) = case.get("cpu").and_then(pagelab_sys::machine::topology::parse_list) {
            needs.push(Cpus(cpus).needed());
        }
        needs
    }

    fn footprint(&self, case: &Case) -> u64 {
        let bytes = trace::estimated_bytes(case);
        let copies = match Reader::of(case) {
            // The parent's, where it must be made, and the one on huge pages.
            Reader::Memory if trace::is_made(case) => 2,
            Reader::Memory => 1,
            _ => 0,
        };
        bytes.saturating_mul(copies).saturating_add(PAGES_BYTES)
    }

    fn seconds(&self, case: &Case) -> f64 {
        // 5 ns for an operation and arm is typical, 20 where a disk delivers 500 MB/s.
        let ns = if case.get("cache") == Some("cold") { 20.0 } else { 5.0 };
        let arms = case.get("backend").unwrap_or_default().split(',').count();
        trace::estimated_bytes(case) as f64 / 11.0 * ns * arms as f64 / 1e9 + 0.002
    }

    fn supply(&self, case: &Case) -> Option<Supplied> {
        let medium = match Reader::of(case) {
            Reader::Memory => Medium::Memory,
            _ => Medium::File,
        };
        Some(Rc::new(trace::wanted(case, medium)))
    }

    fn repetitions(&self, case: &Case) -> Option<u32> {
        space::rounds_of(case)
    }

    fn smallest(&self) -> &'static [(&'static str, &'static str)] {
        &[("ops", "100k"), ("rounds", "2")]
    }

    fn prepare(&self, case: &Case, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let pinned = cpus_of(case, 1)[0].map(Pinned::to).transpose()?;
        let is_cold = case.get("cache") == Some("cold");
        let trace = Trace::of(inputs)?;
        let (arms, left_out) = Arm::fitting(Arm::of(case))?;
        let mut stage = Stage::new(&trace, Reader::of(case), is_cold, &inputs.pulse, pinned)?;
        stage.warnings = left_out;
        let stage = Rc::new(stage);
        Ok(arms
            .into_iter()
            .map(|arm| -> Box<dyn Trial> { Box::new(Player::new(arm, &stage)) })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_bench::plan::complete;

    fn refused(pairs: &[(&str, &str)]) -> Option<String> {
        complete(&EmuReplay, pairs).err()
    }

    #[test]
    fn each_refusal_has_a_neighbour_that_is_accepted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let file = file.path().to_str().unwrap();
        for (pairs, neighbour) in [
            (&[("cache", "cold")][..], &[("cache", "cold"), ("reader", "mmap")][..]),
            (&[("backend", "tlb,tlb")], &[("backend", "tlb,tlb/safe")]),
            (&[("ops", "all")], &[("ops", "all"), ("trace", file)]),
            (&[("trace", file), ("seed", "2")], &[("seed", "2")]),
            (&[("trace", file), ("image", "generator")], &[("image", "generator")]),
            (&[("trace", "zipf"), ("image", "generator")], &[("trace", "zipf")]),
        ] {
            assert!(refused(pairs).is_some(), "{pairs:?}");
            assert_eq!(refused(neighbour), None, "{neighbour:?}");
        }
    }

    #[test]
    fn what_is_automatic_is_decided_before_anything_runs() {
        let case = complete(&EmuReplay, &[]).unwrap();
        assert_eq!((case.get("ops"), case.get("image")), (Some("20m"), Some("generator")));
        let case = complete(&EmuReplay, &[("trace", "uniform"), ("ops", "1000k")]).unwrap();
        assert_eq!((case.get("ops"), case.get("image")), (Some("1m"), Some("none")));
        let file = tempfile::NamedTempFile::new().unwrap();
        let case = complete(&EmuReplay, &[("trace", file.path().to_str().unwrap())]).unwrap();
        assert_eq!((case.get("ops"), case.get("image")), (Some("all"), Some("none")));
    }

    #[test]
    fn a_trace_that_must_be_made_is_in_memory_twice() {
        let bytes = |pairs| EmuReplay.footprint(&complete(&EmuReplay, pairs).unwrap());
        let pages = PAGES_BYTES;
        assert_eq!(bytes(&[("ops", "1m")]), 22_000_000 + pages);
        assert_eq!(bytes(&[("ops", "1m"), ("reader", "mmap")]), pages);
    }
}
