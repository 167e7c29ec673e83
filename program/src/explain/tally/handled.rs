//! One fault: what is known of it, what kind that makes it, and what it adds to the counts.

use std::{collections::BTreeMap, rc::Rc};

use pagelab_sys::{
    counts::perf::{Body, Record},
    memory::State,
};

use super::{
    super::{
        allowed,
        counts::{Count, First},
        kind::{Allocated, Before, Evidence, Group, Kind, Place, classify},
        places::Area,
        recent::{Like, Recent, Where},
        threads::Open,
    },
    LARGE, Role, Tally,
};

/// A fault that was handled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handled<'a> {
    pub(super) address: u64,
    pub(super) major: bool,
    /// Told without its allocations and callers.
    pub(super) brief: bool,
    pub(super) kernel: bool,
    pub(super) time_ns: u64,
    pub(super) chain: &'a [u64],
}

impl Tally {
    /// Begins a look at what came: at the page tables for faults that no exception tells of, soon
    /// after they were.
    pub fn look(&mut self, new: &[Record]) {
        self.seen.callers.look();
        if self.told.exceptions {
            return;
        }
        let mut pages: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for Record { pid, time_ns, source, body, .. } in new {
            if let (Some(Role::Handled { major: false, .. }), Body::Sample { addr, .. }) =
                (self.roles.get(*source), body)
            {
                let (newest, state) = self.looked.entry((*pid, addr >> 12)).or_default();
                (*newest, *state) = ((*newest).max(*time_ns), None);
                pages.entry(*pid).or_default().push(addr >> 12 << 12);
            }
        }
        let Self { looked, states, .. } = self;
        for (pid, mut pages) in pages {
            pages.sort_unstable();
            pages.dedup();
            states.of(pid, &pages, |address, found| {
                if let Some((_, state)) = looked.get_mut(&(pid, address >> 12)) {
                    *state = Some(found);
                }
            });
        }
    }

    /// Whether a process may have larger pages. It is asked once: what it had from its parent it
    /// keeps, and what it changes is told.
    fn may_have_thp(&mut self, pid: u32) -> bool {
        let ask = || allowed::thp(pid).or_else(|| allowed::thp(std::process::id()));
        let supposed = self.supposes_thp;
        *self.thp.entry(pid).or_insert_with(|| supposed || ask().unwrap_or(true))
    }

    /// Counts a fault.
    pub(super) fn handled(&mut self, pid: u32, tid: u32, fault: &Handled<'_>) {
        let Handled { address, major, kernel, time_ns, .. } = *fault;
        let open = self.flight.close(tid).filter(|open| open.address >> 12 == address >> 12);
        let (is_original, was_touched) = self.blocks.page(pid, address);
        let area = self.places.at(pid, address, time_ns).cloned();
        let lineage = area.as_ref().map_or(0, |area| area.lineage);
        let error = open.as_ref().map(|open| open.error);
        let like = self.like(pid, fault, open.as_ref(), (pid, lineage, was_touched, error));
        // Where its allocations were told, nobody has to look at the other processes.
        let is_told = self.is_whole(open.as_ref()) && !fault.brief;
        let evidence = Evidence {
            place: area.as_ref().map_or(Place::Unknown, |area| area.place),
            major,
            error: like.error,
            allocated: like.allocated,
            before: match &area {
                _ if is_original => Before::Original,
                _ if was_touched => Before::Own,
                Some(area) if area.untold => Before::Unknown,
                _ => Before::New,
            },
            after: self.after(pid, address, time_ns),
            can_swap: self.can_swap,
            forked: self.forked.contains(&pid),
            shared: if is_told { None } else { self.blocks.is_shared(pid, address) },
            nameless: area.as_ref().is_some_and(|area| area.name.starts_with("/dev/zero")),
            writable: area.as_ref().is_none_or(|area| area.writable),
        };
        let mut verdict = classify(&evidence);
        // By what was told of this fault alone.
        let alone = Evidence { error, allocated: Allocated::Untold, ..evidence };
        let inferred = !is_told && like.allocated != Allocated::Untold;
        let inferred = inferred && classify(&alone) != verdict;
        let is_allowed = area.as_ref().is_none_or(|area| area.may_be_huge);
        let is_allowed = is_allowed && self.may_have_thp(pid);
        if verdict.kind == Kind::Read && is_allowed && self.is_huge(pid, address) {
            verdict.page = LARGE;
        }
        let crowd = open.filter(|open| open.crowd > 1);
        let waiting = open.is_some_and(|open| open.waited && !major);
        let group =
            Group { kind: verdict.kind, page: verdict.page, place: evidence.place, waiting };
        if matches!(verdict.kind, Kind::Write | Kind::ShmemWrite) && verdict.page == 4096 {
            let owner = self.places.owner(pid, address, |at| self.blocks.page(pid, at).1);
            self.blocks.first(pid, address, (area.as_ref(), owner), is_allowed);
            let heap = evidence.place == Place::Heap;
            self.seen.first(First { time_ns, pid, heap, address });
        } else {
            self.blocks.other((pid, address), area.as_ref(), verdict.kind, is_allowed);
        }
        let folio = self.folio(verdict.kind, pid, address);
        let count = Count {
            faults: 1,
            major: u64::from(major),
            kernel: u64::from(kernel),
            tables: u64::from(like.tables),
            brief: u64::from(fault.brief),
            inferred: u64::from(inferred),
            crowded: u64::from(crowd.is_some()),
            crowd: crowd.map_or(0, |open| u64::from(open.crowd)),
            shared: u64::from(crowd.is_some_and(|open| open.shared)),
            in_folio: u64::from(folio.is_some_and(|bytes| bytes > 4096)),
            in_base: u64::from(folio == Some(4096)),
            timed: u64::from(open.is_some()),
            seen_ns: open.map_or(0, |open| time_ns.saturating_sub(open.time_ns)),
        };
        self.seen.groups.entry(group).or_default().add(&count);
        self.threads.fault(pid, tid, group, &count);
        if let Some(area) = area {
            self.of_mapping(pid, &area, group, &count);
        }
        self.seen.of_site(&like.frames, group, &count);
    }

