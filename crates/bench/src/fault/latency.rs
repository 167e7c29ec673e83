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

use pagelab_record::Case;
use pagelab_sys::{
    sched::Pinned,
    touch::{Access, TouchList},
};

use super::{
    samples::{Control, Faults, Note, Setup, SharedArea},
    space::{self, Space, cpus_of, size_of},
};
use crate::{
    Kind, Need, Param, Role,
    inputs::Inputs,
    params::PageSize,
    workload::{Error, Trial, Workload},
};

const PARAMS: &[Param] = &[
    Param {
        name: "kind",
        help: "read: maps the zero page; write: allocates and clears; present: no fault at all",
        kind: Kind::Choice(&["read", "write", "present"]),
        default: "write",
        role: Role::Axis,
    },
    space::PAGE,
    space::ORDER,
    space::CPU,
    space::NODE,
    space::MEM_NODE,
    space::SIZE,
    space::ROUNDS,
    space::FIFO,
    Param {
        name: "arms",
        help: "as-published adds seed 003's own method beside ours; the control is always there",
        kind: Kind::Choice(&["pagelab", "as-published"]),
        default: "pagelab",
        role: Role::Arms,
    },
    space::LIE,
];

const REFUSALS: &[(&str, &str)] = &[
    (
        "kind=read with page=16k … 1m",
        "a read maps the 4k zero page whatever folios are on offer; \
      use page=4k",
    ),
    (
        "kind=read with page=2m",
        "a read maps the huge zero page, which is allocated once for the \
      machine: another experiment",
    ),
    (
        "kind=read with page=hugetlb-…",
        "a hugetlb read allocates and clears like a write; use \
      kind=write",
    ),
    ("arms=as-published with kind=write or present", "the published method reads; use kind=read"),
    ("size not divisible by the page (and by 1m for 16k … 1m)", "only whole pages are touched"),
    space::TRUE_LIE,
];

/// See the module's documentation.
#[derive(Debug)]
pub struct Latency;

impl Workload for Latency {
    fn name(&self) -> &'static str {
        "fault/latency"
    }

    fn summary(&self) -> &'static str {
        "the time of every single fault, as a distribution, beside a control that takes none"
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
        let page = PageSize::of(case);
        let read = case.get("kind") == Some("read");
        let folio = matches!(page, PageSize::Folio(_));
        let unit = if folio { 1 << 20 } else { page.bytes() };
        let refused = [
            read && folio,
            read && page == PageSize::Thp,
            read && matches!(page, PageSize::Hugetlb(_)),
            arms(case).contains(&"as-published") && !read,
            !size_of(case).is_multiple_of(unit),
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
        let mut needs = space::needs(case, self.footprint(case), false);
        if arms(case).contains(&"as-published") {
            needs.push(Need::Tsc);
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
        let space = Space::of(case, 1);
        let cpu = cpus_of(case, 1)[0];
        let setup = Setup {
            space,
            list: touches(&space, case.get("order") == Some("random")),
            access: if case.get("kind") == Some("read") { Access::Read } else { Access::Write },
            fifo: case.get("fifo") == Some("on"),
            is_pinned: cpu.is_some(),
        };
        // The process ends with the case: its one thread stays where it is.
        std::mem::forget(cpu.map(Pinned::to).transpose()?);
        let area = SharedArea::default();
        let is_alone = case.get("kind") == Some("present");
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        // The control follows the arm whose pages it walks over.
        if !is_alone {
            trials.push(Box::new(Faults::new(setup.clone(), SharedArea::clone(&area))?));
        }
        trials.push(Box::new(Control::new(setup, area, is_alone)?));
        if arms(case).contains(&"as-published") {
            trials.push(Box::new(Note::default()));
        }
        Ok(trials)
    }
}

fn arms(case: &Case) -> Vec<&'static str> {
    let asked = case.get("arms").unwrap_or("pagelab");
    ["pagelab", "as-published"]
        .into_iter()
        .filter(|arm| asked.split(',').any(|word| word == *arm))
        .collect()
}

/// One touch a page, on a line that moves through the first 4 KiB of the page.
fn touches(space: &Space, random: bool) -> TouchList {
    let page = usize::try_from(space.page.bytes()).expect("addresses have 64 bits");
    let mut pages: Vec<usize> = (0..space.layout.bytes() / page).collect();
    if random {
        fastrand::Rng::with_seed(0x7061_6765).shuffle(&mut pages);
    }
    let keeps_apart = page <= 128 << 10;
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
    use crate::plan::complete;

    fn space(pairs: &[(&str, &str)]) -> Space {
        Space::of(&complete(&Latency, pairs).unwrap(), 1)
    }

    #[test]
    fn one_touch_a_page_and_one_in_each_page_table_page_kept_apart() {
        let list = touches(&space(&[("page", "4k"), ("size", "8m")]), false);
        assert_eq!((list.len(), list.kept_apart()), (2048, 4));
        let list = touches(&space(&[("page", "4k"), ("size", "8m")]), true);
        assert_eq!((list.len(), list.kept_apart()), (2048, 4));
        let list = touches(&space(&[("page", "2m"), ("size", "8m")]), false);
        assert_eq!((list.len(), list.kept_apart()), (4, 0));
    }

    #[test]
    fn a_read_of_anything_but_a_base_page_is_refused_with_what_to_ask_for() {
        for page in ["64k", "2m", "hugetlb-2m"] {
            let error = complete(&Latency, &[("kind", "read"), ("page", page)]).unwrap_err();
            assert!(error.contains("kind=read"), "{error}");
        }
    }
}
