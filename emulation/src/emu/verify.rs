//! `emu/verify`: whether every emulated memory returns, for every load, what was stored.
//!
//! Every backend is an arm; each replays the trace once beside a naive memory, which does one byte
//! after the other, and every load is asked of both. Nothing is timed.

use std::{cell::Cell, os::unix::fs::FileExt, rc::Rc};

use pagelab_bench::{
    Described, Error, Experiment, Inputs, Kind, Meter, Need, Needed, Over, Param, Refusal, Trial,
    Witness, inputs::Supplied, needs::Memory,
};
use pagelab_emu::{
    Policy,
    verify::{Verdict, Verifier},
};
use pagelab_record::vocabulary::{Check, counter};
use pagelab_sys::process::Pulse;

use super::{
    arm::{Arm, Backends},
    player::image,
};
use crate::trace::{Medium, Trace, params as trace};

const PARAMS: &[Param] = &[
    trace::TRACE,
    trace::OPS,
    trace::SEED,
    trace::IMAGE,
    Param::arms("backend", Kind::Own(&Backends), super::ALL)
        .help("memories to verify, each against the naive one"),
];

/// A case, read.
#[derive(Debug)]
pub struct Asked {
    trace: trace::Asked,
    arms: Vec<Arm>,
}

/// What is turned away beside what concerns the trace.
const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.arms.iter().any(|arm| !arm.backend.remembers),
        "backend=noop",
        "it forgets on purpose: there is nothing to verify",
    ),
    Refusal::new(
        |asked| Arm::has_twins(&asked.arms),
        "a backend named twice",
        "one verdict is enough",
    ),
];

/// Bytes of pages that a typical guest has, in both memories.
const PAGES_BYTES: u64 = 128 << 20;

/// Bytes that are replayed at once.
const PIECE: usize = 1 << 20;

/// What it is called.
pub(crate) const NAME: &str = VERIFY.about.name;

/// See the module's documentation.
pub const VERIFY: Described<Asked> = Described {
    resolve: |case| Arm::resolve(trace::resolve(case), |backend| backend.remembers),
    refusals: REFUSALS,
    parts: &[&Over { of: |asked: &Asked| &asked.trace, tables: trace::OVER_IMAGES }],
    ..Described::new(
        "emu/verify",
        "every emulated memory beside a naive one, load by load",
        PARAMS,
        &[("ops", "2k")],
        |case| Asked { trace: trace::Asked::of(case), arms: Arm::of(case) },
    )
    .one_pass()
};

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        vec![Memory(self.footprint()).needed()]
    }

    fn footprint(&self) -> u64 {
        let made = if self.trace.source.is_made() { self.trace.bytes() } else { 0 };
        made.saturating_add(PAGES_BYTES)
    }

    fn seconds(&self) -> f64 {
        self.trace.bytes() as f64 / 11.0 * 60.0 * self.arms.len() as f64 / 1e9 + 0.002
    }

    fn supply(&self) -> Option<Supplied> {
        Some(Rc::new(self.trace.wanted(Medium::Memory)))
    }

    fn prepare(&self, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let trace = Trace::of(inputs)?;
        let image = Rc::new(image(&trace)?);
        let (arms, left_out) = Arm::fitting(self.arms.clone())?;
        let left_out = Rc::new(left_out);
        inputs.pulse.begin(trace.facts.tally.ops.saturating_mul(arms.len() as u64));
        let done = Rc::new(Cell::new(0));
        let pass = |arm: Arm| -> Box<dyn Trial> {
            Box::new(Pass {
                name: arm.to_string(),
                arm,
                trace: Rc::clone(&trace),
                image: Rc::clone(&image),
                pulse: Rc::clone(&inputs.pulse),
                done: Rc::clone(&done),
                left_out: Rc::clone(&left_out),
                verdict: Verdict::default(),
                bytes: 0,
            })
        };
        Ok(arms.into_iter().map(pass).collect())
    }
}

struct Pass {
    name: String,
    arm: Arm,
    trace: Rc<Trace>,
    image: Rc<Vec<(u64, Vec<u8>)>>,
    pulse: Rc<Pulse>,
    /// Operations of all arms so far.
    done: Rc<Cell<u64>>,
    left_out: Rc<Vec<String>>,
    verdict: Verdict,
    bytes: u64,
}

impl Pass {
    fn failed(&self, why: impl std::fmt::Display) -> Error {
        Error::Case(format!("{} with {}: {why}", self.trace.facts.name, self.name))
    }
}

impl Trial for Pass {
    fn arm(&self) -> &str {
        &self.name
    }

    fn run(&mut self, _: &mut Meter) -> Result<(), Error> {
        let policy = Policy::default();
        let mut memory = (self.arm.backend.make)(&policy).map_err(|unfit| self.failed(unfit))?;
        let mut verifier = Verifier::new(&policy);
        for (addr, bytes) in &*self.image {
            memory.preload(*addr, bytes).map_err(|fault| self.failed(fault))?;
            verifier.preload(*addr, bytes).map_err(|fault| self.failed(fault))?;
        }
        let end = self.trace.facts.tally.bytes;
        let mut buffer = vec![0; PIECE];
        let mut at = 0;
        while at < end {
            let wanted = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
            let piece = &mut buffer[..wanted];
            self.trace.file.read_exact_at(piece, at).map_err(|error| self.failed(error))?;
            let before = verifier.verdict().ops;
            let taken = memory
                .verify(piece, at, self.arm.decoder, &mut verifier)
                .map_err(|halt| self.failed(halt))?;
            if taken == 0 {
                break;
            }
            at += taken as u64;
            let ops = verifier.verdict().ops - before;
            self.done.set(self.done.get() + ops);
            self.pulse.advance(ops, self.done.get());
        }
        self.bytes = at;
        self.verdict = verifier.verdict().clone();
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let tally = self.trace.facts.tally;
        witness.expect(Check::LoadsThatDiffer, 0, self.verdict.differing);
        witness.expect(Check::TraceOperations, tally.ops, self.verdict.ops);
        witness.expect(Check::TraceBytes, tally.bytes, self.bytes);
        self.left_out.iter().for_each(|warning| witness.warn(warning.clone()));
        if let Some(first) = &self.verdict.first {
            witness.warn(format!("{}: {first}", self.name));
        }
        witness.set(counter::TRACE_OPS, tally.ops);
        witness.set(counter::TRACE_BYTES, tally.bytes);
        witness.set("trace_digest", tally.digest);
        witness.set(counter::LOADS, self.verdict.loads);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_bench::plan::complete;

    #[test]
    fn every_memory_is_verified_that_remembers() {
        let case = complete(&VERIFY, &[]).unwrap();
        let arms = Arm::of(&case);
        assert!(arms.len() > 10 && arms.iter().all(|arm| arm.backend.remembers));
        assert!(complete(&VERIFY, &[("backend", "base,noop")]).is_err());
        assert!(complete(&VERIFY, &[("backend", "tlb,all,tlb/safe")]).is_ok());
    }
}
