//! `fault/throughput`: how many faults a second, and how many bytes, for every page size.
//!
//! Each repetition maps fresh memory, touches it, and releases it. `map`, `advise`, `populate`,
//! `touch` and `release` are series of their own, each in elapsed and in CPU time; inside the clock
//! of `map` is the one call (one a window for large folios), inside `touch` the store loop and
//! nothing else. Reserving address space, pinning, and reading back the page table are outside.
//!
//! The kinds of fault are those of `fault/latency`: their stage prepares the memory between the map
//! and the touch, outside every clock. Calls that another thread makes meanwhile are in
//! [`super::beside`].
//!
//! What the touch must do to the fault counters and the page table follows from a formula, and a
//! repetition that does anything else is not a measurement.

use pagelab_bench::{
    Kind, Param,
    inputs::Inputs,
    need::{Need, Needed},
    params::PageSize,
    refusal::{listed, refuse},
    workload::{Error, Trial, Workload},
};
use pagelab_record::{
    Case,
    units::{format_bytes, parse_bytes},
};
use pagelab_sys::{counts::counters::reported_kib, loops::touch::Access, process::sched::Pinned};

mod asked;

use self::asked::{ARMS, Asked, REFUSALS};
use super::{
    beside::{self, Beside, Idle, Part},
    c_loop::Twin,
    kinds::{self, kind_of, swap},
    leave_unmarked,
    peers::{Peer, Tool},
    pieces,
    plan::Plan,
    populate, pressure,
    rounds::Rounds,
    space::{self, cpus_of, size_of},
    workers::{self, SharedStages, random_list, stages},
};
use crate::needs::CpuCount;

const PARAMS: &[Param] = &[
    Param::axis("kind", Kind::Choice(kinds::NAMES), "write")
        .help("the kind of fault: what memory is like when it is touched"),
    space::PAGE,
    Param::axis("backing", Kind::Choice(&["anon", "brk", "fixed"]), "anon")
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
    Param::arms("arms", Kind::Choice(ARMS), "pagelab")
        .help("c: a minimal C loop; page-fault1, pft: those tools' loops in C; all in one process"),
    swap::PARAMS[0],
    swap::PARAMS[1],
    swap::PARAMS[2],
    swap::PARAMS[3],
    space::LIE,
];

/// See the module's documentation.
#[derive(Debug)]
pub struct Throughput;

