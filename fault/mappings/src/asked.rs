//! A case of `fault/throughput`, `fault/latency` or `fault/stages`, read once; and what a kind of
//! fault is.
//!
//! The one idea: every parameter of the collection is here with its type. A workload that lacks one
//! has it at the value that says nothing, so that kinds, spaces and pressures ask the same of all.

use std::path::PathBuf;

use pagelab_bench::{
    Error, Inputs, Need, Needed, PageSize, Read, Touch,
    cpus::Chosen,
    needs::{Memory, Node, Pool, SCHED_FIFO, Transparent},
};
use pagelab_record::Case;
use pagelab_sys::{
    loops::{Access, Stride, beside::Call},
    machine::thp::Policy,
    memory::{Advice, Backing, Layout},
};

use super::{
    Arm, Lie, Place, Populate, Pressure, Space, Stage, choices::Swapping, stage::Untouched,
};
use crate::frequency;

/// A case, read.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Asked {
    /// The kind of fault.
    pub kind: &'static FaultKind,
    /// Page size under test.
    pub page: PageSize,
    /// Where memory lies.
    pub place: Place,
    /// How it comes to be present.
    pub populate: Populate,
    /// What is touched.
    pub touch: Touch,
    /// Bytes of all workers together.
    pub size: u64,
    /// Threads of one address space.
    pub threads: usize,
    /// Processes.
    pub processes: usize,
    /// What is compared.
    pub arms: Vec<Arm>,
    /// What one more thread calls meanwhile.
    pub call: Option<Call>,
    /// What memory is short of.
    pub pressure: Pressure,
    /// Where the workers run.
    pub cpus: Chosen,
    /// What memory is bound to.
    pub mem_node: Option<Node>,
    /// Repetitions, where their number is fixed.
    pub rounds: Option<u32>,
    /// Touches a second; `None` as fast as they come.
    pub rate: Option<u64>,
    /// What only `kind=swap` asks for.
    pub swap: Swapping,
    /// The directory of a scratch file, where one is named.
    pub directory: Option<PathBuf>,
    /// What is told against what the case says.
    pub lie: Lie,
    /// In random order.
    pub is_random: bool,
    /// With half a page at each end.
    pub is_ragged: bool,
    /// A mapping for each thread.
    pub divides: bool,
    /// Memory that the host took back.
    pub is_cold: bool,
    /// With caches that other memory fills between two touches.
    pub walks: bool,
    /// Under `SCHED_FIFO`.
    pub fifo: bool,
    /// What the processors' frequency is to be like.
    pub frequency: frequency::Asked,
}

impl Asked {
    /// What a case of a kind asks for.
    ///
    /// # Panics
    /// When the case is not complete and canonical; a case is checked before it is read.
    pub fn of(case: &Case, kind: &'static FaultKind) -> Self {
        let touch = case.text("touch").unwrap_or("8@page");
        Self {
            kind,
            page: case.text("page").map_or(PageSize::Base, |_| PageSize::of(case)),
            place: case.word("backing"),
            populate: case.word("populate"),
            touch: Touch::parse(touch).expect("the touch is canonical"),
            size: case.bytes("size").expect("the case is resolved"),
            threads: case.number("threads").unwrap_or(1),
            processes: case.number("processes").unwrap_or(1),
            arms: case.words("arms"),
            call: match case.text("beside") {
                Some("munmap") => Some(Call::Munmap),
                Some("mprotect") => Some(Call::Mprotect),
                Some("madvise") => Some(Call::Madvise),
                _ => None,
            },
            pressure: case.word("pressure"),
            cpus: Chosen::of(case, "cpu").with_node(case),
            mem_node: match case.text("mem-node") {
                Some("far") => Some(Node::Far),
                _ => case.number("mem-node").map(Node::Number),
            },
            rounds: case.number("rounds"),
            rate: case.number("rate"),
            swap: Swapping::of(case),
            directory: case.text("dir").filter(|dir| *dir != "auto").map(PathBuf::from),
            lie: case.word("lie"),
            is_random: case.is("order", "random"),
            is_ragged: case.is("align", "ragged"),
            divides: case.is("vmas", "each"),
            is_cold: case.is("host", "cold"),
            walks: case.is("caches", "cold"),
            fifo: case.is("fifo", "on"),
            frequency: frequency::Asked::of(case),
        }
    }

