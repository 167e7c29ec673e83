#![expect(unsafe_code, reason = "swapon and swapoff are libc's, which rustix does not wrap")]
//! Swap space: what is in use, and a file or device of one's own put to use before all other.
//!
//! One idea: swap of others is read about (`/proc/swaps`), never acted on. Ours is switched on
//! with a priority above all others, so that it is the one that takes what a case gives away;
//! `swapoff` is called for a path of ours only.
//!
//! Rules of the unsafe code:
//! 1. A path is passed as a C string that outlives the call.
//! 2. The calls touch no memory of this process but that string.

use std::{
    ffi::CString,
    fs::{self, File},
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FallocateFlags, fallocate, statfs},
    param::page_size,
};
use serde::{Deserialize, Serialize};

use super::{
    KnobError, Knobs, Outcome,
    made::Made,
    making::{Making, unused_name},
    value::again,
};
use crate::{
    checked,
    files::{folder::Folder, pagecache},
    machine::{Tree, proc::in_use},
};

/// `SWAP_FLAG_PREFER` of `linux/swap.h`: the low 15 bits are a priority.
const PREFER: i32 = 0x8000;
/// `SWAP_FLAG_PRIO_MASK`: the highest priority that can be asked for.
const PRIORITY_MAX: i32 = 0x7fff;

/// A priority that swap of others hardly has; what we switch on later goes above what we have.
const PRIORITY: i32 = 0x7f00;

/// What the name of every swap file of ours starts with.
const NAME: &str = "pagelab-swap-";

/// Bytes of the disk that are left to others.
const SPARE: u64 = 512 << 20;

/// Swap space of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapSpace {
    /// The device or file, as `/proc/swaps` names it.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// How a zram device compresses.
    pub algorithm: Option<String>,
    /// Bytes, the header's page included.
    pub bytes: u64,
}

/// What swap space is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Compressed memory.
    Zram,
    /// A file on a disk.
    File,
}

/// Whether the kernel swaps at all.
pub fn is_offered(tree: &Tree) -> bool {
    tree.path("proc/swaps").exists()
}

/// A priority that no other swap has, above all of them.
pub(super) fn priority_above_all(tree: &Tree) -> Result<i32, KnobError> {
    let highest = in_use(tree).into_iter().max_by_key(|area| area.priority);
    match highest {
        Some(area) if area.priority >= PRIORITY_MAX => Err(KnobError::Unsuitable {
            path: area.path,
            why: "it is swap of the highest priority there is; give it a lower one".to_owned(),
        }),
        Some(area) => Ok(PRIORITY.max(area.priority + 1)),
        None => Ok(PRIORITY),
    }
}

/// Writes what `mkswap` writes: the header of version 1 in the first page.
pub(super) fn write_header(file: &File, path: &Path, bytes: u64) -> Result<(), KnobError> {
    let mut header = vec![0_u8; page_size()];
    let pages = bytes / header.len() as u64;
    let last = u32::try_from(pages.saturating_sub(1)).unwrap_or(u32::MAX);
    // `union swap_header`: version, last page, number of bad pages; UUID; label.
    header[1024..1028].copy_from_slice(&1_u32.to_ne_bytes());
    header[1028..1032].copy_from_slice(&last.to_ne_bytes());
    header[1052..1059].copy_from_slice(b"pagelab");
    let magic = header.len() - 10;
    header[magic..].copy_from_slice(b"SWAPSPACE2");
    let written = file.write_all_at(&header, 0).and_then(|()| file.sync_all());
    written.map_err(KnobError::of("write", path))
}

/// Starts to swap to `path`.
pub(super) fn on(path: &Path, priority: i32) -> Result<(), KnobError> {
    let name = c_string(path)?;
    // SAFETY: rules 1 and 2.
    let result = unsafe { libc::swapon(name.as_ptr(), PREFER | priority) };
    checked(result).map(drop).map_err(KnobError::of("swapon", path))
}

/// Stops to swap to `path`, where that is being done; what is swapped out comes back.
pub(super) fn off(tree: &Tree, path: &Path) -> Result<(), KnobError> {
    let name = c_string(path)?;
    // A signal, or memory that a process which is just ending will give back.
    let is_not_ready =
        |error: &io::Error| matches!(error.raw_os_error(), Some(libc::EINTR | libc::ENOMEM));
    let off = again(20, Duration::from_millis(50), is_not_ready, |_| {
        if in_use(tree).iter().all(|area| area.path != path) {
            return Ok(());
        }
        // SAFETY: rules 1 and 2.
        checked(unsafe { libc::swapoff(name.as_ptr()) }).map(drop)
    });
    off.map_err(KnobError::of("swapoff", path))
}

