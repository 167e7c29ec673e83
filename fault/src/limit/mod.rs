//! The machine's own ceilings, measured in the same run, so that every result is also a share of
//! what is possible.

pub mod bulk;
pub mod syscall;
pub mod timer;

use pagelab_bench::{Error, Experiment, Inputs, Trial, cpus::stay};
use pagelab_sys::{SysError, machine::Topology};

/// Binds the case's one thread to the CPU that fault cases use too.
fn pin() -> Result<(), SysError> {
    stay(Topology::machine().default_cpu())
}

/// A limit of which nothing can be asked: the trial that it makes.
#[derive(Debug)]
pub struct Only(fn() -> Box<dyn Trial>);

impl Experiment for Only {
    fn footprint(&self) -> u64 {
        1 << 20
    }

    fn prepare(&self, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        pin()?;
        Ok(vec![(self.0)()])
    }
}
