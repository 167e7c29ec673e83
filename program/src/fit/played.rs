//! Units of memory and what huge pages would have made of their first touches.
//!
//! The one idea: an area that the program asked for is played through block by block as
//! `explain` does it for a place ([`crate::explain::block`]), from when it was had until it was
//! given back. What would have been held for nothing is counted at its worst: blocks that would
//! have come, less what was touched of them, of all areas of a unit that were there at once.
//!
//! A touch in two areas, one inside the other (an allocator's own map), is of the later one.

use std::collections::{BTreeMap, HashMap};

use pagelab_interpose::preload::log::{Entry, Site, Way};

use super::logged::Logged;
use crate::explain::{
    block::{Block, Fate, PAGES, SIZES},
    counts::First,
};

/// How memory of a unit is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// What malloc's heap grew by.
    Heap,
    /// By a call of this kind, at a place of the program.
    Asked(Way),
}

/// What can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// What the library calls it; 0 is the heap.
    pub key: u64,
    /// How it is had.
    pub how: How,
    /// By whom.
    pub site: Site,
    /// Bytes of the largest area.
    pub bytes: u64,
    /// Areas that were had.
    pub areas: u64,
    /// First touches.
    pub faults: u64,
    /// Of them, those that huge pages would have spared or taken in a fault of their own.
    pub saved: u64,
    /// Huge pages that would have come.
    pub huge: u64,
    /// Bytes that would have been held at most and never touched.
    pub extra: u64,
}

/// What was played.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Played {
    /// Every unit with a first touch.
    pub units: Vec<Unit>,
    /// First touches elsewhere.
    pub elsewhere: u64,
}

/// An area while it is there.
#[derive(Debug)]
struct Area {
    unit: usize,
    start: u64,
    end: u64,
    begun_ns: u64,
    blocks: HashMap<u64, Block>,
}

/// Index of 2 MiB among the sizes that are played.
const HUGE: usize = SIZES.len() - 1;
/// Areas that are looked through for one that holds an address.
const NEAR: usize = 64;

#[derive(Debug, Default)]
struct Player {
    units: Vec<Unit>,
    known: HashMap<u64, usize>,
    /// By process and first address; the heap of a process lies at 0.
    live: BTreeMap<(u64, u64), Area>,
    /// When bytes came and went, by unit.
    held: Vec<Vec<(u64, i64)>>,
    elsewhere: u64,
}

/// Plays the first touches of a run through.
pub fn play(logged: &Logged, firsts: &[First]) -> Played {
    let mut entries: Vec<(u64, &Entry)> =
        logged.entries.iter().filter_map(|entry| Some((time_of(entry)?, entry))).collect();
    entries.sort_by_key(|(time_ns, _)| *time_ns);
    let mut firsts: Vec<&First> = firsts.iter().collect();
    firsts.sort_by_key(|first| first.time_ns);
    let mut player = Player::default();
    let mut entries = entries.into_iter().peekable();
    for first in firsts {
        while let Some((time_ns, entry)) = entries.next_if(|(at, _)| *at <= first.time_ns) {
            player.entry(time_ns, entry);
        }
        player.first(first);
    }
    entries.for_each(|(time_ns, entry)| player.entry(time_ns, entry));
    player.finish()
}

fn time_of(entry: &Entry) -> Option<u64> {
    match entry {
        Entry::Program { time_ns, .. }
        | Entry::Begin { time_ns, .. }
        | Entry::End { time_ns, .. } => Some(*time_ns),
        Entry::Module { .. } => None,
    }
}

impl Player {
    fn entry(&mut self, now_ns: u64, entry: &Entry) {
        match entry {
            Entry::Program { pid, .. } => self.close_all((*pid, 0), (*pid, u64::MAX), now_ns),
            Entry::End { pid, address, .. } => {
                self.close_all((*pid, *address), (*pid, *address), now_ns);
            }
            Entry::Begin { pid, address, bytes, way, site, .. } => {
                let end = address.saturating_add(*bytes);
                // Nobody said that these were given back.
                let last = end.saturating_sub(1).max(*address);
                self.close_all((*pid, *address), (*pid, last), now_ns);
                let unit = self.unit(site.key(*way, *bytes), How::Asked(*way), *site);
                self.units[unit].areas += 1;
                self.units[unit].bytes = self.units[unit].bytes.max(*bytes);
                let mut blocks = HashMap::new();
                if *way == Way::Malloc && address & 4095 == 16 {
                    // A map of malloc's, in whose first page it has written.
                    let mut block = Block::default();
                    block.other(address >> 12 & (PAGES - 1), false);
                    blocks.insert(address >> 21, block);
                }
                let (start, end) = (address & !4095, end.saturating_add(4095) & !4095);
                let area = Area { unit, start, end, begun_ns: now_ns, blocks };
                self.live.insert((*pid, *address), area);
            }
            Entry::Module { .. } => (),
        }
    }

