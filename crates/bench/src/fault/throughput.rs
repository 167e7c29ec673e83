//! `fault/throughput`: how many faults a second, and how many bytes, for every page size.
//!
//! Each repetition maps fresh memory, touches it, and releases it. `map`, `advise`, `populate`,
//! `touch` and `release` are series of their own, each in elapsed and in CPU time; inside the clock
//! of `map` is the one call (one a window for large folios), inside `touch` the store loop and
//! nothing else. Reserving address space, pinning, and reading back the page table are outside.
//!
//! What the touch must do to the fault counters and the page table follows from a formula, and a
//! repetition that does anything else is not a measurement.

use pagelab_record::Case;
use pagelab_sys::{sched::Pinned, touch::TouchList};

use super::{
    round::{Plan, Populate},
    rounds::{Rounds, Twin},
    space::{self, Space, cpus_of, size_of, stride_of},
};
use crate::{
    Kind, Need, Param, Role,
    inputs::Inputs,
    params::PageSize,
    workload::{Error, Trial, Workload},
};

const PARAMS: &[Param] = &[
    space::PAGE,
    Param {
        name: "backing",
        help: "anon: wherever there is room; brk: the heap; fixed: from a 1 GiB boundary",
        kind: Kind::Choice(&["anon", "brk", "fixed"]),
        default: "anon",
        role: Role::Axis,
    },
    Param {
        name: "populate",
        help: "how memory comes to be present: by touching it, or by a call beforehand",
        kind: Kind::Choice(&[
            "touch",
            "map-populate",
            "madvise-populate",
            "mlock",
            "mlock-onfault",
        ]),
        default: "touch",
        role: Role::Axis,
    },
    Param {
        name: "touch",
        help: "bytes written at each step, BYTES@STRIDE; 8@page is once a page, seed 000 is 8@4k",
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
    Param {
        name: "threads",
        help: "threads that touch one mapping, each its share",
        kind: Kind::Count { max: 4096, auto: false },
        default: "1",
        role: Role::Axis,
    },
    Param {
        name: "processes",
        help: "processes that each map and touch their share, all at once",
        kind: Kind::Count { max: 4096, auto: false },
        default: "1",
        role: Role::Axis,
    },
    space::CPU,
    space::NODE,
    space::MEM_NODE,
    space::SIZE,
    space::ROUNDS,
    space::FIFO,
    Param {
        name: "arms",
        help: "c adds a minimal C loop as an arm of the same case",
        kind: Kind::Choice(&["pagelab", "c"]),
        default: "pagelab",
        role: Role::Arms,
    },
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
    ("populate=mlock… with page=hugetlb-…", "hugetlb pages are never paged out: nothing to lock"),
    ("threads and processes above 1", "they are two questions; ask one at a time"),
    ("order=random with threads above 1", "threads share the range in ascending shares"),
    ("arms=c outside page=4k|2m, anon, touch=8@…, one ordinary worker", "the C loop does no more"),
    ("populate=map-populate with mem-node", "memory is there before it can be bound to a node"),
    ("size not divisible by page and stride × workers", "every worker touches whole pages"),
    space::TRUE_LIE,
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
        if case.get("size") != Some("auto") {
            return case;
        }
        let size = space::automatic_size(PageSize::of(&case));
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
            && is("fifo", "off")
            && is("mem-node", "any")
            && stride.bytes == 8
            && threads * processes == 1;
        let locks = case.get("populate").is_some_and(|populate| populate.starts_with("mlock"));
        let step = stride.step as u64;
        let window = if folio { 1 << 20 } else { 1 };
        let unit = page.bytes().max(step).max(window) * (threads * processes) as u64;
        let indivisible = !size_of(case).is_multiple_of(unit) || (folio && step > window);
        let refused = [
            hugetlb && !is("backing", "anon"),
            is("backing", "brk") && folio,
            ragged && hugetlb,
            ragged && page == PageSize::Base,
            ragged && folio,
            ragged && stride.step != 4096,
            locks && hugetlb,
            threads > 1 && processes > 1,
            is("order", "random") && threads > 1,
            has_c && !plain,
            is("populate", "map-populate") && !is("mem-node", "any"),
            indivisible,
            space::lie_is_true(case),
        ];
        match refused.iter().position(|refused| *refused) {
            Some(index) => Err(format!("{}: {}", REFUSALS[index].0, REFUSALS[index].1)),
            None => Ok(()),
        }
    }

    fn refusals(&self) -> &'static [(&'static str, &'static str)] {
        REFUSALS
    }

    fn needs(&self, case: &Case) -> Vec<Need> {
        let asks_early = case.get("populate") == Some("map-populate");
        let mut needs = space::needs(case, self.footprint(case), asks_early);
        let (threads, processes) = workers(case);
        needs.push(Need::CpuCount(if case.get("cpu") == Some("auto") {
            threads.max(processes)
        } else {
            1
        }));
        if case.get("populate") == Some("madvise-populate") {
            needs.push(Need::PopulateWrite);
        }
        if case.get("populate").is_some_and(|populate| populate.starts_with("mlock")) {
            needs.push(Need::Lockable(size_of(case)));
        }
        needs
    }

    fn footprint(&self, case: &Case) -> u64 {
        size_of(case)
    }

    fn repetitions(&self, case: &Case) -> Option<u32> {
        case.get("rounds").and_then(|rounds| rounds.parse().ok())
    }

    fn smallest(&self) -> &'static [(&'static str, &'static str)] {
        &[("size", "4m"), ("rounds", "2")]
    }

    fn prepare(&self, case: &Case, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let (threads, processes) = workers(case);
        let workers = threads * processes;
        let space = Space::of(case, processes as u64);
        let stride = stride_of(case);
        let random = case.get("order") == Some("random");
        let plan = Plan {
            space,
            populate: populate_of(case),
            stride,
            list: random.then(|| random_list(&space, stride.step)),
            fifo: case.get("fifo") == Some("on"),
            by_perf: false,
            threads,
            cpus: cpus_of(case, workers),
        };
        let pinned = if processes == 1 { plan.cpus[0].map(Pinned::to).transpose()? } else { None };
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        for arm in arms(case) {
            trials.push(match arm {
                "c" => Box::new(Twin::new(&plan)),
                _ => Box::new(Rounds::new(plan.clone(), processes)),
            });
        }
        // The process ends with the case: its one thread stays where it is.
        std::mem::forget(pinned);
        Ok(trials)
    }
}

