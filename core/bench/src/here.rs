//! A case in the process that asks: for a library, which is no program that could start itself.
//!
//! The one idea: the record is that of a process of its own. What such a process is for is missing
//! here: nobody outlives a crash, and times are those of a process that has a life of its own.

use pagelab_record::{Outcome, Record};

use crate::{
    guards::Guards,
    inputs::{Inputs, Stopped},
    measure::measure,
    partial::Partial,
    plan::Planned,
    request::{Answer, came},
    runner::Runner,
};

impl Runner {
    /// Runs one case in this process, once; needs that a knob would meet are met only by a runner
    /// that has taken the knobs.
    pub fn run_here(&self, planned: &Planned) -> Record {
        let failed = |reason| self.record(planned, Outcome::Failed { reason });
        if let Some(skipped) = self.meet_needs(planned, &mut Guards::default()) {
            return self.record(planned, skipped);
        }
        let loaded = match self.load(planned, &mut |_| ()) {
            Ok(loaded) => loaded,
            Err(Stopped::Interrupted) => return failed("interrupted".to_owned()),
            Err(Stopped::Failed(reason)) => return failed(reason),
        };
        let inputs = match Inputs::here(loaded.as_deref()) {
            Ok(inputs) => inputs,
            Err(reason) => return failed(reason),
        };
        match came(measure(planned.workload, &planned.case, &planned.method, 0, inputs)) {
            Answer::Settled(outcome) => self.record(planned, outcome),
            Answer::Measured { measured, constants } => {
                let mut partial = Partial::default();
                partial.add(*measured, constants);
                if let Some(loaded) = loaded {
                    partial.warn(&loaded.warnings);
                }
                self.conclude(planned, partial)
            }
        }
    }
}
