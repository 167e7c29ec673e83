//! The arm that measures as the latency note did: each sample in a process of its own, a read
//! between two bare readings of the counter, nothing subtracted.
//!
//! It is there to be compared with; it proves nothing but how many samples it took.

use pagelab_bench::{Error, Meter, Trial, Witness};
use pagelab_record::{Unit, vocabulary::Check};
use pagelab_sys::{loops::note, process::crew, time::Clock};

/// Samples of the published note: runs of its program.
const NOTE_SAMPLES: usize = 100;

/// The arm that measures as the latency note did: each sample in a process of its own.
#[derive(Debug, Default)]
pub(super) struct Note {
    ticks: Vec<u64>,
}

impl Trial for Note {
    fn arm(&self) -> &'static str {
        "as-published"
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Clock::Tsc(tsc) = *meter.clock() else {
            return Err(Error::Case("the published method reads the time stamp counter".into()));
        };
        self.ticks.clear();
        for _ in 0..NOTE_SAMPLES {
            let sample = crew::processes(1, |_| {
                [note::sample_ticks().unwrap_or_else(|error| panic!("{error}"))]
            })?;
            self.ticks.push(sample[0][0]);
        }
        let ns = self.ticks.iter().map(|ticks| tsc.ns(*ticks)).collect();
        meter.observe_all("fault", Unit::Ns, ns);
        meter.observe_all("fault-ticks", Unit::Ticks, self.ticks.clone());
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let taken = self.ticks.len() as u64;
        witness.expect(Check::SamplesInProcesses, NOTE_SAMPLES as u64, taken);
        Ok(())
    }
}
