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
    Kind, Param, Role,
    inputs::Inputs,
    need::{Need, Needed},
    params::PageSize,
    workload::{Error, Trial, Workload},
};
use pagelab_record::{
    Case,
    units::{format_bytes, parse_bytes},
};
use pagelab_sys::{counts::counters::reported_kib, loops::touch::Access, process::sched::Pinned};

use super::{
    beside::{self, Beside, Idle, Part},
    c_loop::Twin,
    kinds::{self, kind_of, swap},
    leave_unmarked,
    peers::{Peer, Tool},
    pieces,
    plan::Plan,
    populate::{self, Populate},
    pressure,
    rounds::Rounds,
    space::{self, cpus_of, size_of, stride_of},
    workers::{self, SharedStages, random_list, stages, workers},
};
use crate::needs::CpuCount;

/// What is compared inside a case, in the order of the arms.
const ARMS: &[&str] = &["pagelab", "c", "page-fault1", "pft"];

const PARAMS: &[Param] = &[
    Param {
        name: "kind",
        help: "the kind of fault: what memory is like when it is touched",
        kind: Kind::Choice(kinds::NAMES),
        default: "write",
        role: Role::Axis,
    },
    space::PAGE,
    Param {
        name: "backing",
        help: "anon: wherever there is room; brk: the heap; fixed: from a 1 GiB boundary",
        kind: Kind::Choice(&["anon", "brk", "fixed"]),
        default: "anon",
        role: Role::Axis,
    },
    populate::PARAM,
    Param {
        name: "touch",
        help: "bytes written at each step, BYTES@STRIDE; 8@page: one a page; 8@4k: micro_pagefault",
        kind: Kind::Touch,
        default: "8@page",
        role: Role::Axis,
    },
    space::ORDER,
    Param {
        name: "align",
        help: "aligned to the page under test, or with half a page at each end (ragged)",
        kind: Kind::Choice(&["aligned", "ragged"]),
        default: "aligned",
        role: Role::Axis,
    },
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
    Param {
        name: "arms",
        help: "c: a minimal C loop; page-fault1, pft: those tools' loops in C; all in one process",
        kind: Kind::Choice(ARMS),
        default: "pagelab",
        role: Role::Arms,
    },
    swap::PARAMS[0],
    swap::PARAMS[1],
    swap::PARAMS[2],
    swap::PARAMS[3],
    space::LIE,
];

