//! Memory that has a scratch file behind it, at work: what the kinds of `file` and `shmem` share.
//!
//! The one idea: which path a fault takes follows from where the page is (nowhere, on the disk, in
//! the page cache, already in the page table) and from what the store may do to it (copy it, or
//! change it). A [`Backed`] is one choice of both, made anew before every repetition and looked at
//! before and after the touches.

use pagelab_bench::{Error, Witness};
use pagelab_record::vocabulary::{Check, counter};
use pagelab_sys::{
    Area,
    files::scratch::{Scratch, word_of},
    loops::Stride,
    memory::{Advice, Residency, Scanner},
};

use super::anon::base_only;
use crate::{Asked, Expectation, Lie, Space, Stage};

const PAGE: usize = 4096;

/// What the file is like when it is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// One hole: no page is allocated.
    Empty,
    /// Every page is in the page cache.
    Cached,
    /// The same, and no page waits to be written back.
    Clean,
    /// No page is in the page cache.
    Evicted,
}

/// What a touch does to the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mapping {
    /// `MAP_SHARED`: the page itself is mapped.
    Shared,
    /// `MAP_SHARED`, and every page was read before: it is in the page table, to be read only.
    SharedRead,
    /// `MAP_PRIVATE`: a store copies the page.
    Private,
}

/// A scratch file behind a space.
#[derive(Debug)]
pub(super) struct Backed {
    scratch: Scratch,
    /// What the case says, and what is done.
    before: Before,
    really: Before,
    mapping: Mapping,
    /// Pages of the space, and those from one touch to the next.
    pages: usize,
    step: usize,
    scanner: Scanner,
    found: Found,
    was_reclaimed: bool,
}

/// What was seen in one repetition.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// `None` until the file was made new for this repetition.
    resident: Option<u64>,
    dirty_before: u64,
    dirty_after: u64,
    of_file: u64,
    kept: u64,
}

impl Backed {
    /// Puts a scratch file behind a space, filled unless the kind finds it empty.
    ///
    /// # Errors
    /// When the disk or the memory is full.
    pub(super) fn new(
        asked: &Asked,
        space: &mut Space,
        scratch: Scratch,
        (before, mapping): (Before, Mapping),
    ) -> Result<Self, Error> {
        space.backing = scratch.backing(mapping != Mapping::Private);
        let is_cached = asked.lie == Lie::Cached;
        let really = if is_cached { Before::Cached } else { before };
        if really != Before::Empty {
            scratch.fill()?;
        }
        if !matches!(before, Before::Empty | Before::Cached) {
            scratch.clean()?;
        }
        if !matches!(really, Before::Empty | Before::Evicted) {
            // Under memory pressure the kernel takes a page of a file before any other.
            scratch.keep_in_memory()?;
        }
        let pages = space.layout.bytes() / PAGE;
        Ok(Self {
            scratch,
            before,
            really,
            mapping,
            pages,
            step: 1,
            scanner: Scanner::open()?,
            found: Found::default(),
            was_reclaimed: false,
        })
    }

    /// Whether the touches are to find every page of the file in memory, as they will unless
    /// somebody else reclaims it.
    fn stays(&self) -> bool {
        self.before == self.really && matches!(self.before, Before::Cached | Before::Clean)
    }

    /// Makes the file anew if a page of it is gone: what is read back may come in large folios,
    /// which are cheaper to map.
    fn restore(&mut self) -> Result<(), Error> {
        if self.was_reclaimed || self.scratch.resident()? < self.pages as u64 {
            self.scratch.empty()?;
            self.scratch.fill()?;
            if self.before == Before::Clean {
                self.scratch.clean()?;
            }
            self.scratch.keep_in_memory()?;
            self.was_reclaimed = false;
        }
        Ok(())
    }

