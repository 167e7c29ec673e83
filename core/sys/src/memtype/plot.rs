#![expect(unsafe_code, reason = "mmap of the module's file, and words of raw memory")]
//! A plot: memory whose type is known.
//!
//! Rules: (1) a plot owns its range from `new` to drop, nobody else maps into it; (2) every page is
//! present and writable; (3) memory is reached by volatile access and asm only, and no reference
//! into it exists; (4) whoever stores holds the plot exclusively, and hands it to threads that
//! share the words among them.

use std::{fs::File, os::fd::AsRawFd};

use super::{
    MemoryType, Width,
    device::{self, Device, DeviceError, Leaf, LegacyNode, Request},
};
use crate::{
    Area, SysError,
    arch::{self, Word},
    loops::Stride,
    memory::{
        Advice, Backing, Layout,
        map::{Map, READ_WRITE},
        word_at,
    },
};

const BASE_PAGE: usize = 4096;

/// Memory of one type, present and writable.
#[derive(Debug)]
pub struct Plot {
    start: usize,
    bytes: usize,
    memory_type: MemoryType,
    ground: Ground,
}

/// What a plot is a piece of.
#[derive(Debug)]
enum Ground {
    Ordinary(Area),
    Module(Mapping),
}

impl Plot {
    /// Anonymous memory: WB, because nobody asked for anything else. `huge` asks for transparent
    /// huge pages, otherwise they are kept away.
    ///
    /// # Errors
    /// When memory is short, or the node does not exist.
    ///
    /// # Panics
    /// When `bytes` is no multiple of the base page, or 0.
    pub fn ordinary(bytes: usize, huge: bool, node: Option<usize>) -> Result<Self, SysError> {
        assert!(bytes > 0 && bytes.is_multiple_of(BASE_PAGE), "{bytes} bytes are no whole pages");
        let layout = Layout::contiguous(bytes);
        let area = Area::mapped(layout, Backing::Anonymous, 2 << 20)?;
        // Where there are no transparent huge pages, there is nothing to ask for or keep away.
        let _ = area.advise(if huge { Advice::HugePage } else { Advice::NoHugePage });
        if let Some(node) = node {
            area.bind(node)?;
        }
        area.touch(0, bytes, Stride { step: BASE_PAGE, bytes: 8 });
        let (start, ground) = (area.base(), Ground::Ordinary(area));
        Ok(Self { start, bytes, memory_type: MemoryType::Wb, ground })
    }

    /// Maps a node of the older driver from its first page on; every page is present afterwards.
    ///
    /// # Errors
    /// When it has less than that.
    pub fn of_node(node: LegacyNode, bytes: usize) -> Result<Self, SysError> {
        let LegacyNode { file, memory_type, .. } = node;
        let mapping = Mapping::new(file, bytes, BASE_PAGE)?;
        Ok(Self { start: mapping.start, bytes, memory_type, ground: Ground::Module(mapping) })
    }

