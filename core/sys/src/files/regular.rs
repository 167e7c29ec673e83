//! Files of others, opened to be read.
//!
//! A name may have become a pipe, which an open would wait for, or a device: neither is opened.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// What the last part of a path may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// A link to a regular file, too.
    Followed,
    /// A regular file itself.
    Refused,
}

/// Opens a regular file to read it.
///
/// # Errors
/// When there is none, or it may not be read; `InvalidInput` for what is no regular file.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    let no_link = if links == Links::Refused { libc::O_NOFOLLOW } else { 0 };
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | no_link;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_no_pipe_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| folder.path().join(name));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|made| made.success()));
        assert!(open(&file, Links::Refused).is_ok() && open(&link, Links::Followed).is_ok());
        for (path, links) in [
            (&link, Links::Refused),
            (&pipe, Links::Followed),
            (&folder.path().into(), Links::Followed),
        ] {
            assert!(open(path, links).is_err(), "{path:?}");
        }
    }
}