    /// What the page table had after a fault, where it was the last of its page until somebody
    /// looked.
    fn after(&mut self, pid: u32, address: u64, time_ns: u64) -> Option<State> {
        let page = (pid, address >> 12);
        let (newest, state) = *self.looked.get(&page)?;
        if newest != time_ns {
            return None;
        }
        self.looked.remove(&page);
        state
    }

    /// What else is known of a fault: what was told of it, or where that was little, of one that
    /// was told in full in the same place.
    fn like(&mut self, pid: u32, fault: &Handled<'_>, open: Option<&Open>, place: Where) -> Like {
        let error = place.3;
        let taken = |recent: &mut Recent| {
            // Where its own exception was lost, by what those there had.
            let like = recent.next(place).unwrap_or_default();
            Like { error: error.or(like.error), ..like }
        };
        if fault.brief {
            return taken(&mut self.recent);
        }
        let frames = Rc::from(self.frames_of(pid, fault.chain, fault.kernel));
        let Some(open) = open.filter(|open| self.is_whole(Some(open))) else {
            return Like { frames, ..taken(&mut self.recent) };
        };
        let allocated = open.order.map_or(Allocated::Nothing, Allocated::Order);
        let like = Like { error, allocated, tables: open.tables, frames };
        if !fault.major {
            let (pid, lineage, touched, _) = place;
            self.recent.keep(place, like.clone());
            self.recent.keep((pid, lineage, touched, None), like.clone());
        }
        like
    }

    /// Whether what a fault allocated was told.
    fn is_whole(&self, open: Option<&Open>) -> bool {
        let is_told = |open: &Open| !self.changes.iter().any(|at| at.contains(&open.time_ns));
        self.told.allocations && open.is_some_and(is_told)
    }

    fn of_mapping(&mut self, pid: u32, area: &Area, group: Group, count: &Count) {
        let is_file = area.name.starts_with('/') && &*area.name != "//anon";
        let which = if is_file { (0, 0) } else { (pid, area.lineage) };
        let key = (area.place, Rc::clone(&area.name), which.0, which.1);
        let mapped = self.seen.mappings.entry(key).or_default();
        // Memory that grew from one mapping may be several of them.
        let extent = self.seen.extents.entry(which).or_insert((area.start, area.end));
        *extent = (extent.0.min(area.start), extent.1.max(area.end));
        let length = if is_file { area.end - area.start } else { extent.1 - extent.0 };
        mapped.size = mapped.size.max(length);
        mapped.groups.entry(group).or_default().add(count);
    }

    /// Whether the zero page that the first load of 2 MiB brought is of that size, as long as the
    /// process has it.
    fn is_huge(&mut self, pid: u32, address: u64) -> bool {
        let mut is_huge = false;
        if self.blocks.is_untouched(pid, address) {
            self.states.of(pid, &[address], |_, state| is_huge = state.huge);
        }
        is_huge
    }

    /// Counts the folio that such a fault mapped a page of, and returns its bytes: it is looked at
    /// while the process still has it, the first times and then every sixteenth time.
    fn folio(&mut self, kind: Kind, pid: u32, address: u64) -> Option<u64> {
        if !matches!(kind, Kind::FileMinor | Kind::PageMkwrite) {
            return None;
        }
        self.cached += 1;
        let is_due = self.cached <= 256 || self.cached.is_multiple_of(16);
        let bytes = self.folios.as_mut().filter(|_| is_due)?.bytes(pid, address)?;
        *self.seen.folios.entry(kind).or_default().entry(bytes).or_default() += 1;
        Some(bytes)
    }
}
