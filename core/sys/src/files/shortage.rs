//! Page cache to be given up: a scratch file without a name, on a disk.
//!
//! The one idea: clean pages of a file are what the kernel can take back at once, without swap and
//! without writing. The file has no name, so that nothing is left of it however the process ends.
//! File systems that live in memory have nothing to give up and are not suitable.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use rustix::fs::statvfs;

use crate::{
    Called, SysError,
    files::{
        pagecache,
        scratch::{candidates, nameless},
    },
};

/// Where a file of so many bytes can lie: the first scratch directory on a disk with room for it.
///
/// # Errors
/// A sentence that says why nowhere.
pub fn scratch_directory(bytes: u64) -> Result<PathBuf, String> {
    let mut reasons = Vec::new();
    for directory in candidates() {
        match why_not_in(&directory, bytes) {
            None => return Ok(directory),
            Some(why) if reasons.contains(&why) => (),
            Some(why) => reasons.push(why),
        }
    }
    Err(reasons.join("; "))
}

fn why_not_in(directory: &Path, bytes: u64) -> Option<String> {
    let shown = directory.display();
    let Ok(file) = File::open(directory) else { return Some(format!("{shown} cannot be opened")) };
    match pagecache::file_system(&file) {
        Ok((magic, _)) if pagecache::is_in_memory(magic) => {
            return Some(format!("{shown} lies in memory"));
        }
        Ok(_) => (),
        Err(error) => return Some(format!("{shown}: {error}")),
    }
    let free = statvfs(directory).map_or(0, |found| found.f_bavail * found.f_frsize);
    if free < bytes + (64 << 20) {
        return Some(format!("{shown} has only {} MiB free", free >> 20));
    }
    let refused = nameless(directory).err();
    refused.map(|error| format!("{shown} may not be written to: {error}"))
}

/// A file of so many bytes, written to the disk: no page of it is dirty or a hole.
///
/// # Errors
/// When the disk is full, or the directory may not be written to.
pub fn scratch_file(directory: &Path, bytes: u64) -> Result<File, SysError> {
    let file = nameless(directory).called("open", directory.display())?;
    let written = pagecache::write(&file, 0xa5, bytes);
    written.called("pwrite", format_args!("{bytes} bytes of a scratch file"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn a_scratch_file_can_be_taken_out_of_memory_and_read_again() {
        let directory = match scratch_directory(1 << 20) {
            Ok(directory) => directory,
            Err(why) => return eprintln!("skipped: {why}; to run it: TMPDIR on a disk with room"),
        };
        let file = scratch_file(&directory, 1 << 20).unwrap();
        let resident = || pagecache::resident_pages(&file, 1 << 20).unwrap();
        // The kernel may not follow at once, and may take back at any moment.
        crate::until("it is out of memory", || {
            pagecache::evict(&file).unwrap();
            resident() == 0
        });
        crate::until("it is in memory", || {
            pagecache::fill(&file, 1 << 20).unwrap();
            resident() == 256
        });
    }

    #[test]
    fn no_directory_has_room_for_everything_and_says_so() {
        assert!(scratch_directory(u64::MAX >> 2).unwrap_err().contains("MiB free"));
    }
}
