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
    Described, Error, Experiment, Inputs, Kind, Need, Needed, Over, Param, Refusal, Trial,
    cpus::stay,
};
use pagelab_sys::loops::{Access, TouchList};

pub use sources::TRACEPOINTS;

use self::{
    arms::{Setup, Staged},
    sources::Marks,
};
use pagelab_mappings::{Asked, kinds, leave_unmarked, space};

const PARAMS: &[Param] = &[
    Param::axis("kind", Kind::Choice(&["write", "read"]), "write")
        .help("write: the first store to a page; read: the first load, which maps the zero page"),
    space::CPU,
    Param::axis("size", Kind::Size, "8m")
        .help("memory touched in each repetition, one touch for each base page"),
    space::ROUNDS,
    space::FIFO,
];

const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| !asked.size.is_multiple_of(4096),
        "size not divisible by 4k",
        "only whole pages are touched",
    ),
    Refusal::new(
        |asked| asked.size > SIZE_MAX,
        "size above 32m",
        "every event of a repetition must fit into the rings; ask for more --rounds",
    ),
    Refusal::new(
        |asked| asked.cpus.is_none,
        "cpu=none",
        "the stages of a fault are those of one CPU; name one, or auto",
    ),
];

/// Largest size, in bytes.
const SIZE_MAX: u64 = 32 << 20;

/// What it is called.
pub const NAME: &str = STAGES.about.name;

/// See the module's documentation.
pub const STAGES: Described<Traced> = Described {
    parts: &[&Over { of: |traced: &Traced| &traced.0, tables: &[REFUSALS] }],
    ..Described::new(
        "fault/stages",
        "entry, handling and return of one fault from tracepoints, and what being told costs",
        PARAMS,
        &[("size", "4m"), ("rounds", "2")],
        |case| Traced(kinds::asked(case)),
    )
};

/// A case whose faults are traced.
#[derive(Debug)]
pub struct Traced(Asked);

impl Experiment for Traced {
    fn needs(&self) -> Vec<Needed> {
        let mut needs = self.0.needs(self.footprint());
        needs.push(TRACEPOINTS.needed());
        needs
    }

    fn footprint(&self) -> u64 {
        // The events of a fault take less than a kilobyte, in rings and as values.
        self.0.size + self.0.size / 4
    }

    fn seconds(&self) -> f64 {
        // Four arms; opening and closing tracepoints takes some 50 ms.
        0.1 + (self.0.size / 4096) as f64 * 15e-6
    }

    fn repetitions(&self) -> Option<u32> {
        self.0.rounds
    }

    fn prepare(&self, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        leave_unmarked();
        let setup = setup(&self.0);
        stay(self.0.cpus.of_workers(1)[0])?;
        let marks = Marks::of(setup.access == Access::Write).ok_or_else(|| {
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

/// One touch a page, in ascending order, on a line that moves through the page.
fn setup(asked: &Asked) -> Setup {
    let space = asked.space(1);
    let offsets: Vec<usize> = (0..space.layout.bytes()).step_by(4096).collect();
    // The base is 2 MiB-aligned: the first touch in each also allocates a page of page table.
    let apart: Vec<bool> = offsets.iter().map(|offset| offset % (2 << 20) == 0).collect();
    let touch = |index: usize| (offsets[index] + index * 5 % 64 * 64, apart[index]);
    let list = TouchList::new((0..offsets.len()).map(touch));
    let pages = offsets.iter().map(|offset| *offset as u64).collect();
    Setup { space, list, apart, pages, access: asked.access(), fifo: asked.fifo }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_bench::plan::complete;

    #[test]
    fn one_touch_a_page_and_the_first_in_each_page_table_kept_apart() {
        let setup = setup(&kinds::asked(&complete(&STAGES, &[]).unwrap()));
        assert_eq!((setup.list.len(), setup.list.kept_apart()), (2048, 4));
        assert_eq!(setup.apart.iter().filter(|apart| **apart).count(), 4);
    }
}
