//! `limit/syscall`: the cheapest way into the kernel and back.
//!
//! `getppid`, a thousand times inside one clock pair. A page fault enters the kernel by an
//! exception, which is dearer; this is the floor under everything that enters at all.

use pagelab_bench::{Described, Error, Meter, Trial, Witness};
use pagelab_record::vocabulary::Check;
use pagelab_sys::loops::bulk::cheapest_syscalls;

use super::Only;

const CALLS: u64 = 1000;

/// What it is called.
pub const NAME: &str = SYSCALL.about.name;

/// See the module's documentation.
pub const SYSCALL: Described<Only> = Described::new(
    "limit/syscall",
    "the cheapest system call: into the kernel and back",
    &[],
    &[],
    |_| Only(|| Box::new(Calls { own_faults: 0 })),
)
.limit();

struct Calls {
    own_faults: u64,
}

impl Trial for Calls {
    fn counts_faults(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        self.own_faults = meter.time("getppid", CALLS, 0, || cheapest_syscalls(CALLS));
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        witness.expect(Check::FaultsOfLoop, 0, self.own_faults);
        Ok(())
    }
}
