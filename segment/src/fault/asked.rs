//! A case of `segment/fault`, read: its arms, where the memory of each lies, and what each needs.

use pagelab_bench::{
    Error, Need, Needed, PageSize, Read,
    cpus::Chosen,
    needs::{Memory, Pool},
    words,
};
use pagelab_memtype::workloads::{
    needs,
    space::{self as typed, Source},
};
use pagelab_record::{Case, units::format_bytes};
use pagelab_sys::{
    Area, SysError,
    memory::{Advice, Backing, Layout, count_leaves},
    memtype::{Device, MemoryType, Request, Segment},
};

use pagelab_mappings::{self as mappings, kinds};

words! {
    /// Where the memory of a round comes from.
    pub enum Arm {
        /// Base pages, of a mapping of its own each round.
        Plain = "plain",
        /// Transparent huge pages, the same way.
        Thp = "thp",
        /// A segment with leaves of 2 MiB.
        Segment2m = "segment-2m",
        /// A segment with leaves of 1 GiB.
        Segment1g = "segment-1g",
        /// A segment of the module, with leaves of 4 KiB.
        Module4k = "module-4k",
        /// With leaves of 2 MiB.
        Module2m = "module-2m",
        /// With leaves of 1 GiB.
        Module1g = "module-1g",
    }

    /// When what was given back is cleared.
    pub enum Zeroing {
        /// At once, by a thread beside the program.
        Release = "release",
        /// When it is taken again, by the program.
        Fault = "fault",
        /// All is made present before the first pass; later as at release.
        Ahead = "ahead",
    }

    /// What leaves of 2 MiB are.
    pub enum Backed {
        /// Transparent huge pages.
        Thp = "thp",
        /// Pages of the hugetlb pool.
        Hugetlb = "hugetlb",
    }

    /// What is done against what the case says.
    pub enum Lie {
        /// Nothing.
        None = "none",
        /// Huge pages are not wanted.
        ThpOff = "thp-off",
        /// What was given back is not cleared.
        Unzeroed = "unzeroed",
    }
}

impl Arm {
    /// All of them, as a parameter lists them.
    pub(super) const EVERY: &str = "plain,thp,segment-2m,segment-1g,module-4k,module-2m,module-1g";

    /// Whether memory comes from a segment.
    pub(super) fn is_segment(self) -> bool {
        !matches!(self, Self::Plain | Self::Thp)
    }

    /// Whether ordinary memory stays taken between two rounds.
    pub(super) fn holds(self) -> bool {
        matches!(self, Self::Segment2m | Self::Segment1g)
    }

    /// The largest leaf, in bytes.
    pub(super) fn leaf(self) -> usize {
        match self {
            Self::Plain | Self::Module4k => 4 << 10,
            Self::Thp | Self::Segment2m | Self::Module2m => 2 << 20,
            Self::Segment1g | Self::Module1g => 1 << 30,
        }
    }
}

/// A case, read.
#[derive(Debug, Clone)]
pub struct Asked {
    /// What is compared.
    pub(super) arms: Vec<Arm>,
    /// Bytes of a round.
    pub(super) size: u64,
    /// Rounds, where their number is fixed.
    pub(super) rounds: Option<u32>,
    /// From the middle of leaves.
    pub(super) is_ragged: bool,
    /// What leaves of 2 MiB are.
    pub(super) backed: Backed,
    /// Who clears, and when.
    pub(super) zeroing: Zeroing,
    /// Where the program runs, and its helper.
    pub(super) cpus: Chosen,
    /// What is done against what the case says.
    pub(super) lie: Lie,
    /// What arms that need no segment are, as `fault/throughput` has them.
    fault: mappings::Asked,
}

/// Where the memory of an arm lies.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// How many bytes.
    pub bytes: usize,
    /// Its largest leaf.
    pub leaf: usize,
    /// Distance of its first byte from a boundary of that leaf.
    pub skew: usize,
    /// What backs it.
    pub backing: Backing,
    /// What the kernel is told of it.
    pub advice: Advice,
}

