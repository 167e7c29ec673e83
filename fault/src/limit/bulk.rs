//! `limit/clear`, `limit/copy`, `limit/read`: how fast memory can be cleared, copied and read.
//!
//! One thread over a present buffer that fits half of a cache, or is four times the last level.
//! Inside the clock are whole passes over the buffer, at least 64 MiB of them. Clearing is what a
//! fault cannot avoid, so `clear` at `dram` is the ceiling that fault bandwidth is a share of.

use std::{cell::RefCell, ops::Range, rc::Rc};

use pagelab_bench::{
    Described, Error, Experiment, Inputs, Kind, Meter, Need, Needed, Param, Plain, Read, Trial,
    Witness, needs::Memory, words,
};
use pagelab_record::{
    Case,
    vocabulary::{Check, counter},
};
use pagelab_sys::{
    arch,
    loops::bulk::{Buffer, Store},
    machine::Topology,
};

const LEVEL: Param = Param::axis("level", Kind::Choice(Level::WORDS), "dram")
    .asks(&["dram"])
    .help("which memory: half of that cache; dram: four last-level caches, 128m to 512m");

/// Bytes that one observation covers at least.
const BYTES_MIN: u64 = 64 << 20;
/// Bytes of the part of a large buffer that a repetition works on.
const PART_BYTES: usize = 128 << 20;

words! {
    /// Which memory.
    enum Level {
        /// Half the first-level cache.
        L1 = "l1",
        /// Half the second-level cache.
        L2 = "l2",
        /// Half the last-level cache.
        Llc = "llc",
        /// Four last-level caches.
        Dram = "dram",
    }
}

/// What is done to the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Clear,
    Copy,
    Read,
}

/// String stores (`rep stosb`).
pub const STRING_STORE: Plain = Plain {
    name: "string stores (rep stosb)",
    has: || arch::HAS_STRING_STORE,
    cure: "use an x86-64 machine",
};

/// `limit/clear`.
pub const CLEAR: Described<Asked> =
    bulk("limit/clear", "clearing bandwidth of one thread: the ceiling of first touch", |case| {
        Asked::of(Work::Clear, case)
    });
/// `limit/copy`.
pub const COPY: Described<Asked> =
    bulk("limit/copy", "copying bandwidth of one thread", |case| Asked::of(Work::Copy, case));
/// `limit/read`.
pub const READ: Described<Asked> =
    bulk("limit/read", "reading bandwidth of one thread", |case| Asked::of(Work::Read, case));

const fn bulk(
    name: &'static str,
    summary: &'static str,
    read: fn(&Case) -> Asked,
) -> Described<Asked> {
    Described::new(name, summary, &[LEVEL], &[("level", "l1")], read).limit()
}

/// A case, read.
#[derive(Debug)]
pub struct Asked {
    work: Work,
    /// Of a buffer.
    bytes: u64,
}

impl Asked {
    fn of(work: Work, case: &Case) -> Self {
        let level = case.word("level");
        // What a copy reads and what it writes are together as much as others work on.
        let halves = if work == Work::Copy && level == Level::Dram { 2 } else { 1 };
        Self { work, bytes: buffer_bytes(level) / halves }
    }
}

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        let mut needs = vec![Memory(self.footprint()).needed()];
        if self.work != Work::Read {
            needs.push(STRING_STORE.needed());
        }
        needs
    }

    fn footprint(&self) -> u64 {
        self.bytes * if self.work == Work::Copy { 2 } else { 1 }
    }

    fn prepare(&self, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        super::pin()?;
        let Self { work, bytes } = *self;
        let from = if work == Work::Copy { Some(Buffer::new(narrow(bytes))?) } else { None };
        let to = Buffer::new(narrow(bytes))?;
        let buffers = Rc::new(RefCell::new(Buffers { to, from, part: 0..0 }));
        let arms: &[(&str, Store)] = match work {
            Work::Clear => &[("rep-stosb", Store::String), ("nt-store", Store::NonTemporal)],
            Work::Copy => &[("rep-movsb", Store::String), ("nt-copy", Store::NonTemporal)],
            Work::Read => &[("load", Store::String)],
        };
        let pass = |(arm, store): &(&'static str, Store)| -> Box<dyn Trial> {
            Box::new(Passes {
                arm,
                work,
                store: *store,
                buffers: Rc::clone(&buffers),
                bytes,
                own_faults: 0,
                is_right: false,
            })
        };
        Ok(arms.iter().map(pass).collect())
    }
}

