//! Files in a directory: private copies, pages of the page cache, and pages that are on the disk.

use std::path::PathBuf;

use pagelab_bench::{
    need::{Need, Needed},
    workload::Error,
};
use pagelab_record::Case;
use pagelab_sys::{files::scratch::Scratch, loops::touch::Access, memory::area::Layout};

use super::{
    backed::{self, Backed, Before, Mapping},
    kind::{FaultKind, Stage},
};
use crate::{
    fault::{
        needs::{Evictable, FAULT_AROUND, Mappings, NotedWrites, Room},
        space::{Space, size_of},
    },
    needs::Memory,
};

/// What `size=auto` gives to kinds whose file stays in the page cache.
const CACHED_MAX: u64 = 128 << 20;
/// The same where every repetition waits for the disk.
const DISK_MAX: u64 = 32 << 20;
/// The same where every page is a mapping of its own, with a guard: the default of
/// `vm.max_map_count` is 65530.
const SINGLE_MAX: u64 = 64 << 20;

/// A kind whose pages are those of a file in a directory.
#[derive(Debug)]
pub(super) struct OfFile {
    name: &'static str,
    help: &'static str,
    access: Access,
    /// What the page cache has when a repetition begins, and how the file is mapped.
    state: (Before, Mapping),
    automatic_size_max: u64,
    allocates_tables: bool,
    takes_fresh_memory: bool,
    lies: &'static [&'static str],
    /// What it needs beside room for the file.
    need: fn(&Case) -> Needed,
    /// What it refuses beside what all of them do.
    refuse: fn(&Case) -> Result<(), String>,
    stage: fn(&OfFile, &Case, &mut Space) -> Result<Backed, Error>,
}

/// A load, to which the others are compared.
const LOAD: OfFile = OfFile {
    name: "",
    help: "",
    access: Access::Read,
    state: (Before::Clean, Mapping::Shared),
    automatic_size_max: DISK_MAX,
    allocates_tables: true,
    takes_fresh_memory: false,
    lies: &[],
    need: |case| Memory(size_of(case)).needed(),
    refuse: |_| Ok(()),
    stage: OfFile::whole,
};

/// The first store to a private mapping of a page in the page cache.
pub(super) const PRIVATE_COW: OfFile = OfFile {
    name: "private-file-cow",
    help: "first store to a private file mapping, page in the page cache: allocates and copies",
    access: Access::Write,
    state: (Before::Cached, Mapping::Private),
    automatic_size_max: CACHED_MAX,
    takes_fresh_memory: true,
    // The file and the copies.
    need: |case| Memory(2 * size_of(case)).needed(),
    ..LOAD
};

/// A load of a page in the page cache, which maps its neighbours too.
pub(super) const MINOR: OfFile = OfFile {
    name: "file-minor",
    help: "load of a file's page in the page cache: maps what lies around it, too (fault-around)",
    automatic_size_max: CACHED_MAX,
    lies: &["fault-around"],
    need: |_| FAULT_AROUND.needed(),
    refuse: |case| {
        // What a fault maps is a power of two of pages, 64 KiB unless somebody changed it.
        if size_of(case).is_multiple_of(64 << 10) {
            return Ok(());
        }
        Err("kind=file-minor with a size that 64k does not divide: every fault maps as many \
             pages; use a multiple of 64k"
            .to_owned())
    },
    stage: |kind, case, space| {
        let backed = kind.whole(case, space)?;
        let is_lie = case.get("lie") == Some("fault-around");
        if is_lie { Ok(backed) } else { backed.one_in_a_piece() }
    },
    ..LOAD
};

/// A load of a page in the page cache that has no neighbours.
pub(super) const MINOR_SINGLE: OfFile = OfFile {
    name: "file-minor-single",
    help: "the same without fault-around: every page is a mapping of its own, nothing lies around",
    automatic_size_max: SINGLE_MAX,
    lies: &["fault-around"],
    // A page and the guard after it; the rest of the process has far less than a thousand.
    need: |case| Mappings((2 * size_of(case) / 4096 + 1000).max(65530)).needed(),
    refuse: |case| {
        if size_of(case) <= 1 << 30 {
            return Ok(());
        }
        Err("kind=file-minor-single above 1g: every page is a mapping of its own; use a smaller \
             size"
            .to_owned())
    },
    stage: |kind, case, space| {
        if case.get("lie") != Some("fault-around") {
            let windows = space.layout.bytes() / 4096;
            space.layout = Layout { window: 4096, stride: 8192, windows };
        }
        kind.whole(case, space)
    },
    ..LOAD
};

/// The first store to a page of a shared file that is in the page table, clean.
pub(super) const MAKE_WRITABLE: OfFile = OfFile {
    name: "mkwrite",
    help: "store to a clean, present page of a shared file: the file system is told (page_mkwrite)",
    access: Access::Write,
    state: (Before::Clean, Mapping::SharedRead),
    allocates_tables: false,
    need: |case| NotedWrites(directory(case)).needed(),
    ..LOAD
};

/// A load of a page that is on the disk alone. It does take fresh memory, but how long the disk
/// takes hides how long the host takes.
pub(super) const MAJOR: OfFile = OfFile {
    name: "file-major",
    help: "load of a file's page that is not in memory: reads it from the disk, without readahead",
    state: (Before::Evicted, Mapping::Shared),
    lies: &["cached"],
    need: |case| Evictable(directory(case)).needed(),
    ..LOAD
};

/// The directory of a case's scratch file.
fn directory(case: &Case) -> PathBuf {
    PathBuf::from(case.get("dir").unwrap_or("/var/tmp"))
}

impl OfFile {
    /// The file of a case behind its space. Clean where a load follows: a page that is being
    /// written back may be locked, and fault-around leaves it out.
    fn whole(&self, case: &Case, space: &mut Space) -> Result<Backed, Error> {
        let scratch = Scratch::in_directory(&directory(case), space.layout.bytes())?;
        Backed::new(case, space, scratch, self.state)
    }
}

impl FaultKind for OfFile {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn access(&self) -> Access {
        self.access
    }

    fn allocates_tables(&self) -> bool {
        self.allocates_tables
    }

    fn takes_fresh_memory(&self) -> bool {
        self.takes_fresh_memory
    }

    fn uses_dir(&self) -> bool {
        true
    }

    fn automatic_size_max(&self) -> u64 {
        self.automatic_size_max
    }

    fn lies(&self) -> &'static [&'static str] {
        self.lies
    }

    fn cannot_tell(&self, case: &Case) -> bool {
        backed::cannot_tell(case, self.state.1)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        backed::refuse(self, case)?;
        (self.refuse)(case)
    }

    fn needs(&self, case: &Case) -> Vec<Needed> {
        let room = Room { directory: directory(case), bytes: size_of(case) }.needed();
        vec![room, (self.need)(case)]
    }

    fn stage(&self, case: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error> {
        Ok(Box::new((self.stage)(self, case, space)?))
    }
}