impl Place {
    /// A segment of ours: whole leaves of `leaf` where they fit.
    pub fn of_segment(bytes: usize, leaf: usize, skew: usize, backed: Backed) -> Self {
        let is_pooled = leaf > 2 << 20 || backed == Backed::Hugetlb;
        let backing =
            if is_pooled { Backing::Graded(leaf.trailing_zeros()) } else { Backing::Anonymous };
        Self { bytes, leaf, skew, backing, advice: Advice::HugePage }
    }

    /// Leaves of 4 KiB, 2 MiB and 1 GiB: the formula of the witness.
    pub fn counts(&self) -> [u64; 3] {
        count_leaves(self.skew, self.skew + self.bytes, self.leaf)
    }

    /// Base pages of the leaves of a pool.
    pub fn pooled(&self) -> u64 {
        match self.backing {
            Backing::Graded(30) => self.counts()[2] << 18,
            Backing::Graded(_) => self.counts()[1] << 9,
            _ => 0,
        }
    }

    /// Reserves its addresses.
    ///
    /// # Errors
    /// When there is no room.
    pub fn reserve(&self) -> Result<Area, SysError> {
        // Base pages get a boundary of 2 MiB, so that page-table pages are the same in each round.
        let align = self.leaf.max(2 << 20);
        Area::reserve(Layout::contiguous(self.bytes), self.backing, align, self.skew)
    }

    /// Reserves its addresses, and maps them.
    ///
    /// # Errors
    /// When memory is short.
    pub fn opened(&self) -> Result<Area, SysError> {
        let mut area = self.reserve()?;
        area.open()?;
        area.map(false)?;
        Ok(area)
    }

    /// The same, and what the kernel is told of it.
    ///
    /// # Errors
    /// When memory is short.
    pub fn mapped(&self) -> Result<Area, SysError> {
        let area = self.opened()?;
        area.advise(self.advice)?;
        Ok(area)
    }

    /// What a segment of the module has: as many bytes as lie between the boundary of a leaf and
    /// the end, of the region that the module was given where that is large enough.
    pub fn frames(&self) -> typed::Space {
        let bytes = (self.bytes + self.skew) as u64;
        let reserved = Device::open().ok().and_then(|device| device.info().reserved());
        let is_reserved = reserved.is_some_and(|(_, most)| most >= bytes);
        typed::Space {
            memory_type: MemoryType::Wb,
            source: if is_reserved { Source::Reserved } else { Source::Contiguous },
            leaf: self.leaf as u64,
            node: None,
            bytes,
        }
    }

    /// A segment of the module with these frames.
    ///
    /// # Errors
    /// When the module refuses.
    pub fn of_module(&self) -> Result<Segment, Error> {
        let typed::Space { memory_type, source, leaf, node, bytes } = self.frames();
        let frames = source.frames().expect("the module's");
        let (eager, offset, segment) = (false, 0, true);
        let request = Request { bytes, memory_type, frames, leaf, node, eager, offset, segment };
        Ok(Device::open()?.segment(&request)?)
    }

    /// What a segment of the module needs of the host besides memory.
    pub fn needs_of_module(&self) -> [Needed; 2] {
        [needs::Module.needed(), needs::Typed(self.frames()).needed()]
    }

    /// What it needs of the host besides memory.
    pub fn needs(&self, asked: &mappings::Asked) -> Vec<Needed> {
        let [_, large, giant] = self.counts();
        let mut needs = Vec::new();
        if let Backing::Graded(shift) = self.backing {
            let pages = if shift == 30 { giant } else { large };
            needs.push(Pool { shift, pages }.needed());
        }
        if !matches!(self.backing, Backing::Graded(21)) && large > 0 {
            let thp = mappings::Asked { page: PageSize::Thp, ..asked.clone() };
            needs.extend(thp.needs(0).into_iter().filter(|need| need.of::<Memory>().is_none()));
        }
        needs
    }
}

/// So much memory that a leaf of this size fits into it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Fits {
    leaf: u64,
    is_there: bool,
    example: &'static str,
}

impl Need for Fits {
    fn name(&self) -> String {
        format!("a size that a leaf of {} fits into", format_bytes(self.leaf))
    }

