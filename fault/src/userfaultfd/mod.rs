//! `fault/userfaultfd`: how long a fault takes that user space resolves, as a distribution.
//!
//! The one idea: a resolver is a handler times an operation. The faulting thread times each of its
//! touches as `fault/latency` does, so the sample holds the exception, the message or signal, the
//! way to the handler, its request, and the way back. Everything else is proven by who did what:
//! messages, signals, requests, bytes, pages, marks, contents, CPUs.
//!
//! Not measured: registering, write-protecting beforehand, filling what is copied or moved.

mod arms;
mod choice;
mod expected;
mod ground;
mod samples;
mod team;

use std::rc::Rc;

use pagelab_bench::{
    Described, Error, Experiment, Inputs, Kind, Need, Needed, Param, Read, Refusal, Trial,
    cpus::stay,
    needs::{Cpus, Memory, Pool, SCHED_FIFO},
};

use pagelab_sys::loops::TouchList;

use self::{
    arms::{Control, Faults, Setup, Shared},
    choice::{Choice, Handler, Lie, Way},
};
use pagelab_mappings::{leave_unmarked, needs::Uffd, space};

const PARAMS: &[Param] = &[
    Param::axis("handler", Kind::Choice(Handler::WORDS), "same-cpu").asks(&["sigbus"]).help(
        "who resolves: the faulting thread in SIGBUS, a thread on the same or another CPU, \
               the kernel",
    ),
    Param::axis("op", Kind::Choice(Way::WORDS), "copy")
        .asks(&["copy", "continue", "wp", "move", "poison"])
        .help(
            "how: UFFDIO_COPY, _ZEROPAGE (at a load or a store), _CONTINUE, _WRITEPROTECT, \
               _MOVE, _POISON; wp-async: the kernel",
        ),
    Param::axis("page", Kind::Choice(&["4k", "hugetlb-2m"]), "4k")
        .help("page size: 4k or hugetlb-2m"),
    Param::axis("batch", Kind::Count { max: 512, auto: false }, "1")
        .help("aligned pages that one fault resolves, a power of two"),
    Param::axis("threads", Kind::Count { max: 64, auto: false }, "1")
        .asks(&["2"])
        .help("threads that fault at once, each in its own part of the memory"),
    Param::axis("uffds", Kind::Choice(&["one", "each"]), "one")
        .help("userfaultfds: one for all faulting threads, or one for each"),
    Param::axis("handlers", Kind::Count { max: 16, auto: false }, "1")
        .help("handler threads of each userfaultfd"),
    space::ORDER,
    space::CPU,
    space::NODE,
    space::SIZE,
    space::ROUNDS,
    space::FIFO,
    Param::axis("lie", Kind::Choice(Lie::WORDS), "none")
        .help("do something else than the case says; the record must come out invalid"),
];

const REFUSALS: &[Refusal<Choice>] = &[
    Refusal::new(
        |asked| asked.handler == Handler::None && asked.way != Way::Async,
        "handler=none with op other than wp-async",
        "nobody would resolve; name a handler",
    ),
    Refusal::new(
        |asked| asked.handler != Handler::None && asked.way == Way::Async,
        "op=wp-async with a handler",
        "the kernel resolves and says nothing; use handler=none",
    ),
    Refusal::new(
        |asked| {
            let needs_cpu = !matches!(asked.handler, Handler::AnyCpu) && asked.handler.is_thread();
            needs_cpu && asked.cpus.is_empty()
        },
        "handler=same-cpu, other-cpu or other-cpu-poll with cpu=none",
        "a thread that is not pinned has no CPU to share; use handler=any-cpu",
    ),
    Refusal::new(
        |asked| asked.handler == Handler::SameCpu && asked.threads > 1 && !asked.each,
        "handler=same-cpu with threads above 1 and uffds=one",
        "one handler cannot be on the CPU of all; use uffds=each",
    ),
    Refusal::new(
        |asked| asked.each && asked.threads == 1,
        "uffds=each with threads=1",
        "it is the same as uffds=one; use that",
    ),
    Refusal::new(
        |asked| asked.handlers > 1 && !asked.handler.is_thread(),
        "handlers above 1 with handler=sigbus or none",
        "there are no handler threads; use handlers=1",
    ),
    Refusal::new(
        |asked| {
            let is_lacking = matches!(asked.way, Way::ZeroPage | Way::ZeroPageWrite | Way::Move);
            asked.is_hugetlb() && is_lacking
        },
        "op=zeropage, zeropage-write or move with page=hugetlb-2m",
        "the kernel has neither for hugetlb pages; use op=copy or continue",
    ),
    Refusal::new(
        |asked| asked.batch > 1 && asked.handler == Handler::None,
        "batch above 1 with handler=none",
        "the kernel resolves page by page; use batch=1",
    ),
    Refusal::new(
        |asked| {
            let most = if asked.is_hugetlb() { 16 << 20 } else { 2 << 20 };
            !asked.batch.is_power_of_two() || asked.unit() > most
        },
        "batch that is no power of two, or above 2m of memory (16m of hugetlb pages)",
        "one fault resolves aligned pages of one page-table page; use 1, 2, 4 … 512 (8)",
    ),
    Refusal::new(
        |asked| !asked.size.is_multiple_of(asked.threads * asked.real_unit()),
        "size not divisible by threads × batch × page (and twice that for lie=double)",
        "each thread touches whole units; use a power of two",
    ),
    Refusal::new(
        |asked| match asked.lie {
            Lie::None | Lie::Present => false,
            Lie::Elsewhere => asked.handler == Handler::AnyCpu || !asked.handler.is_thread(),
            Lie::Content => asked.way != Way::Copy,
            Lie::Double => asked.handler == Handler::None,
        },
        "a lie that this resolver cannot tell",
        "nothing would be proven",
    ),
];

