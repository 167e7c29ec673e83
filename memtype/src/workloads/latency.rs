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
    Described, Error, Experiment, Inputs, Kind, Meter, Need, Needed, Over, Param, Read, Refusal,
    Trial, Witness, words_of,
};
use pagelab_record::{Case, Unit, latency, vocabulary::Check};
use pagelab_sys::{
    loops::{Dropped, TouchList},
    memtype::{
        MemoryType,
        latency::{Op, State, time_each},
    },
    time::usage,
};

use super::needs::{AccessWidth, LINE_FLUSH, Module, of_space};
use super::{
    ground::Ground,
    params,
    space::{self, Space},
};
use pagelab_bench::cpus::{Chosen, stay};

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
        Kind::Choice(&words_of(&OPS)),
        "load,load-nt,store,store-sfence,store-mfence,ntstore,ntstore-sfence",
    )
    .asks(&["uc-fence", "load-nt"])
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

/// A case, read.
#[derive(Debug)]
pub struct Asked {
    space: Space,
    ops: Vec<(&'static str, Op)>,
    state: State,
    /// `None` where no end is named.
    samples: Option<u64>,
    cpus: Chosen,
    /// Whether an operation is named more than once.
    has_twins: bool,
}

impl Asked {
    fn of(case: &Case) -> Self {
        let ops: Vec<_> = case.some_of("op", &OPS).collect();
        Self {
            space: Space::of(case, case.bytes("size").unwrap_or(0)),
            state: if case.is("state", "flushed") { State::Flushed } else { State::AsIs },
            samples: case.count("samples"),
            cpus: Chosen::of(case, "cpu"),
            has_twins: case.text("op").is_some_and(|named| named.split(',').count() != ops.len()),
            ops,
        }
    }
}

/// What is turned away beside what concerns the memory.
const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.state == State::Flushed && !is_cached(&asked.space),
        "state=flushed with type=uc|wc",
        "no cache holds what would be flushed; use state=hot",
    ),
    Refusal::new(
        |asked| asked.samples.is_none(),
        "samples=all|auto",
        "there is no end of samples; use a number",
    ),
    Refusal::new(
        |asked| asked.has_twins,
        "an operation named twice",
        "its two series would be one",
    ),
];

/// What it is called.
pub(crate) const NAME: &str = LATENCY.about.name;

/// See the module's documentation.
pub const LATENCY: Described<Asked> = Described {
    resolve: |case| {
        let bytes = case.bytes("size").unwrap_or(0);
        Space::resolve(case, bytes)
    },
    refusals: REFUSALS,
    parts: &[&Over { of: |asked: &Asked| &asked.space, tables: &[space::REFUSALS] }],
    ..Described::new(
        "memtype/latency",
        "the time of one load, store or store with its fence, to WB, UC, WC and WT memory",
        PARAMS,
        &[("size", "64k"), ("samples", "1k")],
        Asked::of,
    )
};

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        let mut needs = of_space(&self.space);
        for (_, op) in &self.ops {
            match op {
                Op::LoadNt => needs.push(AccessWidth { loads: true, nt: true, bytes: 16 }.needed()),
                Op::NtStore | Op::NtStoreSfence => {
                    needs.push(AccessWidth { loads: false, nt: true, bytes: 8 }.needed());
                }
                op if op.needs_fence_word() => needs.push(Module.needed()),
                _ => (),
            }
        }
        if self.state == State::Flushed {
            needs.push(LINE_FLUSH.needed());
        }
        needs.push(space::cpu_needs(&self.cpus, 1));
        needs
    }

    fn footprint(&self) -> u64 {
        self.space.bytes + (1 << 20)
    }

    fn seconds(&self) -> f64 {
        let sample_ns = match (self.space.memory_type, self.state) {
            (MemoryType::Wb | MemoryType::Wt, State::AsIs) => 100.0,
            _ => 500.0,
        };
        self.samples.unwrap_or(1) as f64 * self.ops.len() as f64 * sample_ns / 1e9 + 0.005
    }

    fn prepare(&self, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let Self { space, state, ref ops, .. } = *self;
        stay(space::cpus_of(&self.cpus, 1).first().copied())?;
        let needs_word = ops.iter().any(|(_, op)| op.needs_fence_word());
        let ground = Rc::new(RefCell::new(Ground::new(space, &space, needs_word)?));
        let list = lines(&space, state, self.samples.unwrap_or(1));
        let arm = |(arm, op): (&'static str, Op)| -> Box<dyn Trial> {
            Box::new(Samples {
                arm,
                op,
                state,
                list: list.clone(),
                ground: Rc::clone(&ground),
                histogram: latency::empty(),
                dropped: Dropped::default(),
                faults: 0,
            })
        };
        Ok(ops.iter().copied().map(arm).collect())
    }
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

/// An arm: samples of one operation.
#[derive(Debug)]
struct Samples {
    arm: &'static str,
    op: Op,
    state: State,
    list: TouchList,
    ground: Rc<RefCell<Ground>>,
    histogram: Histogram<u64>,
    dropped: Dropped,
    faults: u64,
}

impl Trial for Samples {
    fn arm(&self) -> &'static str {
        self.arm
    }

    fn reset(&mut self) -> Result<(), Error> {
        self.ground.borrow_mut().look_up()
    }

    fn counts_faults(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Ground { plot, fence_word, .. } = &mut *self.ground.borrow_mut();
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
        witness.expect(Check::SamplesTaken, self.list.len() as u64, taken);
        witness.expect(Check::FaultsOfLoop, 0, self.faults);
        witness.count("migrated_samples", self.dropped.migrated);
        self.ground.borrow().testify(witness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_bench::plan::complete;

    #[test]
    fn every_operation_has_a_name() {
        assert_eq!(OPS.map(|(_, op)| op), Op::ALL);
    }

    #[test]
    fn hot_lines_are_one_page_and_flushed_ones_are_everywhere() {
        let case = complete(&LATENCY, &[("frames", "ordinary")]).unwrap();
        let space = Asked::of(&case).space;
        let uncached = Space { memory_type: MemoryType::Wc, ..space };
        assert_eq!(lines(&space, State::AsIs, 100).len(), 100);
        let reach = |list: &TouchList| format!("{list:?}").len();
        let hot = lines(&space, State::AsIs, 64);
        for wide in [lines(&space, State::Flushed, 64), lines(&uncached, State::AsIs, 64)] {
            assert!(reach(&wide) > reach(&hot), "offsets of 4 MiB are longer numbers");
        }
    }
}
