//! `tlb/chase`: what a load takes over so much memory in pages of one size, and what of that is
//! translation.
//!
//! A chain goes through the memory, one line in each block of 4 KiB; each load tells where the next
//! one is. Inside the clock is a piece of whole laps of that chain and nothing else: no fault, no
//! call. A second arm walks the same chain over larger pages in the same process: the same lines in
//! the same order, so that the data caches do the same, and fewer translations. The difference of
//! the two is what the smaller pages cost.
//!
//! Everything is present before the first lap; which pages it lies on is read back after each
//! repetition by the same witness as that of the faults.

use std::rc::Rc;

use pagelab_bench::{
    Described, Error, Experiment, Inputs, Kind, Meter, Needed, PageSize, Param, Read, Refusal,
    Trial, Witness, cpus::stay, unique,
};
use pagelab_record::{
    Case, Table,
    vocabulary::{
        Check,
        arm::{AGAINST, OURS},
        counter::LINES,
        series::LOAD,
        table,
    },
};
use pagelab_sys::{
    loops::chase::{Chain, Lap},
    machine::tlb::{Tlb, tlbs},
    memory::Scanner,
    process::{Fifo, current_cpu},
    time::{Usage, usage},
};

use crate::{
    course::course,
    ground::{Backing, Ground, Seen, needs_of},
};
use pagelab_mappings::{self as mappings, Lie, kinds, leave_unmarked, space};

const PARAMS: &[Param] = &[
    space::PAGE,
    Param::axis("backing", Kind::Choice(Backing::WORDS), "anon")
        .help("what the page under test is of: a mapping, a segment of ours or of the module"),
    Param::axis("against", Kind::Page, "2m")
        .help("page size of the arm beside it, over the same chain in the same process"),
    Param::axis("size", Kind::Sweep(SIZES), "all")
        .help("memory that the chain goes through; all: from 128k to 8g in 26 steps"),
    Param::axis("loads", Kind::Ops, "200k")
        .help("loads of an arm in a repetition, at least: whole laps of the chain"),
    Param::axis("together", Kind::Choice(&["1", "8"]), "1")
        .help("loads that are under way at once, each from elsewhere on the chain; 1: each waits"),
    space::CPU,
    space::ROUNDS,
    space::FIFO,
    Param { kind: Kind::Choice(&["none", "thp-on", "thp-off"]), ..space::LIE },
];

/// Close where first and second levels of TLBs end, for base pages as for larger ones.
const SIZES: &[&str] = &[
    "128k", "192k", "256k", "384k", "512k", "768k", "1m", "1536k", "2m", "3m", "4m", "6m", "8m",
    "12m", "16m", "24m", "32m", "64m", "128m", "256m", "512m", "1g", "2g", "4g", "6g", "8g",
];

/// What a case without a size goes through, where nobody makes a grid of it.
const SIZE: &str = "64m";

/// Times of a repetition: whatever interrupts one of them leaves the others alone.
const PIECES: usize = 16;

/// The smallest block that can be told from another.
const BLOCK: u64 = 4096;

/// A case, read.
#[derive(Debug)]
pub struct Asked {
    /// The arm under test.
    page: mappings::Asked,
    /// What its memory is.
    backing: Backing,
    /// The one beside it, unless that is the same.
    against: Option<mappings::Asked>,
    /// Bytes that the chain goes through.
    bytes: u64,
    /// `None` where no end is named.
    loads: Option<u64>,
    /// How many ways the chain is walked at once.
    together: u64,
}

impl Asked {
    fn of(case: &Case) -> Self {
        let backing: Backing = case.word("backing");
        // Of fault workloads it is a place.
        let mut common = case.clone();
        common.0.retain(|name, _| name.as_str() != "backing");
        let page = kinds::asked(&common);
        let bytes = page.size;
        let against = case.text("against").map(PageSize::parse);
        let against = against.map(|page| page.expect("the page is canonical"));
        let beside = against.filter(|other| *other != page.page || backing != Backing::Anon);
        Self {
            against: beside.map(|other| {
                let asked = mappings::Asked { page: other, lie: Lie::None, ..page.clone() };
                in_whole_pages(asked)
            }),
            page: in_whole_pages(page),
            backing,
            bytes,
            loads: case.count("loads"),
            together: case.count("together").unwrap_or(1),
        }
    }

    fn is_of_module_and_lies(&self) -> bool {
        self.backing == Backing::Module && self.page.lie != Lie::None
    }

    /// Laps of a repetition.
    fn laps(&self) -> u64 {
        self.loads.unwrap_or(1).div_ceil(self.lines()).max(1)
    }

    fn lines(&self) -> u64 {
        self.bytes / BLOCK
    }

