//! NUMA hint faults: accesses to pages that the kernel has marked, told by perf.
//!
//! The one idea: where NUMA balancing is on, the kernel marks the pages of a process in turn, and
//! the next access to one, load or store, is a minor fault, which perf tells with its address. The
//! faults are the kernel's own; nothing is added but the telling. What was not marked is not known
//! to be idle, so a look ends when the kernel has marked everything once (`numa_scan_seq`). By mode
//! 2 alone it never marks what lies in the top tier, which would look idle there and be demoted:
//! bit 0 must be set, too.

use std::ops::Range;

use pagelab_sys::{
    counts::perf::{Body, Callers, Event, Plan, Session, Source, Target, When},
    machine::{Tree, proc},
    memory::{Stretch, Walk},
};

use super::{Lack, Pages, split};
use crate::{PAGE, target::Refused};

const BALANCING: &str = "proc/sys/kernel/numa_balancing";
/// `NUMA_BALANCING_NORMAL`: pages are marked wherever they lie.
const NORMAL: u64 = 1;
/// The kernel moves what it marks, too, but for mode 3 without a budget.
const CURE: &str = "sysctl kernel.numa_balancing=3, and \
    kernel.numa_balancing_promote_rate_limit_MBps=0 where only pagelab is to promote";
const RING_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct HintFaults {
    pid: u32,
    session: Option<Session>,
    seen: Vec<u64>,
    /// Passes of the kernel over the memory, when the last look ended.
    marked: u64,
}

pub(super) fn probe(tree: &Tree) -> Result<(), Lack> {
    match tree.number::<u64>(BALANCING) {
        None => Err(Lack::new("the kernel has no NUMA balancing", "CONFIG_NUMA_BALANCING")),
        Some(mode) if mode & NORMAL == 0 => {
            let what = if mode == 0 { "no pages" } else { "no pages of the fast memory" };
            Err(Lack::new(format!("the kernel marks {what}"), CURE))
        }
        Some(_) => match passes(std::process::id()) {
            Some(_) => Ok(()),
            None => Err(Lack::new("/proc/PID/sched has no numa_scan_seq", "CONFIG_SCHED_DEBUG")),
        },
    }
}

pub(super) fn open(_: &Tree, pid: u32) -> Box<dyn Pages> {
    Box::new(HintFaults { pid, session: None, seen: Vec::new(), marked: 0 })
}

/// How often the kernel has marked the whole memory of a process.
fn passes(pid: u32) -> Option<u64> {
    Tree::machine().field_number(format!("proc/{pid}/sched"), "mm->numa_scan_seq")
}

impl HintFaults {
    fn begin(&self) -> Result<Session, Refused> {
        let refused = |why| Refused::of(self.pid, why);
        let threads = proc::threads(self.pid).map_err(refused)?;
        let faults = Source {
            when: When::Always,
            event: Event::MinorFaults,
            callers: Callers::None,
            mappings: false,
            ring_bytes: RING_BYTES,
            required: true,
        };
        let plan = Plan { target: Target::Threads(threads), sources: vec![faults] };
        let other = |why| refused(std::io::Error::other(why));
        let mut session = Session::open(&plan).map_err(other)?;
        session.start().map_err(other)?;
        Ok(session)
    }
}

impl Pages for HintFaults {
    fn is_ready(&mut self) -> Result<bool, Refused> {
        if self.session.is_none() {
            self.session = Some(self.begin()?);
            self.marked = passes(self.pid).unwrap_or(0);
        }
        let (pid, seen) = (self.pid, &mut self.seen);
        if let Some(session) = &mut self.session {
            session.receive();
            session.drain(&mut |record| {
                if let Body::Sample { addr, .. } = record.body
                    && record.pid == pid
                {
                    seen.push(addr / PAGE * PAGE);
                }
            });
        }
        // The pass that was under way when the last look ended says nothing of what it had marked
        // before that.
        let marked = passes(self.pid).ok_or(Refused::Gone(self.pid))?;
        let is_whole = marked >= self.marked + 2;
        if is_whole {
            self.marked = marked;
        }
        Ok(is_whole)
    }

    fn pass(
        &mut self,
        mappings: &[Range<u64>],
        found: &mut dyn FnMut(Stretch),
    ) -> Result<(), Refused> {
        let mut seen = std::mem::take(&mut self.seen);
        seen.sort_unstable();
        let refused = |why| Refused::of(self.pid, why);
        let mut walk = Walk::of(self.pid).map_err(refused)?;
        for range in mappings {
            walk.each(range.clone(), &mut |stretch| split(stretch, &seen, found))
                .map_err(refused)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_lacks_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::at(folder.path());
        assert!(probe(&tree).unwrap_err().what.contains("no NUMA balancing"));
        let tree = tree.with([(BALANCING, "0\n")]);
        assert!(probe(&tree).unwrap_err().cure.contains("sysctl"));
        let tree = tree.with([(BALANCING, "2\n")]);
        assert!(probe(&tree).unwrap_err().what.contains("fast memory"));
    }
}
