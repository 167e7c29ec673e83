//! Files in a directory: private copies, pages of the page cache, and pages that are on the disk.

use std::path::PathBuf;

use pagelab_record::Case;
use pagelab_sys::{area::Layout, scratch::Scratch, touch::Access};

use super::{
    FaultKind, Stage,
    backed::{self, Backed, Before, Mapping},
};
use crate::{
    Need,
    fault::space::{Space, size_of},
    workload::Error,
};

/// What `size=auto` gives to kinds whose file stays in the page cache.
const CACHED_MAX: u64 = 128 << 20;
/// The same where every repetition waits for the disk.
const DISK_MAX: u64 = 32 << 20;
/// The same where every page is a mapping of its own, with a guard: the default of
/// `vm.max_map_count` is 65530.
const SINGLE_MAX: u64 = 64 << 20;

/// The directory of a case's scratch file.
fn directory(case: &Case) -> PathBuf {
    PathBuf::from(case.get("dir").unwrap_or("/var/tmp"))
}

/// The file of a case behind its space.
fn backed(case: &Case, space: &mut Space, state: (Before, Mapping)) -> Result<Backed, Error> {
    let scratch = Scratch::in_directory(&directory(case), space.layout.bytes())?;
    Backed::new(case, space, scratch, state)
}

/// What all of them need: room in the directory, and in memory for the file beside the mapping.
fn needs(case: &Case) -> Vec<Need> {
    vec![Need::Scratch { directory: directory(case), bytes: size_of(case) }]
}

/// The first store to a private mapping of a page in the page cache.
#[derive(Debug)]
pub(super) struct PrivateCow;

impl FaultKind for PrivateCow {
    fn name(&self) -> &'static str {
        "private-file-cow"
    }

    fn help(&self) -> &'static str {
        "first store to a private file mapping, page in the page cache: allocates and copies"
    }

    fn uses_dir(&self) -> bool {
        true
    }

    fn automatic_size_max(&self) -> u64 {
        CACHED_MAX
    }

    fn cannot_tell(&self, case: &Case) -> bool {
        backed::cannot_tell(case, Mapping::Private)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        backed::refuse(self, case)
    }

    fn needs(&self, case: &Case) -> Vec<Need> {
        let mut needs = needs(case);
        // The file and the copies.
        needs.push(Need::Memory(2 * size_of(case)));
        needs
    }

    fn stage(&self, case: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error> {
        Ok(Box::new(backed(case, space, (Before::Cached, Mapping::Private))?))
    }
}

/// A load of a page in the page cache, which maps its neighbours too.
#[derive(Debug)]
pub(super) struct Minor;

impl FaultKind for Minor {
    fn name(&self) -> &'static str {
        "file-minor"
    }

    fn help(&self) -> &'static str {
        "load of a file's page in the page cache: maps what lies around it, too (fault-around)"
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn takes_fresh_memory(&self) -> bool {
        false
    }

    fn uses_dir(&self) -> bool {
        true
    }

    fn automatic_size_max(&self) -> u64 {
        CACHED_MAX
    }

    fn lies(&self) -> &'static [&'static str] {
        &["fault-around"]
    }

    fn cannot_tell(&self, case: &Case) -> bool {
        backed::cannot_tell(case, Mapping::Shared)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        backed::refuse(self, case)?;
        // What a fault maps is a power of two of pages, 64 KiB unless somebody changed it.
        if size_of(case).is_multiple_of(64 << 10) {
            return Ok(());
        }
        Err("kind=file-minor with a size that 64k does not divide: every fault maps as many \
             pages; use a multiple of 64k"
            .to_owned())
    }

    fn needs(&self, case: &Case) -> Vec<Need> {
        let mut needs = needs(case);
        needs.push(Need::FaultAround);
        needs
    }

    fn stage(&self, case: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error> {
        // Clean: a page that is being written back may be locked, and is then left out.
        let backed = backed(case, space, (Before::Clean, Mapping::Shared))?;
        let is_lie = case.get("lie") == Some("fault-around");
        Ok(Box::new(if is_lie { backed } else { backed.one_in_a_piece()? }))
    }
}

