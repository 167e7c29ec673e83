//! `memtype/latency`: how long one load or store takes, alone between two clock readings.
//!
//! Each arm is one operation. Inside the clock is that operation; the closing reading waits until
//! it has retired, not until others could see its effect. A plain store is therefore as cheap as
//! the buffer that takes it; with its fence it shows the way to memory, and a load shows the way
//! there and back. Lines are chosen beforehand, and flushed, where asked for, before the clock
//! starts.

use std::{cell::RefCell, rc::Rc};

use hdrhistogram::Histogram;
use pagelab_bench::{
    Kind, Param,
    count::parse_count,
    inputs::Inputs,
    meter::{Meter, Witness},
    need::{Need, Needed},
    refusal::{Refusal, listed, refuse},
    workload::{Error, Trial, Workload},
};
use pagelab_record::{Case, Unit, latency};
use pagelab_sys::{
    loops::touch::{Dropped, TouchList},
    memtype::{
        MemoryType, Plot,
        latency::{Op, State, time_each},
    },
    process::sched::Pinned,
    time::usage,
};

use super::{
    params,
    signature::{self, Probe},
    space::{self, Found, Space},
};
use crate::memtype::needs::{LINE_FLUSH, LoadWidth, Module, StoreWidth, of_space};

/// The operations, by the names of their arms.
const OPS: [(&str, Op); 10] = [
    ("load", Op::Load),
    ("load-nt", Op::LoadNt),
    ("store", Op::Store),
    ("store-sfence", Op::StoreSfence),
    ("store-mfence", Op::StoreMfence),
    ("ntstore", Op::NtStore),
    ("ntstore-sfence", Op::NtStoreSfence),
    ("uc-fence", Op::UcFence),
    ("uc-store", Op::UcStore),
    ("uc-store-load", Op::UcStoreLoad),
];

const PARAMS: &[Param] = &[
    params::TYPE,
    Param::arms(
        "op",
        Kind::Choice(&[
            "load",
            "load-nt",
            "store",
            "store-sfence",
            "store-mfence",
            "ntstore",
            "ntstore-sfence",
            "uc-fence",
            "uc-store",
            "uc-store-load",
        ]),
        "load,load-nt,store,store-sfence,store-mfence,ntstore,ntstore-sfence",
    )
    .help(
        "operations, an arm each; uc-fence is a store to this memory and one to a UC word, \
               uc-store… are accesses to the UC word alone: these need the kernel module",
    ),
    Param::axis("state", Kind::Choice(&["hot", "flushed"]), "hot").help(
        "hot: lines of one page, over and over (uc and wc are never cached: all over the \
               memory); flushed: lines all over the memory, each flushed before its sample",
    ),
    Param::axis("size", Kind::Size, "4m").help("memory that the lines are chosen from"),
    Param::axis("samples", Kind::Ops, "10k").help("samples of each operation in a repetition"),
    params::CPU,
    params::FRAMES,
    params::LEAF,
];

const REFUSALS: &[Refusal<Case>] = &[
    Refusal::new(
        |case| state(case) == State::Flushed && !is_cached(&Space::of(case)),
        "state=flushed with type=uc|wc",
        "no cache holds what would be flushed; use state=hot",
    ),
    Refusal::new(
        |case| parse_count(case.get("samples").unwrap_or_default()).is_err(),
        "samples=all|auto",
        "there is no end of samples; use a number",
    ),
    Refusal::new(
        |case| case.get("op").unwrap_or_default().split(',').count() != ops(case).len(),
        "an operation named twice",
        "its two series would be one",
    ),
];

/// See the module's documentation.
#[derive(Debug)]
pub struct Latency;

impl Workload for Latency {
    fn name(&self) -> &'static str {
        "memtype/latency"
    }

    fn summary(&self) -> &'static str {
        "the time of one load, store or store with its fence, to WB, UC, WC and WT memory"
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
    }

    fn resolve(&self, case: Case) -> Case {
        let bytes = params::bytes(&case, "size");
        Space::resolve(case, bytes)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        refuse(REFUSALS, case)?;
        refuse(space::REFUSALS, &Space::of(case))
    }

    fn refusals(&self) -> Vec<(&'static str, &'static str)> {
        listed(REFUSALS).chain(listed(space::REFUSALS)).collect()
    }

    fn needs(&self, case: &Case) -> Vec<Needed> {
        let mut needs = of_space(&Space::of(case));
        for (_, op) in ops(case) {
            match op {
                Op::LoadNt => needs.push(LoadWidth { nt: true, bytes: 16 }.needed()),
                Op::NtStore | Op::NtStoreSfence => {
                    needs.push(StoreWidth { nt: true, bytes: 8 }.needed());
                }
                op if op.needs_fence_word() => needs.push(Module.needed()),
                _ => (),
            }
        }
        if state(case) == State::Flushed {
            needs.push(LINE_FLUSH.needed());
        }
        needs.push(space::cpu_needs(case, "cpu", 1));
        needs
    }

    fn footprint(&self, case: &Case) -> u64 {
        Space::of(case).bytes + (1 << 20)
    }

    fn seconds(&self, case: &Case) -> f64 {
        let sample_ns = match (Space::of(case).memory_type, state(case)) {
            (MemoryType::Wb | MemoryType::Wt, State::AsIs) => 100.0,
            _ => 500.0,
        };
        samples(case) as f64 * ops(case).len() as f64 * sample_ns / 1e9 + 0.005
    }

    fn smallest(&self) -> &'static [(&'static str, &'static str)] {
        &[("size", "64k"), ("samples", "1k")]
    }

    fn prepare(&self, case: &Case, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let space = Space::of(case);
        if let Some(cpu) = space::cpus_of(case, "cpu", 1).first() {
            // The process ends with the case: its one thread stays where it is.
            std::mem::forget(Pinned::to(*cpu)?);
        }
        let mut plot = space.plot()?;
        let needs_word = ops(case).iter().any(|(_, op)| op.needs_fence_word());
        let mut fence_word =
            if needs_word { Some(Space::of_fence_word(None).plot()?) } else { None };
        let probe = signature::probe(&mut plot, fence_word.as_mut())?;
        let shared = Rc::new(RefCell::new(Shared { plot, fence_word }));
        let list = lines(&space, state(case), samples(case));
        let arm = |(arm, op): (&'static str, Op)| -> Box<dyn Trial> {
            Box::new(Samples {
                arm,
                op,
                space,
                state: state(case),
                list: list.clone(),
                shared: Rc::clone(&shared),
                probe,
                histogram: latency::empty(),
                before: None,
                dropped: Dropped::default(),
                faults: 0,
            })
        };
        Ok(ops(case).into_iter().map(arm).collect())
    }
}

