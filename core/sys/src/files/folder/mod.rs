//! Where files are written: a directory by its descriptor, reached step by step.
//!
//! The one idea: a path is looked up once. Every step is opened from the one before, links are
//! followed by hand, and what is written lies relative to the descriptor that the last step gave.
//! So nobody can put something else there between a check and a use. As root, each step must be one
//! that no other user could have put there: see [`Folder::open`].
//!
//! A file is never opened through a link, except one that may be trusted as a step may, such as
//! `/dev/stdout`; one that is replaced is written beside and renamed, or removed and made anew.

mod walk;

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, RenameFlags, fstat, openat, renameat, renameat_with,
        statat, unlinkat,
    },
    io::Errno,
};

use self::walk::{Walk, foreign};
use crate::machine::rights;

/// Why nothing is written there; every text names the path.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A system call failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was asked for.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is there, and must be kept.
    #[error("{} exists", path.display())]
    Exists {
        /// What was asked for.
        path: PathBuf,
    },
    /// Another user could have put it there, or could put something else there.
    #[error(
        "{} {why}, and root writes nothing where another user can interfere: write below a \
         directory that is root's alone, such as /root or /var/lib",
        path.display()
    )]
    Foreign {
        /// The step of the path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// An open directory.
#[derive(Debug)]
pub struct Folder {
    at: OwnedFd,
    path: PathBuf,
}

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and nothing is written.
    Keep,
    /// Another takes its place.
    Replace,
}

/// A file that was named as an output, open for writing.
#[derive(Debug)]
pub struct Target {
    /// The file.
    pub file: File,
    /// Its place.
    pub made: Made,
}

/// The place of a file, where it was made here: a pipe or a device was not. What is not said to be
/// kept is removed.
#[derive(Debug)]
pub struct Made(Option<(Folder, OsString)>);

impl Made {
    /// Whether it was, and is a regular file therefore.
    pub fn is_new(&self) -> bool {
        self.0.is_some()
    }

    /// The file is as it should be.
    pub fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some((folder, name)) = self.0.take() {
            let _ = folder.remove(&name);
        }
    }
}

impl Folder {
    /// Opens a directory. As root, every step to it and itself must belong to root, and only root
    /// may write there, or else it is sticky, as `/tmp` is, and the next step is root's. Whoever
    /// became root by `sudo` is no other user.
    ///
    /// # Errors
    /// When it is not there, or is not to be trusted.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        Self::reach(path, false)
    }

    /// The same, and makes what is missing of the path.
    ///
    /// # Errors
    /// When it cannot be made, or is not to be trusted.
    pub fn make(path: &Path) -> Result<Self, FolderError> {
        Self::reach(path, true)
    }

    fn reach(path: &Path, make: bool) -> Result<Self, FolderError> {
        let mut walk = Walk::new(path, make)?;
        while let Some(name) = walk.left.pop() {
            walk.enter(&name)?;
        }
        Ok(walk.arrive(path.to_owned()))
    }

    /// What it was opened as.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has anything of this name, a link to nowhere too.
    pub fn has(&self, name: impl AsRef<OsStr>) -> bool {
        statat(&self.at, Path::new(name.as_ref()), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Makes a file that was not there, open for reading and appending.
    ///
    /// # Errors
    /// When there is anything of this name, a link too.
    pub fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        self.file(name.as_ref(), flags)
    }

    /// Makes a file that was not there, open as [`Folder::create`] has it, and gives it its name
    /// only once `fill` is done with it: a kill in between leaves nothing of this name.
    ///
    /// # Errors
    /// When there is anything of this name, a link too, or no file can be made; inside, what `fill`
    /// answers.
    pub fn create_filled<T, E>(
        &self,
        name: impl AsRef<OsStr>,
        fill: impl FnOnce(File) -> Result<T, E>,
    ) -> io::Result<Result<T, E>> {
        let name = Path::new(name.as_ref());
        if self.has(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let beside = unused(&format!(".{}.", name.display()));
        let filled = fill(self.create(&beside)?);
        let named = match &filled {
            Err(_) => Err(None),
            Ok(_) => self.name_anew(Path::new(&beside), name).map_err(Some),
        };
        match named {
            Ok(()) => Ok(filled),
            Err(why) => {
                let _ = self.remove(&beside);
                why.map_or(Ok(filled), |errno| Err(errno.into()))
            }
        }
    }

    /// Renames a file of our own, and puts it in the place of nothing.
    fn name_anew(&self, from: &Path, to: &Path) -> Result<(), Errno> {
        match renameat_with(&self.at, from, &self.at, to, RenameFlags::NOREPLACE) {
            // Not every file system knows the flag (`renameat2(2)`): NFS does not.
            Err(Errno::INVAL) if !self.has(to) => renameat(&self.at, from, &self.at, to),
            renamed => renamed,
        }
    }

    /// Makes a file that was not there and that nobody else can open.
    ///
    /// # Errors
    /// When there is anything of this name, a link too.
    pub fn create_private(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR;
        let name = Path::new(name.as_ref());
        let mode = Mode::from_raw_mode(0o600);
        Ok(openat(&self.at, name, flags | OFlags::CLOEXEC, mode)?.into())
    }

    /// Opens a regular file for reading and appending.
    ///
    /// # Errors
    /// When it is not there, is a link or no regular file, or, as root, belongs to another user.
    pub fn append_to(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        // A pipe without a reader does not hold us up.
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NONBLOCK;
        let file = self.file(name.as_ref(), flags).map_err(|error| {
            let is_link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
            if is_link { io::Error::other("it is a link, which is not followed") } else { error }
        })?;
        let found = fstat(&file)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => (),
            FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
            _ => return Err(io::Error::other("it is no regular file")),
        }
        if let Some(why) = foreign(&found).filter(|_| rights::is_root()) {
            return Err(io::Error::other(format!("it {why}")));
        }
        if found.st_nlink > 1 && rights::is_root() {
            // Somebody may have given another file a name here.
            return Err(io::Error::other("it has another name elsewhere, a hard link"));
        }
        Ok(file)
    }

    /// Puts a file with this content in the place of whatever has the name: the old one or the
    /// whole new one is there, at every moment.
    ///
    /// # Errors
    /// When it cannot be written; then what was there is still there.
    pub fn replace(&self, name: impl AsRef<OsStr>, content: &[u8]) -> io::Result<()> {
        let name = Path::new(name.as_ref());
        let beside = unused(&format!(".{}.", name.display()));
        let written = self.create(&beside).and_then(|mut file| file.write_all(content));
        let renamed = written.and_then(|()| Ok(renameat(&self.at, &beside, &self.at, name)?));
        if renamed.is_err() {
            let _ = self.remove(&beside);
        }
        renamed
    }

    /// Removes a file.
    ///
    /// # Errors
    /// When it is not there.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(&self.at, Path::new(name.as_ref()), AtFlags::empty())?)
    }

    /// Waits until the names of new files are on the disk.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        File::from(openat(&self.at, ".", flags, Mode::empty())?).sync_all()
    }

    /// A file without a name, open for reading and writing, that nobody else can open.
    ///
    /// # Errors
    /// When nothing can be written here.
    pub fn nameless(&self) -> io::Result<File> {
        let mode = Mode::from_raw_mode(0o600);
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        if let Ok(file) = openat(&self.at, ".", flags | OFlags::TMPFILE, mode) {
            return Ok(file.into());
        }
        // Not every file system has O_TMPFILE: overlayfs not of old, NFS not at all.
        let name = unused(".pagelab");
        let file = self.create_private(&name)?;
        self.remove(&name)?;
        Ok(file)
    }

    fn file(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(openat(&self.at, Path::new(name), flags, Mode::from_raw_mode(0o666))?.into())
    }
}