/// What it is called.
pub const NAME: &str = USERFAULTFD.about.name;

/// See the module's documentation.
pub const USERFAULTFD: Described<Choice> = Described {
    resolve: |case| {
        if !case.is("size", "auto") {
            return case;
        }
        // 8192 faults of 4k take a third of a second where each wakes another CPU of a guest.
        let size = if case.is("page", "hugetlb-2m") { "64m" } else { "32m" };
        case.with("size", size)
    },
    refusals: REFUSALS,
    ..Described::new(
        "fault/userfaultfd",
        "the time of a fault that user space resolves, by who resolves it and how",
        PARAMS,
        &[("size", "4m"), ("rounds", "2")],
        Choice::of,
    )
};

impl Experiment for Choice {
    fn needs(&self) -> Vec<Needed> {
        // Abilities first: without them the rest does not matter.
        let mut needs: Vec<Needed> =
            self.abilities().into_iter().map(|ability| Uffd(ability).needed()).collect();
        needs.push(Memory(self.footprint()).needed());
        if self.is_hugetlb() {
            let pages = (self.size >> 21) as u64;
            needs.push(Pool { shift: 21, pages }.needed());
        }
        if self.fifo {
            needs.push(SCHED_FIFO.needed());
        }
        needs.extend(self.chosen.needs());
        if self.cpus_needed() > self.cpus.len().max(1) {
            needs.push(Cpus::Count(self.cpus_needed()).needed());
        }
        needs
    }

    fn footprint(&self) -> u64 {
        let source = if self.way == Way::Copy { self.real_unit() } else { 0 };
        (self.size + source) as u64
    }

    fn seconds(&self) -> f64 {
        let faults = (self.size / self.unit()) as f64;
        // What a wake-up of another CPU takes in a guest, and what copying takes.
        faults * 30e-6 + self.size as f64 / 1e9 + 0.005
    }

    fn repetitions(&self) -> Option<u32> {
        self.rounds
    }

    fn prepare(&self, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        leave_unmarked();
        let choice = self.clone();
        stay(choice.faulter_cpu(0))?;
        let lists = (0..choice.threads).map(|thread| touches(&choice, thread)).collect();
        let setup = Rc::new(Setup { choice, lists });
        let ground = Shared::default();
        Ok(vec![
            Box::new(Faults::new(Rc::clone(&setup), Rc::clone(&ground))?),
            Box::new(Control::new(setup, ground)),
        ])
    }
}

/// One touch a page of a thread's part, on a line that moves through the first 4 KiB of the page.
///
/// With one page at a fault the marked ones are those that also allocate a page of page table; with
/// more, those that meet a unit first.
fn touches(choice: &Choice, thread: usize) -> TouchList {
    let (from, to) = choice.slice(thread);
    let mut pages: Vec<usize> = (from / choice.page..to / choice.page).collect();
    if choice.random {
        fastrand::Rng::with_seed(0x7061_6765).shuffle(&mut pages);
    }
    // A hugetlb page, and one that is protected in its place, has its page table already.
    let has_table = choice.is_hugetlb() || choice.way.protects();
    let mark = if choice.batch > 1 { choice.unit() } else { 2 << 20 };
    let mut seen = std::collections::BTreeSet::new();
    TouchList::new(pages.into_iter().map(|index| {
        let start = index * choice.page;
        let first = seen.insert(start / mark) && (choice.batch > 1 || !has_table);
        // 5 is coprime to 64: all lines of a page are used before one comes again.
        (start + index * 5 % 64 * 64, first)
    }))
}

#[cfg(test)]
mod tests;