fn arms(case: &Case) -> Vec<&'static str> {
    let asked = case.get("arms").unwrap_or("pagelab");
    ["pagelab", "c"].into_iter().filter(|arm| asked.split(',').any(|word| word == *arm)).collect()
}

fn workers(case: &Case) -> (usize, usize) {
    let count = |name| case.get(name).and_then(|count| count.parse().ok()).unwrap_or(1);
    (count("threads"), count("processes"))
}

fn populate_of(case: &Case) -> Populate {
    match case.get("populate") {
        Some("map-populate") => Populate::Map,
        Some("madvise-populate") => Populate::Madvise,
        Some("mlock") => Populate::Lock,
        Some("mlock-onfault") => Populate::LockOnFault,
        _ => Populate::Touch,
    }
}

/// Every step of a space, pages in a random order that is the same in every run.
fn random_list(space: &Space, step: usize) -> TouchList {
    let page = usize::try_from(space.page.bytes()).expect("addresses have 64 bits");
    let bytes = space.layout.bytes();
    let unit = page.max(step);
    let mut units: Vec<usize> = (0..bytes / unit).collect();
    fastrand::Rng::with_seed(0x7061_6765).shuffle(&mut units);
    let steps = units
        .into_iter()
        .flat_map(|unit_index| (0..unit / step).map(move |index| unit_index * unit + index * step));
    TouchList::new(steps.map(|at| (space.layout.offset(at), false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::complete;

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
        assert!(refused(&[("page", "hugetlb-2m"), ("populate", "mlock")]));
        assert!(refused(&[("threads", "2"), ("processes", "2")]));
        assert!(refused(&[("threads", "2"), ("order", "random")]));
        assert!(refused(&[("page", "64k"), ("arms", "pagelab,c")]));
        assert!(refused(&[("size", "3m"), ("page", "2m")]));
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