    /// Workers of all processes.
    pub fn workers(&self) -> usize {
        self.threads * self.processes
    }

    /// Whether pages come from a pool.
    pub fn is_hugetlb(&self) -> bool {
        matches!(self.page, PageSize::Hugetlb(_))
    }

    /// Whether pages are large folios below the PMD size.
    pub fn is_folio(&self) -> bool {
        matches!(self.page, PageSize::Folio(_))
    }

    /// Whether each touch is a first store.
    pub fn is_write(&self) -> bool {
        self.kind.name == "write"
    }

    /// Whether pages are swapped out.
    pub fn is_swap(&self) -> bool {
        self.kind.name == "swap"
    }

    /// Whether touches alone make memory present.
    pub fn is_touched(&self) -> bool {
        self.populate == Populate::Touch
    }

    /// Whether an arm is asked for.
    pub fn has(&self, arm: Arm) -> bool {
        self.arms.contains(&arm)
    }

    /// The stride of the touches.
    pub fn stride(&self) -> Stride {
        self.touch.on(self.page)
    }

    /// What a touch does.
    pub fn access(&self) -> Access {
        if self.lie == Lie::Read { Access::Read } else { self.kind.access }
    }

    /// The space of one of `shares` equal parts of the memory.
    ///
    /// # Panics
    /// Where an address does not hold 64 bits, which no supported machine is.
    pub fn space(&self, shares: u64) -> Space {
        let (page, lie) = (self.page, self.lie);
        let narrow = |bytes| usize::try_from(bytes).expect("addresses have 64 bits");
        let bytes = narrow(self.size / shares);
        let skewed = self.is_ragged || lie == Lie::Ragged;
        Space {
            page,
            layout: if self.is_folio() {
                Layout::windowed(bytes)
            } else {
                Layout::contiguous(bytes)
            },
            backing: match (self.place, page) {
                (_, PageSize::Hugetlb(shift)) => Backing::Hugetlb(shift),
                (Place::Brk, _) => Backing::Brk,
                (Place::Fixed, _) => Backing::Fixed,
                (Place::Anon, _) => Backing::Anonymous,
            },
            advice: match (page, lie) {
                (PageSize::Hugetlb(_), _) => None,
                (PageSize::Base, Lie::ThpOn) => Some(Advice::HugePage),
                (PageSize::Base, _) | (_, Lie::ThpOff) => Some(Advice::NoHugePage),
                _ => Some(Advice::HugePage),
            },
            mem_node: self.mem_node.and_then(Node::number),
            skew: if skewed { narrow(page.bytes()) / 2 } else { 0 },
            is_ragged: self.is_ragged,
            populates_early: lie == Lie::EarlyPopulate,
            touches_twice: lie == Lie::Present,
        }
    }

    /// What every fault case needs of the host, this one with so many bytes at its peak.
    pub fn needs(&self, footprint: u64) -> Vec<Needed> {
        let page = self.page;
        let mut needs = vec![Memory(footprint).needed()];
        let folios = || PageSize::offered().into_iter().filter(|other| other.is_folio());
        let without = |page| Transparent { page, to: Policy::Never }.needed();
        if matches!(page, PageSize::Folio(_) | PageSize::Thp) {
            let to = if self.populate.is_early() { Policy::Always } else { Policy::Madvise };
            needs.push(Transparent { page, to }.needed());
        }
        match page {
            // The kernel takes the largest folio that fits: larger ones must not be on offer.
            PageSize::Folio(_) => needs.extend(folios().filter(|other| *other > page).map(without)),
            // The ragged ends are base pages only where no smaller folio is on offer.
            PageSize::Thp if self.is_ragged => needs.extend(folios().map(without)),
            PageSize::Hugetlb(shift) => {
                needs.push(Pool { shift, pages: self.size.div_ceil(1 << shift) }.needed());
            }
            PageSize::Base | PageSize::Thp => (),
        }
        needs.extend(self.fifo.then(|| SCHED_FIFO.needed()));
        needs.extend(self.frequency.needs());
        needs.extend(self.cpus.needs());
        needs.extend(self.mem_node.map(Need::needed));
        needs
    }