fn ops(case: &Case) -> Vec<(&'static str, Op)> {
    let asked = case.get("op").unwrap_or_default();
    OPS.into_iter().filter(|(name, _)| asked.split(',').any(|word| word == *name)).collect()
}

fn state(case: &Case) -> State {
    if case.get("state") == Some("flushed") { State::Flushed } else { State::AsIs }
}

fn samples(case: &Case) -> u64 {
    parse_count(case.get("samples").unwrap_or_default()).unwrap_or(1)
}

/// Whether loads of the memory are served by caches.
fn is_cached(space: &Space) -> bool {
    matches!(space.memory_type, MemoryType::Wb | MemoryType::Wt)
}

/// Which lines are touched, in which order: the same in every run.
fn lines(space: &Space, state: State, samples: u64) -> TouchList {
    let bytes = if is_cached(space) && state == State::AsIs { 4096 } else { space.bytes };
    let narrow = |count| usize::try_from(count).expect("addresses have 64 bits");
    let mut all: Vec<usize> = (0..narrow(bytes / 64)).collect();
    fastrand::Rng::with_seed(0x7061_6765).shuffle(&mut all);
    TouchList::new(all.iter().cycle().take(narrow(samples)).map(|line| (line * 64, false)))
}

#[derive(Debug)]
struct Shared {
    plot: Plot,
    fence_word: Option<Plot>,
}

/// An arm: samples of one operation.
#[derive(Debug)]
struct Samples {
    arm: &'static str,
    op: Op,
    space: Space,
    state: State,
    list: TouchList,
    shared: Rc<RefCell<Shared>>,
    probe: Option<Probe>,
    histogram: Histogram<u64>,
    before: Option<Found>,
    dropped: Dropped,
    faults: u64,
}

impl Trial for Samples {
    fn arm(&self) -> &'static str {
        self.arm
    }

    fn reset(&mut self) -> Result<(), Error> {
        let plot = &self.shared.borrow().plot;
        self.before = plot.is_module().then(|| space::look_up(&self.space, plot)).transpose()?;
        Ok(())
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Shared { plot, fence_word } = &mut *self.shared.borrow_mut();
        let Self { op, list, state, histogram, .. } = self;
        histogram.reset();
        // Read once before it counts: its own code may be fresh.
        usage::thread();
        let before = usage::thread();
        let record = |ns| histogram.saturating_record(ns);
        self.dropped =
            time_each(plot, *op, fence_word.as_ref(), list, *state, meter.clock(), record);
        self.faults = usage::thread().since(before).minor_faults;
        meter.distribution("op", Unit::Ns, 8, &self.histogram);
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let taken = self.histogram.len() + self.dropped.migrated;
        witness.expect("samples taken", self.list.len() as u64, taken);
        witness.expect("page faults of the loop", 0, self.faults);
        witness.count("migrated_samples", self.dropped.migrated);
        if let Some(probe) = &self.probe {
            probe.testify(witness);
        }
        space::testify(&self.space, &self.shared.borrow().plot, self.before.take(), witness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_bench::plan::complete;

    fn refused(pairs: &[(&str, &str)]) -> bool {
        complete(&Latency, pairs).is_err()
    }

    #[test]
    fn every_refusal_has_a_case_that_meets_it_and_the_neighbour_is_accepted() {
        assert!(refused(&[("state", "flushed"), ("type", "uc")]));
        assert!(refused(&[("samples", "all")]));
        assert!(refused(&[("op", "load,store,load")]));
        assert!(refused(&[("type", "wc"), ("frames", "ordinary")]));
        assert!(!refused(&[("state", "flushed")]));
        assert!(!refused(&[("type", "uc"), ("op", "load,uc-fence")]));
    }

    #[test]
    fn every_operation_has_a_name_and_every_name_an_arm() {
        assert_eq!(OPS.map(|(_, op)| op), Op::ALL);
        let Kind::Choice(words) = PARAMS[1].kind else { panic!() };
        assert_eq!(words, OPS.map(|(name, _)| name));
    }

    #[test]
    fn hot_lines_are_one_page_and_flushed_ones_are_everywhere() {
        let case = complete(&Latency, &[("frames", "ordinary")]).unwrap();
        let space = Space::of(&case);
        let uncached = Space { memory_type: MemoryType::Wc, ..space };
        assert_eq!(lines(&space, State::AsIs, 100).len(), 100);
        let reach = |list: &TouchList| format!("{list:?}").len();
        let hot = lines(&space, State::AsIs, 64);
        for wide in [lines(&space, State::Flushed, 64), lines(&uncached, State::AsIs, 64)] {
            assert!(reach(&wide) > reach(&hot), "offsets of 4 MiB are longer numbers");
        }
    }
}
