//! The way to a file: one step after the other, each opened from the one before.
//!
//! The one idea: a step is looked at through its own descriptor, so that what was checked is what
//! is entered. As root, a step that another user could have made, or could replace, ends the way.

use std::{
    ffi::{OsStr, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, Stat, fstat, fstatfs, mkdirat, openat, readlinkat},
    io::Errno,
};

use super::{Folder, FolderError, io_error};
use crate::machine::rights;

/// Links on the way to one file, as many as the kernel follows.
const LINKS_MAX: u32 = 40;
/// `PROC_SUPER_MAGIC` of `linux/magic.h`: links there lead to open files, whatever they say.
const PROC: i128 = 0x9fa0;
/// Mode of directories that are made; the umask takes from it.
const DIRECTORY: Mode = Mode::from_raw_mode(0o777);
/// The same as root: others may not write into it, whatever the umask.
const DIRECTORY_OF_ROOT: Mode = Mode::from_raw_mode(0o755);

/// A lookup that is under way.
pub(super) struct Walk {
    pub(super) at: OwnedFd,
    /// What was asked for, and how far it came: for people.
    asked: PathBuf,
    shown: PathBuf,
    /// What is left of the path, the next step last.
    pub(super) left: Vec<OsString>,
    links: u32,
    make: bool,
}

impl Walk {
    /// Before the first step.
    pub(super) fn new(path: &Path, make: bool) -> Result<Self, FolderError> {
        let start = Path::new(if path.is_absolute() { "/" } else { "." });
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let at = openat(CWD, start, flags, Mode::empty());
        let at = at.map_err(|errno| io_error(path, errno.into()))?;
        let (asked, shown) = (path.to_owned(), start.to_owned());
        let walk = Self { at, asked, shown, left: steps(path), links: 0, make };
        walk.check(&walk.at, Path::new(""))?;
        Ok(walk)
    }

    /// Goes one step: into a directory, or to where a link leads.
    pub(super) fn enter(&mut self, name: &OsStr) -> Result<(), FolderError> {
        // A step is looked at through its own descriptor: what is checked is what is entered.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let look = |walk: &Self| openat(&walk.at, Path::new(name), flags, Mode::empty());
        let next = match look(self) {
            Err(Errno::NOENT) if self.make => {
                let mode = if rights::is_root() { DIRECTORY_OF_ROOT } else { DIRECTORY };
                match mkdirat(&self.at, Path::new(name), mode) {
                    Ok(()) | Err(Errno::EXIST) => look(self),
                    Err(errno) => Err(errno),
                }
            }
            next => next,
        };
        let next = next.map_err(|errno| self.failed(errno))?;
        match self.check(&next, Path::new(name))? {
            FileType::Symlink => {
                self.links += 1;
                if self.links > LINKS_MAX {
                    return Err(self.failed(Errno::LOOP));
                }
                let to = readlinkat(&next, "", Vec::new()).map_err(|errno| self.failed(errno))?;
                let to = PathBuf::from(OsString::from_vec(to.into_bytes()));
                if to.is_absolute() {
                    let root = Self::new(Path::new("/"), false)?;
                    (self.at, self.shown) = (root.at, root.shown);
                }
                self.left.extend(steps(&to));
            }
            FileType::Directory => {
                self.at = next;
                self.shown.push(name);
            }
            _ => return Err(self.failed(Errno::NOTDIR)),
        }
        Ok(())
    }

    /// What a step is, if it may be trusted.
    fn check(&self, step: &OwnedFd, name: &Path) -> Result<FileType, FolderError> {
        let found = fstat(step).map_err(|errno| self.failed(errno))?;
        match foreign(&found).filter(|_| rights::is_root()) {
            Some(why) => Err(self.distrust(name.as_os_str(), why)),
            None => Ok(FileType::from_raw_mode(found.st_mode)),
        }
    }

    pub(super) fn is_in_proc(&self) -> bool {
        fstatfs(&self.at).is_ok_and(|found| i128::from(found.f_type) == PROC)
    }

    pub(super) fn arrive(self, path: PathBuf) -> Folder {
        Folder { at: self.at, path }
    }

    pub(super) fn failed(&self, errno: Errno) -> FolderError {
        io_error(&self.asked, errno.into())
    }

    pub(super) fn distrust(&self, name: &OsStr, why: String) -> FolderError {
        // For people: `.` alone says less than the directory's own name.
        let shown = self.shown.canonicalize().unwrap_or_else(|_| self.shown.clone());
        let path = if name.is_empty() { shown } else { shown.join(name) };
        FolderError::Foreign { path, why }
    }
}

/// The names of a path, the last one first.
fn steps(path: &Path) -> Vec<OsString> {
    let is_step =
        |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    let names = path.components().filter(is_step).map(|part| part.as_os_str().to_owned());
    names.rev().collect()
}

/// Why a file, link or directory may be another user's doing; `None` where it cannot.
pub(super) fn foreign(found: &Stat) -> Option<String> {
    let sudo = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let (user, group) = (sudo("SUDO_UID"), sudo("SUDO_GID"));
    if found.st_uid != 0 && Some(found.st_uid) != user {
        return Some(format!("belongs to user {}", found.st_uid));
    }
    let mode = Mode::from_raw_mode(found.st_mode);
    let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    // In a sticky directory only the owner of a file can put another in its place.
    if !is_directory || mode.contains(Mode::SVTX) {
        return None;
    }
    // A group that has the number of a user is that user's own.
    let is_own = found.st_gid == 0 || (Some(found.st_gid) == group && user == group);
    if mode.contains(Mode::WOTH) {
        Some("can be written by every user".to_owned())
    } else if mode.contains(Mode::WGRP) && !is_own {
        Some(format!("can be written by group {}", found.st_gid))
    } else {
        None
    }
}
