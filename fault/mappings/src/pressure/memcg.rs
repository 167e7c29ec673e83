//! `pressure=memcg`: faults whose process must give something up first.
//!
//! The one idea: memory is short in a memory cgroup of the case's own, so that nothing else on the
//! machine is. Before each repetition the group is filled with clean page cache of a scratch file
//! and its limit set just above what it holds: the touches then reclaim in the fault (direct
//! reclaim), page cache only, without swap and without a disk being written to.
//!
//! With `page=2m` the limit leaves less than the touches need. When the page cache is gone, the
//! kernel tries to reclaim 16 more times (`MAX_RECLAIM_RETRIES` of `try_charge_memcg` in
//! `mm/memcontrol.c`), calls no OOM killer, because a charge above order 3 is not worth one
//! (`mem_cgroup_oom`), and takes a base page, for which half a huge page is left free. Smaller
//! folios are given enough page cache and do not fall back: what is left after the last one that
//! fits is less than a folio, so that a few base pages later the group would be out of memory.

use std::{fs::File, io};

use pagelab_bench::{Error, Inputs, Need, Needed, PageSize, Witness, needs::Memory};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    SysError,
    counts::Counters,
    files::{
        pagecache,
        shortage::{scratch_directory, scratch_file},
    },
    knobs::MemoryGroup,
    machine::Tree,
};

use super::pieces::{Pieces, Shortage};
use crate::{
    Asked, Space,
    needs::{Own, Reclaimable},
};

/// Room that is left below the limit: what else the process needs meanwhile, and the base pages of
/// touches that fall back.
const SLACK: u64 = 1 << 20;

/// The same for huge pages. What is counted as page cache may not be what can be reclaimed: with
/// 768 KiB more of that, one more huge page would fit, and no base page after it.
const SLACK_HUGE: u64 = 1280 << 10;

/// Pages that a CPU may have charged in advance: `MEMCG_CHARGE_BATCH`, on a few CPUs.
const STOCK: u64 = 256;

/// The largest size of which a part is to fall back: more page cache is held together by so much
/// memory of the kernel, which goes with it, that what is left cannot be told well enough.
const TIGHT_MAX: u64 = 128 << 20;

/// Times that the group is filled until nobody else takes of it meanwhile.
const ATTEMPTS: u32 = 8;

/// Touches of 2 MiB pages for which there is to be no page cache to reclaim.
fn too_many(page: PageSize, size: u64) -> u64 {
    let touches = size / page.bytes();
    let is_tight = page == PageSize::Thp && touches > 1 && size <= TIGHT_MAX;
    if is_tight { (touches / 4).max(1) } else { 0 }
}

/// Bytes of page cache for so many bytes of touches.
fn cache_bytes(size: u64) -> u64 {
    size + size / 4 + (16 << 20)
}

/// The limit for touches of `size` bytes in a group that holds `used`, of which `file` are page
/// cache.
fn limit(page: PageSize, size: u64, used: u64, file: u64) -> u64 {
    match too_many(page, size) {
        0 => used + SLACK,
        too_many => used.saturating_sub(file) + fit(page, size, too_many) + SLACK_HUGE,
    }
}

/// Bytes for the touches that are to get a huge page, each of which comes with a page of page
/// table, kept for the day it is split.
fn fit(page: PageSize, size: u64, too_many: u64) -> u64 {
    (size / page.bytes() - too_many) * (page.bytes() + 4096)
}

/// A limit that nothing of the case reaches.
fn ample(size: u64) -> u64 {
    4 * size + (512 << 20)
}

/// What it needs of the host.
pub(super) fn needs(size: u64) -> Vec<Needed> {
    let cache = cache_bytes(size);
    vec![
        Own::Group(ample(size)).needed(),
        Reclaimable(cache).needed(),
        Memory(size + cache).needed(),
    ]
}

/// The case's own group, full.
///
/// # Errors
/// When the scratch file cannot be written, or there is no group.
pub(super) fn squeezed(
    asked: &Asked,
    space: &Space,
    inputs: &Inputs,
) -> Result<Box<dyn Shortage>, Error> {
    let missing = || Error::Case("pressure=memcg: no memory cgroup was made for the case".into());
    let group = inputs.group().cloned().ok_or_else(missing)?;
    let cache_bytes = cache_bytes(asked.size);
    let directory = scratch_directory(cache_bytes).map_err(Error::Case)?;
    let failed =
        |error| SysError::new("keep", format!("{} from swap", group.path.display()), error);
    group.keep_from_swap().map_err(failed)?;
    Ok(Box::new(Squeezed {
        page: space.page,
        group,
        bytes: space.bytes(),
        too_many: too_many(space.page, space.bytes()),
        ample: ample(asked.size),
        cache: scratch_file(&directory, cache_bytes)?,
        cache_bytes,
        before: Reading::default(),
        after: Reading::default(),
    }))
}

/// What the kernel counted.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    /// Times that the group's limit was hit.
    hits: u64,
    /// Pages of the scratch file in memory.
    scratch: u64,
    /// Page cache of the group, in pages: older pages of other files may go first.
    cached: u64,
}

impl Reading {
    /// Pages that had gone by then. What the group knows of itself may lag behind, and what it
    /// reads meanwhile makes up for what went: the larger of the two is the least there was.
    fn gave_way(&self, then: &Self) -> u64 {
        let scratch = self.scratch.saturating_sub(then.scratch);
        scratch.max(self.cached.saturating_sub(then.cached))
    }
}