/// Bytes of one buffer at the level of a case.
fn buffer_bytes(level: Level) -> u64 {
    let topology = Topology::machine();
    let caches = topology.caches(topology.default_cpu().unwrap_or(0));
    // Where sysfs hides the caches (some guests do), sizes that are small for any machine of today.
    let l1 = caches.l1d.unwrap_or(32 << 10);
    let l2 = caches.l2.unwrap_or(512 << 10);
    let llc = caches.llc.unwrap_or(32 << 20);
    let bytes = match level {
        Level::L1 => l1 / 2,
        Level::L2 => l2 / 2,
        Level::Llc => llc / 2,
        Level::Dram => (4 * llc).clamp(128 << 20, 512 << 20),
    };
    bytes / 4096 * 4096
}

fn narrow(bytes: u64) -> usize {
    usize::try_from(bytes).expect("addresses have 64 bits")
}

struct Passes {
    arm: &'static str,
    work: Work,
    store: Store,
    buffers: Rc<RefCell<Buffers>>,
    bytes: u64,
    own_faults: u64,
    /// Whether the words of the last run were right: one that is wrong is never taken again.
    is_right: bool,
}

/// What all arms of a case work on, one after the other.
struct Buffers {
    to: Buffer,
    from: Option<Buffer>,
    /// What the next repetition works on.
    part: Range<usize>,
}

impl Buffers {
    /// Goes on to the next part of so many bytes, so that all others lie between two turns of one.
    fn turn(&mut self, bytes: usize) {
        let length = bytes.min(PART_BYTES);
        let start = if self.part.end + length > bytes { 0 } else { self.part.end };
        self.part = start..start + length;
    }
}

/// What the source of a copy holds, so that a copy that did not happen is noticed.
const PATTERN: u64 = 0x5047_4c41_425f_0001;

impl Trial for Passes {
    fn arm(&self) -> &'static str {
        self.arm
    }

    fn reset(&mut self) -> Result<(), Error> {
        let buffers = &mut *self.buffers.borrow_mut();
        buffers.turn(narrow(self.bytes));
        let Buffers { to, from, part } = buffers;
        for at in [part.start, part.end - 8] {
            to.set_word(at, !PATTERN);
            if let Some(from) = from {
                from.set_word(at, PATTERN);
            }
        }
        Ok(())
    }

    fn counts_faults(&self) -> bool {
        self.is_right
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Self { work, store, .. } = *self;
        let Buffers { to, from, part } = &mut *self.buffers.borrow_mut();
        let bytes = part.len() as u64;
        let rounds = BYTES_MIN.div_ceil(bytes);
        let part = || part.clone();
        self.own_faults = match (work, from) {
            (Work::Copy, Some(from)) => meter.time("copy", rounds, bytes * rounds, || {
                to.copy_from(from, part(), rounds, store);
            }),
            (Work::Read, _) => {
                meter.time("read", rounds, bytes * rounds, || to.read(part(), rounds))
            }
            _ => meter.time("clear", rounds, bytes * rounds, || to.clear(part(), rounds, store)),
        };
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let expected = match self.work {
            Work::Clear => 0,
            Work::Copy => PATTERN,
            Work::Read => !PATTERN,
        };
        let Buffers { to, part, .. } = &*self.buffers.borrow();
        let wrong =
            [part.start, part.end - 8].into_iter().filter(|at| to.word(*at) != expected).count();
        self.is_right = wrong == 0;
        witness.expect(Check::EndsAsWritten, 0, wrong as u64);
        witness.expect(Check::FaultsOfLoop, 0, self.own_faults);
        witness.set(counter::BUFFER_BYTES, self.bytes);
        witness.set("vector_bytes", arch::vector_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pagelab_bench::Words;

    use super::*;

    #[test]
    fn every_level_has_a_buffer_of_whole_pages_and_they_grow() {
        let sizes: Vec<u64> = Level::ALL.iter().map(|(_, level)| buffer_bytes(*level)).collect();
        assert!(sizes.is_sorted() && sizes.iter().all(|size| *size > 0), "{sizes:?}");
        assert!(sizes.iter().all(|size| size.is_multiple_of(4096)), "{sizes:?}");
    }
}