    /// Touches one page in each piece that one fault maps.
    ///
    /// # Errors
    /// When this file system maps one page at a time.
    pub(super) fn one_in_a_piece(mut self) -> Result<Self, Error> {
        self.step = self.scratch.pages_of_a_fault()?;
        if self.step < 2 {
            let name = self.scratch.file_system();
            return Err(Error::Case(format!(
                "a fault on a file of {name} maps one page: use kind=file-minor-single, or --dir \
                 on another file system"
            )));
        }
        Ok(self)
    }
}

impl Stage for Backed {
    fn renew(&mut self) -> Result<(), Error> {
        match self.really {
            Before::Empty => self.scratch.empty()?,
            Before::Clean => self.scratch.clean()?,
            Before::Evicted => self.scratch.evict()?,
            Before::Cached => (),
        }
        if self.stays() {
            self.restore()?;
        }
        self.found = Found { resident: Some(self.scratch.resident()?), ..Found::default() };
        Ok(())
    }

    fn was_reclaimed(&mut self, major: u64, present: u64) -> bool {
        self.was_reclaimed = self.stays() && (major > 0 || present < self.pages as u64);
        self.was_reclaimed
    }

    fn step(&self) -> Option<usize> {
        (self.step > 1).then_some(self.step * PAGE)
    }

    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        if self.before == Before::Evicted {
            area.advise(Advice::Random)?;
        }
        if self.mapping == Mapping::SharedRead {
            area.read(Stride { step: PAGE, bytes: 8 });
            self.found.dirty_before = self.scanner.dirty(area)?;
        }
        Ok(())
    }

    fn inspect(&mut self, area: &Area, found: &Residency) -> Result<(), Error> {
        self.found.of_file = found.file;
        if self.before == Before::Empty {
            self.found.dirty_after = self.scanner.dirty(area)?;
        }
        // The first word of a line is touched; the second one is as the file has it.
        let is_kept = |page: &usize| {
            let expected = if self.before == Before::Empty { 0 } else { word_of(*page) };
            area.word(page * PAGE + 8) == expected
        };
        self.found.kept = (0..self.pages).filter(is_kept).count() as u64;
        Ok(())
    }

    fn expect(&self, _: Expectation) -> Expectation {
        let present = self.pages as u64;
        let touches = present / self.step as u64;
        let is_major = self.before == Before::Evicted;
        let (faults, major) = if is_major { (0, touches) } else { (touches, 0) };
        Expectation { faults, major, present, ..Expectation::default() }
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let (pages, found) = (self.pages as u64, self.found);
        let is_there = matches!(self.before, Before::Cached | Before::Clean);
        let resident = if is_there { pages } else { 0 };
        witness.expect(Check::FileResidentBefore, resident, found.resident.unwrap_or(u64::MAX));
        let of_file = if self.mapping == Mapping::Private { 0 } else { pages };
        witness.expect(Check::OfFile, of_file, found.of_file);
        if self.before == Before::Empty {
            witness.expect(Check::StoredTo, pages, found.dirty_after);
            witness.expect(Check::Cleared, pages, found.kept);
        } else {
            witness.expect(Check::FileContents, pages, found.kept);
        }
        if self.mapping == Mapping::SharedRead {
            witness.expect(Check::DirtyBefore, 0, found.dirty_before);
        }
        witness.set(counter::PAGES_MAPPED_BY_A_FAULT, self.step as u64);
        Ok(())
    }
}

/// What every kind with a file refuses: pages that do not come in this size or from this node.
///
/// # Errors
/// A sentence that says what to ask for.
pub(super) fn refuse(asked: &Asked) -> Result<(), String> {
    base_only(asked, "the pages of its file are base pages")?;
    if asked.mem_node.is_some() {
        return Err(format!(
            "kind={} with mem-node: the page cache decides where a page of a file lies; use \
             mem-node=any",
            asked.kind.name
        ));
    }
    if asked.is_cold && !asked.kind.takes_fresh_memory {
        return Err(format!(
            "kind={} with host=cold: its faults take no memory that was free before; use \
             kind=shmem-write or private-file-cow",
            asked.kind.name
        ));
    }
    Ok(())
}