/// A group that is full.
#[derive(Debug)]
struct Squeezed {
    page: PageSize,
    group: MemoryGroup,
    /// Bytes of the space.
    bytes: u64,
    /// Touches that there is no page cache for.
    too_many: u64,
    /// A limit that is out of the way.
    ample: u64,
    cache: File,
    cache_bytes: u64,
    before: Reading,
    after: Reading,
}

impl Squeezed {
    fn limit(&self, bytes: u64) -> Result<(), SysError> {
        let path = self.group.path.display().to_string();
        self.group.set_limit(bytes).map_err(|error| SysError::new("limit", path, error))
    }

    /// Fills the group and sets its limit; says whether it is as full as it should be. What another
    /// user of the machine reclaims before the limit is set would leave the touches nothing to
    /// reclaim, and the group out of memory; what is reclaimed later only makes room.
    fn fill_up(&self) -> Result<bool, Error> {
        self.limit(self.ample)?;
        // Read, not mapped: clean pages on the inactive list, the first ones to go.
        let failed = |error| SysError::new("read", "the scratch file", error);
        pagecache::fill(&self.cache, self.cache_bytes).map_err(failed)?;
        let held = self.group.used().zip(self.group.file_cache());
        let (used, file) = held.ok_or_else(|| {
            let why = io::Error::other("no such file");
            SysError::new("read", self.group.path.display().to_string(), why)
        })?;
        // What the group knows of may lag behind, and there is more in it than the scratch file.
        let own = self.cached()? * 4096;
        let limited = self.limit(limit(self.page, self.bytes, used, file.max(own)));
        if limited.as_ref().is_err_and(SysError::is_busy) {
            return Ok(false);
        }
        limited?;
        let left = match self.too_many {
            0 => self.cache_bytes,
            too_many => {
                let fit = fit(self.page, self.bytes, too_many);
                // The limit itself made the kernel reclaim the rest, and up to a half of what it
                // was to keep: one pass over the list takes what the whole call was to take
                // (`shrink_lruvec` in `mm/vmscan.c`). Pages read at the limit reclaim one for one;
                // the first of the file are the ones that went.
                pagecache::fill(&self.cache, fit + SLACK_HUGE).map_err(failed)?;
                fit / 8 * 7
            }
        };
        Ok(own >= self.cache_bytes && self.cached()? * 4096 >= left)
    }

    /// Pages of the scratch file in memory.
    fn cached(&self) -> Result<u64, SysError> {
        pagecache::resident_pages(&self.cache, self.cache_bytes)
    }

    fn read(&self) -> Result<Reading, SysError> {
        let cached = self.group.file_cache().unwrap_or(0) / 4096;
        Ok(Reading { hits: hits(&self.group), scratch: self.cached()?, cached })
    }
}

/// Times that a group's limit was hit so far.
fn hits(group: &MemoryGroup) -> u64 {
    let (tree, path) = (Tree::machine(), &group.path);
    let hits = if group.unified {
        tree.field_number(path.join("memory.events"), "max")
    } else {
        tree.number(path.join("memory.failcnt"))
    };
    hits.unwrap_or(0)
}

impl Shortage for Squeezed {
    fn begin(&mut self) -> Result<(), Error> {
        // The last attempt counts as it is: its claims say what was missing.
        for _ in 0..ATTEMPTS {
            if self.fill_up()? {
                break;
            }
        }
        self.before = self.read()?;
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.after = self.read()?;
        Ok(self.limit(self.ample)?)
    }

    fn verify(&mut self, pieces: &Pieces, _: &Counters, witness: &mut Witness) {
        let hits = self.after.hits.saturating_sub(self.before.hits);
        let gave_way = self.before.gave_way(&self.after);
        witness.expect_at_least(Check::LimitHits, 1, hits);
        let touched = match self.page {
            PageSize::Base => self.bytes / 4096,
            _ => pieces.whole() * self.page.bytes() / 4096 + pieces.base(),
        };
        // Half: both readings are rough.
        let least = touched.saturating_sub(SLACK / 4096 + STOCK) / 2;
        witness.expect_at_least(Check::ScratchGaveWay, least, gave_way);
        if self.too_many > 0 {
            witness.expect_at_least(Check::FellBack, 1, pieces.base());
        }
        witness.count("limit_hits", hits);
        witness.count("cache_pages_reclaimed", gave_way);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_files_may_give_way_first() {
        let at = |scratch, cached| Reading { hits: 0, scratch, cached };
        assert_eq!(at(5000, 5600).gave_way(&at(4400, 5600)), 600, "the group lags behind");
        assert_eq!(at(5000, 5600).gave_way(&at(5000, 5010)), 590, "those of a program");
        assert_eq!(at(5000, 5600).gave_way(&at(5000, 5700)), 0);
    }

    #[test]
    fn huge_pages_are_left_less_than_they_need_and_no_other_page_is() {
        let (used, file) = (100 << 20, 96 << 20);
        let left = |page, size| limit(page, size, used, file) - (used - file);
        let huge = |pages: u64| pages * ((2 << 20) + 4096) + SLACK_HUGE;
        assert_eq!(left(PageSize::Thp, 64 << 20), huge(24));
        assert_eq!(left(PageSize::Thp, 4 << 20), huge(1), "one of two");
        assert_eq!(left(PageSize::Thp, 2 << 20), file + SLACK, "a single one is to fit");
        assert_eq!(too_many(PageSize::Thp, TIGHT_MAX), 16);
        assert_eq!(too_many(PageSize::Thp, 2 * TIGHT_MAX), 0);
        for page in [PageSize::Base, PageSize::Folio(65536)] {
            assert_eq!(left(page, 64 << 20), file + SLACK);
            assert!(cache_bytes(64 << 20) > 64 << 20);
        }
    }
}
