//! Files in a directory: private copies, pages of the page cache, and pages that are on the disk.

use std::path::PathBuf;

use pagelab_bench::{Error, Need, Needed, needs::Memory};
use pagelab_sys::{files::scratch::Scratch, loops::Access};

use super::{
    backed::{self, Backed, Before, Mapping},
    state::single,
};
use crate::{
    Asked, FaultKind, Lie, Space,
    needs::{Disk, FAULT_AROUND, OnDisk, Room},
};

/// What `size=auto` gives to kinds whose file stays in the page cache.
const CACHED_MAX: u64 = 128 << 20;
/// The same where every repetition waits for the disk.
const DISK_MAX: u64 = 32 << 20;

/// A load, to which the others are compared.
const LOAD: FaultKind = FaultKind {
    access: Access::Read,
    takes_fresh_memory: false,
    uses_dir: true,
    automatic_size_max: DISK_MAX,
    cannot_tell: |asked| backed::cannot_tell(asked, Mapping::Shared),
    refuse: backed::refuse,
    ..FaultKind::PLAIN
};

/// The first store to a private mapping of a page in the page cache.
pub(super) const PRIVATE_COW: FaultKind = FaultKind {
    name: "private-file-cow",
    help: "first store to a private file mapping, page in the page cache: allocates and copies",
    access: Access::Write,
    automatic_size_max: CACHED_MAX,
    takes_fresh_memory: true,
    // The file and the copies.
    needs: |asked| with_room(asked, Memory(2 * asked.size)),
    stage: |asked, space, _| Ok(Box::new(whole(asked, space, (Before::Cached, Mapping::Private))?)),
    ..LOAD
};

/// A load of a page in the page cache, which maps its neighbours too.
pub(super) const MINOR: FaultKind = FaultKind {
    name: "file-minor",
    help: "load of a file's page in the page cache: maps what lies around it, too (fault-around)",
    automatic_size_max: CACHED_MAX,
    lies: &[Lie::FaultAround],
    needs: |asked| with_room(asked, FAULT_AROUND),
    refuse: |asked| {
        backed::refuse(asked)?;
        // What a fault maps is a power of two of pages, 64 KiB unless somebody changed it.
        if asked.size.is_multiple_of(64 << 10) {
            return Ok(());
        }
        Err("kind=file-minor with a size that 64k does not divide: every fault maps as many \
             pages; use a multiple of 64k"
            .to_owned())
    },
    stage: |asked, space, _| {
        let backed = whole(asked, space, CLEAN)?;
        let is_lie = asked.lie == Lie::FaultAround;
        Ok(Box::new(if is_lie { backed } else { backed.one_in_a_piece()? }))
    },
    ..LOAD
};

/// A load of a page in the page cache that has no neighbours.
pub(super) const MINOR_SINGLE: FaultKind = FaultKind {
    name: "file-minor-single",
    help: "the same without fault-around: every page is a mapping of its own, nothing lies around",
    automatic_size_max: single::SIZE_MAX,
    lies: &[Lie::FaultAround],
    needs: |asked| with_room(asked, single::mappings(asked)),
    refuse: |asked| {
        backed::refuse(asked)?;
        if asked.size <= 1 << 30 {
            return Ok(());
        }
        Err("kind=file-minor-single above 1g: every page is a mapping of its own; use a smaller \
             size"
            .to_owned())
    },
    stage: |asked, space, _| {
        if asked.lie != Lie::FaultAround {
            single::lay(space);
        }
        Ok(Box::new(whole(asked, space, CLEAN)?))
    },
    ..LOAD
};

/// The first store to a page of a shared file that is in the page table, clean.
pub(super) const MAKE_WRITABLE: FaultKind = FaultKind {
    name: "mkwrite",
    help: "store to a clean, present page of a shared file: the file system is told (page_mkwrite)",
    access: Access::Write,
    allocates_tables: false,
    cannot_tell: |asked| backed::cannot_tell(asked, Mapping::SharedRead),
    needs: |asked| with_room(asked, Disk(OnDisk::NotesWrites, directory(asked))),
    stage: |asked, space, _| {
        Ok(Box::new(whole(asked, space, (Before::Clean, Mapping::SharedRead))?))
    },
    ..LOAD
};

/// A load of a page that is on the disk alone. It does take fresh memory, but how long the disk
/// takes hides how long the host takes.
pub(super) const MAJOR: FaultKind = FaultKind {
    name: "file-major",
    help: "load of a file's page that is not in memory: reads it from the disk, without readahead",
    lies: &[Lie::Cached],
    needs: |asked| with_room(asked, Disk(OnDisk::Evicts, directory(asked))),
    stage: |asked, space, _| Ok(Box::new(whole(asked, space, (Before::Evicted, Mapping::Shared))?)),
    ..LOAD
};

/// Pages of a shared file that are in the page cache, as they are on the disk.
const CLEAN: (Before, Mapping) = (Before::Clean, Mapping::Shared);

/// The directory of a case's scratch file.
fn directory(asked: &Asked) -> PathBuf {
    asked.directory.clone().unwrap_or_else(|| PathBuf::from("/var/tmp"))
}

/// Room for the file, and what else a kind needs.
fn with_room(asked: &Asked, need: impl Need) -> Vec<Needed> {
    vec![Room { directory: directory(asked), bytes: asked.size }.needed(), need.needed()]
}

/// The file of a case behind its space. Clean where a load follows: a page that is being written
/// back may be locked, and fault-around leaves it out.
fn whole(asked: &Asked, space: &mut Space, state: (Before, Mapping)) -> Result<Backed, Error> {
    let scratch = Scratch::in_directory(&directory(asked), space.layout.bytes())?;
    Backed::new(asked, space, scratch, state)
}
