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
    Described, Error, Experiment, Inputs, Kind, Need, Needed, Over, Param, Read, Refusal, Trial,
    common::{CPU, ROUNDS},
    cpus::Chosen,
    inputs::Supplied,
    needs::Memory,
    words_of,
};
use pagelab_record::Case;
use pagelab_sys::{machine::Topology, process::Pinned};

use super::{
    arm::{Arm, Backends},
    player::{Player, Stage},
    reader::{READERS, Reader},
};
use crate::trace::{Medium, Trace, params as trace};

const PARAMS: &[Param] = &[
    trace::TRACE,
    trace::OPS,
    trace::SEED,
    trace::IMAGE,
    Param::axis("reader", Kind::Choice(&words_of(&READERS)), "memory")
        .help("how the trace is read: from memory, by read in pieces, or mapped"),
    Param::axis("cache", Kind::Choice(&["warm", "cold"]), "warm")
        .help("whether the trace's file is in the page cache at the start"),
    Param::arms("backend", Kind::Own(&Backends), "noop,base,tlb")
        .help("memories to compare; NAME/safe decodes with bounds checks, base is fast-mem's best"),
    CPU,
    ROUNDS,
];

/// A case, read.
#[derive(Debug)]
pub struct Asked {
    trace: trace::Asked,
    reader: Reader,
    is_cold: bool,
    arms: Vec<Arm>,
    cpus: Chosen,
    rounds: Option<u32>,
}

/// What is turned away beside what concerns the trace.
const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.is_cold && asked.reader == Reader::Memory,
        "cache=cold with reader=memory",
        "what is in memory has no page cache: name another reader",
    ),
    Refusal::new(
        |asked| Arm::has_twins(&asked.arms),
        "a backend named twice",
        "its two series would be one",
    ),
];

/// Bytes of pages that a typical guest has.
const PAGES_BYTES: u64 = 64 << 20;

/// What it is called.
pub(crate) const NAME: &str = REPLAY.about.name;

/// See the module's documentation.
pub const REPLAY: Described<Asked> = Described {
    resolve: |case| mapped_where_longer(Arm::resolve(trace::resolve(case), |_| true)),
    refusals: REFUSALS,
    parts: &[&Over { of: |asked: &Asked| &asked.trace, tables: trace::OVER_IMAGES }],
    ..Described::new(
        "emu/replay",
        "replaying a trace into an emulated memory of 2^64 bytes: every backend, every reader",
        PARAMS,
        &[("ops", "100k"), ("rounds", "2")],
        |case| Asked {
            trace: trace::Asked::of(case),
            reader: case.one_of("reader", &READERS),
            is_cold: case.is("cache", "cold"),
            arms: Arm::of(case),
            cpus: Chosen::of(case, "cpu"),
            rounds: case.number("rounds"),
        },
    )
};

/// A trace that lies in a file and is longer than what memory holds is mapped, not copied; the
/// record says so.
fn mapped_where_longer(case: Case) -> Case {
    let asked = trace::Asked::of(&case);
    let copied = case.is("reader", "memory") && !asked.source.is_made();
    let is_longer = || asked.bytes() > Topology::machine().memory_budget().bytes;
    if copied && is_longer() { case.with("reader", "mmap") } else { case }
}

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        let memory = Memory(self.footprint()).needed();
        std::iter::once(memory).chain(self.cpus.needs()).collect()
    }

    fn footprint(&self) -> u64 {
        let copies = match self.reader {
            Reader::Memory if self.trace.source.is_made() => 2,
            Reader::Memory => 1,
            _ => 0,
        };
        self.trace.bytes().saturating_mul(copies).saturating_add(PAGES_BYTES)
    }

    fn seconds(&self) -> f64 {
        let ns = if self.is_cold { 20.0 } else { 5.0 };
        self.trace.bytes() as f64 / 11.0 * ns * self.arms.len() as f64 / 1e9 + 0.002
    }

    fn supply(&self) -> Option<Supplied> {
        let medium = if self.reader == Reader::Memory { Medium::Memory } else { Medium::File };
        Some(Rc::new(self.trace.wanted(medium)))
    }

    fn repetitions(&self) -> Option<u32> {
        self.rounds
    }

    fn prepare(&self, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let pinned = self.cpus.of_workers(1)[0].map(Pinned::to).transpose()?;
        let trace = Trace::of(inputs)?;
        let (arms, left_out) = Arm::fitting(self.arms.clone())?;
        let mut stage = Stage::new(&trace, self.reader, self.is_cold, &inputs.pulse, pinned)?;
        stage.warnings.extend(left_out);
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

    #[test]
    fn what_is_automatic_is_decided_before_anything_runs() {
        let case = complete(&REPLAY, &[]).unwrap();
        assert_eq!((case.get("ops"), case.get("image")), (Some("20m"), Some("generator")));
        let case = complete(&REPLAY, &[("trace", "uniform"), ("ops", "1000k")]).unwrap();
        assert_eq!((case.get("ops"), case.get("image")), (Some("1m"), Some("none")));
        let file = tempfile::NamedTempFile::new().unwrap();
        let case = complete(&REPLAY, &[("trace", file.path().to_str().unwrap())]).unwrap();
        assert_eq!((case.get("ops"), case.get("image")), (Some("all"), Some("none")));
    }

    #[test]
    fn a_trace_that_must_be_made_is_in_memory_twice() {
        let bytes = |pairs| (REPLAY.read)(&complete(&REPLAY, pairs).unwrap()).footprint();
        let pages = PAGES_BYTES;
        assert_eq!(bytes(&[("ops", "1m")]), 22_000_000 + pages);
        assert_eq!(bytes(&[("ops", "1m"), ("reader", "mmap")]), pages);
    }
}
