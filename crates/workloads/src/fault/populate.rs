//! How memory comes to be present: by touching it, or by a call that takes the faults beforehand.
//!
//! The one idea: a way of populating moves faults from the touches into one call, and this table
//! says for each way which call that is, what the touches still do, and what must be locked
//! afterwards. Both fault workloads map memory through it, so that a way means the same in a
//! distribution and in a bandwidth.
//!
//! Ways that populate inside `mmap` come before any advice: see [`Populate::is_early`].

use pagelab_bench::{
    Kind, Param,
    meter::Witness,
    need::{Need, Needed},
    params::PageSize,
    refusal::Refusal,
};
use pagelab_record::Case;
use pagelab_sys::{
    Area, SysError,
    memory::{
        area::Advice,
        locked::{Everything, Which, locked_bytes},
    },
    process::sched::disable_thp,
    time::clock::{Clock, Span},
};

use super::space::{Expectation, Space, size_of};
use crate::needs::{Lockable, POPULATE_WRITE};

/// The parameter.
pub const PARAM: Param = Param::axis(
    "populate",
    Kind::Choice(&[
        "touch",
        "map-populate",
        "madvise-populate",
        "madvise-populate-each",
        "populate-read",
        "mlock",
        "mlock-onfault",
        "mlockall-current",
        "mlockall-future",
        "map-locked",
    ]),
    "touch",
)
.help("how memory comes to be present: by touching it, or by a call beforehand");

/// What a way of populating is refused for.
#[derive(Debug)]
pub struct Asked {
    populate: Populate,
    page: PageSize,
    is_bound: bool,
    is_brk: bool,
    is_alone: bool,
}

impl Asked {
    /// What a case asks for.
    pub fn of(case: &Case) -> Self {
        Self {
            populate: Populate::of(case),
            page: PageSize::of(case),
            is_bound: case.get("mem-node") != Some("any"),
            is_brk: case.get("backing") == Some("brk"),
            is_alone: case.get("threads").is_none_or(|threads| threads == "1"),
        }
    }
}

/// Ways of populating that are turned away; the last two where there is a heap and threads.
pub const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.populate.locks() && matches!(asked.page, PageSize::Hugetlb(_)),
        "populate=mlock… or map-locked with page=hugetlb-…",
        "hugetlb pages are never paged out: nothing to lock",
    ),
    Refusal::new(
        |asked| asked.populate == Populate::Read && asked.page != PageSize::Base,
        "populate=populate-read with anything but page=4k",
        "larger pages are not mapped one by one as the zero page",
    ),
    Refusal::new(
        |asked| asked.populate.is_early() && asked.is_bound,
        "populate=map-populate, map-locked or mlockall-future with mem-node",
        "memory is there before it can be bound to a node",
    ),
    Refusal::new(
        |asked| asked.is_brk && matches!(asked.populate, Populate::Map | Populate::MapLocked),
        "populate=map-populate or map-locked with backing=brk",
        "brk takes no flags",
    ),
    Refusal::new(
        |asked| asked.populate == Populate::MadviseEach && asked.is_alone,
        "populate=madvise-populate-each with threads=1",
        "each thread populates its share: with one it is madvise-populate",
    ),
];

/// Locked beside the area while everything of a process is: code, stacks, what it allocates.
const BESIDE: u64 = 256 << 20;

/// How memory comes to be present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Populate {
    /// By touching it.
    Touch,
    /// `MAP_POPULATE`.
    Map,
    /// `MADV_POPULATE_WRITE`.
    Madvise,
    /// `MADV_POPULATE_WRITE` by each thread for its share.
    MadviseEach,
    /// `MADV_POPULATE_READ`, then a store to each page.
    Read,
    /// `mlock`.
    Lock,
    /// `mlock2(MLOCK_ONFAULT)`, then by touching it.
    LockOnFault,
    /// `mlockall(MCL_CURRENT)`.
    LockAllCurrent,
    /// `mmap` after `mlockall(MCL_FUTURE)`.
    LockAllFuture,
    /// `MAP_LOCKED`.
    MapLocked,
}

impl Populate {
    /// The way of a case.
    pub fn of(case: &Case) -> Self {
        match case.get("populate") {
            Some("map-populate") => Self::Map,
            Some("madvise-populate") => Self::Madvise,
            Some("madvise-populate-each") => Self::MadviseEach,
            Some("populate-read") => Self::Read,
            Some("mlock") => Self::Lock,
            Some("mlock-onfault") => Self::LockOnFault,
            Some("mlockall-current") => Self::LockAllCurrent,
            Some("mlockall-future") => Self::LockAllFuture,
            Some("map-locked") => Self::MapLocked,
            _ => Self::Touch,
        }
    }

