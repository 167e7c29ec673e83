//! Scratch files: memory that faults find in the page cache, or on a disk.
//!
//! The one idea: a scratch file has no name, so that nothing is left of it however the process
//! ends, and every page of it holds a number of its own ([`word_of`]), so that a page that was
//! copied, kept or lost can be told. What the kernel made of it (pages in memory, pages allocated)
//! is asked for, never assumed.
//!
//! Pages are written one by one: a file system with large folios takes the size of a folio from
//! the size of the write (since Linux 6.6), and here every page is a base page.

use std::{
    env,
    fs::File,
    io,
    os::{
        fd::{AsRawFd, RawFd},
        unix::fs::FileExt,
    },
    path::{Path, PathBuf},
};

use rustix::fs::{Access, Advice, FallocateFlags, access, fadvise, fallocate, fsync, statvfs};

use crate::{
    Area, Called, SysError,
    files::{folder::Folder, pagecache},
    loops::Stride,
    machine::Tree,
    memory::{self, Backing, Layout, Scanner, memfd},
    time::usage,
};

const PAGE: usize = 4096;
/// Every base page once.
const EACH: Stride = Stride { step: PAGE, bytes: 8 };

/// A file without a name, open for reading and writing.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    bytes: usize,
}

/// What every word of a page of a filled scratch file holds; never 0.
pub fn word_of(page: usize) -> u64 {
    page as u64 + 1
}

impl Scratch {
    /// An empty file of `bytes` bytes in a directory; nothing is allocated yet.
    ///
    /// # Errors
    /// When the directory is not there or may not be written to.
    pub fn in_directory(directory: &Path, bytes: usize) -> Result<Self, SysError> {
        let file = nameless(directory).called("open", directory.display())?;
        Self::sized(file, bytes)
    }

    /// The same in memory: a memfd, which is shared memory.
    ///
    /// # Errors
    /// When the kernel has no `memfd_create`.
    pub fn in_memory(bytes: usize) -> Result<Self, SysError> {
        Self::sized(memfd::create("pagelab-scratch")?, bytes)
    }

    fn sized(file: File, bytes: usize) -> Result<Self, SysError> {
        file.set_len(bytes as u64).called("ftruncate", format_args!("{bytes} bytes"))?;
        Ok(Self { file, bytes })
    }

    /// The file as the backing of an area; it must outlive every mapping that is yet to be made.
    pub fn backing(&self, shared: bool) -> Backing {
        let fd: RawFd = self.file.as_raw_fd();
        Backing::File { fd, shared, from: 0 }
    }

    /// Writes every page: all words of page N are [`word_of`] N.
    ///
    /// # Errors
    /// When the disk or the memory is full.
    pub fn fill(&self) -> Result<(), SysError> {
        for page in 0..self.bytes / PAGE {
            let text = word_of(page).to_ne_bytes().repeat(PAGE / 8);
            let at = (page * PAGE) as u64;
            self.file
                .write_all_at(&text, at)
                .called("pwrite", format_args!("page {page} of a scratch file"))?;
        }
        Ok(())
    }

    /// Reads the whole file twice: a page that was used twice is reclaimed after all that were not.
    /// One that is gone already is read as a base page: readahead, which is off meanwhile, would
    /// bring large folios.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn keep_in_memory(&self) -> Result<(), SysError> {
        let advise =
            |advice| fadvise(&self.file, 0, None, advice).called("posix_fadvise", "a scratch file");
        advise(Advice::Random)?;
        for _ in 0..2 {
            pagecache::fill(&self.file, self.bytes as u64).called("pread", "a scratch file")?;
        }
        advise(Advice::Normal)
    }

    /// Takes every page away: the file is one hole.
    ///
    /// # Errors
    /// When the file system cannot.
    pub fn empty(&self) -> Result<(), SysError> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, flags, 0, self.bytes as u64)
            .called("fallocate", "FALLOC_FL_PUNCH_HOLE")
    }

    /// Writes back what is dirty, and waits for the disk: no page is dirty afterwards.
    ///
    /// # Errors
    /// When writing fails.
    pub fn clean(&self) -> Result<(), SysError> {
        fsync(&self.file).called("fsync", "a scratch file")
    }

    /// Writes back what is dirty and asks the kernel to forget every page of the file; it may not
    /// follow, so ask [`Scratch::resident`] afterwards.
    ///
    /// # Errors
    /// When writing back fails.
    pub fn evict(&self) -> Result<(), SysError> {
        self.clean()?;
        fadvise(&self.file, 0, None, Advice::DontNeed)
            .called("posix_fadvise", "POSIX_FADV_DONTNEED")
    }

    /// Pages of the file that are in memory.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn resident(&self) -> Result<u64, SysError> {
        pagecache::resident_pages(&self.file, self.bytes as u64)
    }

    /// Name of the file system that the file lies in, as far as it is known.
    pub fn file_system(&self) -> &'static str {
        pagecache::file_system(&self.file).map_or("another", |(_, name)| name)
    }

    /// Maps a piece of the file, and says how many pages one load makes present: more than one
    /// where the kernel maps what lies around in the page cache as well (fault-around).
    ///
    /// # Errors
    /// When the file cannot be mapped, or the page table cannot be read.
    pub fn pages_of_a_fault(&self) -> Result<usize, SysError> {
        let layout = Layout::contiguous(self.bytes.min(2 << 20));
        let area = mapped(layout, self.backing(true))?;
        std::hint::black_box(area.word(0));
        let present = Scanner::open()?.scan(&area)?.present;
        Ok(usize::try_from(present).unwrap_or(0))
    }
}

