//! `fault/latency`: how long one fault takes, as a distribution.
//!
//! Every touch has a clock pair of its own; what lies between is one load or one store. The sample
//! goes into a histogram that is allocated and present before the first repetition. The control arm
//! runs the same loop over pages that are present: what it shows is the cost of a touch without a
//! fault, and that the loop itself takes none.
//!
//! A fault that is the first in its 2 MiB of address space also allocates a page of page table. For
//! pages up to 128k such faults are a series of their own, `fault-pagetable`; above, every
//! fourth fault or more would be one, and the cost is part of the fault.
//!
//! The cache line that is touched moves through the page, so that touches 4 KiB apart do not all
//! fall into one set of the cache.

use std::rc::Rc;

use pagelab_bench::{
    Described, Error, Experiment, Inputs, Kind, Need, Needed, Over, PageSize, Param, Read, Refusal,
    Trial, cpus::stay,
};
use pagelab_record::units::format_bytes;
use pagelab_sys::{
    arch,
    files::scratch,
    loops::{TouchList, Walk},
    machine::Topology,
};

mod refusals;

use self::refusals::{BY_KIND, REFUSALS};
use super::{
    arms::{Control, Faults, SharedArea},
    note::Note,
    refused,
    samples::{Host, Setup},
};
use pagelab_mappings::{
    Arm, Asked, Lie, Pressure, Space,
    choices::SwapTo,
    frequency,
    kinds::{self, kind_of, swap},
    leave_unmarked,
    needs::{PAGE_REPORTING, TSC},
    page_bytes, pieces, populate, pressure, space,
};

const PARAMS: &[Param] = &[
    kinds::PARAM,
    space::PAGE,
    Param {
        kind: Kind::Choice(&[
            "touch",
            "map-populate",
            "madvise-populate",
            "populate-read",
            "mlock",
            "mlock-onfault",
            "mlockall-current",
            "mlockall-future",
            "map-locked",
        ]),
        ..populate::PARAM
    },
    pressure::PRESSURE,
    space::ORDER,
    space::CPU,
    space::NODE,
    space::MEM_NODE,
    space::SIZE,
    space::ROUNDS,
    space::FIFO,
    frequency::GOVERNOR,
    frequency::TURBO,
    Param::axis("host", Kind::Choice(&["warm", "cold"]), "warm").help(
        "warm: memory as it comes; cold: after the host took it back (kept apart either way)",
    ),
    Param::axis("caches", Kind::Choice(&["warm", "cold"]), "warm").help(
        "warm: the loop does nothing but touch; cold: as much other memory as the second-level \
         cache holds is walked over between two touches",
    ),
    swap::PARAMS[0],
    swap::PARAMS[1],
    swap::PARAMS[2],
    swap::PARAMS[3],
    Param::axis("rate", Kind::Rate, "max")
        .help("touches a second, each due at its own time (open loop); max: as fast as they come"),
    Param::arms("arms", Kind::Choice(&["pagelab", "as-published"]), "pagelab")
        .asks(&["as-published"])
        .help("as-published adds the latency note's method; the control is always there"),
    Param::axis("dir", Kind::Dir, "auto").help(
        "directory of the scratch file of kinds that use one; auto: TMPDIR, /var/tmp or /tmp",
    ),
    Param { kind: Kind::Choice(Lie::WORDS), ..space::LIE },
];

/// What it is called.
pub const NAME: &str = LATENCY.about.name;