/// A name that nothing else of this process has.
fn unused(start: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{start}-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Opens the file that a user named as an output. What is no regular file, such as `/dev/stdout`
/// or a pipe, is written to as it is, whatever `existing` says.
///
/// # Errors
/// When it is there and must be kept, cannot be made, or is not to be trusted (as root).
pub fn target(path: &Path, existing: Existing) -> Result<Target, FolderError> {
    let exists = || FolderError::Exists { path: path.to_owned() };
    let mut walk = Walk::new(path, false)?;
    let name = loop {
        let name = walk.left.pop().ok_or_else(|| walk.failed(Errno::ISDIR))?;
        if !walk.left.is_empty() {
            walk.enter(&name)?;
            continue;
        }
        // The last name: a link may put others in its place.
        let found = match statat(&walk.at, Path::new(&name), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => break name,
            found => found.map_err(|errno| walk.failed(errno))?,
        };
        let is_foreign = || rights::is_root().then(|| foreign(&found)).flatten();
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink if walk.is_in_proc() => {
                let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
                let file = openat(&walk.at, Path::new(&name), flags, Mode::empty());
                let file = file.map_err(|errno| walk.failed(errno))?.into();
                return Ok(Target { file, made: Made(None) });
            }
            FileType::Symlink => walk.enter(&name)?,
            FileType::RegularFile if existing == Existing::Keep => return Err(exists()),
            FileType::RegularFile => {
                // Not emptied in its place: it may have a name elsewhere too, a hard link.
                unlinkat(&walk.at, Path::new(&name), AtFlags::empty())
                    .map_err(|errno| walk.failed(errno))?;
                break name;
            }
            FileType::Fifo if is_foreign().is_some() => {
                return Err(walk.distrust(&name, is_foreign().unwrap_or_default()));
            }
            _ => {
                let folder = walk.arrive(path.to_owned());
                let file = folder.file(&name, OFlags::WRONLY);
                let file = file.map_err(|source| io_error(path, source))?;
                return Ok(Target { file, made: Made(None) });
            }
        }
    };
    let folder = walk.arrive(path.to_owned());
    match folder.file(&name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
        Ok(file) => Ok(Target { file, made: Made(Some((folder, name))) }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists()),
        Err(error) => Err(io_error(path, error)),
    }
}

fn io_error(path: &Path, source: io::Error) -> FolderError {
    FolderError::Io { path: path.to_owned(), source }
}