    fn unit(&mut self, key: u64, how: How, site: Site) -> usize {
        *self.known.entry(key).or_insert_with(|| {
            let (bytes, areas, faults, saved, huge, extra) = (0, 0, 0, 0, 0, 0);
            self.units.push(Unit { key, how, site, bytes, areas, faults, saved, huge, extra });
            self.held.push(Vec::new());
            self.units.len() - 1
        })
    }

    fn first(&mut self, first: &First) {
        let (pid, address) = (u64::from(first.pid), first.address);
        let holds = |area: &Area| area.start <= address && address < area.end;
        let near = self.live.range((pid, 1)..=(pid, address | 4095)).rev().take(NEAR);
        let found = near.filter(|(_, area)| holds(area)).max_by_key(|(_, area)| area.begun_ns);
        let found = found.map(|(at, _)| *at);
        let Some(at) = found.or_else(|| first.heap.then_some((pid, 0))) else {
            self.elsewhere += 1;
            return;
        };
        if found.is_none() && !self.live.contains_key(&at) {
            let unit = self.unit(0, How::Heap, Site::default());
            let (begun_ns, blocks) = (first.time_ns, HashMap::new());
            // It grows in whole blocks where malloc's tunable is set.
            let (start, end) = (address >> 21 << 21, u64::MAX);
            self.units[unit].areas += 1;
            self.live.insert(at, Area { unit, start, end, begun_ns, blocks });
        }
        let Some(area) = self.live.get_mut(&at) else { return };
        let unit = &mut self.units[area.unit];
        if unit.how == How::Heap {
            unit.bytes = unit.bytes.max(address.saturating_sub(area.start) + 4096);
        }
        let base = address >> 21 << 21;
        let inside = |at: u64| (at.saturating_sub(base) >> 12).min(PAGES);
        let extent = (inside(area.start), inside(area.end));
        let block = area.blocks.entry(address >> 21).or_default();
        let fate = block.first(address >> 12 & (PAGES - 1), extent, true)[HUGE];
        unit.faults += 1;
        unit.saved += u64::from(matches!(fate, Fate::Whole | Fate::Covered));
        unit.huge += u64::from(fate == Fate::Whole);
    }

    fn close_all(&mut self, from: (u64, u64), to: (u64, u64), now_ns: u64) {
        let over: Vec<_> = self.live.range(from..=to).map(|(at, _)| *at).collect();
        for at in over {
            let Some(area) = self.live.remove(&at) else { continue };
            let untouched = |block: &Block| {
                let (blocks, pages) = block.windows(PAGES);
                (blocks * PAGES).saturating_sub(pages)
            };
            let pages: u64 = area.blocks.values().map(untouched).sum();
            let bytes = i64::try_from(pages << 12).unwrap_or(i64::MAX);
            self.held[area.unit].extend([(area.begun_ns, bytes), (now_ns, -bytes)]);
        }
    }

