//! The arms of `fault/latency`: the one that faults, and its control.
//!
//! The one idea: the fault arm makes fresh memory for each repetition, brings it into the state of
//! its kind, and leaves it, all present, to the control. It proves by counters and page table that
//! what was timed is what the case says; the control proves that the loop itself takes no fault.

use std::{cell::RefCell, rc::Rc};

use pagelab_bench::{Error, Meter, Trial, Witness};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    Area,
    counts::{Counters, wait_for_reporting},
    memory::{Residency, Scanner, locked::Everything},
    process::Fifo,
    time::{Clock, Span},
};

use super::{
    ballast::Ballast,
    samples::{Host, Samples, Setup},
};
use pagelab_mappings::{
    Expectation, Populate, Stage,
    populate::{self, Present, locked_by, touch_all},
    sorted::HostLevel,
};

/// The area of a case: the fault arm makes a fresh one in each repetition and leaves it, all
/// present, to the control.
pub(super) type SharedArea = Rc<RefCell<Option<Area>>>;

/// The arm that faults.
#[derive(Debug)]
pub(super) struct Faults {
    setup: Setup,
    stage: Box<dyn Stage>,
    host: Option<HostLevel>,
    cooled: bool,
    ballast: Ballast,
    scanner: Scanner,
    samples: Samples,
    area: SharedArea,
    residency: Residency,
    locked: u64,
    moved: Counters,
}

impl Faults {
    pub(super) fn new(
        setup: Setup,
        stage: Box<dyn Stage>,
        area: SharedArea,
    ) -> Result<Self, Error> {
        let host = (setup.host != Host::None).then(|| HostLevel::of(setup.space.page.bytes()));
        Ok(Self {
            host,
            cooled: false,
            ballast: Ballast::default(),
            scanner: Scanner::open()?,
            samples: Samples::new(&setup),
            setup,
            stage,
            area,
            residency: Residency::default(),
            locked: 0,
            moved: Counters::default(),
        })
    }
}

impl Trial for Faults {
    fn is_first_touch(&self) -> bool {
        // A cold case is about memory that was given back: nothing more of it spoils a repetition.
        self.setup.host != Host::Cold && self.setup.space.takes_free_memory()
    }

    fn set_cold_apart(&mut self, meter: &mut Meter) {
        // The samples of a host's fault are set apart in every repetition.
        if self.host.is_none() {
            meter.all_cold();
        }
    }

    fn was_reclaimed(&mut self) -> bool {
        let major = self.samples.counted.major_faults;
        self.stage.was_reclaimed(major, self.residency.present)
    }

    fn reset(&mut self) -> Result<(), Error> {
        // The old one first: two at once would double the footprint.
        let had_area = self.area.borrow_mut().take().is_some();
        self.stage.renew()?;
        if self.setup.host == Host::Cold {
            self.let_it_cool(had_area)?;
        }
        if self.setup.populate == Populate::Touch {
            self.fresh(None)?;
        }
        Ok(())
    }

