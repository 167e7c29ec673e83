//! What a case says, read once: who resolves, how, which pages, and on which CPUs.
//!
//! The one idea: a resolver is a handler times an operation, and everything else (what must be
//! registered, what the kernel must be able to do, where threads run) follows from the two.

use pagelab_bench::{Read, cpus::Chosen, unique, words};
use pagelab_record::Case;
use pagelab_sys::{
    loops::Access,
    uffd::{Ability, Mode, Op, Wait},
};

words! {
    /// Who resolves a fault.
    pub(super) enum Handler {
        /// The faulting thread, in its `SIGBUS` handler.
        Sigbus = "sigbus",
        /// A thread on the same CPU, asleep until a message comes.
        SameCpu = "same-cpu",
        /// A thread on another CPU, asleep until a message comes.
        OtherCpu = "other-cpu",
        /// A thread on another CPU that reads again and again.
        OtherCpuPoll = "other-cpu-poll",
        /// A thread that the scheduler places, asleep until a message comes.
        AnyCpu = "any-cpu",
        /// The kernel alone.
        None = "none",
    }
}

impl Handler {
    /// Whether it is a thread that reads messages.
    pub(super) fn is_thread(self) -> bool {
        !matches!(self, Self::Sigbus | Self::None)
    }

    /// How that thread waits.
    pub(super) fn wait(self) -> Wait {
        if self == Self::OtherCpuPoll { Wait::Spin } else { Wait::Poll }
    }
}

words! {
    /// What it does to end the fault, and so what kind of fault it is.
    pub(super) enum Way {
        /// `UFFDIO_COPY`.
        Copy = "copy",
        /// `UFFDIO_ZEROPAGE` at a load.
        ZeroPage = "zeropage",
        /// `UFFDIO_ZEROPAGE` at a store, which copies the zero page at once.
        ZeroPageWrite = "zeropage-write",
        /// `UFFDIO_CONTINUE`.
        Continue = "continue",
        /// `UFFDIO_WRITEPROTECT`.
        Unprotect = "wp",
        /// Nothing: the kernel takes the protection away.
        Async = "wp-async",
        /// `UFFDIO_MOVE`.
        Move = "move",
        /// `UFFDIO_POISON`.
        Poison = "poison",
    }
}

impl Way {
    /// The request that ends the fault.
    pub(super) fn op(self) -> Op {
        match self {
            Self::Copy => Op::Copy,
            Self::ZeroPage | Self::ZeroPageWrite => Op::ZeroPage,
            Self::Continue => Op::Continue,
            Self::Unprotect | Self::Async => Op::Unprotect,
            Self::Move => Op::Move,
            Self::Poison => Op::Poison,
        }
    }

    /// Which faults are asked for.
    pub(super) fn mode(self) -> Mode {
        match self {
            Self::Continue => Mode::Minor,
            Self::Unprotect | Self::Async => Mode::WriteProtect,
            _ => Mode::Missing,
        }
    }

    /// Whether pages are write-protected, not missing.
    pub(super) fn protects(self) -> bool {
        self.mode() == Mode::WriteProtect
    }

    pub(super) fn access(self) -> Access {
        if self == Self::ZeroPage { Access::Read } else { Access::Write }
    }
}

words! {
    /// What the kernel is told that the case does not say.
    pub(super) enum Lie {
        /// None.
        None = "none",
        /// Nothing is missing or protected when it is touched.
        Present = "present",
        /// The handler runs on a CPU of the other kind.
        Elsewhere = "elsewhere",
        /// What is copied is something else.
        Content = "content",
        /// One fault resolves twice as much.
        Double = "double",
    }
}

/// A case, read.
#[derive(Debug, Clone)]
pub struct Choice {
    pub(super) handler: Handler,
    pub(super) way: Way,
    /// Bytes of a page.
    pub(super) page: usize,
    /// Pages that one fault resolves.
    pub(super) batch: usize,
    pub(super) threads: usize,
    /// One descriptor for each faulting thread.
    pub(super) each: bool,
    /// Handler threads for each descriptor.
    pub(super) handlers: usize,
    pub(super) random: bool,
    pub(super) fifo: bool,
    pub(super) lie: Lie,
    /// Bytes of all pages.
    pub(super) size: usize,
    /// CPUs that may be used, the first faulting thread's first; empty with `cpu=none`.
    pub(super) cpus: Vec<usize>,
    /// What the case says of them.
    pub(super) chosen: Chosen,
    /// Repetitions, where their number is fixed.
    pub(super) rounds: Option<u32>,
}

