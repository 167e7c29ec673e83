//! The disk of a machine: an empty file system in memory, for kinds that are about files.
//!
//! The one idea: it has no name, so that nothing is left of it, and nothing is on it that a thread
//! of the kernel would go on to write while a case runs.

use std::{
    env,
    fs::File,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use pagelab_bench::{Error, Plain};
use pagelab_sys::memory::memfd;

/// What makes the file system.
pub(crate) const MKE2FS: Plain = Plain {
    name: "mke2fs, for the machine's disk",
    has: || mke2fs().is_some(),
    cure: "sudo apt-get install e2fsprogs",
};

/// Its options. Checksums of metadata would be one more module for old kernels; what is lazy would
/// be written behind the case's back.
const OPTIONS: [&str; 8] = [
    "-q",
    "-F",
    "-t",
    "ext4",
    "-O",
    "^metadata_csum",
    "-E",
    "lazy_itable_init=0,lazy_journal_init=0",
];

fn mke2fs() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Often in no path but that of root.
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join("mke2fs")).find(|program| Path::is_file(program))
}

/// A disk of so many bytes.
///
/// # Errors
/// When there is no `mke2fs`, or it fails.
pub(super) fn image(bytes: u64) -> Result<File, Error> {
    let failed =
        |error: &dyn std::fmt::Display| Error::Case(format!("the machine's disk: {error}"));
    let program = mke2fs().ok_or_else(|| failed(&MKE2FS.cure))?;
    let image = memfd::create("pagelab-disk")?;
    image.set_len(bytes).map_err(|error| failed(&error))?;
    let mut command = Command::new(program);
    command.args(OPTIONS).arg(named(&image)).stdin(Stdio::null());
    let made = command.output().map_err(|error| failed(&error))?;
    if made.status.success() {
        return Ok(image);
    }
    Err(failed(&String::from_utf8_lossy(&made.stderr).trim()))
}

/// A path under which a child of ours can open a file that has no name.
pub(super) fn named(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn a_disk_holds_a_file_system() {
        if mke2fs().is_none() {
            eprintln!("skipped: no mke2fs; to run it: {}", MKE2FS.cure);
            return;
        }
        let image = image(64 << 20).unwrap();
        let mut magic = [0; 2];
        image.read_exact_at(&mut magic, 1024 + 56).unwrap();
        assert_eq!(u16::from_le_bytes(magic), 0xEF53);
    }
}
