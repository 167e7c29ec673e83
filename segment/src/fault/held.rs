//! A segment of ours: mapped once, cleared when it was given back, taken again without a fault.

use std::sync::Arc;

use pagelab_bench::{Error, Inputs, Meter, Trial, Witness};
use pagelab_record::vocabulary::{
    Check, arm_counter,
    counter::FAULTS_PER_REPETITION,
    series::{CLEAR, CONTROL},
};
use pagelab_sys::{Area, loops::bulk::Store, memory::Scanner};

use super::{
    asked::{Arm, Asked, Lie, Place, Zeroing},
    cleaner::{Cleaner, fastest},
    paid::{Paid, Timed, Watch},
    proof::{self, Found},
};
use pagelab_mappings::{
    outcome::{Phase, phase},
    populate::EACH,
};

/// Rounds over a segment.
#[derive(Debug)]
pub(super) struct Held {
    arm: Arm,
    place: Place,
    zeroing: Zeroing,
    lie: Lie,
    store: Store,
    /// What filling its pool has taken.
    reserve_ns: Option<u64>,
    helper_cpu: Option<usize>,
    scanner: Scanner,
    watch: Watch,
    segment: Option<Segment>,
    latest: Latest,
}

/// The memory, and what is to be known of it until it is taken again.
#[derive(Debug)]
struct Segment {
    area: Arc<Area>,
    cleaner: Option<Cleaner>,
    /// Whether it holds what the round before left.
    is_used: bool,
    /// What clearing it has taken since it was given back.
    cleared: Option<Timed>,
}

/// What was seen of a round.
#[derive(Debug, Clone, Copy, Default)]
struct Latest {
    is_first: bool,
    populate: Phase,
    /// Faults of the program outside the touch, and of the helper.
    beside: u64,
    touch: Phase,
    control: u64,
    not_zero: u64,
    found: Found,
}

impl Held {
    pub(super) fn new(asked: &Asked, arm: Arm, inputs: &Inputs) -> Result<Self, Error> {
        let place = asked.place(arm);
        Ok(Self {
            arm,
            place,
            zeroing: asked.zeroing,
            lie: asked.lie,
            store: fastest(place.bytes)?,
            reserve_ns: (place.pooled() > 0).then_some(inputs.spent_ns),
            helper_cpu: asked.cpus.of_workers(2)[1],
            scanner: Scanner::open()?,
            watch: Watch::new(),
            segment: None,
            latest: Latest::default(),
        })
    }

    /// Reserves and maps the segment, and starts who clears it.
    fn set_up(&self) -> Result<Segment, Error> {
        let area = Arc::new(self.place.mapped()?);
        let cleaner = match self.zeroing {
            Zeroing::Release | Zeroing::Ahead => Some(Cleaner::start(self.helper_cpu, self.store)?),
            Zeroing::Fault => None,
        };
        Ok(Segment { area, cleaner, is_used: false, cleared: None })
    }

    /// A new segment, whichever there was; with what setting it up took, and making it present.
    fn begin(&mut self, meter: &Meter) -> Result<(Timed, Phase), Error> {
        self.segment = None;
        let (clock, mut made) = (meter.clock(), None);
        let setup = phase(clock, &mut || made = Some(self.set_up()));
        let segment = made.expect("the phase ran")?;
        let mut populate = Phase::default();
        let mut timed = Timed::of(&setup, clock);
        if self.zeroing == Zeroing::Ahead {
            populate = phase(clock, &mut || segment.area.touch(0, self.place.bytes, EACH));
            timed = timed.and(Timed::of(&populate, clock));
        }
        self.segment = Some(segment);
        Ok((timed, populate))
    }
}