/// See the module's documentation.
pub const LATENCY: Described<OneByOne> = Described {
    resolve: |case| {
        let kind = kind_of(&case);
        let case = swap::resolve(case);
        let case = if kind.uses_dir && case.is("dir", "auto") {
            case.with("dir", &scratch::default_directory().display().to_string())
        } else {
            case
        };
        if !case.is("size", "auto") {
            return case;
        }
        let page = PageSize::of(&case);
        let size = space::automatic_size(page, kind.automatic_size_max);
        // A paced repetition lasts as long as its touches are apart, a cold one many times a warm.
        let size = match case.number::<u64>("rate") {
            Some(rate) => size.min((rate * page.bytes() * 9 / 10).max(1)),
            None if case.is("caches", "cold") => size.min(WALKED_MAX).max(page.bytes()),
            None if case.is("host", "cold") => size.min(128 << 20),
            None if kind.name == "swap" => size.min(swap::SIZE),
            None if !case.is("pressure", "none") => pressure::automatic_size(size),
            None => size,
        };
        let size = (1 << size.ilog2()).max(page.bytes());
        case.with("size", &format_bytes(size))
    },
    refuse: |one| (one.0.kind.refuse)(&one.0),
    parts: &[&Over { of: |one: &OneByOne| &one.0, tables: TABLES }],
    refuses: &[BY_KIND],
    ..Described::new(
        "fault/latency",
        "the time of every single fault, as a distribution, beside a control that takes none",
        PARAMS,
        &[("size", "4m"), ("rounds", "2")],
        |case| OneByOne(kinds::asked(case)),
    )
};

/// What is turned away, in the order in which it is looked for.
const TABLES: &[&[Refusal<Asked>]] =
    &[REFUSALS, refused::PRESSED, refused::POPULATED, refused::SWAPPED];

/// A case whose touches are measured one by one.
#[derive(Debug)]
pub struct OneByOne(Asked);

impl Experiment for OneByOne {
    fn needs(&self) -> Vec<Needed> {
        let Self(asked) = self;
        let mut needs = asked.needs(self.footprint());
        needs.extend(asked.populate.needs(asked.size));
        needs.extend((asked.kind.needs)(asked));
        needs.extend(pressure::needs(asked));
        needs.extend(asked.is_cold.then(|| PAGE_REPORTING.needed()));
        needs.extend(asked.has(Arm::AsPublished).then(|| TSC.needed()));
        needs
    }

    fn footprint(&self) -> u64 {
        // zram holds what is swapped out in memory; in the worst case it does not get smaller.
        let is_twice = self.0.is_swap() && self.0.swap.to == SwapTo::Zram;
        self.0.size * if is_twice { 2 } else { 1 }
    }

    fn repetitions(&self) -> Option<u32> {
        self.0.rounds
    }

    fn seconds(&self) -> f64 {
        let Self(asked) = self;
        let touches = refusals::touches(asked) as f64;
        let paced = asked.rate.map_or(0.0, |rate| touches / rate as f64);
        let cold = if asked.is_cold { 5.0 } else { 0.0 };
        // Writing a page out takes 10 to 20 us.
        let swapped = if asked.is_swap() { touches * 25e-6 } else { 0.0 };
        // Twice, by the control too; a line of a cache that is further off takes some ns.
        let walked = if asked.walks { touches * walked_bytes() as f64 / 64.0 * 10e-9 } else { 0.0 };
        pieces::seconds(self.footprint()) + asked.kind.waits_s + paced + cold + swapped + walked
    }

    fn prepare(&self, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        leave_unmarked();
        let Self(asked) = self;
        let &Asked { kind, populate, .. } = asked;
        let mut space = asked.space(1);
        let stage = (kind.stage)(asked, &mut space, inputs)?;
        let stage = pressure::under(asked, &mut space, stage, inputs)?;
        let cpu = asked.cpus.of_workers(1)[0];
        // What was populated has its page tables.
        let tables = kind.allocates_tables && populate.is_by_touch();
        let is_pressed = asked.pressure != Pressure::None;
        let setup = Setup {
            space,
            list: touches(&space, stage.step(), asked.is_random, tables),
            populate,
            access: asked.access(),
            fifo: asked.fifo,
            is_pinned: cpu.is_some(),
            interval_ns: asked.rate.map(|rate| 1_000_000_000 / rate),
            walk: asked.walks.then(|| Rc::new(Walk::over(walked_bytes()))),
            host: if asked.is_cold {
                Host::Cold
            } else if kind.takes_fresh_memory && arch::is_guest() && !is_pressed {
                Host::AsItComes
            } else {
                Host::None
            },
        };
        stay(cpu)?;
        let area = SharedArea::default();
        let is_alone = !kind.is_fault;
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        // The control follows the arm whose pages it walks over.
        if !is_alone {
            trials.push(Box::new(Faults::new(setup.clone(), stage, SharedArea::clone(&area))?));
        }
        trials.push(Box::new(Control::new(&setup, area, is_alone)?));
        if asked.has(Arm::AsPublished) {
            trials.push(Box::new(Note::default()));
        }
        Ok(trials)
    }
}

