//! `fault/stages`: where the time of one fault goes, as a stock kernel tells it.
//!
//! Each touch is stamped before and after; between the stamps the kernel tells, by tracepoints and
//! by the software event of minor faults, that the fault has been entered, that its page has been
//! allocated, that it is about to be mapped, and that it has been handled. All of it is on one
//! clock, so that a fault falls into stages that add up to what the program waited for.
//!
//! Being told is dear: a fault with four events open takes more than twice as long. So the same
//! faults are taken with one event open and with none, alternated, and what the events cost is part
//! of the result. The stages are those of a *traced* fault.
//!
//! It is not a profile: no function is named, and nothing between two events is seen.

mod arms;
mod marks;
mod sources;

use pagelab_bench::{
    Kind, Param,
    inputs::Inputs,
    need::{Need, Needed},
    refusal::{Refusal, listed, refuse},
    workload::{Error, Trial, Workload},
};
use pagelab_record::Case;
use pagelab_sys::{
    loops::touch::{Access, TouchList},
    process::sched::Pinned,
};

pub use sources::TRACEPOINTS;

use self::{
    arms::{Setup, Staged},
    sources::Marks,
};
use super::{
    leave_unmarked,
    space::{self, Space, cpus_of, size_of},
};

const PARAMS: &[Param] = &[
    Param::axis("kind", Kind::Choice(&["write", "read"]), "write")
        .help("write: the first store to a page; read: the first load, which maps the zero page"),
    space::CPU,
    Param::axis("size", Kind::Size, "8m")
        .help("memory touched in each repetition, one touch for each base page"),
    space::ROUNDS,
    space::FIFO,
];

const REFUSALS: &[Refusal<Case>] = &[
    Refusal::new(
        |case| !size_of(case).is_multiple_of(4096),
        "size not divisible by 4k",
        "only whole pages are touched",
    ),
    Refusal::new(
        |case| size_of(case) > SIZE_MAX,
        "size above 32m",
        "every event of a repetition must fit into the rings; ask for more --rounds",
    ),
    Refusal::new(
        |case| case.get("cpu") == Some("none"),
        "cpu=none",
        "the stages of a fault are those of one CPU; name one, or auto",
    ),
];

/// Largest size, in bytes.
const SIZE_MAX: u64 = 32 << 20;

/// See the module's documentation.
#[derive(Debug)]
pub struct Stages;

impl Workload for Stages {
    fn name(&self) -> &'static str {
        "fault/stages"
    }

    fn summary(&self) -> &'static str {
        "entry, handling and return of one fault from tracepoints, and what being told costs"
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        refuse(REFUSALS, case)
    }

    fn refusals(&self) -> Vec<(&'static str, &'static str)> {
        listed(REFUSALS).collect()
    }

    fn needs(&self, case: &Case) -> Vec<Needed> {
        let mut needs = space::needs(&base_pages(case), self.footprint(case), false);
        needs.push(TRACEPOINTS.needed());
        needs
    }

    fn footprint(&self, case: &Case) -> u64 {
        // The events of a fault take less than a kilobyte, in rings and as values.
        size_of(case) + size_of(case) / 4
    }

    fn seconds(&self, case: &Case) -> f64 {
        // Four arms; opening and closing tracepoints takes some 50 ms.
        0.1 + (size_of(case) / 4096) as f64 * 15e-6
    }

    fn repetitions(&self, case: &Case) -> Option<u32> {
        space::rounds_of(case)
    }

    fn smallest(&self) -> &'static [(&'static str, &'static str)] {
        &[("size", "4m"), ("rounds", "2")]
    }

    fn prepare(&self, case: &Case, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        leave_unmarked();
        let access = match case.get("kind") {
            Some("read") => Access::Read,
            _ => Access::Write,
        };
        let setup = setup(case, access);
        // The process ends with the case: its one thread stays where it is.
        std::mem::forget(cpus_of(case, 1)[0].map(Pinned::to).transpose()?);
        let marks = Marks::of(access == Access::Write).ok_or_else(|| {
            Error::Case("the kernel's tracepoints are gone since they were looked for".to_owned())
        })?;
        let first = marks.first();
        let arm = |name, marks, is_control| -> Box<dyn Trial> {
            Box::new(Staged::new(name, setup.clone(), marks, is_control))
        };
        Ok(vec![
            arm("traced", Some(marks), false),
            arm("one-event", Some(first), false),
            arm("untraced", None, false),
            arm("control", None, true),
        ])
    }
}

/// The case with the page size that all of its cases have.
fn base_pages(case: &Case) -> Case {
    case.clone().with("page", "4k")
}

/// One touch a page, in ascending order, on a line that moves through the page.
fn setup(case: &Case, access: Access) -> Setup {
    let space = Space::of(&base_pages(case), 1);
    let offsets: Vec<usize> = (0..space.layout.bytes()).step_by(4096).collect();
    // The base is 2 MiB-aligned: the first touch in each also allocates a page of page table.
    let apart: Vec<bool> = offsets.iter().map(|offset| offset % (2 << 20) == 0).collect();
    let touch = |index: usize| (offsets[index] + index * 5 % 64 * 64, apart[index]);
    let list = TouchList::new((0..offsets.len()).map(touch));
    let pages = offsets.iter().map(|offset| *offset as u64).collect();
    Setup { space, list, apart, pages, access, fifo: case.get("fifo") == Some("on") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_bench::plan::complete;

    #[test]
    fn every_refusal_has_a_case_that_meets_it_and_the_neighbour_is_accepted() {
        for refused in [("size", "4097"), ("size", "64m"), ("cpu", "none")] {
            assert!(complete(&Stages, &[refused]).is_err(), "{refused:?}");
        }
        for accepted in [("size", "32m"), ("size", "4k"), ("kind", "read")] {
            assert!(complete(&Stages, &[accepted]).is_ok(), "{accepted:?}");
        }
    }

    #[test]
    fn one_touch_a_page_and_the_first_in_each_page_table_kept_apart() {
        let setup = setup(&complete(&Stages, &[]).unwrap(), Access::Write);
        assert_eq!((setup.list.len(), setup.list.kept_apart()), (2048, 4));
        assert_eq!(setup.apart.iter().filter(|apart| **apart).count(), 4);
    }
}