    /// Whether the lie changes nothing that the case says, or nothing that could be noticed.
    pub fn lies_truly(&self) -> bool {
        let page = self.page;
        let has_one_size = page == PageSize::Base || self.is_hugetlb();
        let by_touch = self.populate.touches_fault();
        let is_true = match self.lie {
            Lie::None => false,
            _ if !self.kind.is_fault => true,
            Lie::Unfragmented => self.pressure != Pressure::Fragmented,
            Lie::ThpOn => page != PageSize::Base,
            Lie::ThpOff => has_one_size,
            Lie::Ragged => has_one_size || self.is_ragged,
            // Populating early is true where the case populates early, and harmless where the pages
            // are of the size that comes without any advice.
            Lie::EarlyPopulate => self.populate.is_early() || (!by_touch && has_one_size),
            Lie::Present => !by_touch,
            // A hugetlb page that is read is allocated and cleared as if it were written.
            Lie::Read => !by_touch || self.kind.access == Access::Read || self.is_hugetlb(),
            Lie::Cached | Lie::FaultAround => !by_touch || !self.kind.lies.contains(&self.lie),
        };
        is_true || (self.kind.cannot_tell)(self)
    }
}

/// Makes the stage of a case on a space.
pub(super) type Make = fn(&Asked, &mut Space, &Inputs) -> Result<Box<dyn Stage>, Error>;

/// One kind of fault: a *state of memory* from which the next touch takes one particular path
/// through the kernel.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct FaultKind {
    /// The value of the parameter `kind`.
    pub name: &'static str,
    /// One line: from which state the touch starts and what the kernel does about it.
    pub help: &'static str,
    /// What a touch does.
    pub access: Access,
    /// Whether a touch of the stage's memory faults at all; without, there is only the control.
    pub is_fault: bool,
    /// Whether `fault/throughput` measures it, too; not what costs a call instead of a touch.
    pub in_throughput: bool,
    /// Whether the first touch in each 2 MiB also allocates a page of page table, so that it is to
    /// be kept apart; not where the table is there before the touch.
    pub allocates_tables: bool,
    /// Whether the fault takes memory that was free until then, which a host may have to back
    /// first.
    pub takes_fresh_memory: bool,
    /// Whether it takes memory from a file in the directory that `dir` names.
    pub uses_dir: bool,
    /// Whether it is about two nodes of memory.
    pub uses_two_nodes: bool,
    /// Parts of the kernel that it needs and that distributions build as modules.
    pub modules: &'static [&'static str],
    /// What is asked for in a machine of `fault/path`, where it is not the default.
    pub in_machine: &'static [(&'static str, &'static str)],
    /// The most that `size=auto` gives it, in bytes: less where repetitions wait for a disk.
    pub automatic_size_max: u64,
    /// Seconds that the kernel is waited for before each repetition.
    pub waits_s: f64,
    /// The lies that few kinds can be told: a file that is `cached`, and `fault-around`.
    pub lies: &'static [Lie],
    /// Whether the case's lie would be the truth for this kind, or leave no trace in it.
    pub cannot_tell: fn(&Asked) -> bool,
    /// Refuses a case that would measure something else than it says, in a sentence that says what
    /// it would measure instead, and what to ask for.
    pub refuse: fn(&Asked) -> Result<(), String>,
    /// What it needs of the host beyond what its page size needs.
    pub needs: fn(&Asked) -> Vec<Needed>,
    /// What lives as long as the case's process: files above all. May choose another backing or
    /// layout for the space, which is not reserved yet. Fails when the machine refuses, or what was
    /// to be made for the case was not.
    pub stage: Make,
}

impl FaultKind {
    /// What most kinds are: a store that faults, to memory as `mmap` left it.
    pub const PLAIN: Self = Self {
        name: "",
        help: "",
        access: Access::Write,
        is_fault: true,
        in_throughput: true,
        allocates_tables: true,
        takes_fresh_memory: true,
        uses_dir: false,
        uses_two_nodes: false,
        modules: &[],
        in_machine: &[],
        automatic_size_max: u64::MAX,
        waits_s: 0.0,
        lies: &[],
        cannot_tell: |_| false,
        refuse: |_| Ok(()),
        needs: |_| Vec::new(),
        stage: |_, _, _| Ok(Box::new(Untouched)),
    };
}