/// Memory of a case whose caches are cold, where nobody says: each touch waits for a walk.
const WALKED_MAX: u64 = 4 << 20;

/// Bytes that a walk goes over: those of the second-level cache, or as many as most have.
fn walked_bytes() -> usize {
    let topology = Topology::machine();
    let caches = topology.caches(topology.default_cpu().unwrap_or(0));
    usize::try_from(caches.l2.unwrap_or(2 << 20)).unwrap_or(2 << 20)
}

/// One touch a page (or a step of its own), on a line that moves through the first 4 KiB of it.
fn touches(space: &Space, step: Option<usize>, random: bool, allocates_tables: bool) -> TouchList {
    let page = page_bytes(space.page);
    let page = step.unwrap_or(page);
    let mut pages: Vec<usize> = (0..space.layout.bytes() / page).collect();
    if random {
        fastrand::Rng::with_seed(0x7061_6765).shuffle(&mut pages);
    }
    let keeps_apart = allocates_tables && page <= 128 << 10;
    let mut seen = std::collections::BTreeSet::new();
    TouchList::new(pages.into_iter().map(|index| {
        let start = space.layout.offset(index * page);
        // The base is 2 MiB-aligned, so offsets tell page-table pages apart.
        let first = seen.insert(start >> 21);
        // 5 is coprime to 64: all lines of a page are used before one comes again.
        (start + index * 5 % 64 * 64, keeps_apart && first)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throughput::THROUGHPUT;
    use pagelab_bench::plan::complete;

    fn space(pairs: &[(&str, &str)]) -> Space {
        kinds::asked(&complete(&LATENCY, pairs).unwrap()).space(1)
    }

    #[test]
    fn one_touch_a_page_and_one_in_each_page_table_page_kept_apart() {
        let list = touches(&space(&[("page", "4k"), ("size", "8m")]), None, false, true);
        assert_eq!((list.len(), list.kept_apart()), (2048, 4));
        let list = touches(&space(&[("page", "4k"), ("size", "8m")]), None, true, true);
        assert_eq!((list.len(), list.kept_apart()), (2048, 4));
        let around = touches(&space(&[("page", "4k"), ("size", "8m")]), Some(65536), false, true);
        assert_eq!((around.len(), around.kept_apart()), (128, 4));
        let list = touches(&space(&[("page", "2m"), ("size", "8m")]), None, false, true);
        assert_eq!((list.len(), list.kept_apart()), (4, 0));
    }

    #[test]
    fn a_read_of_a_page_that_has_no_zero_page_is_refused_with_what_to_ask_for() {
        for page in ["64k", "hugetlb-2m"] {
            let error = complete(&LATENCY, &[("kind", "read"), ("page", page)]).unwrap_err();
            assert!(error.contains("kind=read"), "{error}");
        }
    }

    #[test]
    fn only_where_memory_is_to_be_broken_up_is_it_a_lie_not_to() {
        let lie = ("lie", "unfragmented");
        let pairs = [("pressure", "fragmented"), ("page", "2m"), lie];
        assert!(complete(&LATENCY, &pairs).is_ok() && complete(&THROUGHPUT, &pairs).is_ok());
        for pressure in ["none", "memcg"] {
            let error = complete(&LATENCY, &[("pressure", pressure), ("page", "2m"), lie]);
            assert!(error.unwrap_err().contains("would be the truth"), "{pressure}");
        }
    }
}
