//! The memory of one repetition: an area whose faults are ours, and where its pages come from.
//!
//! The one idea: everything that is not the fault is done before: pages to move and the page cache
//! are filled, protection is laid on, descriptors are open.

use std::{fs::File, os::fd::AsRawFd};

use pagelab_bench::Error;
use pagelab_sys::{
    Area,
    loops::Stride,
    memory::{Advice, Backing, Layout, memfd},
    uffd::{self, Resolver, Uffd},
};

use super::choice::{Choice, Lie, Way};

/// Patterns that tell every line of an area from every other.
const UNIQUE: usize = usize::MAX;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) area: Area,
    /// Open while faults are ours.
    pub(super) uffds: Vec<Uffd>,
    source: Option<Area>,
    /// Base pages that were write-protected when all was ready.
    pub(super) protected: u64,
    _file: Option<File>,
}

impl Ground {
    /// Makes everything ready for the first touch.
    pub(super) fn make(choice: &Choice) -> Result<Self, Error> {
        let file = (choice.way == Way::Continue).then(|| page_cache(choice)).transpose()?;
        let area = mapped(choice, choice.size, file.as_ref())?;
        let unit = choice.real_unit();
        let source = match choice.way {
            Way::Copy => {
                let source = anonymous(unit.max(4096), 4096)?;
                uffd::fill(&source, if choice.lie == Lie::Content { 64 } else { choice.unit() });
                Some(source)
            }
            Way::Move => {
                let source = anonymous(choice.size, unit)?;
                uffd::fill(&source, UNIQUE);
                Some(source)
            }
            _ => None,
        };
        if choice.way.protects() {
            uffd::fill(&area, UNIQUE);
        } else if choice.lie == Lie::Present {
            if choice.way == Way::Continue {
                area.read(Stride { step: choice.page, bytes: 8 });
            } else {
                uffd::fill(&area, choice.unit());
            }
        }
        let abilities = choice.abilities();
        let mut uffds = Vec::new();
        for index in 0..choice.uffds() {
            let (from, to) = choice.range(index);
            let uffd = Uffd::open(&abilities)?;
            uffd.register(&area, from, to, choice.way.mode())?;
            if choice.way.protects() && choice.lie != Lie::Present {
                uffd.protect(&area, from, to)?;
            }
            uffds.push(uffd);
        }
        let protected = if choice.way.protects() { uffd::write_protected(&area)? } else { 0 };
        Ok(Self { area, uffds, source, protected, _file: file })
    }

    /// What resolves the faults of a descriptor.
    pub(super) fn resolver(&self, choice: &Choice, uffd: usize) -> Resolver {
        Resolver::new(
            &self.uffds[uffd],
            choice.way.op(),
            &self.area,
            choice.range(uffd),
            choice.real_unit(),
            self.source.as_ref(),
        )
    }

    /// Gives the faults back to the kernel, and memory that is no longer needed with them.
    pub(super) fn close(&mut self) {
        self.uffds.clear();
        self.source = None;
    }

    /// Lines whose contents are not what the operation must have left; `None` where there are none.
    pub(super) fn differing(&self, choice: &Choice) -> Option<u64> {
        match choice.way {
            Way::Copy => Some(uffd::differing(&self.area, Some(choice.unit()))),
            Way::ZeroPage | Way::ZeroPageWrite => Some(uffd::differing(&self.area, None)),
            Way::Continue | Way::Unprotect | Way::Async | Way::Move => {
                Some(uffd::differing(&self.area, Some(UNIQUE)))
            }
            Way::Poison => None,
        }
    }

    /// Memory that is present and nobody's faults but the kernel's, in place of poisoned pages.
    pub(super) fn replace(&mut self, choice: &Choice) -> Result<(), Error> {
        self.close();
        // The old one first: two at once would double the footprint.
        self.area.release()?;
        self.area = mapped(choice, choice.size, None)?;
        uffd::fill(&self.area, UNIQUE);
        Ok(())
    }
}

/// An area of the case's pages, mapped and advised, untouched.
fn mapped(choice: &Choice, bytes: usize, file: Option<&File>) -> Result<Area, Error> {
    let backing = match file {
        Some(file) => Backing::File { fd: file.as_raw_fd(), shared: true, from: 0 },
        None if choice.is_hugetlb() => Backing::Hugetlb(21),
        None => Backing::Anonymous,
    };
    let align = choice.real_unit().max(2 << 20);
    let area = Area::mapped(Layout::contiguous(bytes), backing, align)?;
    if !choice.is_hugetlb() {
        area.advise(Advice::NoHugePage)?;
    }
    Ok(area)
}

/// Ordinary memory of base pages.
fn anonymous(bytes: usize, align: usize) -> Result<Area, Error> {
    let area = Area::mapped(Layout::contiguous(bytes), Backing::Anonymous, align.max(2 << 20))?;
    area.advise(Advice::NoHugePage)?;
    Ok(area)
}

/// A file in memory whose pages are all there, and are mapped nowhere.
fn page_cache(choice: &Choice) -> Result<File, Error> {
    let name = "pagelab-userfaultfd";
    let file =
        if choice.is_hugetlb() { memfd::create_hugetlb(name)? } else { memfd::create(name)? };
    file.set_len(choice.size as u64)
        .map_err(|error| pagelab_sys::SysError::new("ftruncate", name, error))?;
    uffd::fill(&mapped(choice, choice.size, Some(&file))?, UNIQUE);
    Ok(file)
}