/// A shared mapping of a layout, in base pages, that nothing has touched.
fn mapped(layout: Layout, backing: Backing) -> Result<Area, SysError> {
    let area = Area::mapped(layout, backing, 2 << 20)?;
    // A kernel without huge pages knows no such advice, and has nothing to be told.
    let _ = area.advise(memory::Advice::NoHugePage);
    Ok(area)
}

/// Opens a file for which the directory has no name, as soon as that is possible.
///
/// # Errors
/// When nothing can be written there, or, as root, another user could interfere.
pub fn nameless(directory: &Path) -> io::Result<File> {
    Folder::open(directory).map_err(io::Error::other)?.nameless()
}

/// Directories for scratch files where none is named, the preferred one first: `$TMPDIR`,
/// `/var/tmp`, `/tmp`, and the current one.
pub(crate) fn candidates() -> Vec<PathBuf> {
    let asked = env::var_os("TMPDIR").map(PathBuf::from);
    let usual = ["/var/tmp", "/tmp"].map(PathBuf::from);
    let all = asked.into_iter().chain(usual).chain(env::current_dir());
    all.filter(|path| path.is_absolute()).collect()
}

/// The first of them that can be written to and lies on more than memory, else the first that can
/// be written to.
pub fn default_directory() -> PathBuf {
    let mut candidates = candidates();
    // Root passes over what is another user's.
    let is_usable = |path: &PathBuf| access(path, Access::WRITE_OK).is_ok();
    candidates.retain(|path| is_usable(path) && Folder::open(path).is_ok());
    let on_disk = |path: &&PathBuf| {
        let directory = File::open(path).ok();
        let found = directory.and_then(|directory| pagecache::file_system(&directory).ok());
        found.is_some_and(|(magic, _)| !pagecache::is_in_memory(magic))
    };
    let chosen = candidates.iter().find(on_disk).or(candidates.first());
    chosen.cloned().unwrap_or_else(|| PathBuf::from("/var/tmp"))
}

/// Bytes that may be written to a directory's file system; `None` where it does not say, and where
/// the directory cannot be written to.
pub fn free_bytes(directory: &Path) -> Option<u64> {
    nameless(directory).ok()?;
    let found = statvfs(directory).ok()?;
    // A file system without a size (ramfs) ends with the memory.
    Some(if found.f_blocks == 0 { u64::MAX } else { found.f_bavail * found.f_frsize })
}

/// Whether files of a directory really leave memory when they are asked to.
pub fn can_evict(directory: &Path) -> bool {
    let gone = || -> Result<bool, SysError> {
        let scratch = Scratch::in_directory(directory, 16 * PAGE)?;
        scratch.fill()?;
        scratch.evict()?;
        Ok(scratch.resident()? == 0)
    };
    gone().unwrap_or(false)
}

/// Whether the file system of a directory is told of the first store to a clean page, which
/// therefore faults: `page_mkwrite`, which file systems in memory do not have.
///
/// Several pages are stored to, and each has to fault: one fault alone could be of the code.
pub fn notes_writes(directory: &Path) -> bool {
    const PAGES: usize = 16;
    let faults = || -> Result<u64, SysError> {
        let scratch = Scratch::in_directory(directory, PAGES * PAGE)?;
        scratch.fill()?;
        scratch.clean()?;
        let area = mapped(Layout::contiguous(PAGES * PAGE), scratch.backing(true))?;
        area.read(EACH);
        let before = usage::thread();
        area.touch(0, PAGES * PAGE, EACH);
        Ok(usage::thread().since(before).minor_faults)
    };
    faults().is_ok_and(|faults| faults >= PAGES as u64)
}

