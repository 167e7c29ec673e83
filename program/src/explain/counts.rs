//! What faults come to: counts by kind, size, place, mapping, thread and call site.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    rc::Rc,
};

use super::{
    blocks::Densities,
    callers::Callers,
    frame::Frame,
    jit::Owners,
    kind::{Group, Kind, Place},
};

impl Frame {
    /// Whether the program made the code itself.
    pub fn is_made(&self) -> bool {
        self.file.starts_with("/tmp/perf-") && self.file.ends_with(".map")
    }
}

/// The struct of counts, its sum, and its cells: each count is named once, with its unit.
macro_rules! counts {
    ($($(#[$help:meta])* $field:ident in $unit:literal,)+) => {
        /// Faults of one group, in one place of the program or altogether.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Count { $($(#[$help])* pub $field: u64),+ }

        impl Count {
            /// Adds another.
            pub fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)+
            }

            /// The part of it between two points on a scale from 0 to `whole`: parts that follow
            /// each other add up to it.
            fn share(&self, between: &Range<u64>, whole: u64) -> Self {
                let up_to = |value: u64, end: u64| {
                    let part = u128::from(value) * u128::from(end) / u128::from(whole.max(1));
                    u64::try_from(part).unwrap_or(u64::MAX)
                };
                let of = |value| up_to(value, between.end) - up_to(value, between.start);
                Self { $($field: of(self.$field)),+ }
            }

            /// Every count: its name, its unit, and how many.
            pub fn cells(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($field), $unit, self.$field)),+]
            }
        }
    };
}

counts! {
    /// Faults.
    faults in "count",
    /// Of them, those that waited for I/O.
    major in "count",
    /// Of them, those taken inside system calls.
    kernel in "count",
    /// Of them, those that also allocated pages of page table.
    tables in "count",
    /// Of them, those told in brief: their call sites are taken to be those of the last ones there.
    brief in "count",
    /// Of them, those whose kind or size is taken to be that of the last ones there.
    inferred in "count",
    /// Of them, those that met another fault of the same address space on another CPU.
    crowded in "count",
    /// Faults that were in flight together, at most, summed over the crowded ones.
    crowd in "count",
    /// Of the crowded ones, those that met one in the same mapping.
    shared in "count",
    /// Of faults on files in the page cache, those looked at whose page was of a large folio.
    in_folio in "count",
    /// Of them, those looked at whose page was a base page.
    in_base in "count",
    /// Of them, those whose exception was seen, so that `seen_ns` covers them.
    timed in "count",
    /// Nanoseconds from exception to handled, watching included.
    seen_ns in "ns",
}

/// Faults by group.
pub type Groups = BTreeMap<Group, Count>;

/// Faults of one call site, of the threads of one name, or from one mapping.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// How large it is: threads that took faults, or bytes when they were last looked at.
    pub size: u64,
    /// Its faults.
    pub groups: Groups,
}

impl Part {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.size += other.size;
        for (group, count) in &other.groups {
            self.groups.entry(*group).or_default().add(count);
        }
    }

    /// The part of its faults between two points on a scale from 0 to `whole`.
    pub(super) fn share(&self, between: &Range<u64>, whole: u64) -> Self {
        let groups = self.groups.iter().map(|(group, count)| (*group, count.share(between, whole)));
        let groups = groups.filter(|(_, count)| *count != Count::default()).collect();
        Self { size: self.size, groups }
    }

    /// What decides which are told one by one: time where it was seen, faults beside it.
    pub fn weight(&self) -> (u64, u64) {
        let sum = |of: fn(&Count) -> u64| self.groups.values().map(of).sum::<u64>();
        (sum(|count| count.seen_ns), sum(|count| count.faults))
    }
}

/// A first touch that took a base page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct First {
    /// When it was handled.
    pub time_ns: u64,
    /// By which process.
    pub pid: u32,
    /// Whether it was in what `brk` grows.
    pub heap: bool,
    /// Where.
    pub address: u64,
}

/// Call sites that are told apart; more are counted together.
const SITES_MAX: usize = 50_000;
/// First touches that are kept one by one, where they are: 16 GiB of base pages.
const FIRSTS_MAX: usize = 4 << 20;

/// Everything that was counted.
#[derive(Debug, Default)]
pub struct Seen {
    /// All faults.
    pub groups: Groups,
    /// Faults by where the program was.
    pub sites: HashMap<Vec<Frame>, Part>,
    /// Who called the instructions, where frame pointers do not say.
    pub callers: Callers,
    /// The files that may name code that programs made, and their owners.
    pub(super) map_files: Owners,
    /// Whether these are whole stacks, and to be told as such.
    pub whole_stacks: bool,
    /// Faults by mapping: kind of place, name, and which of that name.
    pub mappings: BTreeMap<(Place, Rc<str>, u32, u64), Part>,
    /// From where to where memory without a file lay, by process and where it began.
    pub extents: HashMap<(u32, u64), (u64, u64)>,
    /// How densely memory was touched.
    pub density: Densities,
    /// Of faults on files in the page cache, those looked at, by kind and bytes of the folio.
    pub folios: BTreeMap<Kind, BTreeMap<u64, u64>>,
    /// Calls that gave touched pages back, by their name and call site: how many, and the pages.
    pub releases: HashMap<(&'static str, Vec<Frame>), (u64, u64)>,
    /// Exceptions that no handled fault followed: signals, and faults cut off by the end.
    pub unhandled: u64,
    /// What kind of memory the last exception was in that ended a thread.
    pub ended_in: Option<Place>,
    /// Programs that the kernel let nobody watch further, by name; see [`super::tally`].
    pub hidden: Vec<String>,
    /// Faults that were told both ways, when the telling changed: each is counted once.
    pub doubled: u64,
    /// Stretches told in full beside others told in brief; 0 where all was told in full.
    pub stretches: u64,
    /// Processes that were seen.
    pub processes: u64,
    /// Threads of one process that took faults, where they are most:
    /// [`busy`](super::threads::Threads::busy).
    pub threads: u64,
    /// Faults by the name of the thread.
    pub crews: BTreeMap<Rc<str>, Part>,
    /// First touches one by one, where somebody asks for them.
    pub firsts: Option<Vec<First>>,
}

impl Seen {
    /// Keeps a first touch, where they are kept and there is room.
    pub(super) fn first(&mut self, first: First) {
        if let Some(firsts) = &mut self.firsts
            && firsts.len() < FIRSTS_MAX
        {
            firsts.push(first);
        }
    }

    /// Adds a call that gave pages back.
    pub(super) fn given_back(&mut self, call: &'static str, frames: Vec<Frame>, pages: u64) {
        if self.releases.len() < SITES_MAX {
            let (calls, sum) = self.releases.entry((call, frames)).or_default();
            (*calls, *sum) = (*calls + 1, *sum + pages);
        }
    }

    /// Adds faults of one call site.
    pub(super) fn of_site(&mut self, frames: &[Frame], group: Group, count: &Count) {
        let is_known = self.sites.contains_key(frames);
        let frames = if is_known || self.sites.len() < SITES_MAX { frames } else { &[] };
        if !self.sites.contains_key(frames) {
            self.sites.insert(frames.to_vec(), Part::default());
        }
        if let Some(site) = self.sites.get_mut(frames) {
            site.groups.entry(group).or_default().add(count);
        }
    }
}