    fn finish(mut self) -> Played {
        self.close_all((0, 0), (u64::MAX, u64::MAX), u64::MAX);
        for (unit, held) in self.units.iter_mut().zip(&mut self.held) {
            // What goes makes room for what comes at the same time.
            held.sort_unstable();
            let (mut now, mut most) = (0_i64, 0);
            for (_, bytes) in held {
                now = now.saturating_add(*bytes);
                most = most.max(now);
            }
            unit.extra = most.unsigned_abs();
        }
        let mut units = self.units;
        units.retain(|unit| unit.faults > 0);
        Played { units, elsewhere: self.elsewhere }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const AT: u64 = 64 * MIB;

    fn site(at: u64) -> Site {
        let mut site = Site::default();
        site.push(1, at);
        site
    }

    fn begin(time_ns: u64, address: u64, bytes: u64, way: Way, at: u64) -> Entry {
        Entry::Begin { time_ns, pid: 7, address, bytes, way, site: site(at) }
    }

    fn touches(time_ns: u64, from: u64, pages: u64, step: u64) -> Vec<First> {
        let first = |nth| First { time_ns, pid: 7, heap: false, address: from + nth * step };
        (0..pages).map(first).collect()
    }

    fn played(entries: &[Entry], firsts: &[First]) -> Played {
        play(&Logged { entries: entries.to_vec(), lost: 0 }, firsts)
    }

    #[test]
    fn a_dense_area_costs_nothing_and_a_sparse_one_nearly_all_of_it() {
        let entries = [begin(1, AT, 8 * MIB, Way::Map, 1), begin(1, 2 * AT, 8 * MIB, Way::Map, 2)];
        let dense = touches(2, AT, 2048, 4096);
        let sparse = touches(3, 2 * AT, 4, 2 * MIB);
        let units = played(&entries, &[dense, sparse].concat()).units;
        let told = |unit: &Unit| (unit.faults, unit.saved, unit.huge, unit.extra);
        assert_eq!(told(&units[0]), (2048, 2048, 4, 0));
        assert_eq!(told(&units[1]), (4, 4, 4, 8 * MIB - 4 * 4096));
    }

    #[test]
    fn a_log_that_the_program_wrote_into_is_played_all_the_same() {
        let wild = [0, 1, u64::MAX].map(|bytes| begin(1, u64::MAX - 1, bytes, Way::Malloc, 3));
        let none = begin(2, AT, 0, Way::Map, 4);
        let played = played(&[&wild[..], &[none]].concat(), &touches(3, AT, 1, 4096));
        assert!(played.units.is_empty() && played.elsewhere == 1, "{played:?}");
    }

    #[test]
    fn malloc_has_written_into_the_first_block_of_its_maps() {
        let entries = [begin(1, AT + 16, 4 * MIB, Way::Malloc, 1)];
        let units = played(&entries, &touches(2, AT + 4096, 1023, 4096)).units;
        assert_eq!((units[0].saved, units[0].huge), (512, 1));
    }

    #[test]
    fn areas_that_are_not_there_at_once_do_not_add_up() {
        let one_by_one = |gap: bool| {
            let mut entries = vec![begin(1, AT, 4 * MIB, Way::Map, 1)];
            if gap {
                entries.push(Entry::End { time_ns: 5, pid: 7, address: AT });
            }
            entries.push(begin(6, 2 * AT, 4 * MIB, Way::Map, 1));
            let touched = [touches(2, AT, 2, 2 * MIB), touches(7, 2 * AT, 2, 2 * MIB)].concat();
            let units = played(&entries, &touched).units;
            assert_eq!((units.len(), units[0].areas, units[0].huge), (1, 2, 4));
            units[0].extra
        };
        assert_eq!((one_by_one(true), one_by_one(false)), (4 * MIB - 8192, 8 * MIB - 16384));
    }

    #[test]
    fn what_an_allocator_gives_of_its_own_map_is_of_who_asked_it() {
        let entries =
            [begin(1, AT, 16 * MIB, Way::Map, 1), begin(2, AT + 4 * MIB, 4 * MIB, Way::Malloc, 2)];
        let touched =
            [touches(3, AT + 4 * MIB, 1024, 4096), touches(3, AT + 8 * MIB, 512, 4096)].concat();
        let units = played(&entries, &touched).units;
        let told: Vec<_> = units.iter().map(|unit| (unit.how, unit.faults, unit.huge)).collect();
        assert_eq!(told, [(How::Asked(Way::Map), 512, 1), (How::Asked(Way::Malloc), 1024, 2)]);
    }

    #[test]
    fn the_heap_is_one_unit_and_the_rest_is_of_none() {
        let mut firsts = touches(1, AT + 4096, 600, 4096);
        for first in &mut firsts {
            first.heap = true;
        }
        firsts.extend(touches(2, 3 * AT, 5, 4096));
        let Played { units, elsewhere } = played(&[], &firsts);
        assert_eq!((units[0].how, units[0].key, elsewhere), (How::Heap, 0, 5));
        assert_eq!((units[0].faults, units[0].huge, units[0].extra), (600, 2, (1024 - 600) << 12));
    }
}
