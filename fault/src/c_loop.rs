//! The arm of `fault/throughput` that is a minimal loop in C.
//!
//! It maps, touches and releases as a kernel developer would on one page, with its own clock; its
//! ratio to our loop says what the harness costs. It proves its faults and nothing else.

use pagelab_bench::{Error, Meter, Trial, Witness};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{loops::twin, time::usage};

use pagelab_mappings::Plan;

/// The arm in C.
#[derive(Debug)]
pub(super) struct Twin {
    bytes: u64,
    page: u64,
    step: u64,
    minor: u64,
}

impl Twin {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            bytes: plan.space.bytes(),
            page: plan.space.page.bytes(),
            step: plan.stride.step as u64,
            minor: 0,
        }
    }
}

impl Trial for Twin {
    fn arm(&self) -> &'static str {
        "c"
    }

    fn is_first_touch(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let before = usage::thread();
        // Two MiB of alignment for both page sizes: page-table pages are then the same in number.
        let round = twin::round(self.bytes, self.step, 2 << 20, self.page > 4096)?;
        self.minor = usage::thread().since(before).minor_faults;
        let touches = self.bytes / self.step;
        for (name, ops, ns) in [
            ("map", 1, round.map_ns),
            ("touch", touches, round.touch_ns),
            ("release", 1, round.release_ns),
        ] {
            meter.observe(name, meter.elapsed(), ops, self.bytes, ns);
        }
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let expected = self.bytes / self.page.max(self.step);
        witness.expect(Check::FaultsOfCRound, expected, self.minor);
        Ok(())
    }
}
