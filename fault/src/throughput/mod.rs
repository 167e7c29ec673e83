//! `fault/throughput`: how many faults a second, and how many bytes, for every page size.
//!
//! Each repetition maps fresh memory, touches it, and releases it. `map`, `advise`, `populate`,
//! `touch` and `release` are series of their own, each in elapsed and in CPU time; inside the clock
//! of `map` is the one call (one a window for large folios), inside `touch` the store loop and
//! nothing else. Reserving address space, pinning, and reading back the page table are outside.
//!
//! The kinds of fault are those of `fault/latency`: their stage prepares the memory between the map
//! and the touch, outside every clock. Calls that another thread makes meanwhile are in
//! [`pagelab_mappings::beside`].
//!
//! What the touch must do to the fault counters and the page table follows from a formula, and a
//! repetition that does anything else is not a measurement.

use pagelab_bench::{
    Described, Error, Experiment, Inputs, Kind, Need, Needed, Over, PageSize, Param, Read, Refusal,
    Trial, cpus::stay, needs::Cpus,
};
use pagelab_record::units::format_bytes;
use pagelab_sys::counts::reported_kib;

mod refusals;

use self::refusals::REFUSALS;
use super::{
    c_loop::Twin,
    peers::{Peer, Tool},
    refused,
};
use pagelab_mappings::{
    Arm, Asked, Place, Plan, Pressure, Rounds,
    beside::{self, Beside, Idle, Part},
    frequency,
    kinds::{self, kind_of, swap},
    leave_unmarked, pieces, populate, pressure, space,
    workers::{self, SharedStages, random_list},
};

const PARAMS: &[Param] = &[
    kinds::PARAM,
    space::PAGE,
    Param::axis("backing", Kind::Choice(Place::WORDS), "anon")
        .help("anon: wherever there is room; brk: the heap; fixed: from a 1 GiB boundary"),
    populate::PARAM,
    Param::axis("touch", Kind::Touch, "8@page").help(
        "bytes written at each step, BYTES@STRIDE; 8@page: one a page; 8@4k: micro_pagefault",
    ),
    space::ORDER,
    Param::axis("align", Kind::Choice(&["aligned", "ragged"]), "aligned")
        .help("aligned to the page under test, or with half a page at each end (ragged)"),
    workers::THREADS,
    workers::PROCESSES,
    workers::VMAS,
    beside::BESIDE,
    pressure::PRESSURE,
    space::CPU,
    space::NODE,
    space::MEM_NODE,
    space::SIZE,
    space::ROUNDS,
    space::FIFO,
    frequency::GOVERNOR,
    frequency::TURBO,
    Param::arms("arms", Kind::Choice(&["pagelab", "c", "page-fault1", "pft"]), "pagelab")
        .help("c: a minimal C loop; page-fault1, pft: those tools' loops in C; all in one process"),
    swap::PARAMS[0],
    swap::PARAMS[1],
    swap::PARAMS[2],
    swap::PARAMS[3],
    space::LIE,
];

/// What it is called.
pub const NAME: &str = THROUGHPUT.about.name;

/// See the module's documentation.
pub const THROUGHPUT: Described<InBulk> = Described {
    resolve: |case| {
        let case = swap::resolve(case);
        if !case.is("size", "auto") {
            return case;
        }
        let size = space::automatic_size(PageSize::of(&case), kind_of(&case).automatic_size_max);
        let is_pressed = !case.is("pressure", "none");
        case.with(
            "size",
            &format_bytes(if is_pressed { pressure::automatic_size(size) } else { size }),
        )
    },
    refuse: |bulk| (bulk.0.kind.refuse)(&bulk.0),
    parts: &[&Over { of: |bulk: &InBulk| &bulk.0, tables: TABLES }],
    ..Described::new(
        "fault/throughput",
        "faults a second and bandwidth of first touch, for every page size and way of \
             populating",
        PARAMS,
        &[("size", "4m"), ("rounds", "2")],
        |case| InBulk(kinds::asked(case)),
    )
};

/// What is turned away, in the order in which it is looked for.
const TABLES: &[&[Refusal<Asked>]] = &[
    REFUSALS,
    refused::PRESSED,
    refused::PRESSED_IN_BULK,
    refused::POPULATED,
    refused::POPULATED_IN_BULK,
    refused::SWAPPED,
];

/// A case whose touches are measured together.
#[derive(Debug)]
pub struct InBulk(Asked);

impl Experiment for InBulk {
    fn needs(&self) -> Vec<Needed> {
        let Self(asked) = self;
        let mut needs = asked.needs(asked.size);
        needs.extend((asked.kind.needs)(asked));
        needs.extend(pressure::needs(asked));
        let beside = usize::from(asked.call.is_some());
        let picked = asked.threads.max(asked.processes) + beside;
        needs.push(Cpus::Count(if asked.cpus.is_auto() { picked } else { 1 }).needed());
        needs.extend(asked.populate.needs(asked.size));
        needs
    }

    fn footprint(&self) -> u64 {
        self.0.size
    }

    fn seconds(&self) -> f64 {
        pieces::seconds(self.0.size) + self.0.kind.waits_s
    }

    fn repetitions(&self) -> Option<u32> {
        self.0.rounds
    }

    fn prepare(&self, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        leave_unmarked();
        let Self(asked) = self;
        let &Asked { call, threads, processes, .. } = asked;
        let stages = workers::stages(asked, inputs)?;
        let space = stages.borrow()[0].space;
        let mut stride = asked.stride();
        stride.step = stages.borrow()[0].stage.step().unwrap_or(stride.step);
        let plan = Plan {
            space,
            populate: asked.populate,
            stride,
            access: asked.access(),
            list: asked.is_random.then(|| random_list(&space, stride.step)),
            fifo: asked.fifo,
            by_perf: false,
            threads,
            cpus: asked.cpus.of_workers(asked.workers() + usize::from(call.is_some())),
        };
        if processes == 1 {
            stay(plan.cpus[0])?;
        }
        let is_plain = asked.is_write();
        let rounds = || Rounds::new(plan.clone(), SharedStages::clone(&stages), is_plain);
        let tells_cold = asked.workers() == 1
            && plan.list.is_none()
            && is_plain
            && plan.populate.touches_fault()
            && plan.space.takes_free_memory()
            && asked.pressure == Pressure::None
            && reported_kib().is_some();
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        for arm in &asked.arms {
            match (arm, call) {
                (Arm::C, _) => trials.push(Box::new(Twin::new(&plan))),
                (Arm::PageFault1, _) => {
                    trials.push(Box::new(Peer::new(Tool::PageFault1, &plan, processes)));
                }
                (Arm::Pft, _) => trials.push(Box::new(Peer::new(Tool::Pft, &plan, processes))),
                (_, None) if tells_cold => trials.push(Box::new(rounds().in_pieces())),
                (_, None) => trials.push(Box::new(rounds())),
                (_, Some(call)) => {
                    for part in [Part::Both, Part::Alone, Part::Present] {
                        trials.push(Box::new(rounds().beside(Beside::new(call, part))));
                    }
                    trials.push(Box::new(Idle::new(call, &plan)));
                }
            }
        }
        Ok(trials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_bench::plan::complete;

    #[test]
    fn a_random_order_touches_every_step_once() {
        let case = complete(&THROUGHPUT, &[("page", "64k"), ("size", "4m")]).unwrap();
        let space = kinds::asked(&case).space(1);
        assert_eq!(random_list(&space, 4096).len(), 1024);
        assert_eq!(random_list(&space, 65536).len(), 64);
    }
}