    fn arms(&self) -> impl Iterator<Item = (&'static str, &mappings::Asked, Backing)> {
        let beside = self.against.iter().map(|asked| (AGAINST, asked, Backing::Anon));
        [(OURS, &self.page, self.backing)].into_iter().chain(beside)
    }
}

/// The same with its memory in whole pages, and whole windows of large folios.
fn in_whole_pages(asked: mappings::Asked) -> mappings::Asked {
    /// Bytes of a window.
    const WINDOW: u64 = 1 << 20;
    let unit = if asked.is_folio() && asked.size > WINDOW { WINDOW } else { asked.page.bytes() };
    mappings::Asked { size: asked.size.next_multiple_of(unit), ..asked }
}

const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.bytes < 2 * BLOCK || !asked.bytes.is_multiple_of(BLOCK),
        "size below 8k or in broken blocks of 4k",
        "a chain has a line in each block of 4k, and two of them at least; use size=128k",
    ),
    Refusal::new(
        |asked| asked.loads.is_none(),
        "loads=all|auto",
        "there is no end of laps; use a number",
    ),
    Refusal::new(
        |asked| {
            let both_folios = |other: &mappings::Asked| other.is_folio() && asked.page.is_folio();
            asked.against.as_ref().is_some_and(both_folios)
        },
        "page and against of two sizes between 4k and 2m",
        "the kernel hands out folios of one such size at a time; use against=2m",
    ),
    Refusal::new(
        |asked| match asked.backing {
            Backing::Segment => !matches!(asked.page.page, PageSize::Thp | PageSize::Hugetlb(_)),
            Backing::Module => !matches!(asked.page.page, PageSize::Base | PageSize::Thp),
            Backing::Anon => false,
        },
        "backing=segment below 2m, backing=module other than 4k and 2m",
        "no segment has such leaves; use page=2m",
    ),
    Refusal::new(
        |asked| asked.page.lies_truly() || asked.is_of_module_and_lies(),
        "a lie that changes nothing for this page size",
        "it would be the truth; use lie=thp-on with page=4k, lie=thp-off with larger pages",
    ),
];

/// See the module's documentation.
pub const CHASE: Described<Asked> = Described {
    resolve: |case| if case.is("size", "all") { case.with("size", SIZE) } else { case },
    refusals: REFUSALS,
    ..Described::new(
        "tlb/chase",
        "what a load takes over so much memory, and what of it is translation, for every page size",
        PARAMS,
        &[("size", "1m"), ("loads", "10k"), ("rounds", "2")],
        Asked::of,
    )
};

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        let of = |(_, asked, backing)| needs_of(asked, backing, self.footprint());
        unique(self.arms().flat_map(of))
    }

    fn footprint(&self) -> u64 {
        // What the chain is laid by is gone before it is walked.
        self.arms().map(|(_, asked, _)| asked.size).sum::<u64>() + self.lines() * 40
    }

    fn seconds(&self) -> f64 {
        // A lap before the clock starts, and those within it.
        let loads = (self.laps() + self.together) * self.lines() * self.arms().count() as u64;
        // From a cache nearby to memory with a walk of its own.
        let load_ns = if self.bytes < 64 << 20 { 20.0 } else { 200.0 };
        loads as f64 * load_ns / 1e9 + 0.002
    }

    fn repetitions(&self) -> Option<u32> {
        self.page.rounds
    }

    fn prepare(&self, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        leave_unmarked();
        let cpu = self.page.cpus.of_workers(1)[0];
        stay(cpu)?;
        let places = course(self.bytes, self.page.page.bytes());
        let tlbs: Rc<[Tlb]> = tlbs().into();
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        for (arm, asked, backing) in self.arms() {
            let together = usize::try_from(self.together).unwrap_or(1);
            let (ground, chain) = Ground::lay(asked, backing, &places, together)?;
            trials.push(Box::new(Walk {
                arm,
                ground,
                chain,
                together: self.together,
                laps: self.laps(),
                fifo: asked.fifo,
                is_pinned: cpu.is_some(),
                tlbs: Rc::clone(&tlbs),
                scanner: Scanner::open()?,
                seen: None,
                found: None,
                // Not zeroes: the loop would fault on its own slots.
                times: vec![1; PIECES],
                counted: Usage::default(),
                has_moved: false,
            }));
        }
        Ok(trials)
    }
}

/// An arm: a chain over pages of one size.
#[derive(Debug)]
struct Walk {
    arm: &'static str,
    ground: Ground,
    chain: Chain,
    laps: u64,
    together: u64,
    fifo: bool,
    is_pinned: bool,
    tlbs: Rc<[Tlb]>,
    scanner: Scanner,
    seen: Option<Seen>,
    /// Where a lap leads, asked in the warm-up.
    found: Option<Lap>,
    /// Nanoseconds of each piece.
    times: Vec<u64>,
    counted: Usage,
    has_moved: bool,
}

