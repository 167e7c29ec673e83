//! The arms of `fault/userfaultfd`: the touches that fault, and the same touches over pages that
//! are present.

use std::{cell::RefCell, rc::Rc};

use pagelab_bench::{Error, Meter, Trial, Witness};
use pagelab_record::{Unit, vocabulary::Check};
use pagelab_sys::{
    loops::TouchList,
    memory::{Residency, Scanner},
    uffd,
};

use super::{
    choice::{Choice, Handler, Way},
    expected::Expected,
    ground::Ground,
    samples::Samples,
    team::{self, Work},
};

/// What both arms share.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) choice: Choice,
    /// What each faulting thread touches, in which order.
    pub(super) lists: Vec<TouchList>,
}

/// The memory of a case: the fault arm makes it anew in each repetition and leaves it to the
/// control.
pub(super) type Shared = Rc<RefCell<Option<Ground>>>;

/// Files what all threads observed.
fn file(setup: &Setup, samples: &[Samples], meter: &mut Meter, (is_control, ns): (bool, u64)) {
    let choice = &setup.choice;
    let unit = if is_control { 0 } else { choice.unit() as u64 };
    for one in samples {
        meter.distribution("fault", Unit::Ns, unit, &one.faults);
        if choice.batch == 1 {
            meter.distribution("fault-pagetable", Unit::Ns, unit, &one.others);
        }
    }
    let (pages, bytes) = ((choice.size / choice.page) as u64, choice.size as u64);
    let bytes = if is_control { 0 } else { bytes };
    meter.observe("touch", meter.elapsed(), pages, bytes, ns);
    meter.observe("batch", meter.elapsed(), pages, bytes, sum(samples, |one| one.total_ns));
}

fn count(samples: &[Samples], witness: &mut Witness) {
    for one in samples {
        witness.count("migrated_samples", one.dropped.migrated);
        witness.count("saturated_samples", one.saturated);
        witness.count("preemptions", one.counted.involuntary_switches);
    }
}

fn sum(samples: &[Samples], of: impl Fn(&Samples) -> u64) -> u64 {
    samples.iter().map(of).sum()
}

/// The arm that faults.
#[derive(Debug)]
pub(super) struct Faults {
    setup: Rc<Setup>,
    ground: Shared,
    scanner: Scanner,
    samples: Vec<Samples>,
    work: Work,
    residency: Residency,
    protected_after: u64,
}

impl Faults {
    pub(super) fn new(setup: Rc<Setup>, ground: Shared) -> Result<Self, Error> {
        let samples = setup.lists.iter().map(|_| Samples::new()).collect();
        Ok(Self {
            setup,
            ground,
            scanner: Scanner::open()?,
            samples,
            work: Work::default(),
            residency: Residency::default(),
            protected_after: 0,
        })
    }
}

impl Trial for Faults {
    fn is_first_touch(&self) -> bool {
        matches!(self.setup.choice.way, Way::Copy | Way::ZeroPageWrite)
    }

    fn reset(&mut self) -> Result<(), Error> {
        // The old one first: two at once would double the footprint.
        self.ground.borrow_mut().take();
        *self.ground.borrow_mut() = Some(Ground::make(&self.setup.choice)?);
        Ok(())
    }

