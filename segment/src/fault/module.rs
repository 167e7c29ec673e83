//! A segment of the kernel module: what was published. Each round maps it, faults all of it in, and
//! gives it back, so that the next one faults again and the kernel clears.

use pagelab_bench::{Error, Meter, Trial, Witness};
use pagelab_record::vocabulary::{Check, arm_counter, counter::FAULTS_PER_REPETITION};
use pagelab_sys::memtype::Segment;

use super::{
    asked::{Arm, Asked, Lie, Place},
    paid::{Paid, Timed, Watch},
    proof::{self, Frames},
};
use pagelab_mappings::{
    outcome::{Phase, phase, try_phase},
    populate::EACH,
};

/// Rounds over a segment of the module.
#[derive(Debug)]
pub(super) struct Module {
    arm: Arm,
    place: Place,
    lie: Lie,
    segment: Option<Segment>,
    watch: Watch,
    latest: Latest,
}

/// What was seen of a round.
#[derive(Debug, Clone, Copy, Default)]
struct Latest {
    touch: Phase,
    again: u64,
    not_zero: u64,
    frames: Frames,
}

impl Module {
    pub(super) fn new(asked: &Asked, arm: Arm) -> Self {
        Self {
            arm,
            place: asked.place(arm),
            lie: asked.lie,
            segment: None,
            watch: Watch::new(),
            latest: Latest::default(),
        }
    }
}

impl Trial for Module {
    fn arm(&self) -> &'static str {
        self.arm.name()
    }

    fn counts_faults(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        self.watch.begin();
        let (clock, is_first) = (meter.clock(), meter.is_first());
        let mut paid = Paid::default();
        if is_first {
            self.segment = None;
            let mut made = None;
            let setup = phase(clock, &mut || made = Some(self.place.of_module()));
            self.segment = Some(made.expect("the phase ran")?);
            paid.setup = Some(Timed::of(&setup, clock));
        }
        let segment = self.segment.as_ref().expect("the first round makes it");
        let place = Place { backing: segment.backing(self.place.skew), ..self.place };
        let (bytes, mut latest) = (place.bytes, Latest::default());
        let mut area = place.reserve()?;
        area.open()?;
        let map = try_phase(clock, || area.map(false))?;
        phase(clock, &mut || area.touch(0, 0, EACH));
        latest.touch = phase(clock, &mut || area.touch(0, bytes, EACH));
        latest.not_zero = proof::not_zero(&area);
        latest.again = phase(clock, &mut || area.touch(0, bytes, EACH)).minor;
        latest.frames = Frames::of(segment, &area.ranges(), &place)?;
        proof::mark(&area);
        let mut forgotten = Ok(());
        let release = try_phase(clock, || {
            area.release()?;
            if self.lie != Lie::Unzeroed {
                forgotten = segment.forget(0, (self.place.skew + bytes) as u64);
            }
            Ok(())
        })?;
        forgotten?;
        (paid.map, paid.touch) = (Timed::of(&map, clock), Timed::of(&latest.touch, clock));
        paid.release = Timed::of(&release, clock);
        let spent_ns = self.watch.spent_ns();
        paid.file(bytes as u64, spent_ns, meter);
        self.latest = latest;
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let Latest { touch, again, not_zero, frames } = self.latest;
        let leaves: u64 = self.place.counts().iter().sum();
        witness.expect(Check::FaultsOfSegmentRound, leaves, touch.minor);
        witness.expect(Check::FaultsOfControl, 0, again);
        witness.expect(Check::MajorFaults, 0, touch.major);
        witness.expect(Check::MarkedWords, 0, not_zero);
        frames.testify(witness);
        let counter = arm_counter(FAULTS_PER_REPETITION, self.arm.name());
        witness.set(&counter, touch.minor);
        witness.set("words_marked", proof::words(self.place.bytes));
        Ok(())
    }
}
