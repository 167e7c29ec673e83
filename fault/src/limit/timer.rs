//! `limit/timer`: what the act of measuring costs.
//!
//! Three series: `pair`, the empty timer pair that latencies have subtracted; `record`, one sample
//! into the histogram; `sample`, everything that the harness adds to a latency sample, measured by
//! running the latency loop over nothing. Inside the clock of `record` and `sample` are those loops
//! and nothing else.

use hdrhistogram::Histogram;
use pagelab_bench::{Described, Error, Meter, Trial, Witness};
use pagelab_record::{Unit, latency, vocabulary::Check};
use pagelab_sys::{
    loops::{TouchList, sample_nothing},
    time::{Clock, empty_pairs, usage},
};

use super::Only;

/// Samples in one repetition: the histogram and the values stay in the caches, as they do in use.
const SAMPLES: usize = 4096;

/// What it is called.
pub const NAME: &str = TIMER.about.name;

/// See the module's documentation.
pub const TIMER: Described<Only> = Described::new(
    "limit/timer",
    "what measuring costs: the empty timer pair, recording, the whole of a sample",
    &[],
    &[],
    |_| Only(|| Box::new(Cost::new())),
)
.limit();

impl Cost {
    fn new() -> Self {
        let mut rng = fastrand::Rng::with_seed(1);
        // From a cache hit to a slow huge fault, evenly over the magnitudes.
        let values = (0..SAMPLES)
            .map(|_| {
                let magnitude = rng.u32(4..24);
                rng.u64(1..1 << magnitude)
            })
            .collect();
        let nothing = TouchList::new((0..SAMPLES).map(|_| (0, false)));
        let (histogram, samples) = (latency::empty(), vec![1; SAMPLES]);
        Self { histogram, values, nothing, samples, own_faults: 0 }
    }
}

struct Cost {
    histogram: Histogram<u64>,
    values: Vec<u64>,
    nothing: TouchList,
    samples: Vec<u64>,
    own_faults: u64,
}

impl Trial for Cost {
    fn counts_faults(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Self { histogram, values, nothing, samples, own_faults } = self;
        histogram.reset();
        if let Clock::Tsc(_) = meter.clock() {
            for ticks in empty_pairs() {
                histogram.saturating_record(ticks);
            }
            meter.distribution("pair", Unit::Ticks, 0, histogram);
        } else {
            sample_nothing(nothing, meter.clock(), samples);
            for ns in &*samples {
                histogram.saturating_record(*ns);
            }
            meter.distribution("pair", Unit::Ns, 0, histogram);
        }
        let ops = values.len() as u64;
        let recording = meter.time("record", ops, 0, || {
            for value in &*values {
                histogram.saturating_record(*value);
            }
        });
        let before = usage::thread();
        let span = meter.clock().span(|| {
            sample_nothing(nothing, meter.clock(), samples);
        });
        let sampling = usage::thread().since(before).minor_faults;
        let ns = meter.clock().elapsed_ns(span);
        meter.observe("sample", meter.elapsed(), ops, 0, ns);
        *own_faults = recording + sampling;
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        witness.expect(Check::FaultsOfHarness, 0, self.own_faults);
        Ok(())
    }
}
