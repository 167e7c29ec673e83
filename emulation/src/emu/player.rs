//! One arm of a replay: an empty memory, the image, then the whole trace between two readings of
//! the clock.

use std::{
    cell::Cell,
    io::{Read, Seek},
    rc::Rc,
};

use pagelab_bench::{Error, Meter, Trial, Witness};
use pagelab_emu::{Policy, paged::Looked, replay::Replay};
use pagelab_record::{
    schema,
    units::display_bytes,
    vocabulary::{Check, arm_counter, counter},
};
use pagelab_sys::{
    files::pagecache,
    loops::bulk::Buffer,
    machine::Topology,
    memory::memfd,
    process::{Pinned, Pulse},
    time::{Clock, usage},
};

use super::{
    arm::Arm,
    reader::{Played, Reader, Tape},
};
use crate::trace::{Counter, Tally, Trace};

/// Most bytes touched and freed before a repetition: more than most guests of a trace store to.
const WARMED_BYTES_MAX: u64 = 128 << 20;

/// Everything that the arms of a case share.
pub(super) struct Stage {
    tape: Tape,
    reader: Reader,
    is_cold: bool,
    trace: Rc<Trace>,
    image: Vec<(u64, Vec<u8>)>,
    /// The trace as this process reads it.
    seen: Tally,
    /// The digest of the first memory that remembers.
    first: Cell<Option<u64>>,
    pulse: Rc<Pulse>,
    /// Whether the trace is longer than what memory holds: no page cache keeps it.
    is_longer: bool,
    /// What is said once for all arms.
    pub(super) warnings: Vec<String>,
    _pinned: Option<Pinned>,
}

impl Stage {
    /// Makes a trace ready to be played by any number of arms.
    ///
    /// # Errors
    /// When there is no memory for it, or it cannot be read.
    pub(super) fn new(
        trace: &Rc<Trace>,
        reader: Reader,
        is_cold: bool,
        pulse: &Rc<Pulse>,
        pinned: Option<Pinned>,
    ) -> Result<Self, Error> {
        if is_cold && pagecache::is_in_memory(trace.facts.file_system) {
            return Err(Error::Case(
                "cache=cold: the trace lies on a file system in memory, which has no page cache \
                 to leave: set TMPDIR (or put the file) on a disk"
                    .to_owned(),
            ));
        }
        let tape = Tape::new(trace, reader)?;
        let seen = match &tape {
            Tape::Memory(bytes) => tally(&mut &**bytes, trace.facts.tally.ops)?,
            Tape::Buffered { file, .. } | Tape::Mapped { file, .. } => {
                tally(&mut memfd::reopen(file).map_err(unreadable)?, trace.facts.tally.ops)?
            }
        };
        let image = image(trace)?;
        let memory = Topology::machine().memory_budget();
        let is_longer = reader != Reader::Memory && trace.facts.tally.bytes > memory.bytes;
        let warnings =
            is_longer.then(|| longer([trace.facts.tally.bytes, memory.bytes], &memory.limited_by));
        Ok(Self {
            tape,
            reader,
            is_cold,
            trace: Rc::clone(trace),
            image,
            seen,
            first: Cell::new(None),
            pulse: Rc::clone(pulse),
            is_longer,
            warnings: warnings.into_iter().collect(),
            _pinned: pinned,
        })
    }

    /// Gets the trace's file into the page cache, or out of it; returns the pages that are not as
    /// they should be.
    fn prepare_cache(&self) -> Result<u64, Error> {
        let (Tape::Buffered { file, .. } | Tape::Mapped { file, .. }) = &self.tape else {
            return Ok(0);
        };
        let bytes = self.trace.facts.tally.bytes;
        if self.is_cold {
            pagecache::evict(file)?;
            return Ok(pagecache::resident_pages(file, bytes)?);
        }
        if self.is_longer {
            return Ok(0);
        }
        let all = pagecache::pages(bytes);
        if pagecache::resident_pages(file, bytes)? < all {
            pagecache::fill(file, bytes).map_err(unreadable)?;
        }
        Ok(all.saturating_sub(pagecache::resident_pages(file, bytes)?))
    }