    fn counts_faults(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let folio_kib = self.setup.space.page.bytes() / 1024;
        let before = Counters::read(Some(folio_kib));
        // A call that populates is part of what is measured.
        let mut everything = None;
        if self.setup.populate != Populate::Touch {
            let fifo = if self.setup.fifo { Some(Fifo::enter()?) } else { None };
            let (span, locked) = self.fresh(Some(meter.clock()))?;
            drop(fifo);
            everything = locked;
            if let Some(span) = span {
                let (pages, ns) = (self.setup.list.len() as u64, meter.clock().elapsed_ns(span));
                meter.observe("call", meter.elapsed(), pages, self.setup.space.bytes(), ns);
            }
        }
        let area = self.area.borrow();
        let area = area.as_ref().expect("it was made");
        self.samples.take(area, &self.setup, Some(self.stage.as_mut()), meter)?;
        self.moved = Counters::read(Some(folio_kib)).since(&before);
        self.residency = self.scanner.scan(area)?;
        self.stage.inspect(area, &self.residency)?;
        self.locked = locked_by(self.setup.populate)?;
        drop(everything);
        self.stage.done()?;
        let bytes = self.setup.space.page.bytes();
        if self.setup.populate.touches_fault() {
            let names = (self.stage.series(), self.stage.others());
            self.samples.set_aside(&self.setup, self.stage.as_ref(), meter);
            self.samples.file(names, &self.setup, self.host.as_mut(), meter, bytes);
        } else {
            self.samples.file_touches(&self.setup, meter);
        }
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let pages = self.setup.list.len() as u64;
        let Setup { populate, space, .. } = &self.setup;
        let expected = populate.expect(space, self.stage.expect(space.expectation(space.once())));
        self.samples.testify(expected, self.setup.is_pinned, witness);
        expected.testify(&self.residency, witness);
        if self.setup.host == Host::Cold && self.cooled {
            witness.expect_at_least(
                Check::BackedByHost,
                pages.div_ceil(2),
                self.samples.sorted.cold.len(),
            );
        }
        populate::testify(*populate, space.bytes(), self.locked, witness);
        if let Some(walk) = &self.setup.walk {
            witness.count("walked_bytes", walk.bytes() as u64 * pages);
        }
        self.stage.verify(witness)?;
        expected.testify_folios(self.setup.space.page, &self.moved, witness);
        let counted = self.samples.counted;
        witness.count("faults", counted.minor_faults + counted.major_faults);
        witness.count("repetitions", 1);
        witness.set("samples_per_repetition", pages);
        witness.set("samples_kept_apart", self.setup.list.kept_apart() as u64);
        for (name, by) in self.moved.iter().filter(|(_, by)| *by > 0) {
            witness.count(&format!("machine_{name}"), by);
        }
        Ok(())
    }
}

impl Faults {
    /// Waits until the host has taken back what is free, the former area included. Where there was
    /// none, memory is touched that the host backs, so that the samples show what warm is.
    fn let_it_cool(&mut self, had_area: bool) -> Result<(), Error> {
        /// Seconds.
        const PATIENCE: u64 = 20;
        self.cooled = had_area;
        if had_area {
            wait_for_reporting(PATIENCE);
            self.ballast.take(&self.setup.space)?;
        } else {
            touch_all(&Populate::Touch.mapped(&self.setup.space, None)?.area);
        }
        Ok(())
    }

    /// Makes the area of this repetition; returns the span of the call that populated it, and what
    /// is locked until the touches are over.
    fn fresh(
        &mut self,
        clock: Option<&Clock>,
    ) -> Result<(Option<Span>, Option<Everything>), Error> {
        let Setup { populate, space, .. } = &self.setup;
        let Present { mut area, span, everything } = populate.mapped(space, clock)?;
        self.stage.ready(&mut area)?;
        if space.touches_twice {
            touch_all(&area);
        }
        *self.area.borrow_mut() = Some(area);
        Ok((span, everything))
    }
}

/// The arm that does not fault: the same loop over pages that are present.
#[derive(Debug)]
pub(super) struct Control {
    setup: Setup,
    area: SharedArea,
    samples: Samples,
}

impl Control {
    /// The control over the pages that the fault arm leaves; over its own where there is none.
    pub(super) fn new(setup: &Setup, area: SharedArea, is_alone: bool) -> Result<Self, Error> {
        // It has no page-table pages to allocate, and nobody waits for it.
        let list = setup.list.clone().unmarked();
        let setup = Setup { list, interval_ns: None, ..setup.clone() };
        if is_alone {
            let present = Populate::Touch.mapped(&setup.space, None)?.area;
            touch_all(&present);
            *area.borrow_mut() = Some(present);
        }
        Ok(Self { samples: Samples::new(&setup), setup, area })
    }
}

impl Trial for Control {
    fn arm(&self) -> &'static str {
        "control"
    }

    fn counts_faults(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Self { setup, area, samples } = self;
        let area = area.borrow();
        let area = area.as_ref().expect("the fault arm comes first, in the warm-up");
        // One lap that is not kept: what the fault arm left in the caches is not the control's.
        area.time_touches(&setup.list, setup.access, meter.clock(), |_, _| ());
        samples.take(area, setup, None, meter)?;
        samples.file(("fault", None), setup, None, meter, 0);
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.samples.testify(Expectation::default(), false, witness);
        Ok(())
    }
}