    /// Maps the allocation of an open file of the module; every page is present afterwards.
    fn of_module(file: File, request: &Request) -> Result<Self, SysError> {
        let bytes = usize::try_from(request.bytes).expect("addresses have 64 bits");
        let align = usize::try_from(request.leaf).expect("a leaf is at most 1 GiB");
        let mapping = Mapping::new(file, bytes, align)?;
        let start = mapping.start;
        let plot = Self {
            start,
            bytes,
            memory_type: request.memory_type,
            ground: Ground::Module(mapping),
        };
        if !request.eager {
            for at in (0..bytes).step_by(BASE_PAGE) {
                plot.word(at / 8);
            }
        }
        Ok(plot)
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its length in words of 8 bytes.
    pub fn words(&self) -> usize {
        self.bytes / 8
    }

    /// The address of its first byte.
    pub fn base(&self) -> usize {
        self.start
    }

    /// The type that was asked for; [`Plot::query`] says what the page table has.
    pub fn memory_type(&self) -> MemoryType {
        self.memory_type
    }

    /// Whether it is memory of the kernel module.
    pub fn is_module(&self) -> bool {
        matches!(self.ground, Ground::Module(_))
    }

    /// The area of ordinary memory, whose pages can be looked at.
    pub fn area(&self) -> Option<&Area> {
        match &self.ground {
            Ground::Ordinary(area) => Some(area),
            Ground::Module(_) => None,
        }
    }

    /// What the page table says of the page that the byte `at` lies in; `None` for ordinary memory,
    /// of which nobody in user space knows.
    ///
    /// # Errors
    /// When the module cannot say.
    ///
    /// # Panics
    /// Outside the plot.
    pub fn query(&self, at: usize) -> Result<Option<Leaf>, DeviceError> {
        assert!(at < self.bytes, "outside the plot");
        match &self.ground {
            Ground::Ordinary(_) => Ok(None),
            Ground::Module(mapping) => device::query(&mapping.file, self.start + at).map(Some),
        }
    }

    /// The word of this index.
    ///
    /// # Panics
    /// Outside the plot.
    pub fn word(&self, index: usize) -> u64 {
        arch::load_word(self.at(index))
    }

    /// Sets the word of this index.
    ///
    /// # Panics
    /// Outside the plot.
    pub fn set_word(&mut self, index: usize, value: u64) {
        arch::store_word(self.at(index), value);
    }

    /// Word `i` becomes `first + i`, by plain stores, and has arrived when this returns.
    pub fn fill(&mut self, first: u64) {
        let (lines, width) = (self.bytes / 64, Width::Bytes8.bytes());
        // SAFETY: the lines are the plot's, and every processor has words of 8 bytes.
        unsafe { arch::store_counting(self.start(), lines, first, width, false) };
        arch::mfence();
    }

    /// The word of this index, for an instruction of its own.
    pub(super) fn at(&self, index: usize) -> Word<'_> {
        assert!(index < self.words(), "outside the plot");
        // SAFETY: the word is the plot's (asserted), which is mapped writable while it lives.
        unsafe { Word::new(word_at(self.start(), index * 8)) }
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start as *mut u8
    }
}

impl Device {
    /// Allocates and maps. The open file goes with the plot.
    ///
    /// # Errors
    /// When the module refuses, or address space is short.
    pub fn allocate(self, request: &Request) -> Result<Plot, DeviceError> {
        Ok(Plot::of_module(self.claim(request)?, request)?)
    }
}

/// A mapping of the module's memory, at an address that its leaves fit.
#[derive(Debug)]
struct Mapping {
    file: File,
    start: usize,
    /// Everything that was taken: start and length.
    _reserved: Map,
}

impl Mapping {
    fn new(file: File, bytes: usize, align: usize) -> Result<Self, SysError> {
        let reserved = Map::anonymous(bytes + align, libc::PROT_NONE, libc::MAP_NORESERVE)?;
        let start = (reserved.start() as usize).next_multiple_of(align);
        let (fd, flags) = (file.as_raw_fd(), libc::MAP_SHARED | libc::MAP_FIXED);
        // SAFETY: inside the reservation, which is ours and longer by `align`.
        let at = unsafe { libc::mmap(start as *mut libc::c_void, bytes, READ_WRITE, flags, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(SysError::last("mmap", format!("{bytes} bytes, {}", device::NODE)));
        }
        Ok(Self { file, start, _reserved: reserved })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Scanner;

    #[test]
    fn an_ordinary_plot_is_present_and_holds_what_it_was_filled_with() {
        let _alone = crate::alone();
        let mut plot = Plot::ordinary(3 * BASE_PAGE, false, None).unwrap();
        plot.fill(7);
        assert!((0..plot.words()).all(|word| plot.word(word) == 7 + word as u64));
        plot.set_word(5, 1);
        assert_eq!((plot.word(4), plot.word(5), plot.word(6)), (11, 1, 13));
        let area = plot.area().expect("ordinary");
        crate::counted(3, || Scanner::open().unwrap().scan(area).unwrap().present);
        assert_eq!(plot.memory_type(), MemoryType::Wb);
        assert!(plot.query(0).unwrap().is_none(), "nobody knows the type of ordinary memory");
    }

    #[test]
    #[should_panic(expected = "outside the plot")]
    fn no_word_outside_is_reached() {
        let plot = Plot::ordinary(BASE_PAGE, false, None).unwrap();
        plot.word(512);
    }
}