    /// An empty memory with the image in it.
    fn memory(&self, arm: Arm) -> Result<Box<dyn Replay>, Error> {
        let made = (arm.backend.make)(&Policy::default());
        self.loaded(arm, made.map_err(|unfit| Error::Case(format!("{arm}: {unfit}")))?)
    }

    /// A memory, after the image was laid into it.
    fn loaded(&self, arm: Arm, mut memory: Box<dyn Replay>) -> Result<Box<dyn Replay>, Error> {
        let failed = |why: String| Error::Case(format!("{arm}: {why}"));
        for (addr, bytes) in &self.image {
            memory
                .preload(*addr, bytes)
                .map_err(|fault| failed(format!("the image at {addr:#x}: {fault}")))?;
        }
        Ok(memory)
    }
}

fn unreadable(error: impl std::fmt::Display) -> Error {
    Error::Case(format!("the trace: {error}"))
}

/// Counts the records of a trace, up to so many.
fn tally(reader: &mut dyn Read, ops: u64) -> Result<Tally, Error> {
    let mut counter = Counter::up_to(ops);
    let mut buffer = vec![0; 1 << 20];
    let mut filled = 0;
    while !counter.is_full() {
        let count = reader.read(&mut buffer[filled..]).map_err(unreadable)?;
        filled += count;
        let taken = counter
            .take(&buffer[..filled])
            .map_err(|error| Error::Case(format!("the trace: {error}")))?;
        buffer.copy_within(taken..filled, 0);
        filled -= taken;
        if count == 0 {
            break;
        }
    }
    Ok(counter.tally)
}

/// The pieces of the image.
pub(super) fn image(trace: &Trace) -> Result<Vec<(u64, Vec<u8>)>, Error> {
    let Some(file) = &trace.image else { return Ok(Vec::new()) };
    let bad = |error: std::io::Error| Error::Case(format!("the image: {error}"));
    let mut file = memfd::reopen(file).map_err(bad)?;
    file.rewind().map_err(bad)?;
    let mut pieces = Vec::with_capacity(trace.facts.image.len());
    for (addr, length) in &trace.facts.image {
        let mut bytes = vec![0; usize::try_from(*length).expect("addresses have 64 bits")];
        file.read_exact(&mut bytes).map_err(bad)?;
        pieces.push((*addr, bytes));
    }
    Ok(pieces)
}

/// An arm that replays.
pub(super) struct Player {
    arm: Arm,
    name: String,
    stage: Rc<Stage>,
    memory: Option<Box<dyn Replay>>,
    played: Played,
    /// What a cache in front of the memory's pages knew, of one replay.
    looked: Option<Looked>,
    /// Pages of the trace that were not in the page cache, or out of it, as the case says.
    misplaced: u64,
}

impl Player {
    /// An arm on this stage.
    pub(super) fn new(arm: Arm, stage: &Rc<Stage>) -> Self {
        let (name, stage) = (arm.to_string(), Rc::clone(stage));
        let played = Played::default();
        Self { arm, name, stage, memory: None, played, looked: None, misplaced: 0 }
    }
}

impl Trial for Player {
    fn arm(&self) -> &str {
        &self.name
    }

