//! The initramfs of a machine: this executable, what it is linked with, and modules.
//!
//! The one idea: what runs in the machine is what runs here, so the two cannot disagree. A dynamic
//! executable needs its loader and libraries, which are mapped into this process: they go where
//! they lie here.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use elf::{ElfBytes, endian::NativeEndian};
use pagelab_bench::Error;
use pagelab_initrd::Archive;
use pagelab_sys::machine::proc::{self, mappings};

/// The first process.
const INIT: &str = "/init";

/// The archive: the executable as the first process, and other files by their paths.
///
/// # Errors
/// When a file that this process runs from cannot be read any more.
pub(super) fn archive(others: &[(String, Vec<u8>)]) -> Result<Vec<u8>, Error> {
    let mut archive = Archive::new();
    archive.file(INIT, &without_symbols(read(Path::new("/proc/self/exe"))?));
    for library in libraries().map_err(|error| failed(Path::new("/proc/self/maps"), &error))? {
        let contents = read(&library)?;
        if is_loader(&library) {
            // Where the header of an executable says that it lies.
            let name = library.file_name().unwrap_or_default().to_string_lossy();
            archive.file(&format!("/lib64/{name}"), &contents);
        }
        archive.file(&library.to_string_lossy(), &contents);
    }
    for (path, contents) in others {
        archive.file(path, contents);
    }
    Ok(archive.finish())
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::Case(format!("{}: {error}", path.display()))
}

/// Shared objects that this process has mapped.
fn libraries() -> io::Result<BTreeSet<PathBuf>> {
    Ok(mapped_libraries(&proc::text("self", "maps")?))
}

fn mapped_libraries(maps: &str) -> BTreeSet<PathBuf> {
    let code = mappings(maps).filter(|mapping| mapping.may('x') && mapping.name.starts_with('/'));
    let paths = code.map(|mapping| mapping.path().into_owned());
    paths.filter(|path| path.contains(".so")).map(PathBuf::from).collect()
}

fn is_loader(library: &Path) -> bool {
    library.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-"))
}

/// An executable of 64 bits without what lies behind its last segment: symbols, where it was built
/// with them, are ten times the rest.
fn without_symbols(mut elf: Vec<u8>) -> Vec<u8> {
    if let Some(end) = end_of_segments(&elf) {
        elf.truncate(end);
    }
    elf
}

fn end_of_segments(bytes: &[u8]) -> Option<usize> {
    let file = ElfBytes::<NativeEndian>::minimal_parse(bytes).ok()?;
    let table = file.ehdr.e_phoff + u64::from(file.ehdr.e_phentsize) * u64::from(file.ehdr.e_phnum);
    let mut ends = file.segments()?.iter().map(|part| part.p_offset.checked_add(part.p_filesz));
    usize::try_from(ends.try_fold(table, |most, end| Some(most.max(end?)))?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_holds_us_and_other_files() {
        let bytes = archive(&[("/modules/a.ko".to_owned(), b"12345".to_vec())]).unwrap();
        let has = |name: &[u8]| bytes.windows(name.len()).filter(|found| *found == name).count();
        assert!(has(b"modules/a.ko\0") >= 1);
        assert!(has(b"070701") >= 5);
    }

    #[test]
    fn an_executable_is_cut_behind_its_last_segment_and_anything_else_is_left() {
        let us = fs::read("/proc/self/exe").unwrap();
        let whole = us.len();
        let cut = without_symbols(us).len();
        assert!(cut > 4096 && cut < whole, "{cut} of {whole}");
        assert_eq!(without_symbols(b"#!/bin/sh\n".to_vec()), b"#!/bin/sh\n");
    }

    #[test]
    fn libraries_are_what_is_mapped_and_executed() {
        let maps = "55d0-55d1 r-xp 00000000 fe:00 1 /usr/bin/pagelab\n\
                    7f00-7f01 r-xp 00000000 fe:00 2 /usr/lib/x86_64-linux-gnu/libc.so.6\n\
                    7f02-7f03 r--p 00000000 fe:00 3 /usr/lib/locale/x.so\n\
                    7f04-7f05 r-xp 00000000 fe:00 4 /usr/lib/ld-linux-x86-64.so.2\n\
                    7f06-7f07 r-xp 00000000 00:00 0 [vdso]\n";
        let found: Vec<_> = mapped_libraries(maps).into_iter().collect();
        assert_eq!(found.len(), 2);
        assert!(is_loader(&found[0]) && !is_loader(&found[1]));
    }
}