/// A load of a page in the page cache that has no neighbours.
#[derive(Debug)]
pub(super) struct MinorSingle;

impl FaultKind for MinorSingle {
    fn name(&self) -> &'static str {
        "file-minor-single"
    }

    fn help(&self) -> &'static str {
        "the same without fault-around: every page is a mapping of its own, nothing lies around"
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn takes_fresh_memory(&self) -> bool {
        false
    }

    fn uses_dir(&self) -> bool {
        true
    }

    fn automatic_size_max(&self) -> u64 {
        SINGLE_MAX
    }

    fn lies(&self) -> &'static [&'static str] {
        &["fault-around"]
    }

    fn cannot_tell(&self, case: &Case) -> bool {
        backed::cannot_tell(case, Mapping::Shared)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        backed::refuse(self, case)?;
        if size_of(case) <= 1 << 30 {
            return Ok(());
        }
        Err("kind=file-minor-single above 1g: every page is a mapping of its own; use a smaller \
             size"
            .to_owned())
    }

    fn needs(&self, case: &Case) -> Vec<Need> {
        let mut needs = needs(case);
        // A page and the guard after it; the rest of the process has far less than a thousand.
        let mappings = 2 * size_of(case) / 4096 + 1000;
        needs.push(Need::Mappings(mappings.max(65530)));
        needs
    }

    fn stage(&self, case: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error> {
        if case.get("lie") != Some("fault-around") {
            let windows = space.layout.bytes() / 4096;
            space.layout = Layout { window: 4096, stride: 8192, windows };
        }
        Ok(Box::new(backed(case, space, (Before::Clean, Mapping::Shared))?))
    }
}

/// The first store to a page of a shared file that is in the page table, clean.
#[derive(Debug)]
pub(super) struct MakeWritable;

impl FaultKind for MakeWritable {
    fn name(&self) -> &'static str {
        "mkwrite"
    }

    fn help(&self) -> &'static str {
        "store to a clean, present page of a shared file: the file system is told (page_mkwrite)"
    }

    fn allocates_tables(&self) -> bool {
        false
    }

    fn takes_fresh_memory(&self) -> bool {
        false
    }

    fn uses_dir(&self) -> bool {
        true
    }

    fn automatic_size_max(&self) -> u64 {
        DISK_MAX
    }

    fn cannot_tell(&self, case: &Case) -> bool {
        backed::cannot_tell(case, Mapping::SharedRead)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        backed::refuse(self, case)
    }

    fn needs(&self, case: &Case) -> Vec<Need> {
        let mut needs = needs(case);
        needs.push(Need::NotedWrites(directory(case)));
        needs
    }

    fn stage(&self, case: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error> {
        Ok(Box::new(backed(case, space, (Before::Clean, Mapping::SharedRead))?))
    }
}

/// A load of a page that is on the disk alone.
#[derive(Debug)]
pub(super) struct Major;

impl FaultKind for Major {
    fn name(&self) -> &'static str {
        "file-major"
    }

    fn help(&self) -> &'static str {
        "load of a file's page that is not in memory: reads it from the disk, without readahead"
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn takes_fresh_memory(&self) -> bool {
        // It does, but how long the disk takes hides how long the host takes.
        false
    }

    fn uses_dir(&self) -> bool {
        true
    }

    fn automatic_size_max(&self) -> u64 {
        DISK_MAX
    }

    fn lies(&self) -> &'static [&'static str] {
        &["cached"]
    }

    fn cannot_tell(&self, case: &Case) -> bool {
        backed::cannot_tell(case, Mapping::Shared)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        backed::refuse(self, case)
    }

    fn needs(&self, case: &Case) -> Vec<Need> {
        let mut needs = needs(case);
        needs.push(Need::Evictable(directory(case)));
        needs
    }

    fn stage(&self, case: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error> {
        Ok(Box::new(backed(case, space, (Before::Evicted, Mapping::Shared))?))
    }
}