    fn reset(&mut self) -> Result<(), Error> {
        // The memory of the last repetition is given back before the next one is made.
        self.memory = None;
        // Free memory that the host took back in the meantime is cold, and an arm that happens to
        // get it pays for that. What was just touched and freed is handed out first.
        let warmed = self.stage.trace.facts.tally.bytes.clamp(4096, WARMED_BYTES_MAX) / 4096 * 4096;
        drop(Buffer::new(usize::try_from(warmed).expect("at most the constant"))?);
        self.memory = Some(self.stage.memory(self.arm)?);
        self.misplaced = self.stage.prepare_cache()?;
        Ok(())
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        // Counting takes time, and what only warms up is not timed.
        if let Some(counting) = self.arm.backend.counting.filter(|_| meter.is_warm_up()) {
            self.memory = Some(self.stage.loaded(self.arm, counting(&Policy::default()))?);
        }
        let memory = self.memory.as_mut().expect("reset came before").as_mut();
        let (tape, decoder) = (&self.stage.tape, self.arm.decoder);
        let mut played = Ok(Played::default());
        let before = usage::thread();
        let cpu_before = meter.clock().thread_cpu_ns();
        let span = meter.clock().span(|| played = tape.play(memory, decoder));
        let cpu_ns = meter.clock().thread_cpu_ns() - cpu_before;
        let used = usage::thread().since(before);
        self.played = played.map_err(|broken| {
            Error::Case(format!("{} with {}: {broken}", self.stage.trace.facts.name, self.name))
        })?;
        self.looked = memory.looked().or(self.looked);
        let Tally { ops, bytes, .. } = self.stage.trace.facts.tally;
        let elapsed_ns = meter.clock().elapsed_ns(span);
        let (user_ns, system_ns) = match meter.clock() {
            // The kernel's own split knows no script.
            Clock::Scripted { step_ns, .. } => (*step_ns, *step_ns),
            _ => (used.user_ns, used.system_ns),
        };
        meter.observe("replay", schema::Clock::Cpu, ops, bytes, cpu_ns);
        meter.observe("replay", meter.elapsed(), ops, bytes, elapsed_ns);
        meter.observe("user-time", schema::Clock::Cpu, ops, bytes, user_ns);
        meter.observe("system-time", schema::Clock::Cpu, ops, bytes, system_ns);
        meter.count("read-calls", self.played.reads);
        meter.count("minor-faults", used.minor_faults);
        meter.count("major-faults", used.major_faults);
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let stage = &self.stage;
        let facts = &stage.trace.facts;
        stage.pulse.add(facts.tally.ops);
        witness.expect(Check::TraceBytes, facts.tally.bytes, self.played.bytes);
        witness.expect(Check::TraceOperations, facts.tally.ops, stage.seen.ops);
        let claim = "digest of the trace, as where it came from";
        witness.expect_digest((Check::TraceDigest, claim), facts.tally.digest, stage.seen.digest);
        if stage.reader != Reader::Memory {
            let check = if stage.is_cold { Check::PagesInCache } else { Check::PagesNotInCache };
            if stage.is_cold || !stage.is_longer {
                witness.expect(check, 0, self.misplaced);
            }
            witness.expect(Check::ReadCalls, stage.tape.expected_reads(), self.played.reads);
            witness.set("trace_file_system", facts.file_system);
        }
        if self.arm.backend.remembers {
            let first = stage.first.get().unwrap_or(self.played.digest);
            stage.first.set(Some(first));
            witness.expect_digest(Check::ReplayDigest, first, self.played.digest);
        }
        witness.set(&format!("{}/{}", counter::DIGEST, self.name), self.played.digest);
        if let Some(Looked { hits, absent_hits, misses }) = self.looked {
            for (name, count) in counter::PAGE_CACHE.into_iter().zip([hits, absent_hits, misses]) {
                witness.set(&arm_counter(name, &self.name), count);
            }
        }
        witness.set(counter::TRACE_OPS, facts.tally.ops);
        witness.set(counter::TRACE_BYTES, facts.tally.bytes);
        witness.set("trace_digest", facts.tally.digest);
        witness.set("image_bytes", stage.image.iter().map(|(_, bytes)| bytes.len() as u64).sum());
        stage.warnings.iter().for_each(|warning| witness.warn(warning.clone()));
        if let Tape::Memory(bytes) = &stage.tape
            && let Some(huge) = bytes.huge_bytes()
        {
            witness.set("trace_huge_bytes", huge);
            if huge * 2 < bytes.len() as u64 && bytes.len() > 4 << 20 {
                witness.warn(BASE_PAGES.to_owned());
            }
        }
        Ok(())
    }
}

/// Said when a trace is longer than what memory holds.
fn longer(bytes: [u64; 2], limited_by: &str) -> String {
    let [trace, memory] = bytes.map(|bytes| display_bytes(bytes as f64));
    format!(
        "the trace has {trace}, and {memory} of memory may be taken ({limited_by}): it is read as \
         it is replayed, from the disk where the page cache has lost it, and its times have the \
         disk in them"
    )
}

/// Said when the copy of a trace did not get the pages that it asked for.
const BASE_PAGES: &str = "the trace lies on base pages, and decoding it costs more TLB misses: \
     echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled, or free some memory";
