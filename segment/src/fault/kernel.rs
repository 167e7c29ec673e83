//! The arms without a segment: each round maps memory of its own, as `fault/throughput` does.

use pagelab_bench::{Error, Inputs, Meter, Trial, Witness};
use pagelab_record::vocabulary::{
    arm_counter,
    counter::FAULTS_PER_REPETITION,
    series::{ALL, PROCESS},
};

use super::{
    asked::{Arm, Asked},
    paid::{Watch, file_sums},
};
use pagelab_mappings::{Plan, Populate, Rounds, workers::stages as stages_of};

/// A round of base pages or of huge pages.
#[derive(Debug)]
pub(super) struct Kernel {
    arm: Arm,
    rounds: Rounds,
    bytes: u64,
    watch: Watch,
}

impl Kernel {
    pub(super) fn new(asked: &Asked, arm: Arm, inputs: &Inputs) -> Result<Self, Error> {
        let ordinary = asked.ordinary(arm);
        let stages = stages_of(&ordinary, inputs)?;
        let plan = Plan {
            space: ordinary.space(1),
            populate: Populate::Touch,
            stride: ordinary.stride(),
            access: ordinary.access(),
            list: None,
            fifo: false,
            by_perf: false,
            threads: 1,
            cpus: asked.cpus.of_workers(1),
        };
        let rounds = Rounds::new(plan, stages, true);
        Ok(Self { arm, rounds, bytes: asked.size, watch: Watch::new() })
    }
}

impl Trial for Kernel {
    fn arm(&self) -> &'static str {
        self.arm.name()
    }

    fn is_first_touch(&self) -> bool {
        self.rounds.is_first_touch()
    }

    fn counts_faults(&self) -> bool {
        true
    }

    fn set_cold_apart(&mut self, meter: &mut Meter) {
        self.rounds.set_cold_apart(meter);
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        self.watch.begin();
        self.rounds.run(meter)?;
        let times = (self.rounds.cpu_ns(), self.watch.spent_ns());
        file_sums(PROCESS, ALL, times, self.bytes, meter);
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let counter = arm_counter(FAULTS_PER_REPETITION, self.arm.name());
        witness.set(&counter, self.rounds.faults());
        self.rounds.verify(witness)
    }
}
