//! Which kind of memory a guest's address lies in.
//!
//! The one idea: guest memory is QEMU's own at a known place ([`BASE`]), so `/proc/PID/maps` of
//! QEMU says what each page is, but for the names that only a kernel gives: the first data that a
//! program uses is on its stack, and its heap is anonymous memory like other. The file is read
//! anew where a page is the first of its 2 MiB, or lies in no mapping that is known. QEMU's own
//! mappings are in it too, at addresses that the program does not use.

use std::{collections::HashSet, ops::Range};

use crate::explain::kind::Place;
use pagelab_sys::machine::proc;

use pagelab_emulation::capture::BASE;

/// The kinds of memory that can be told from each other.
pub(super) const PLACES: [Place; 6] = [
    Place::Anonymous,
    Place::Stack,
    Place::PrivateFile,
    Place::SharedFile,
    Place::Shmem,
    Place::Unknown,
];
/// For each of them a class of pages that lie where no page of 2 MiB could, and one of others.
pub(super) const CLASSES: usize = 2 * PLACES.len();

const BLOCK: u64 = 2 << 20;
/// So many times are mappings read at most.
const READS_MAX: usize = 100_000;

/// The memory of a guest.
#[derive(Debug)]
pub(super) struct Memory {
    pid: u32,
    mappings: Vec<Mapping>,
    /// An address on the stack.
    stack: Option<u64>,
    /// Blocks of which a page was asked for.
    blocks: HashSet<u64>,
    reads: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    range: Range<u64>,
    place: Place,
}

impl Memory {
    /// Of a QEMU.
    pub(super) fn of(pid: u32) -> Self {
        Self { pid, mappings: Vec::new(), stack: None, blocks: HashSet::new(), reads: 0 }
    }

    /// The class of the page of an address.
    pub(super) fn class_of(&mut self, addr: u64) -> usize {
        let stack = *self.stack.get_or_insert(addr);
        let is_new = self.blocks.insert(addr / BLOCK);
        if (is_new || self.at(addr).is_none()) && self.reads < READS_MAX {
            self.reads += 1;
            // Of a program that has just ended, what was known goes on.
            if let Ok(text) = proc::text(self.pid, "maps")
                && !text.is_empty()
            {
                self.mappings = mappings(&text, stack);
            }
        }
        let known = self.at(addr);
        let place = known.map_or(Place::Unknown, |mapping| mapping.place);
        let block = addr / BLOCK * BLOCK;
        let is_whole = known.is_some_and(|Mapping { range, .. }| {
            range.start <= block && block.saturating_add(BLOCK) <= range.end
        });
        let at = PLACES.iter().position(|known| *known == place).unwrap_or(PLACES.len() - 1);
        2 * at + usize::from(is_whole)
    }

    fn at(&self, addr: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.range.end <= addr);
        self.mappings.get(after).filter(|mapping| mapping.range.contains(&addr))
    }
}

/// The mappings of a QEMU by guest addresses; anonymous neighbours are one.
fn mappings(text: &str, stack: u64) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    for Mapping { range, place } in proc::mappings(text).filter_map(|found| mapping(&found)) {
        match found.last_mut() {
            Some(last)
                if place == Place::Anonymous
                    && last.place == place
                    && last.range.end == range.start =>
            {
                last.range.end = range.end;
            }
            _ => found.push(Mapping { range, place }),
        }
    }
    let is_stack = |mapping: &&mut Mapping| {
        mapping.place == Place::Anonymous && mapping.range.contains(&stack)
    };
    if let Some(mapping) = found.iter_mut().find(is_stack) {
        mapping.place = Place::Stack;
    }
    found
}

/// A mapping by guest addresses, where it is of memory that somebody may use.
fn mapping(found: &proc::Mapping<'_>) -> Option<Mapping> {
    let proc::Mapping { range: Range { start, end }, rights, name, .. } = found;
    let range = start.checked_sub(BASE)?..end.checked_sub(BASE)?;
    let is_memory = ["/dev/zero", "/memfd:", "/dev/shm/", "/SYSV"];
    let place = match found.inode {
        _ if rights.starts_with("--") => return None,
        0 => Place::Anonymous,
        _ if is_memory.iter().any(|start| name.starts_with(start)) => Place::Shmem,
        _ if rights.ends_with('s') => Place::SharedFile,
        _ => Place::PrivateFile,
    };
    Some(Mapping { range, place })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
100000400000-100000401000 r-xp 00000000 08:01 34 /srv/a program
100000401000-100000402000 rw-p 00000000 00:00 0
100000402000-100000a00000 rw-p 00000000 00:00 0
100000a00000-100000b00000 ---p 00000000 00:00 0
100040000000-100040801000 rw-p 00000000 00:00 0
100050000000-100050001000 rw-s 00000000 00:01 9 /memfd:x (deleted)
100060000000-100060001000 rw-s 00000000 08:01 9 /data
";

    #[test]
    fn pages_are_told_by_the_mapping_that_they_lie_in() {
        let mut memory = Memory::of(u32::MAX);
        memory.mappings = mappings(MAPS, 0x4080_0ff8);
        let mut of = |addr| {
            let class = memory.class_of(addr);
            (PLACES[class / 2], class % 2 == 1)
        };
        assert_eq!(of(0x40_0000), (Place::PrivateFile, false));
        assert_eq!(of(0x40_1000), (Place::Anonymous, false));
        // Two mappings side by side are one, as they could be in the program's own.
        assert_eq!(of(0x60_0000), (Place::Anonymous, true));
        assert_eq!(of(0xa0_0000), (Place::Unknown, false));
        assert_eq!(of(0x4000_0000), (Place::Stack, true));
        assert_eq!(of(0x4080_0000), (Place::Stack, false));
        assert_eq!(of(0x5000_0000), (Place::Shmem, false));
        assert_eq!(of(0x6000_0fff), (Place::SharedFile, false));
        assert_eq!(of(u64::MAX), (Place::Unknown, false));
    }
}