fn c_string(path: &Path) -> Result<CString, KnobError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|error| KnobError::of("swapon", path)(error.into()))
}

/// Why no swap file can lie in a directory; `None` where one can.
///
/// Swapping goes past the file system to the blocks of the file, which must stay where they are:
/// memory file systems have none, overlays and those that copy on write move them.
pub fn why_not_in(directory: &Path, bytes: u64) -> Option<String> {
    /// `EXT4_SUPER_MAGIC` and `XFS_SUPER_MAGIC` of `linux/magic.h`.
    const SUITABLE: [u64; 2] = [0xef53, 0x5846_5342];
    let found = match statfs(directory) {
        Ok(found) => found,
        Err(error) => return Some(format!("{}: {error}", directory.display())),
    };
    if !SUITABLE.iter().any(|magic| i128::from(found.f_type) == i128::from(*magic)) {
        return Some(format!("{} is not on ext4 or xfs", directory.display()));
    }
    let free = found.f_bavail.saturating_mul(found.f_bsize.unsigned_abs());
    (free < bytes + SPARE)
        .then(|| format!("the disk of {} has only {} MiB free", directory.display(), free >> 20))
}

/// Makes a file and swaps to it.
pub(super) fn make_file<'k>(
    knobs: &'k Knobs,
    bytes: u64,
    directory: &Path,
) -> Result<(Making<'k>, SwapSpace), KnobError> {
    let tree = knobs.place.tree();
    let priority = priority_above_all(tree)?;
    let directory = fs::canonicalize(directory).map_err(KnobError::of("realpath", directory))?;
    if let Some(why) = why_not_in(&directory, bytes) {
        return Err(KnobError::Unsuitable { path: directory, why });
    }
    // The file cannot be another by the time that the kernel is given its name.
    let folder = Folder::open(&directory).map_err(|error| KnobError::Unsuitable {
        path: directory.clone(),
        why: error.to_string(),
    })?;
    let path = unused_name(&directory, NAME);
    let making = Making::begin(knobs, Made::SwapFile { path: path.clone() })?;
    let name = path.file_name().unwrap_or_default();
    let file = folder.create_private(name).map_err(KnobError::of("open", &path))?;
    fallocate(&file, FallocateFlags::empty(), 0, bytes)
        .map_err(|errno| KnobError::of("fallocate", &path)(errno.into()))?;
    write_header(&file, &path, bytes)?;
    match on(&path, priority) {
        // A file system that takes reserved blocks for holes: it gets written ones.
        Err(KnobError::System(error)) if error.source.raw_os_error() == Some(libc::EINVAL) => {
            pagecache::write(&file, 0, bytes).map_err(KnobError::of("write", &path))?;
            write_header(&file, &path, bytes)?;
            on(&path, priority)?;
        }
        done => done?,
    }
    Ok((making, SwapSpace { path, kind: Kind::File, algorithm: None, bytes }))
}