    /// Whether the touches fault, be it for the first time or to replace the zero page.
    pub fn touches_fault(self) -> bool {
        matches!(self, Self::Touch | Self::LockOnFault | Self::Read)
    }

    /// Whether only what is touched comes to be present.
    pub fn is_by_touch(self) -> bool {
        matches!(self, Self::Touch | Self::LockOnFault)
    }

    /// Whether memory is present when `mmap` returns, before it can be advised or bound.
    pub fn is_early(self) -> bool {
        matches!(self, Self::Map | Self::MapLocked | Self::LockAllFuture)
    }

    /// Whether the memory is locked afterwards.
    pub fn locks(self) -> bool {
        matches!(
            self,
            Self::Lock
                | Self::LockOnFault
                | Self::LockAllCurrent
                | Self::LockAllFuture
                | Self::MapLocked
        )
    }

    /// What it needs of the host.
    pub fn needs(self, case: &Case) -> Vec<Needed> {
        let bytes = size_of(case);
        match self {
            Self::Touch | Self::Map => Vec::new(),
            Self::Madvise | Self::MadviseEach | Self::Read => vec![POPULATE_WRITE.needed()],
            Self::Lock | Self::LockOnFault | Self::MapLocked => vec![Lockable(bytes).needed()],
            // Of all that is mapped: reserved address space counts, and windows lie apart.
            Self::LockAllCurrent => vec![Lockable(2 * bytes + BESIDE).needed()],
            Self::LockAllFuture => vec![Lockable(bytes + BESIDE).needed()],
        }
    }

    /// What touching a populated space leaves, where a first touch leaves `first_touch`.
    pub fn expect(self, space: &Space, first_touch: Expectation) -> Expectation {
        if self.is_by_touch() {
            return first_touch;
        }
        // A call makes the whole range present, whatever the stride of the touches.
        let whole = space.bytes() / 4096;
        let huge = if first_touch.huge == 0 || space.is_ragged { first_touch.huge } else { whole };
        let (faults, zero) = match self {
            Self::Read => (first_touch.faults, whole - first_touch.faults),
            _ => (0, 0),
        };
        Expectation { faults, present: whole, huge, zero, ..first_touch }
    }

    /// What must come before `mmap`. The guard is for what lasts until the touches are over.
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn before_map(self, space: &Space) -> Result<Option<Everything>, SysError> {
        // Without this a mapping that is populated before it is advised could come in huge pages.
        disable_thp(self.is_early() && space.advice != Some(Advice::HugePage))?;
        match self {
            Self::LockAllFuture => Everything::lock(Which::Future).map(Some),
            _ => Ok(None),
        }
    }

    /// `mmap`, with what this way adds to it.
    ///
    /// # Errors
    /// When memory is short, or too little may be locked.
    pub fn map(self, space: &Space, area: &mut Area) -> Result<(), SysError> {
        match self {
            Self::MapLocked => area.map_locked(),
            Self::Map => area.map(true),
            _ => area.map(space.populates_early),
        }
    }

    /// Whether there is a call after mapping and advising, made by one thread for all.
    pub fn has_call(self) -> bool {
        !(self.is_early() || matches!(self, Self::Touch | Self::MadviseEach))
    }