/// Whether a load of a page of a file also maps the pages around it: in mainline up to 64 KiB
/// (`fault_around_bytes` in debugfs).
pub fn maps_around() -> bool {
    let pages = || -> Result<usize, SysError> {
        let scratch = Scratch::in_memory(2 << 20)?;
        scratch.fill()?;
        scratch.pages_of_a_fault()
    };
    pages().is_ok_and(|pages| pages > 1)
}

/// Mappings that a process may have (`vm.max_map_count`).
pub fn mappings_max() -> Option<u64> {
    Tree::machine().number(MAPPINGS)
}

/// Where the kernel keeps that number.
pub const MAPPINGS: &str = "/proc/sys/vm/max_map_count";

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pages: usize) -> Scratch {
        let scratch = Scratch::in_memory(pages * PAGE).unwrap();
        scratch.fill().unwrap();
        scratch
    }

    /// Pages that the file system has allocated for the file.
    fn allocated(scratch: &Scratch) -> u64 {
        std::os::unix::fs::MetadataExt::blocks(&scratch.file.metadata().unwrap()) * 512
            / PAGE as u64
    }

    #[test]
    fn a_filled_file_has_a_number_in_each_page() {
        let _alone = crate::alone();
        let scratch = filled(8);
        crate::counted((8, 8), || (scratch.resident().unwrap(), allocated(&scratch)));
        let area = mapped(Layout::contiguous(8 * PAGE), scratch.backing(false)).unwrap();
        for page in 0..8 {
            assert_eq!(area.word(page * PAGE + 4088), word_of(page));
        }
    }

    #[test]
    fn an_emptied_file_has_no_page_and_is_as_long_as_before() {
        let _alone = crate::alone();
        let scratch = filled(8);
        scratch.empty().unwrap();
        assert_eq!((scratch.resident().unwrap(), allocated(&scratch)), (0, 0));
        let area = mapped(Layout::contiguous(8 * PAGE), scratch.backing(true)).unwrap();
        assert_eq!(area.word(7 * PAGE), 0);
    }

    #[test]
    fn a_private_store_stays_private_and_a_shared_one_does_not() {
        let _alone = crate::alone();
        let scratch = filled(4);
        let scanner = Scanner::open().unwrap();
        for (shared, seen) in [(false, word_of(1)), (true, 0)] {
            let area = mapped(Layout::contiguous(4 * PAGE), scratch.backing(shared)).unwrap();
            area.touch(0, 4 * PAGE, EACH);
            crate::counted((4, if shared { 4 } else { 0 }), || {
                let found = scanner.scan(&area).unwrap();
                (found.present, found.file)
            });
            let other = mapped(Layout::contiguous(4 * PAGE), scratch.backing(true)).unwrap();
            assert_eq!(other.word(PAGE), seen);
            crate::counted(4, || scanner.dirty(&area).unwrap());
        }
    }

    #[test]
    fn a_mapping_of_one_page_has_nothing_around_it() {
        let _alone = crate::alone();
        let scratch = filled(64);
        let around = scratch.pages_of_a_fault().unwrap();
        assert!(around.is_power_of_two(), "{around}");
        let layout = Layout { window: PAGE, stride: 2 * PAGE, windows: 64 };
        let area = mapped(layout, scratch.backing(true)).unwrap();
        assert_eq!(area.word(5 * PAGE), word_of(5));
        crate::counted(1, || Scanner::open().unwrap().scan(&area).unwrap().present);
    }

    #[test]
    fn a_file_on_a_disk_leaves_memory_and_notes_stores() {
        let _alone = crate::alone();
        let directory = default_directory();
        let scratch = Scratch::in_directory(&directory, 16 * PAGE).unwrap();
        assert!(free_bytes(&directory).is_some());
        if ["tmpfs", "ramfs"].contains(&scratch.file_system()) {
            assert!(!notes_writes(&directory) && !can_evict(&directory));
        } else if scratch.file_system() == "ext4" {
            assert!(notes_writes(&directory) && can_evict(&directory));
        }
    }

    #[test]
    fn a_directory_that_is_not_there_has_no_room() {
        let nowhere = Path::new("/nowhere/at/all");
        assert_eq!(free_bytes(nowhere), None);
        assert!(!can_evict(nowhere) && !notes_writes(nowhere));
        let error = Scratch::in_directory(nowhere, PAGE).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    }
}