impl Trial for Held {
    fn arm(&self) -> &'static str {
        self.arm.name()
    }

    fn is_first_touch(&self) -> bool {
        // Later rounds take no memory from anybody, and a page of the pool stays there.
        self.latest.is_first && self.place.pooled() << 12 < self.place.bytes as u64
    }

    fn counts_faults(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        self.watch.begin();
        let mut latest = Latest { is_first: meter.is_first(), ..Latest::default() };
        let mut paid = Paid::default();
        if latest.is_first {
            let (setup, populate) = self.begin(meter)?;
            (paid.setup, latest.populate) = (Some(setup), populate);
            paid.reserve_ns = self.reserve_ns;
        }
        let (bytes, store, lie) = (self.place.bytes, self.store, self.lie);
        let segment = self.segment.as_mut().expect("the first round makes it");
        let area = Arc::clone(&segment.area);
        let clock = meter.clock();
        let clears = lie != Lie::Unzeroed;

        // Taking it: what is used is cleared first, and then the address is the answer.
        if segment.is_used && self.zeroing == Zeroing::Fault {
            let zero = phase(clock, &mut || {
                if clears {
                    area.clear(0, bytes, store);
                }
            });
            latest.beside += zero.minor;
            segment.cleared = Some(Timed::of(&zero, clock));
        }
        paid.zero = segment.cleared.take();
        let mut taken = 0;
        let map = phase(clock, &mut || taken = std::hint::black_box(area.base()));
        assert_eq!(taken, area.base(), "the segment is where it was");
        latest.beside += map.minor;
        if !latest.is_first {
            latest.not_zero = proof::not_zero(&area);
        }
        // The loop's code and stack are there, and so is the first call of a phase.
        phase(clock, &mut || area.touch(0, 0, EACH));
        latest.touch = phase(clock, &mut || area.touch(0, bytes, EACH));
        if latest.is_first {
            latest.not_zero = proof::not_zero(&area);
        }
        latest.found = Found::of(&self.scanner.scan(&area)?, &area.ranges(), &self.place)?;
        let clear = phase(clock, &mut || area.clear(0, bytes, store));
        let control = phase(clock, &mut || area.touch(0, bytes, EACH));
        latest.control = control.minor;
        proof::mark(&area);
        let release = phase(clock, &mut || {
            if let Some(cleaner) = segment.cleaner.as_ref().filter(|_| clears) {
                cleaner.give(&area);
            }
        });
        latest.beside += release.minor;
        segment.is_used = true;
        if let Some(cleaner) = segment.cleaner.as_ref().filter(|_| clears) {
            let cleared = cleaner.wait();
            latest.beside += cleared.minor;
            segment.cleared = Some(Timed::of_raw(&cleared));
        }
        (paid.map, paid.touch) = (Timed::of(&map, clock), Timed::of(&latest.touch, clock));
        paid.release = Timed::of(&release, clock);
        let (clear, control) = (Timed::of(&clear, clock), Timed::of(&control, clock));
        let spent_ns = self.watch.spent_ns();
        let bytes = bytes as u64;
        paid.file(bytes, spent_ns, meter);
        clear.file(CLEAR, (1, bytes), meter);
        control.file(CONTROL, (bytes / 4096, bytes), meter);
        self.latest = latest;
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let Latest { is_first, populate, beside, touch, control, not_zero, found } = self.latest;
        let leaves: u64 = self.place.counts().iter().sum();
        let is_ahead = self.zeroing == Zeroing::Ahead;
        if is_first {
            if is_ahead {
                witness.expect(Check::FaultsOfSegmentAhead, leaves, populate.minor);
            }
            let expected = if is_ahead { 0 } else { leaves };
            witness.expect(Check::FaultsOfSegmentFirst, expected, touch.minor);
            let counter = arm_counter(FAULTS_PER_REPETITION, self.arm.name());
            witness.set(&counter, populate.minor + touch.minor);
        } else {
            witness.expect(Check::FaultsOfSegmentAgain, 0, touch.minor);
        }
        witness.expect(Check::FaultsBesideSegment, 0, beside);
        witness.expect(Check::FaultsOfControl, 0, control);
        witness.expect(Check::MajorFaults, 0, touch.major);
        witness.expect(Check::MarkedWords, 0, not_zero);
        found.testify(&self.place, witness);
        witness.set("words_marked", proof::words(self.place.bytes));
        witness.set("clears_around_the_caches", u64::from(self.store == Store::NonTemporal));
        Ok(())
    }
}
