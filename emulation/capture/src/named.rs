//! Opens the files that the plugin's options name.
//!
//! `pagelab` names files by its own descriptors below `/proc`, which are links. Any other name is
//! the user's, in a directory where another user may have put a link: that one is not followed,
//! and opening it fails with `ELOOP`.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Opens an empty file; one that is there is emptied.
pub(crate) fn empty(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().write(true).create(true).truncate(true))
}

/// Opens a file to append to it; one that is not there is made where `creates`.
pub(crate) fn appended(path: &Path, creates: bool) -> io::Result<File> {
    open(path, OpenOptions::new().append(true).create(creates))
}

/// Opens a file that is there for reading and writing.
pub(crate) fn existing(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true).write(true))
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let no_link = if path.starts_with("/proc") { 0 } else { libc::O_NOFOLLOW };
    options.custom_flags(no_link).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::{fd::AsRawFd, unix::fs::symlink};

    use super::*;

    #[test]
    fn a_link_is_followed_below_proc_only() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        let opened = empty(&file).unwrap();
        symlink(&file, &link).unwrap();
        for refused in [empty(&link), appended(&link, true), existing(&link)] {
            assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ELOOP));
        }
        let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
        assert!(appended(Path::new(&path), false).is_ok());
    }
}