    /// That call. `mlockall` leaves its guard in `everything`.
    ///
    /// # Errors
    /// When memory is short, or too little may be locked.
    pub fn call(self, area: &Area, everything: &mut Option<Everything>) -> Result<(), SysError> {
        match self {
            Self::Madvise => area.populate_write(),
            Self::Read => area.populate_read(),
            Self::Lock => area.lock(false),
            Self::LockOnFault => area.lock(true),
            Self::LockAllCurrent => {
                *everything = Some(Everything::lock(Which::Current)?);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Maps, binds and advises a space and makes it present this way, alone and untouched; with the
    /// span of the call that populated, where there was one.
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn mapped(self, space: &Space, clock: Option<&Clock>) -> Result<Present, SysError> {
        let mut span = None;
        let mut timed = |is_call: bool, body: &mut dyn FnMut() -> Result<(), SysError>| {
            let Some(clock) = clock.filter(|_| is_call) else { return body() };
            let mut result = Ok(());
            span = Some(clock.span(|| result = body()));
            result
        };
        let mut area = space.reserve()?;
        area.open()?;
        let mut everything = self.before_map(space)?;
        timed(self.is_early(), &mut || self.map(space, &mut area))?;
        if let Some(node) = space.mem_node {
            area.bind(node)?;
        }
        if let Some(advice) = space.advice {
            area.advise(advice)?;
        }
        timed(self.has_call(), &mut || self.call(&area, &mut everything))?;
        Ok(Present { area, span, everything })
    }
}

/// A mapped space, made present in some way.
#[derive(Debug)]
pub struct Present {
    /// The memory.
    pub area: Area,
    /// The call that populated it.
    pub span: Option<Span>,
    /// What is to be undone when it has been touched.
    pub everything: Option<Everything>,
}

/// Bytes that are locked in this process, where the way of populating locks.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn locked_by(populate: Populate) -> Result<u64, SysError> {
    if populate.locks() { locked_bytes() } else { Ok(0) }
}

/// Claims that what should be locked is.
pub fn testify(populate: Populate, bytes: u64, locked: u64, witness: &mut Witness) {
    if populate.locks() {
        witness.expect_at_least("bytes locked in the process, at least", bytes, locked);
    }
}

/// Whether the case's lie changes nothing that the case says.
pub fn lie_is_true(case: &Case) -> bool {
    let page = PageSize::of(case);
    let is_hugetlb = matches!(page, PageSize::Hugetlb(_));
    let populate = Populate::of(case);
    let by_touch = populate.touches_fault();
    match case.get("lie") {
        None | Some("none") => false,
        _ if case.get("kind") == Some("present") => true,
        Some("unfragmented") => case.get("pressure") != Some("fragmented"),
        Some("thp-on") => page != PageSize::Base,
        Some("thp-off") => page == PageSize::Base || is_hugetlb,
        Some("ragged") => {
            page == PageSize::Base || is_hugetlb || case.get("align") == Some("ragged")
        }
        // Populating early is true where the case populates early, and harmless where the pages
        // are of the size that comes without any advice.
        Some("early-populate") => {
            populate.is_early() || (!by_touch && (page == PageSize::Base || is_hugetlb))
        }
        Some(_) => !by_touch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fault::space::stride_of, fault::throughput::Throughput};
    use pagelab_bench::plan::complete;

    fn ways() -> impl Iterator<Item = (&'static str, Populate)> {
        let Kind::Choice(words) = PARAM.kind else { panic!("a choice") };
        words.iter().map(|word| (*word, Populate::of(&Case::default().with("populate", word))))
    }

    #[test]
    fn every_word_is_a_way_of_its_own() {
        let all: Vec<Populate> = ways().map(|(_, way)| way).collect();
        assert_eq!(all.iter().filter(|way| **way == Populate::Touch).count(), 1);
        assert!((1..all.len()).all(|index| !all[..index].contains(&all[index])));
    }

    #[test]
    fn whatever_is_present_beforehand_is_not_faulted_in_by_the_touches() {
        for (word, way) in ways() {
            let threads = if way == Populate::MadviseEach { "2" } else { "1" };
            let pairs = [("populate", word), ("size", "4m"), ("threads", threads)];
            let case = complete(&Throughput, &pairs).unwrap();
            let space = Space::of(&case, 1);
            let expected = way.expect(&space, space.expectation(stride_of(&case)));
            assert_eq!(expected.faults > 0, way.touches_fault(), "{word}");
            assert_eq!((expected.present, expected.zero), (1024, 0), "{word}");
        }
    }

    #[test]
    fn every_refusal_has_a_case_that_meets_it_and_a_neighbour_that_is_accepted() {
        for (pairs, neighbour) in [
            ([("populate", "mlockall-current"), ("page", "hugetlb-2m")], ("page", "2m")),
            ([("populate", "map-locked"), ("page", "hugetlb-2m")], ("page", "2m")),
            ([("populate", "populate-read"), ("page", "2m")], ("page", "4k")),
            ([("populate", "mlockall-future"), ("mem-node", "0")], ("mem-node", "any")),
            ([("populate", "map-populate"), ("backing", "brk")], ("backing", "anon")),
            ([("populate", "madvise-populate-each"), ("threads", "1")], ("threads", "2")),
        ] {
            let error = complete(&Throughput, &pairs).unwrap_err();
            assert!(REFUSALS.iter().any(|row| error.starts_with(row.says)), "{error}");
            assert!(complete(&Throughput, &[pairs[0], neighbour]).is_ok(), "{neighbour:?}");
        }
    }
}