/// Removes a file of ours.
pub(super) fn remove_file(tree: &Tree, path: &Path) -> Result<Outcome, KnobError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Outcome::NotThere),
        Err(error) => return Err(KnobError::of("stat", path)(error)),
    };
    let is_named_so =
        path.file_name().is_some_and(|name| name.as_bytes().starts_with(NAME.as_bytes()));
    let is_ours = is_named_so
        && found.is_file()
        && found.uid() == rustix::process::geteuid().as_raw()
        && found.mode() & 0o7777 == 0o600;
    if !is_ours {
        let why = "name, owner or mode are others".to_owned();
        return Ok(Outcome::NotOurs { why });
    }
    off(tree, path)?;
    fs::remove_file(path).map_err(KnobError::of("unlink", path))?;
    Ok(Outcome::Removed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn machine(swaps: &str) -> (tempfile::TempDir, Tree) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        let head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        fs::write(root.path().join("proc/swaps"), format!("{head}{swaps}")).unwrap();
        let tree = Tree::at(root.path());
        (root, tree)
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn a_file_needs_room_and_some_to_spare() {
        let folder = tempfile::tempdir().unwrap();
        let room = || crate::files::scratch::free_bytes(folder.path()).unwrap();
        let (before, small, after) = (room(), why_not_in(folder.path(), 4096), room());
        if small.as_ref().is_some_and(|why| why.contains("is not on ext4"))
            || before.min(after) < SPARE + (64 << 20)
        {
            return eprintln!("skipped: no disk with room; to run it: TMPDIR on ext4, 1 GiB free");
        }
        assert_eq!(small, None, "a page and half a GiB");
        let why = why_not_in(folder.path(), 1 << 60).unwrap();
        assert!(why.contains("has only"), "{why}");
    }

    #[test]
    fn a_kernel_swaps_where_it_lists_its_swap() {
        let (root, tree) = machine("");
        assert!(is_offered(&tree) && in_use(&tree).is_empty());
        assert_eq!(priority_above_all(&tree).unwrap(), PRIORITY);
        fs::remove_file(root.path().join("proc/swaps")).unwrap();
        assert!(!is_offered(&tree) && in_use(&tree).is_empty());
    }

    #[test]
    fn what_is_no_swap_is_neither_switched_on_nor_off() {
        let (root, tree) = machine("");
        let path = root.path().join("file");
        fs::write(&path, "").unwrap();
        on(&path, PRIORITY).unwrap_err();
        off(&tree, &path).unwrap();
        // The list says that it is; the kernel knows better, and is asked.
        let (_root, tree) = machine(&format!("{} file\t8\t\t0\t\t-2\n", path.display()));
        off(&tree, &path).unwrap_err();
    }

    #[test]
    fn a_file_is_filled_to_its_last_byte() {
        for bytes in [1, 1 << 20, (1 << 20) + 7, 3 << 20] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            io::Write::write_all(&mut file, b"not zero").unwrap();
            pagecache::write(file.as_file(), 0, bytes).unwrap();
            let found = fs::read(file.path()).unwrap();
            assert_eq!(found.len() as u64, bytes.max(8));
            let filled = usize::try_from(bytes).unwrap();
            assert!(found[..filled].iter().all(|byte| *byte == 0), "{bytes}");
        }
    }

    #[test]
    fn swap_of_the_highest_priority_cannot_be_gone_before() {
        let (_root, tree) = machine("/dev/sda2 partition\t8\t\t0\t\t-2\n");
        assert_eq!(priority_above_all(&tree).unwrap(), PRIORITY);
        let (_root, tree) = machine("/dev/sda2 partition\t8\t\t0\t\t32600\n");
        assert_eq!(priority_above_all(&tree).unwrap(), 32601);
        let (_root, tree) = machine("/dev/sda2 partition\t8\t\t0\t\t32767\n");
        assert!(priority_above_all(&tree).unwrap_err().to_string().contains("/dev/sda2"));
    }

    #[test]
    fn the_header_is_that_of_mkswap() {
        let file = tempfile::NamedTempFile::new().unwrap();
        write_header(file.as_file(), file.path(), 64 << 20).unwrap();
        let header = fs::read(file.path()).unwrap();
        assert_eq!(header.len(), page_size());
        assert!(header.ends_with(b"SWAPSPACE2"));
        let pages = (64 << 20) / u32::try_from(page_size()).unwrap();
        assert_eq!(header[1024..1036], [[1, 0, 0, 0], (pages - 1).to_ne_bytes(), [0; 4]].concat());
    }

    #[test]
    fn a_file_is_removed_only_when_it_is_named_and_kept_as_ours_are() {
        let (root, tree) = machine("");
        let ours = root.path().join("pagelab-swap-1-0");
        assert_eq!(remove_file(&tree, &ours).unwrap(), Outcome::NotThere);
        fs::write(&ours, "x").unwrap();
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(remove_file(&tree, &ours).unwrap(), Outcome::NotOurs { .. }));
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o600)).unwrap();
        let other = root.path().join("swapfile");
        fs::copy(&ours, &other).unwrap();
        assert!(matches!(remove_file(&tree, &other).unwrap(), Outcome::NotOurs { .. }));
        assert_eq!(remove_file(&tree, &ours).unwrap(), Outcome::Removed);
        assert!(!ours.exists() && other.exists());
    }

    #[test]
    fn no_swap_file_lies_in_a_memory_file_system() {
        assert!(why_not_in(Path::new("/proc"), 0).unwrap().contains("ext4"));
        assert!(why_not_in(Path::new("/no/such/directory"), 0).is_some());
    }
}