    fn check(&self) -> bool {
        self.is_there
    }

    fn cure(&self) -> String {
        format!("ask for more: --size {}", self.example)
    }
}

impl Asked {
    pub(super) fn of(case: &Case) -> Self {
        // What it has in common with a case of `fault/throughput`, and nothing else.
        let common = ["size", "rounds", "cpu"].into_iter().fold(Case::default(), |common, name| {
            common.with(name, case.text(name).expect("the case is complete"))
        });
        let fault = kinds::asked(&common);
        let lie: Lie = case.word("lie");
        let is_ragged = case.is("align", "ragged");
        let told = if lie == Lie::ThpOff { mappings::Lie::ThpOff } else { mappings::Lie::None };
        Self {
            arms: case.words("arms"),
            size: fault.size,
            rounds: fault.rounds,
            is_ragged,
            backed: case.word("backing"),
            zeroing: case.word("zero"),
            cpus: fault.cpus.clone(),
            lie,
            fault: mappings::Asked {
                is_ragged,
                lie: told,
                arms: vec![mappings::Arm::Pagelab],
                ..fault
            },
        }
    }

    /// The memory of all arms at once.
    pub(super) fn memory(&self) -> Needed {
        Memory(pagelab_bench::Experiment::footprint(self)).needed()
    }

    /// Whether an arm asks the kernel for huge pages.
    pub(super) fn asks_for_thp(&self, arm: Arm) -> bool {
        let place = self.place(arm);
        let large = place.counts()[1] > 0 && !matches!(place.backing, Backing::Graded(21));
        arm == Arm::Thp || (arm.holds() && large)
    }

    /// An arm without a segment, as `fault/throughput` has it.
    pub(super) fn ordinary(&self, arm: Arm) -> mappings::Asked {
        let page = if arm == Arm::Thp { PageSize::Thp } else { PageSize::Base };
        let is_ragged = self.is_ragged && arm == Arm::Thp;
        // The smallest that touches every base page, whatever lies there.
        let touch = pagelab_bench::Touch::parse("8@4k").expect("a touch");
        let lie = if arm == Arm::Thp { self.fault.lie } else { mappings::Lie::None };
        mappings::Asked { page, touch, lie, is_ragged, ..self.fault.clone() }
    }

    /// Where the memory of an arm lies.
    ///
    /// # Panics
    /// Where an address does not hold 64 bits, which no supported machine is.
    pub(super) fn place(&self, arm: Arm) -> Place {
        let bytes = usize::try_from(self.size).expect("addresses have 64 bits");
        let (leaf, mut skew) = (arm.leaf(), 0);
        if self.is_ragged {
            skew += if leaf >= 2 << 20 { 1 << 20 } else { 0 };
            skew += if leaf == 1 << 30 { 1 << 29 } else { 0 };
        }
        let place = Place::of_segment(bytes, leaf, skew, self.backed);
        match self.lie {
            Lie::ThpOff => Place { advice: Advice::NoHugePage, ..place },
            _ => place,
        }
    }

    /// What an arm needs of the host.
    pub(super) fn of_arm(&self, arm: Arm) -> Vec<Needed> {
        let place = self.place(arm);
        let [_, large, giant] = place.counts();
        let fits = |is_there, example| Fits { leaf: place.leaf as u64, is_there, example }.needed();
        let mut needs = match place.leaf {
            0x20_0000 => vec![fits(large > 0, "4m")],
            0x4000_0000 => vec![fits(giant > 0, if self.is_ragged { "2g" } else { "1g" })],
            _ => Vec::new(),
        };
        if needs.iter().any(|need| !need.check()) {
            return needs;
        }
        match arm {
            Arm::Plain => (),
            Arm::Thp => needs.extend(self.ordinary(arm).needs(self.size)),
            Arm::Segment2m | Arm::Segment1g => needs.extend(place.needs(&self.fault)),
            Arm::Module4k | Arm::Module2m | Arm::Module1g => {
                needs.extend(place.needs_of_module());
            }
        }
        needs
    }
}