impl Workload for Throughput {
    fn name(&self) -> &'static str {
        "fault/throughput"
    }

    fn summary(&self) -> &'static str {
        "faults a second and bandwidth of first touch, for every page size and way of populating"
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
    }

    fn resolve(&self, case: Case) -> Case {
        let case = swap::resolve(case);
        if case.get("size") != Some("auto") {
            return case;
        }
        let size = space::automatic_size(PageSize::of(&case), kind_of(&case).automatic_size_max());
        if pressure::is_pressed(&case) {
            let size = parse_bytes(&size).expect("a size is a size");
            return case.with("size", &format_bytes(pressure::automatic_size(size)));
        }
        case.with("size", &size)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        let asked = Asked::of(case);
        asked.kind.refuse(case)?;
        refuse(REFUSALS, &asked)?;
        refuse(pressure::REFUSALS, case)?;
        refuse(pressure::REFUSALS_IN_BULK, case)?;
        refuse(populate::REFUSALS, &populate::Asked::of(case))?;
        refuse(swap::REFUSALS, case)
    }

    fn refusals(&self) -> Vec<(&'static str, &'static str)> {
        let pressed = listed(pressure::REFUSALS).chain(listed(pressure::REFUSALS_IN_BULK));
        let populated = listed(populate::REFUSALS);
        let swapped = listed(swap::REFUSALS);
        listed(REFUSALS).chain(pressed).chain(populated).chain(swapped).collect()
    }

    fn needs(&self, case: &Case) -> Vec<Needed> {
        let asked = Asked::of(case);
        let mut needs = space::needs(case, asked.size, asked.populate.is_early());
        needs.extend(asked.kind.needs(case));
        needs.extend(pressure::needs(case));
        let beside = usize::from(asked.call.is_some());
        let picked = asked.threads.max(asked.processes) + beside;
        needs.push(CpuCount(if asked.picks_cpus { picked } else { 1 }).needed());
        needs.extend(asked.populate.needs(case));
        needs
    }

    fn footprint(&self, case: &Case) -> u64 {
        size_of(case)
    }

    fn seconds(&self, case: &Case) -> f64 {
        pieces::seconds(self.footprint(case))
    }

    fn repetitions(&self, case: &Case) -> Option<u32> {
        space::rounds_of(case)
    }

    fn smallest(&self) -> &'static [(&'static str, &'static str)] {
        &[("size", "4m"), ("rounds", "2")]
    }

    fn prepare(&self, case: &Case, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        leave_unmarked();
        let asked = Asked::of(case);
        let Asked { kind, call, threads, processes, mut stride, .. } = asked;
        let stages = stages(case, threads, processes, inputs)?;
        let space = stages.borrow()[0].space;
        stride.step = stages.borrow()[0].stage.step().unwrap_or(stride.step);
        let plan = Plan {
            space,
            populate: asked.populate,
            stride,
            access: if asked.reads { Access::Read } else { kind.access() },
            list: asked.is_random.then(|| random_list(&space, stride.step)),
            fifo: asked.fifo,
            by_perf: false,
            threads,
            cpus: cpus_of(case, asked.workers() + usize::from(call.is_some())),
        };
        let pinned = if processes == 1 { plan.cpus[0].map(Pinned::to).transpose()? } else { None };
        let is_plain = asked.is_write();
        let rounds = || Rounds::new(plan.clone(), SharedStages::clone(&stages), is_plain);
        let tells_cold = asked.workers() == 1
            && plan.list.is_none()
            && is_plain
            && plan.populate.touches_fault()
            && plan.space.takes_free_memory()
            && !pressure::is_pressed(case)
            && reported_kib().is_some();
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        for arm in asked.arms {
            match (arm, call) {
                ("c", _) => trials.push(Box::new(Twin::new(&plan))),
                ("page-fault1", _) => {
                    trials.push(Box::new(Peer::new(Tool::PageFault1, &plan, processes)));
                }
                ("pft", _) => trials.push(Box::new(Peer::new(Tool::Pft, &plan, processes))),
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
        // The process ends with the case: its one thread stays where it is.
        std::mem::forget(pinned);
        Ok(trials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::space::Space;
    use pagelab_bench::plan::complete;

    #[test]
    fn every_refusal_has_a_case_that_meets_it_and_the_neighbour_is_accepted() {
        for (pairs, says) in [
            (&[("page", "hugetlb-2m"), ("backing", "brk")][..], "backing=brk|fixed with page=huge"),
            (&[("page", "64k"), ("backing", "brk")], "backing=brk with page=16k … 1m"),
            (&[("page", "hugetlb-2m"), ("align", "ragged")], "align=ragged with page=hugetlb-…"),
            (&[("page", "4k"), ("align", "ragged")], "align=ragged with page=4k"),
            (&[("page", "64k"), ("align", "ragged")], "align=ragged with page=16k … 1m"),
            (&[("page", "2m"), ("align", "ragged")], "align=ragged without touch=…@4k"),
            (&[("page", "hugetlb-2m"), ("populate", "mlock")], "populate=mlock… or map-locked"),
            (&[("threads", "2"), ("processes", "2")], "threads and processes above 1"),
            (&[("threads", "2"), ("order", "random")], "order=random with threads above 1"),
            (&[("page", "64k"), ("arms", "pagelab,c")], "arms=c outside"),
            (&[("page", "2m"), ("arms", "pagelab,pft")], "arms=page-fault1|pft outside"),
            (&[("arms", "page-fault1"), ("order", "random")], "arms=page-fault1|pft outside"),
            (&[("size", "3m"), ("page", "2m")], "size not divisible"),
            (&[("lie", "early-populate"), ("populate", "map-populate")], "a lie that would be"),
            (&[("kind", "collapse"), ("page", "2m")], "a kind whose cost is a call"),
            (&[("kind", "read"), ("populate", "mlock")], "a kind other than write with"),
            (&[("kind", "zero-write"), ("touch", "8@64k")], "a kind other than write with"),
            (&[("kind", "read"), ("backing", "brk")], "a kind other than write with"),
            (&[("kind", "read"), ("arms", "pagelab,c")], "other arms with a kind"),
            (&[("vmas", "each")], "vmas=each with threads=1"),
            (&[("vmas", "each"), ("threads", "2"), ("page", "64k")], "vmas=each with threads=1"),
            (&[("beside", "munmap"), ("processes", "2")], "beside with processes above 1"),
            (&[("beside", "munmap"), ("populate", "mlock")], "beside with populate"),
            (&[("beside", "munmap"), ("arms", "pagelab,c")], "beside with populate or other arms"),
            (&[("beside", "munmap"), ("cpu", "0")], "beside with cpu=none or fewer CPUs"),
            (&[("beside", "munmap"), ("cpu", "none")], "beside with cpu=none or fewer CPUs"),
        ] {
            let error = complete(&Throughput, pairs).unwrap_err();
            assert!(error.starts_with(says), "{pairs:?}: {error}");
        }
        for pairs in [
            &[("arms", "pagelab,page-fault1,pft"), ("threads", "2")][..],
            &[("beside", "munmap"), ("cpu", "0-1")],
            &[("vmas", "each"), ("threads", "2")],
            &[("kind", "read"), ("processes", "2"), ("touch", "8@4k")],
            &[("page", "2m"), ("align", "ragged"), ("touch", "8@4k")],
            &[("page", "2m"), ("arms", "pagelab,c")],
        ] {
            complete(&Throughput, pairs).unwrap();
        }
    }

    #[test]
    fn a_random_order_touches_every_step_once() {
        let case = complete(&Throughput, &[("page", "64k"), ("size", "4m")]).unwrap();
        let space = Space::of(&case, 1);
        assert_eq!(random_list(&space, 4096).len(), 1024);
        assert_eq!(random_list(&space, 65536).len(), 64);
    }
}
