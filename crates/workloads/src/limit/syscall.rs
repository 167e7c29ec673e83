//! `limit/syscall`: the cheapest way into the kernel and back.
//!
//! `getppid`, a thousand times inside one clock pair. A page fault enters the kernel by an
//! exception, which is dearer; this is the floor under everything that enters at all.

use pagelab_bench::{About, Error, Experiment, Inputs, Meter, Trial, Witness, Workload};
use pagelab_record::Case;
use pagelab_sys::loops::bulk::cheapest_syscalls;

const CALLS: u64 = 1000;

/// See the module's documentation.
#[derive(Debug)]
pub struct Syscall;

impl Workload for Syscall {
    fn about(&self) -> About {
        const SUMMARY: &str = "the cheapest system call: into the kernel and back";
        About { is_limit: true, ..About::new("limit/syscall", SUMMARY, &[]) }
    }

    fn read(&self, _: &Case) -> Box<dyn Experiment> {
        Box::new(Self)
    }
}

impl Experiment for Syscall {
    fn footprint(&self) -> u64 {
        1 << 20
    }

    fn prepare(&self, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        super::pin()?;
        Ok(vec![Box::new(Calls { own_faults: 0 })])
    }
}

struct Calls {
    own_faults: u64,
}

impl Trial for Calls {
    fn arm(&self) -> &'static str {
        "pagelab"
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        self.own_faults = meter.time("getppid", CALLS, 0, || cheapest_syscalls(CALLS));
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        witness.expect("page faults of the loop", 0, self.own_faults);
        Ok(())
    }
}