/// Whether the lie of a case would be the truth for a kind that maps its file in this way.
pub(super) fn cannot_tell(asked: &Asked, mapping: Mapping) -> bool {
    match asked.lie {
        Lie::ThpOn => true,
        Lie::EarlyPopulate => mapping == Mapping::SharedRead,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::asked;
    use pagelab_record::Case;
    use pagelab_sys::time::monotonic_raw_ns;

    fn plain() -> Asked {
        asked(&Case::default().with("size", "4m"))
    }

    /// Makes the file anew until a page of it that somebody else reclaimed meanwhile is no reason
    /// for what is found.
    fn renewed(backed: &mut Backed, resident: u64) {
        let end = monotonic_raw_ns() + 600_000_000_000;
        while backed.found.resident != Some(resident) && monotonic_raw_ns() < end {
            backed.renew().unwrap();
        }
        assert_eq!(backed.found.resident, Some(resident));
    }

    fn backed(lie: Lie, state: (Before, Mapping)) -> Backed {
        let asked = Asked { lie, ..plain() };
        let mut space = asked.space(1);
        let scratch = Scratch::in_memory(space.layout.bytes()).unwrap();
        Backed::new(&asked, &mut space, scratch, state).unwrap()
    }

    #[test]
    fn what_the_touches_must_leave_follows_from_where_the_pages_were() {
        let first_touch = Expectation::default();
        let of = |state| {
            let Expectation { faults, major, present, .. } =
                backed(Lie::None, state).expect(first_touch);
            (faults, major, present)
        };
        assert_eq!(of((Before::Empty, Mapping::Shared)), (1024, 0, 1024));
        assert_eq!(of((Before::Cached, Mapping::Private)), (1024, 0, 1024));
        assert_eq!(of((Before::Evicted, Mapping::Shared)), (0, 1024, 1024));
        let state = (Before::Clean, Mapping::Shared);
        let around = backed(Lie::None, state).one_in_a_piece().unwrap();
        let step = around.step().unwrap() / PAGE;
        let expected = around.expect(first_touch);
        assert_eq!((expected.faults * step as u64, expected.present), (1024, 1024));
    }

    #[test]
    fn a_file_that_was_reclaimed_is_noticed_and_made_anew() {
        let directory = pagelab_sys::files::scratch::default_directory();
        let mut space = plain().space(1);
        let scratch = Scratch::in_directory(&directory, space.layout.bytes()).unwrap();
        let state = (Before::Clean, Mapping::Shared);
        let mut backed = Backed::new(&plain(), &mut space, scratch, state).unwrap();
        renewed(&mut backed, 1024);
        assert!(!backed.was_reclaimed(0, 1024));
        assert!(backed.was_reclaimed(1, 1024) && backed.was_reclaimed(0, 1023));
        backed.scratch.evict().unwrap();
        backed.found = Found::default();
        renewed(&mut backed, 1024);
        assert!(!backed.was_reclaimed);
    }

    #[test]
    fn what_lies_on_the_disk_is_never_reclaimed() {
        let mut backed = backed(Lie::None, (Before::Evicted, Mapping::Shared));
        assert!(!backed.was_reclaimed(1024, 1024));
        let mut lies = self::backed(Lie::Cached, (Before::Evicted, Mapping::Shared));
        assert!(!lies.was_reclaimed(1, 0));
    }

    #[test]
    fn a_file_that_should_be_empty_is_full_where_the_case_lies() {
        let state = (Before::Empty, Mapping::Shared);
        for (lie, resident) in [(Lie::None, 0), (Lie::Cached, 1024)] {
            let mut backed = backed(lie, state);
            backed.renew().unwrap();
            assert_eq!(backed.found.resident, Some(resident), "{lie}");
        }
    }
}