    fn counts_faults(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Setup { choice, lists } = &*self.setup;
        let mut ground = self.ground.borrow_mut();
        let ground = ground.as_mut().expect("reset comes before run");
        let (clock, by_perf) = (meter.clock(), meter.is_warm_up());
        self.work = team::fault(choice, ground, lists, &mut self.samples, clock, by_perf)?;
        // The page table first: what closing does to it is not what the faults did.
        self.residency = self.scanner.scan(&ground.area)?;
        if choice.way.protects() {
            self.protected_after = uffd::write_protected(&ground.area)?;
        }
        ground.close();
        let ns = meter.clock().elapsed_ns(self.work.span);
        file(&self.setup, &self.samples, meter, (false, ns));
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let choice = &self.setup.choice;
        let expected = Expected::of(choice);
        let counts = self.work.counts;
        for (check, expected, observed) in [
            (Check::Messages, expected.messages, counts.messages),
            (Check::MessagesOfStores, expected.written, counts.written),
            (Check::MessagesOfProtection, expected.protected, counts.protected),
            (Check::MessagesOfCache, expected.minor, counts.minor),
            (Check::MessagesStrange, 0, counts.strange),
            (Check::Signals, expected.signals, counts.signals),
            (Check::Poisoned, expected.poisoned, counts.poisoned),
            (Check::FaultsResolved, expected.resolved, counts.resolved),
            (Check::BytesResolved, expected.bytes, counts.bytes),
        ] {
            witness.expect(check, expected, observed);
        }
        let completed = |s: &Samples| s.counted.minor_faults + s.counted.major_faults;
        let completed = sum(&self.samples, completed);
        let expected = expected.of_this_kernel(choice, completed);
        witness.expect(Check::FaultsOfLoopCompleted, expected.completed, completed);
        if let Some(exceptions) = self.samples.iter().map(|s| s.perf).sum::<Option<u64>>() {
            // What the code itself faulted in, run for the first time, is in both counts.
            let claim = "faults of the loop in the warm-up, by perf as by getrusage";
            let uncompleted = expected.exceptions - expected.completed;
            witness.expect_lasting(
                (Check::FaultsOfLoopByPerf, claim),
                completed + uncompleted,
                exceptions,
            );
        }
        let found = self.residency;
        witness.expect(Check::Present, expected.present, found.present);
        witness.expect(Check::Huge, expected.huge, found.huge);
        if let Some(zero) = found.zero {
            witness.expect(Check::ZeroPage, expected.zero, zero);
        }
        let ground = self.ground.borrow();
        let ground = ground.as_ref().expect("run comes before verify");
        if choice.way.protects() {
            witness.expect(
                Check::WriteProtectedBefore,
                expected.protected_before,
                ground.protected,
            );
            witness.expect(Check::WriteProtected, 0, self.protected_after);
        }
        if let Some(differing) = ground.differing(choice) {
            witness.expect(Check::LinesResolved, 0, differing);
        }
        if choice.faulter_cpu(0).is_some() {
            let moved = sum(&self.samples, |s| s.moved_cpu);
            witness.expect(Check::MovedCpu, 0, moved);
        }
        if choice.handler_cpu(0).is_some() {
            witness.expect(Check::HandlerElsewhere, 0, self.work.handlers_elsewhere);
        }
        self.tell(completed, witness);
        Ok(())
    }
}

impl Faults {
    /// What is no claim, because it depends on the kernel or on chance.
    fn tell(&self, completed: u64, witness: &mut Witness) {
        let (choice, counts) = (&self.setup.choice, self.work.counts);
        count(&self.samples, witness);
        witness.count("repetitions", 1);
        witness.count("faults", completed);
        witness.count("faults_major", sum(&self.samples, |s| s.counted.major_faults));
        witness.count("resolving_retries", counts.retries);
        witness.count("resolving_duplicates", counts.duplicates);
        if choice.handler.is_thread() {
            witness.count("handler_faults", self.work.handler_faults);
            let switches = |s: &Samples| s.counted.voluntary_switches;
            witness.count("waits_of_faulting_threads", sum(&self.samples, switches));
        }
        let faults = Expected::of(choice).resolved.max(Expected::of(choice).exceptions);
        let touches = (choice.size / choice.page) as u64;
        witness.set("touches_per_repetition", touches);
        witness.set("samples_per_repetition", faults.min(touches));
        let apart = |list: &TouchList| list.kept_apart() as u64;
        if choice.batch == 1 {
            witness.set("samples_kept_apart", self.setup.lists.iter().map(apart).sum());
        }
        if counts.retries > 0 && choice.handler != Handler::None {
            witness.warn(format!(
                "the address space changed while faults were resolved: {} requests were made again",
                counts.retries
            ));
        }
    }
}

/// The arm that does not fault.
#[derive(Debug)]
pub(super) struct Control {
    setup: Rc<Setup>,
    ground: Shared,
    samples: Vec<Samples>,
}

impl Control {
    pub(super) fn new(setup: Rc<Setup>, ground: Shared) -> Self {
        let samples = setup.lists.iter().map(|_| Samples::new()).collect();
        Self { setup, ground, samples }
    }
}

impl Trial for Control {
    fn arm(&self) -> &'static str {
        "control"
    }

    fn reset(&mut self) -> Result<(), Error> {
        let mut ground = self.ground.borrow_mut();
        let ground = ground.as_mut().expect("the fault arm comes first, in the warm-up");
        // Poisoned pages cannot be touched.
        let is_poisoned = self.setup.choice.way == Way::Poison;
        if is_poisoned { ground.replace(&self.setup.choice) } else { Ok(()) }
    }

    fn counts_faults(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Setup { choice, lists } = &*self.setup;
        let ground = self.ground.borrow();
        let ground = ground.as_ref().expect("the fault arm comes first, in the warm-up");
        let span = team::control(choice, ground, lists, &mut self.samples, meter.clock())?;
        // Nothing is set apart: all its samples are of one kind.
        for one in &mut self.samples {
            one.faults.add(&one.others).expect("all histograms have one shape");
            one.others.reset();
        }
        let ns = meter.clock().elapsed_ns(span);
        file(&self.setup, &self.samples, meter, (true, ns));
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let faults = sum(&self.samples, |s| s.counted.minor_faults + s.counted.major_faults);
        witness.expect(Check::FaultsOfLoopCompleted, 0, faults);
        count(&self.samples, witness);
        Ok(())
    }
}
