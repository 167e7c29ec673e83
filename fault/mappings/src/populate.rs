//! How memory comes to be present: by touching it, or by a call that takes the faults beforehand.
//!
//! The one idea: a way of populating moves faults from the touches into one call, and this table
//! says for each way which call that is, what the touches still do, and what must be locked
//! afterwards. Both fault workloads map memory through it, so that a way means the same in a
//! distribution and in a bandwidth.
//!
//! Ways that populate inside `mmap` come before any advice: see [`Populate::is_early`].

use pagelab_bench::{
    Kind, Need, Needed, Param, Witness,
    needs::{Lockable, POPULATE_WRITE},
    words,
};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    Area, SysError,
    loops::Stride,
    memory::{
        Advice,
        locked::{Everything, Which, locked_bytes},
    },
    process::disable_thp,
    time::{Clock, Span},
};

use super::{Expectation, Space};

/// The parameter.
pub const PARAM: Param = Param::axis("populate", Kind::Choice(Populate::WORDS), "touch")
    .asks(&["mlock"])
    .help("how memory comes to be present: by touching it, or by a call beforehand");

/// Locked beside the area while everything of a process is: code, stacks, what it allocates.
const BESIDE: u64 = 256 << 20;

/// A word of every base page.
pub const EACH: Stride = Stride { step: 4096, bytes: 8 };

/// Stores to every base page: all of it is present, in the pages that it was advised.
pub fn touch_all(area: &Area) {
    area.touch(0, area.layout().bytes(), EACH);
}

words! {
    /// How memory comes to be present.
    pub enum Populate {
        /// By touching it.
        Touch = "touch",
        /// `MAP_POPULATE`.
        Map = "map-populate",
        /// `MADV_POPULATE_WRITE`.
        Madvise = "madvise-populate",
        /// `MADV_POPULATE_WRITE` by each thread for its share.
        MadviseEach = "madvise-populate-each",
        /// `MADV_POPULATE_READ`, then a store to each page.
        Read = "populate-read",
        /// `mlock`.
        Lock = "mlock",
        /// `mlock2(MLOCK_ONFAULT)`, then by touching it.
        LockOnFault = "mlock-onfault",
        /// `mlockall(MCL_CURRENT)`.
        LockAllCurrent = "mlockall-current",
        /// `mmap` after `mlockall(MCL_FUTURE)`.
        LockAllFuture = "mlockall-future",
        /// `MAP_LOCKED`.
        MapLocked = "map-locked",
    }
}

impl Populate {
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

    /// What it needs of the host for so many bytes.
    pub fn needs(self, bytes: u64) -> Vec<Needed> {
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
            Self::Madvise => area.populate_write_part(0, area.layout().bytes()),
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
        witness.expect_at_least(Check::Locked, bytes, locked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::asked;
    use pagelab_bench::Words;
    use pagelab_record::Case;

    #[test]
    fn whatever_is_present_beforehand_is_not_faulted_in_by_the_touches() {
        for (word, way) in Populate::ALL {
            let threads = if *way == Populate::MadviseEach { "2" } else { "1" };
            let case = Case::default().with("size", "4m").with("threads", threads);
            let asked = asked(&case.with("populate", word));
            let space = asked.space(1);
            let expected = way.expect(&space, space.expectation(asked.stride()));
            assert_eq!(expected.faults > 0, way.touches_fault(), "{word}");
            assert_eq!((expected.present, expected.zero), (1024, 0), "{word}");
        }
    }
}
