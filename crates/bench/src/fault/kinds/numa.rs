//! NUMA hint faults, and moving a page to another node by a call.
//!
//! With NUMA balancing the kernel goes through a process's memory while that runs, and takes the
//! right to access it away, page by page, to learn from the fault who uses it. The stage spins
//! until the kernel has been through all of it since it was populated. The loop's own data is
//! marked too: it takes its hint faults before the clock starts.
//!
//! Moving is the remedy that such a fault may end in; here it is asked for, one page a call.

use pagelab_record::Case;
use pagelab_sys::{
    Area, SysError,
    account::hint_passes,
    area::Ranges,
    clock::{Clock, monotonic_raw_ns},
    counters::Counters,
    fork::visit,
    touch::TouchList,
};

use super::{
    FaultKind, Stage,
    anon::base_only,
    state::{Before, is_true_of_populated, is_true_of_present, only, populate, populated, unpaced},
};
use crate::{
    Need,
    fault::space::{Expectation, Space},
    meter::Witness,
    need::far_node,
    params::PageSize,
    workload::Error,
};

/// Passes over the address space after which every page is marked: one may have been under way, one
/// may have left out mappings that were new.
const PASSES: u64 = 3;
const WAIT_NS_MAX: u64 = 90_000_000_000;

/// A touch of a page that the kernel marked to learn who uses it.
#[derive(Debug)]
pub(super) struct Hint;

impl FaultKind for Hint {
    fn name(&self) -> &'static str {
        "numa-hint"
    }

    fn help(&self) -> &'static str {
        "touch of a present page that NUMA balancing has marked"
    }

    fn allocates_tables(&self) -> bool {
        false
    }

    fn cannot_tell(&self, case: &Case) -> bool {
        // A load takes a hint fault as a store does.
        is_true_of_populated(case) || case.get("lie") == Some("read")
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        base_only(self, case, "one fault for each base page is what is counted")?;
        unbound(self, case)
    }

    fn needs(&self, _: &Case) -> Vec<Need> {
        let path = "/proc/sys/kernel/numa_balancing";
        vec![Need::FarNode, Need::Setting { path, value: "1" }]
    }

    fn takes_fresh_memory(&self) -> bool {
        false
    }

    /// Marking takes far longer than the touches.
    fn automatic_size_max(&self) -> u64 {
        32 << 20
    }

    fn stage(&self, _: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error> {
        Ok(Box::new(Marked {
            populated: populated(space),
            before: Before::new()?,
            moved: Counters::default(),
        }))
    }
}

/// Memory of which every page is marked.
#[derive(Debug)]
struct Marked {
    populated: Expectation,
    before: Before,
    moved: Counters,
}

impl Stage for Marked {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        populate(area);
        let pages = self.populated.present;
        let (start, passes) = (Counters::read(None), hint_passes());
        let deadline = monotonic_raw_ns() + WAIT_NS_MAX;
        loop {
            let marked = Counters::read(None).since(&start).get("numa_pte_updates").unwrap_or(0);
            let since = hint_passes().zip(passes).map(|(now, then)| now.saturating_sub(then));
            if marked >= pages && since.is_none_or(|since| since >= PASSES) {
                break;
            }
            if monotonic_raw_ns() > deadline {
                return Err(Error::Case(format!(
                    "the kernel marked {marked} pages in 90 s where {pages} are wanted: choose a \
                     smaller --size"
                )));
            }
            spin(20_000_000);
        }
        self.before.look(area)?;
        self.moved = Counters::read(None);
        visit(&area.ranges())?;
        Ok(())
    }

    fn done(&mut self) -> Result<(), Error> {
        self.moved = Counters::read(None).since(&self.moved);
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.before.testify(self.populated, witness);
        if let Some(hints) = self.moved.get("numa_hint_faults") {
            let claim = "NUMA hint faults, machine-wide, at least";
            witness.expect_at_least(claim, self.populated.present, hints);
        }
        Ok(())
    }
}

/// Runs for so long: the kernel marks the memory of what runs, not of what sleeps.
fn spin(ns: u64) {
    let end = monotonic_raw_ns() + ns;
    while monotonic_raw_ns() < end {
        std::hint::spin_loop();
    }
}

/// Moving a page to the far node, one call a page.
#[derive(Debug)]
pub(super) struct Migrate;

impl FaultKind for Migrate {
    fn name(&self) -> &'static str {
        "migrate"
    }

    fn help(&self) -> &'static str {
        "no fault: move_pages of one page to the farthest node"
    }

    fn in_throughput(&self) -> bool {
        false
    }

    fn allocates_tables(&self) -> bool {
        false
    }

    fn cannot_tell(&self, case: &Case) -> bool {
        // Nothing is touched.
        is_true_of_present(case) || case.get("lie") == Some("read")
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        let accepted = |page| matches!(page, PageSize::Base | PageSize::Thp);
        only(self, case, accepted, "base pages and THP are moved; use page=4k or 2m")?;
        unpaced(self, case)?;
        unbound(self, case)
    }

    fn needs(&self, _: &Case) -> Vec<Need> {
        vec![Need::FarNode]
    }

    fn takes_fresh_memory(&self) -> bool {
        false
    }

    fn stage(&self, _: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error> {
        let node = far_node().and_then(|node| i32::try_from(node).ok());
        let node = node.ok_or_else(|| Error::Case("there is no second memory node".into()))?;
        Ok(Box::new(Moved {
            populated: populated(space),
            node,
            before: Before::new()?,
            ranges: Ranges::default(),
            there: [0; 2],
        }))
    }
}

/// Memory on the near node that is about to be moved.
#[derive(Debug)]
struct Moved {
    populated: Expectation,
    node: i32,
    before: Before,
    ranges: Ranges,
    there: [u64; 2],
}

impl Stage for Moved {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        populate(area);
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
        self.before.testify(self.populated, witness);
        let [before, after] = self.there;
        let node = self.node;
        witness.expect(&format!("base pages on node {node} before the calls"), 0, before);
        let all = self.populated.present;
        witness.expect(&format!("base pages on node {node} after the calls"), all, after);
        Ok(())
    }

    fn calls(
        &mut self,
        area: &Area,
        list: &TouchList,
        clock: &Clock,
        record: &mut dyn FnMut(u64),
    ) -> Option<Result<(), SysError>> {
        Some(area.time_moves(list, self.node, clock, record))
    }
}

fn unbound(kind: &dyn FaultKind, case: &Case) -> Result<(), String> {
    match case.get("mem-node") {
        None | Some("any") => Ok(()),
        Some(node) => Err(format!(
            "kind={} with mem-node={node}: memory that is bound to a node is neither marked nor \
             meant to move; leave mem-node at any",
            kind.name()
        )),
    }
}