impl Choice {
    /// # Panics
    /// When the case is not complete; a case is checked before it is used.
    pub(super) fn of(case: &Case) -> Self {
        let number = |name| case.number(name).expect("numbers of a case are checked");
        let chosen = Chosen::of(case, "cpu").with_node(case);
        let size = case.bytes("size").expect("the case is resolved");
        Self {
            handler: case.word("handler"),
            way: case.word("op"),
            page: if case.is("page", "hugetlb-2m") { 2 << 20 } else { 4096 },
            batch: number("batch"),
            threads: number("threads"),
            each: case.is("uffds", "each"),
            handlers: number("handlers"),
            random: case.is("order", "random"),
            fifo: case.is("fifo", "on"),
            lie: case.word("lie"),
            size: usize::try_from(size).expect("addresses have 64 bits"),
            rounds: case.number("rounds"),
            cpus: unique(chosen.all()),
            chosen,
        }
    }

    pub(super) fn is_hugetlb(&self) -> bool {
        self.page > 4096
    }

    /// Bytes that one fault resolves.
    pub(super) fn unit(&self) -> usize {
        self.page * self.batch
    }

    /// Bytes that the handler really resolves at a fault.
    pub(super) fn real_unit(&self) -> usize {
        if self.lie == Lie::Double { 2 * self.unit() } else { self.unit() }
    }

    /// The part of the area that one faulting thread touches.
    pub(super) fn slice(&self, thread: usize) -> (usize, usize) {
        let bytes = self.size / self.threads;
        (thread * bytes, (thread + 1) * bytes)
    }

    /// Descriptors.
    pub(super) fn uffds(&self) -> usize {
        if self.each { self.threads } else { 1 }
    }

    /// The part of the area that a descriptor stands for.
    pub(super) fn range(&self, uffd: usize) -> (usize, usize) {
        if self.each { self.slice(uffd) } else { (0, self.size) }
    }

    /// Handler threads in all.
    pub(super) fn handler_threads(&self) -> usize {
        if self.handler.is_thread() { self.uffds() * self.handlers } else { 0 }
    }

    /// The CPU of a faulting thread.
    pub(super) fn faulter_cpu(&self, thread: usize) -> Option<usize> {
        self.cpus.get(thread % self.cpus.len().max(1)).copied()
    }

    /// The CPU of a handler thread of a descriptor, by what the case says.
    pub(super) fn handler_cpu(&self, uffd: usize) -> Option<usize> {
        match self.handler {
            Handler::SameCpu => self.faulter_cpu(uffd),
            Handler::OtherCpu | Handler::OtherCpuPoll => self.other_cpu(uffd),
            _ => None,
        }
    }

    /// Where it really runs.
    pub(super) fn real_handler_cpu(&self, uffd: usize) -> Option<usize> {
        match (self.lie, self.handler) {
            (Lie::Elsewhere, Handler::SameCpu) => self.other_cpu(uffd),
            (Lie::Elsewhere, _) => self.faulter_cpu(uffd),
            _ => self.handler_cpu(uffd),
        }
    }

    /// A CPU on which no thread faults that the descriptor stands for: the first free one, and with
    /// a descriptor for each thread, where none is free, the next thread's.
    fn other_cpu(&self, uffd: usize) -> Option<usize> {
        let count = self.cpus.len().max(1);
        let free = count.saturating_sub(self.threads);
        let index = match (free, self.each) {
            (0, true) => (uffd + 1) % count,
            (0, false) => return None,
            _ => self.threads + uffd % free,
        };
        self.cpus.get(index).copied()
    }

    /// CPUs that there must be.
    pub(super) fn cpus_needed(&self) -> usize {
        let elsewhere = matches!(self.handler, Handler::OtherCpu | Handler::OtherCpuPoll)
            || self.lie == Lie::Elsewhere;
        match (elsewhere, self.each) {
            (false, _) => 1,
            (true, true) => 2,
            (true, false) => self.threads + 1,
        }
    }

    /// What the kernel must be able to do.
    pub(super) fn abilities(&self) -> Vec<Ability> {
        let mut all = vec![match (self.way, self.is_hugetlb()) {
            (Way::Continue, false) => Ability::MinorShmem,
            (Way::Continue, true) => Ability::MinorHugetlb,
            (Way::Unprotect | Way::Async, false) => Ability::WriteProtect,
            (Way::Unprotect | Way::Async, true) => Ability::WriteProtectHugetlb,
            (_, true) => Ability::MissingHugetlb,
            (_, false) => Ability::Missing,
        }];
        all.extend(match self.way {
            Way::Async => Some(Ability::WriteProtectAsync),
            Way::Move => Some(Ability::Move),
            Way::Poison => Some(Ability::Poison),
            _ => None,
        });
        all.extend((self.handler == Handler::Sigbus).then_some(Ability::Sigbus));
        all
    }
}
