//! NUMA hint faults, and moving a page to another node by a call.
//!
//! With NUMA balancing the kernel goes through a process's memory while that runs, and takes the
//! right to access it away, page by page, to learn from the fault who uses it. The stage has a
//! second thread run until the kernel has been through all of it since it was populated
//! ([`await_passes`]); the pages are where they should be, so that the fault ends with the right to
//! access them and with no migration. The loop's own data is marked too: it takes its hint faults
//! before the clock starts, and is not marked again: no other thread of a case marks anything
//! (`fault::leave_unmarked`).
//!
//! Moving is the remedy that such a fault may end in; here it is asked for, one page a call.

use pagelab_bench::{
    Error, Need, PageSize, Witness,
    needs::{Node, Setting},
};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    Area,
    counts::Counters,
    loops::{Marking, await_passes, fork::visit},
    memory::Ranges,
};

use super::{
    anon::base_only,
    calls::CALL,
    state::{Before, is_true_of_populated, only, populated, unpaced},
};
use crate::{Asked, Called, Calls, Expectation, FaultKind, Lie, Stage, populate::touch_all};

/// Passes over the address space after which every page is marked. One may have been under way; the
/// next one meets the new mapping and, since Linux 6.4, leaves it out for `scan_delay_ms`; the one
/// after that marks it, because a mapping that nobody took a hint fault in is left out only after
/// two passes (`task_numa_work` and `vma_is_accessed` in `kernel/sched/fair.c`).
const PASSES: u64 = 3;

/// With the settings below a pass comes every tenth of a second, and once its cost is a thirtieth.
/// A machine whose host is busy may wait for a turn of its own.
const WAIT_NS_MAX: u64 = 60_000_000_000;

/// What NUMA balancing must be set to: on, and in a hurry. A period of 100 ms is the shortest that
/// the kernel allows for passes of 256 MiB (`MAX_SCAN_WINDOW`); its maximum is what a process comes
/// to that takes no hint faults, a minute where nobody set it. A mapping is new for
/// `scan_delay_ms`, which must be less than the period: a mapping that two passes left out for
/// being new is left out for being unused after that.
const SETTINGS: &[(&str, &str)] = &[
    ("/proc/sys/kernel/numa_balancing", "1"),
    ("/sys/kernel/debug/sched/numa_balancing/scan_delay_ms", "10"),
    ("/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms", "100"),
    ("/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms", "100"),
];

/// A touch of a page that the kernel marked to learn who uses it.
pub(super) const HINT: FaultKind = FaultKind {
    name: "numa-hint",
    help: "touch of a present page that NUMA balancing has marked",
    allocates_tables: false,
    cannot_tell: |asked| {
        // A load takes a hint fault as a store does.
        is_true_of_populated(asked) || asked.lie == Lie::Read
    },
    refuse: |asked| {
        base_only(asked, "one fault for each base page is what is counted")?;
        unbound(asked)
    },
    needs: |_| {
        let settings = SETTINGS.iter().map(|(path, value)| Setting::new(path, value).needed());
        [Node::Far.needed()].into_iter().chain(settings).collect()
    },
    takes_fresh_memory: false,
    uses_two_nodes: true,
    // Marking takes far longer than the touches.
    automatic_size_max: 32 << 20,
    waits_s: 0.5,
    stage: |_, space, _| {
        Ok(Box::new(Marked {
            before: Before::new(populated(space))?,
            entries: 0,
            moved: Counters::default(),
        }))
    },
    ..FaultKind::PLAIN
};

/// Memory of which every page is marked.
#[derive(Debug)]
struct Marked {
    before: Before,
    /// Page table entries that the kernel marked, machine-wide, since the memory was populated.
    entries: u64,
    moved: Counters,
}

impl Stage for Marked {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        touch_all(area);
        let start = Counters::read(None);
        let Marking { passes, ran_ns } = await_passes(PASSES, WAIT_NS_MAX)?;
        if passes < PASSES {
            return Err(Error::Case(format!(
                "waited for {PASSES} passes of NUMA balancing over this process's memory; there \
                 were {passes} while a thread of it ran for {:.1} s: choose a smaller --size, and \
                 look at /sys/kernel/debug/sched/numa_balancing",
                ran_ns as f64 / 1e9
            )));
        }
        self.entries = Counters::read(None).since(&start).get("numa_pte_updates").unwrap_or(0);
        self.before.look(area)?;
        visit(&area.ranges())?;
        self.moved = Counters::read(None);
        Ok(())
    }

    fn done(&mut self) -> Result<(), Error> {
        self.moved = Counters::read(None).since(&self.moved);
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.before.testify(witness);
        witness.expect_at_least(Check::HintEntries, self.before.expected.present, self.entries);
        if let Some(hints) = self.moved.get("numa_hint_faults") {
            witness.expect_at_least(Check::HintFaults, self.before.expected.present, hints);
        }
        Ok(())
    }
}

/// Moving a page to the far node, one call a page.
pub(super) const MIGRATE: FaultKind = FaultKind {
    name: "migrate",
    help: "no fault: move_pages of one page to the farthest node",
    refuse: |asked| {
        let accepted = |page| matches!(page, PageSize::Base | PageSize::Thp);
        only(asked, accepted, "base pages and THP are moved; use page=4k or 2m")?;
        unpaced(asked)?;
        unbound(asked)
    },
    needs: |_| vec![Node::Far.needed()],
    uses_two_nodes: true,
    stage: |_, space, _| {
        let node = Node::Far.number().and_then(|node| i32::try_from(node).ok());
        let node = node.ok_or_else(|| Error::Case("there is no second memory node".into()))?;
        Ok(Box::new(Moved {
            node,
            before: Before::new(populated(space))?,
            ranges: Ranges::default(),
            there: [0; 2],
        }))
    },
    ..CALL
};

/// Memory on the near node that is about to be moved.
#[derive(Debug)]
struct Moved {
    node: i32,
    before: Before,
    ranges: Ranges,
    there: [u64; 2],
}

impl Stage for Moved {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        touch_all(area);
        self.ranges = area.ranges();
        self.before.look(area)?;
        self.there[0] = self.ranges.pages_on(self.node)?;
        Ok(())
    }

    fn done(&mut self) -> Result<(), Error> {
        self.there[1] = self.ranges.pages_on(self.node)?;
        Ok(())
    }

    fn series(&self) -> &'static str {
        "call"
    }

    fn expect(&self, first_touch: Expectation) -> Expectation {
        Expectation { faults: 0, ..first_touch }
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.before.testify(witness);
        let [before, after] = self.there;
        let node = self.node;
        witness.expect(
            (Check::OnNodeBefore, &format!("base pages on node {node} before the calls")),
            0,
            before,
        );
        let all = self.before.expected.present;
        witness.expect(
            (Check::OnNodeBefore, &format!("base pages on node {node} after the calls")),
            all,
            after,
        );
        Ok(())
    }

    fn calls(&mut self, calls: Calls<'_>, record: &mut dyn FnMut(u64)) -> Called {
        Some(calls.area.time_moves(calls.list, self.node, calls.clock, record))
    }
}

fn unbound(asked: &Asked) -> Result<(), String> {
    match asked.mem_node {
        None => Ok(()),
        Some(node) => Err(format!(
            "kind={} with mem-node={node}: memory that is bound to a node is neither marked nor \
             meant to move; leave mem-node at any",
            asked.kind.name
        )),
    }
}