/// What [`Throughput::refuse`] turns away.
const REFUSALS: &[(&str, &str)] = &[
    ("backing=brk|fixed with page=hugetlb-…", "hugetlb pages have no brk; use backing=anon"),
    ("backing=brk with page=16k … 1m", "one heap range would come in 2m pages; use backing=anon"),
    ("align=ragged with page=hugetlb-…", "a hugetlb mapping is always aligned"),
    ("align=ragged with page=4k", "a mapping has no ends smaller than a base page"),
    ("align=ragged with page=16k … 1m", "large folios lie in windows of their own; use page=2m"),
    ("align=ragged without touch=…@4k", "the ends are touched only by a stride of 4k"),
    ("threads and processes above 1", "they are two questions; ask one at a time"),
    ("order=random with threads above 1", "threads share the range in ascending shares"),
    ("arms=c outside page=4k|2m, anon, touch=8@…, one ordinary worker", "the C loop does no more"),
    ("arms=page-fault1|pft outside page=4k, anon, ascending touch=8@4k", "their loops do no more"),
    ("size not divisible by page and stride × workers", "every worker touches whole pages"),
    populate::TRUE_LIE,
    ("a kind whose cost is a call", "nothing is touched in bulk; use fault/latency"),
    (
        "a kind other than write with populate, backing, align or touch",
        "only a first store has these; use kind=write",
    ),
    ("other arms with a kind other than write", "the C loops store to fresh memory"),
    ("vmas=each with threads=1, backing=brk or page=16k … 1m", "there is nothing to divide"),
    ("beside with processes above 1", "calls beside are made in the same address space"),
    ("beside with populate or other arms", "the calls are made beside touches that fault"),
    (
        "beside with cpu=none or fewer CPUs than threads and one more",
        "the thread that calls needs a CPU of its own",
    ),
    pressure::REFUSALS[0],
    pressure::REFUSALS[1],
    pressure::REFUSALS[2],
    populate::REFUSALS[0],
    populate::REFUSALS[1],
    populate::REFUSALS[2],
    populate::REFUSALS[3],
    populate::REFUSALS[4],
    swap::REFUSALS[0],
    swap::REFUSALS[1],
    swap::REFUSALS[2],
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
        let is = |name: &str, value: &str| case.get(name) == Some(value);
        let page = PageSize::of(case);
        let hugetlb = matches!(page, PageSize::Hugetlb(_));
        let folio = matches!(page, PageSize::Folio(_));
        let (threads, processes) = workers(case);
        let stride = stride_of(case);
        let ragged = is("align", "ragged");
        let has_c = arms(case).contains(&"c");
        let plain = matches!(page, PageSize::Base | PageSize::Thp)
            && is("backing", "anon")
            && is("populate", "touch")
            && is("order", "ascending")
            && !ragged
            && is("mem-node", "any")
            && stride.bytes == 8;
        let is_peers = plain && page == PageSize::Base && stride.step == 4096;
        let has_peer = arms(case).iter().any(|arm| matches!(*arm, "page-fault1" | "pft"));
        let step = stride.step as u64;
        let window = if folio { 1 << 20 } else { 1 };
        let unit = page.bytes().max(step).max(window) * (threads * processes) as u64;
        let indivisible = !size_of(case).is_multiple_of(unit) || (folio && step > window);
        let kind = kind_of(case);
        let is_plain = kind.name() == "write";
        let once_a_page = stride.bytes == 8 && stride.step as u64 == page.bytes();
        let is_ordinary =
            once_a_page && is("populate", "touch") && is("backing", "anon") && !ragged;
        let lies = !is("lie", "none");
        let has_beside = beside::call_of(case).is_some();
        let list = case.get("cpu").and_then(pagelab_sys::machine::topology::parse_list);
        let lacks_cpus = is("cpu", "none") || list.is_some_and(|cpus| cpus.len() <= threads);
        kind.refuse(case)?;
        let refused = [
            hugetlb && !is("backing", "anon"),
            is("backing", "brk") && folio,
            ragged && hugetlb,
            ragged && page == PageSize::Base,
            ragged && folio,
            ragged && stride.step != 4096,
            threads > 1 && processes > 1,
            is("order", "random") && threads > 1,
            has_c && !(plain && is("fifo", "off") && threads * processes == 1),
            has_peer && !is_peers,
            indivisible,
            populate::lie_is_true(case) || kinds::lie_is_true(case) || (lies && !is_plain),
            !kind.in_throughput(),
            !is_plain && !is_ordinary,
            (has_c || has_peer) && !is_plain,
            is("vmas", "each") && (threads == 1 || folio || is("backing", "brk")),
            has_beside && processes > 1,
            has_beside && (has_c || has_peer || !is("populate", "touch")),
            has_beside && lacks_cpus,
            pressure::is_refused(case),
            pressure::is_pointless(case),
            pressure::is_refused_in_bulk(case),
        ];
        match refused.iter().position(|refused| *refused) {
            Some(index) => Err(format!("{}: {}", REFUSALS[index].0, REFUSALS[index].1)),
            None => populate::refusal(case).or_else(|| swap::refusal(case)).map_or(Ok(()), Err),
        }
    }

    fn refusals(&self) -> &'static [(&'static str, &'static str)] {
        REFUSALS
    }

    fn needs(&self, case: &Case) -> Vec<Needed> {
        let populate = Populate::of(case);
        let mut needs = space::needs(case, self.footprint(case), populate.is_early());
        needs.extend(kind_of(case).needs(case));
        needs.extend(pressure::needs(case));
        let (threads, processes) = workers(case);
        let beside = usize::from(beside::call_of(case).is_some());
        needs.push(
            CpuCount(if case.get("cpu") == Some("auto") {
                threads.max(processes) + beside
            } else {
                1
            })
            .needed(),
        );
        needs.extend(populate.needs(case));
        needs
    }

    fn footprint(&self, case: &Case) -> u64 {
        size_of(case)
    }

    fn seconds(&self, case: &Case) -> f64 {
        pieces::seconds(self.footprint(case))
    }

    fn repetitions(&self, case: &Case) -> Option<u32> {
        case.get("rounds").and_then(|rounds| rounds.parse().ok())
    }

    fn smallest(&self) -> &'static [(&'static str, &'static str)] {
        &[("size", "4m"), ("rounds", "2")]
    }

    fn prepare(&self, case: &Case, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        leave_unmarked();
        let kind = kind_of(case);
        let (threads, processes) = workers(case);
        let call = beside::call_of(case);
        let stages = stages(case, threads, processes, inputs)?;
        let space = stages.borrow()[0].space;
        let mut stride = stride_of(case);
        stride.step = stages.borrow()[0].stage.step().unwrap_or(stride.step);
        let random = case.get("order") == Some("random");
        let plan = Plan {
            space,
            populate: Populate::of(case),
            stride,
            access: if case.get("lie") == Some("read") { Access::Read } else { kind.access() },
            list: random.then(|| random_list(&space, stride.step)),
            fifo: case.get("fifo") == Some("on"),
            by_perf: false,
            threads,
            cpus: cpus_of(case, threads * processes + usize::from(call.is_some())),
        };
        let pinned = if processes == 1 { plan.cpus[0].map(Pinned::to).transpose()? } else { None };
        let is_plain = kind.name() == "write";
        let rounds = || Rounds::new(plan.clone(), SharedStages::clone(&stages), is_plain);
        let is_one = threads * processes == 1 && plan.list.is_none();
        let tells_cold = is_one
            && is_plain
            && plan.populate.touches_fault()
            && plan.space.takes_free_memory()
            && !pressure::is_pressed(case)
            && reported_kib().is_some();
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        for arm in arms(case) {
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

fn arms(case: &Case) -> Vec<&'static str> {
    let asked = case.get("arms").unwrap_or("pagelab");
    ARMS.iter().copied().filter(|arm| asked.split(',').any(|word| word == *arm)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::space::Space;
    use pagelab_bench::plan::complete;

    fn refused(pairs: &[(&str, &str)]) -> bool {
        complete(&Throughput, pairs).is_err()
    }

    #[test]
    fn every_refusal_has_a_case_that_meets_it_and_the_neighbour_is_accepted() {
        assert!(refused(&[("page", "hugetlb-2m"), ("backing", "brk")]));
        assert!(refused(&[("page", "64k"), ("backing", "brk")]));
        assert!(refused(&[("page", "hugetlb-2m"), ("align", "ragged")]));
        assert!(refused(&[("page", "4k"), ("align", "ragged")]));
        assert!(refused(&[("page", "64k"), ("align", "ragged"), ("touch", "8@4k")]));
        assert!(refused(&[("page", "2m"), ("align", "ragged")]));
        assert!(refused(&[("page", "hugetlb-2m"), ("populate", "mlock")]), "said by populate");
        assert!(refused(&[("threads", "2"), ("processes", "2")]));
        assert!(refused(&[("threads", "2"), ("order", "random")]));
        assert!(refused(&[("page", "64k"), ("arms", "pagelab,c")]));
        assert!(refused(&[("page", "2m"), ("arms", "pagelab,pft")]));
        assert!(refused(&[("arms", "page-fault1"), ("order", "random")]));
        assert!(!refused(&[("arms", "pagelab,page-fault1,pft"), ("threads", "2")]));
        assert!(refused(&[("size", "3m"), ("page", "2m")]));
        assert!(refused(&[("kind", "read"), ("populate", "mlock")]));
        assert!(refused(&[("kind", "zero-write"), ("touch", "8@64k")]));
        assert!(refused(&[("kind", "read"), ("backing", "brk")]));
        assert!(refused(&[("kind", "read"), ("arms", "pagelab,c")]));
        assert!(refused(&[("vmas", "each")]));
        assert!(refused(&[("vmas", "each"), ("threads", "2"), ("page", "64k")]));
        assert!(refused(&[("beside", "munmap"), ("processes", "2")]));
        assert!(refused(&[("beside", "munmap"), ("populate", "mlock")]));
        assert!(refused(&[("beside", "munmap"), ("arms", "pagelab,c")]));
        assert!(refused(&[("beside", "munmap"), ("cpu", "0")]));
        assert!(refused(&[("beside", "munmap"), ("cpu", "none")]));
        assert!(!refused(&[("beside", "munmap"), ("cpu", "0-1")]));
        assert!(!refused(&[("vmas", "each"), ("threads", "2")]));
        assert!(!refused(&[("kind", "read"), ("processes", "2"), ("touch", "8@4k")]));
        assert!(!refused(&[("page", "2m"), ("align", "ragged"), ("touch", "8@4k")]));
        assert!(!refused(&[("page", "2m"), ("arms", "pagelab,c")]));
    }

    #[test]
    fn a_random_order_touches_every_step_once() {
        let case = complete(&Throughput, &[("page", "64k"), ("size", "4m")]).unwrap();
        let space = Space::of(&case, 1);
        assert_eq!(random_list(&space, 4096).len(), 1024);
        assert_eq!(random_list(&space, 65536).len(), 64);
    }
}
