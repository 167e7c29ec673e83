//! The arms of `fault/throughput` that are other tools' loops: `page-fault1` and `pft`.
//!
//! They take the same faults on as much memory with as many workers, alternated with ours in one
//! process: the ratio is the agreement. Workers are made, bound and started as ours are; what is
//! timed is the loop's own, by its own clock and `getrusage`.

use pagelab_bench::{Error, Meter, Trial, Witness};
use pagelab_record::{schema, vocabulary::Check};
use pagelab_sys::{
    loops::peers::{PeerRound, PftMemory, page_fault1},
    process::{Barrier, Fifo, Pinned, crew, disable_thp},
};

use pagelab_mappings::Plan;

/// Whose loop it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// will-it-scale's `page_fault1`: each worker maps, touches and unmaps memory of its own.
    PageFault1,
    /// pft: workers touch shares of one mapping made beforehand.
    Pft,
}

/// An arm that runs another tool's loop.
#[derive(Debug)]
pub(super) struct Peer {
    tool: Tool,
    bytes: u64,
    threads: usize,
    processes: usize,
    cpus: Vec<Option<usize>>,
    fifo: bool,
    latest: PeerRound,
}

impl Peer {
    /// The tool's loop over as much memory, with as many workers, as the plan has.
    pub(super) fn new(tool: Tool, plan: &Plan, processes: usize) -> Self {
        Self {
            tool,
            bytes: plan.space.bytes() * processes as u64,
            threads: plan.threads,
            processes,
            cpus: plan.cpus.clone(),
            fifo: plan.fifo,
            latest: PeerRound::default(),
        }
    }

    fn workers(&self) -> usize {
        self.threads * self.processes
    }

    /// What each worker does, bound and started as ours are.
    fn work(&self, worker: usize, memory: Option<&PftMemory>, barrier: &Barrier) -> PeerRound {
        // A worker that cannot start ends the case: the others would wait for it for ever.
        let stop = |error: pagelab_sys::SysError| -> ! { panic!("{error}") };
        let _pinned = match self.workers() {
            1 => None,
            _ => self.cpus[worker].map(|cpu| Pinned::to(cpu).unwrap_or_else(|e| stop(e))),
        };
        let _fifo = self.fifo.then(|| Fifo::enter().unwrap_or_else(|e| stop(e)));
        // A fresh thread or process faults on its stack and code: a tiny pass takes those faults.
        let tiny = 16 << 12;
        if let Some(memory) = memory {
            PftMemory::map(tiny).unwrap_or_else(|e| stop(e)).touch(0, 1);
            barrier.wait();
            memory.touch(worker, self.workers())
        } else {
            page_fault1(tiny).unwrap_or_else(|e| stop(e));
            barrier.wait();
            page_fault1(self.bytes / self.workers() as u64).unwrap_or_else(|e| stop(e))
        }
    }

    fn pass(&self) -> Result<PeerRound, Error> {
        let memory = match self.tool {
            Tool::Pft => Some(PftMemory::map(self.bytes)?),
            Tool::PageFault1 => None,
        };
        let barrier = Barrier::new(u32::try_from(self.workers()).expect("a few workers"))?;
        let work = |worker| self.work(worker, memory.as_ref(), &barrier);
        let rounds = if self.processes > 1 {
            crew::processes(self.processes, work)?
        } else {
            crew::threads(self.threads, work)?
        };
        Ok(rounds.into_iter().reduce(PeerRound::join).expect("at least one worker"))
    }
}

impl Trial for Peer {
    fn arm(&self) -> &'static str {
        match self.tool {
            Tool::PageFault1 => "page-fault1",
            Tool::Pft => "pft",
        }
    }

    fn is_first_touch(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        // The tools give no advice: where the policy is `always` they would get huge pages.
        disable_thp(true)?;
        let pass = self.pass();
        disable_thp(false)?;
        let round = pass?;
        self.latest = round;
        let (elapsed, pages) = (meter.elapsed(), round.pages);
        meter.observe("touch", elapsed, pages, self.bytes, round.touched_ns - round.mapped_ns);
        match self.tool {
            Tool::PageFault1 => {
                meter.observe("cycle", elapsed, pages, self.bytes, round.end_ns - round.start_ns);
                meter.observe("cycle", schema::Clock::Cpu, pages, self.bytes, round.cpu_ns);
            }
            Tool::Pft => {
                meter.observe("touch", schema::Clock::Cpu, pages, self.bytes, round.cpu_ns);
            }
        }
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let pages = self.bytes / 4096;
        witness.expect(Check::PeerPages, pages, self.latest.pages);
        witness.expect(Check::FaultsOfPeer, pages, self.latest.minor);
        witness.expect(Check::MajorFaultsOfPeer, 0, self.latest.major);
        Ok(())
    }
}