impl Trial for Walk {
    fn arm(&self) -> &'static str {
        self.arm
    }

    fn counts_faults(&self) -> bool {
        true
    }

    fn reset(&mut self) -> Result<(), Error> {
        // What the other arm left in caches and TLBs is not this one's.
        self.chain.walk(self.chain.length());
        Ok(())
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Self { chain, laps, times, together, .. } = self;
        // Of each of those who walk at once.
        let (loads, clock) = (*laps * chain.length() / *together, meter.clock());
        let piece = (loads / PIECES as u64).max(1);
        let fifo = if self.fifo { Some(Fifo::enter()?) } else { None };
        let cpu = current_cpu();
        // Read once before it counts: its own code may be fresh.
        usage::thread();
        let before = usage::thread();
        for time in times.iter_mut() {
            *time = clock.elapsed_ns(clock.span(|| chain.walk(piece)));
        }
        self.counted = usage::thread().since(before);
        self.has_moved = current_cpu() != cpu;
        drop(fifo);
        // Home again: what the pieces left of the last lap.
        let walked = piece * PIECES as u64;
        chain.walk(walked.next_multiple_of(chain.length()) - walked);
        meter.observe_rounds(LOAD, piece * *together, 0, times.clone());
        self.seen = Some(self.ground.look(&self.chain, &self.scanner)?);
        self.found = meter.is_warm_up().then(|| self.chain.lap());
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let lines = self.chain.length();
        let faults = self.counted.minor_faults + self.counted.major_faults;
        witness.expect(Check::FaultsOfLoop, 0, faults);
        let elsewhere = u64::from(!self.chain.is_home());
        witness.expect(Check::ChainClosed, 0, elsewhere);
        if let Some(Lap { blocks, is_closed }) = self.found {
            witness.expect_lasting(Check::ChainBlocks, lines, if is_closed { blocks } else { 0 });
        }
        self.ground.testify(self.seen.take().expect("run comes before verify"), witness);
        if self.is_pinned {
            let moved = u64::from(self.has_moved);
            witness.expect(Check::MovedCpu, 0, moved);
        }
        witness.set(LINES, lines);
        witness.count("preemptions", self.counted.involuntary_switches);
        if !self.tlbs.is_empty() {
            witness.table(told(&self.tlbs));
        }
        Ok(())
    }
}

/// What the processor says of its TLBs, as a table.
pub fn told(tlbs: &[Tlb]) -> Table {
    let units = ["bytes", "", "count"].into_iter();
    let columns = table::TLBS_COLUMNS.into_iter().zip(units);
    let row = |tlb: &Tlb| [tlb.page, tlb.level.into(), tlb.entries];
    Table::new(table::TLBS, columns, tlbs.iter().map(row))
}

#[cfg(test)]
mod tests {
    use pagelab_bench::plan::{complete, grid};

    use super::*;

    fn asked(pairs: &[(&str, &str)]) -> Asked {
        Asked::of(&complete(&CHASE, pairs).unwrap())
    }

    #[test]
    fn a_repetition_is_whole_laps_and_at_least_the_loads_that_were_asked_for() {
        assert_eq!(asked(&[("size", "1m"), ("loads", "1k")]).laps(), 4);
        assert_eq!(asked(&[("size", "1m"), ("loads", "1024")]).laps(), 4);
        assert_eq!(asked(&[("size", "1g"), ("loads", "1k")]).laps(), 1);
    }

    #[test]
    fn memory_is_in_whole_pages_and_the_chain_in_as_much_as_was_asked_for() {
        let found = asked(&[("size", "192k")]);
        let of = |asked: &Asked| {
            (asked.lines(), asked.page.size, asked.against.as_ref().map(|asked| asked.size))
        };
        assert_eq!(of(&found), (48, 192 << 10, Some(2 << 20)));
        let folio = asked(&[("size", "1536k"), ("page", "64k")]);
        assert_eq!(of(&folio), (384, 2 << 20, Some(2 << 20)));
        assert_eq!(folio.page.space(1).layout.bytes(), 2 << 20);
        let large = asked(&[("page", "2m"), ("size", "128k")]);
        assert_eq!(of(&large), (32, 2 << 20, None), "it is the same as what it stands against");
    }

    #[test]
    fn without_a_size_the_grid_has_all_of_them() {
        let (cases, left_out) = grid(&CHASE, &[]).unwrap();
        assert_eq!((cases.len(), left_out.len()), (SIZES.len(), 0));
        let size = [("size".to_owned(), vec!["1m".to_owned()])];
        assert_eq!(grid(&CHASE, &size).unwrap().0.len(), 1);
        let help = PARAMS.iter().find(|param| param.name == "size").unwrap().help;
        assert!(help.contains(&format!("in {} steps", SIZES.len())), "{help}");
    }
}
