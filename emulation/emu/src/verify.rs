//! Replays beside a naive memory, and compares what every access gives.
//!
//! The one idea: [`Checked`] is itself a memory: whatever can be replayed can be replayed into it,
//! in any form of trace, and each access goes to the memory in question and to the oracle. Equal
//! digests say that two memories agree; this says that one of them is right, and where it is not.

use std::fmt;

use pagelab_trace::{op::wide, raw::HEAD_BYTES};

use crate::{Fault, Kind, Memory, Policy, oracle::Quick};

/// What replaying beside a naive memory found so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Loads and stores that were compared.
    pub ops: u64,
    /// Loads among them.
    pub loads: u64,
    /// Loads that gave another value, and accesses that faulted otherwise.
    pub differing: u64,
    /// The first of these.
    pub first: Option<Difference>,
}

/// An access that did something else than it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// How many operations came before it.
    pub op: u64,
    /// Where its record starts in the raw format of the trace, in bytes.
    pub offset: u64,
    /// The address of the access.
    pub addr: u64,
    /// How many bytes it moved.
    pub bytes: usize,
    /// What it was.
    pub kind: Kind,
    /// What the naive memory loaded, little-endian and of at most 8 bytes; 0 for a store.
    pub expected: Result<u64, Fault>,
    /// What the memory in question loaded.
    pub found: Result<u64, Fault>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { op, offset, addr, bytes, kind, expected, found } = self;
        let told = |what: &Result<u64, Fault>| match what {
            Ok(_) if *kind == Kind::Store => "no fault".to_owned(),
            Ok(value) => format!("{value:#x}"),
            Err(fault) => format!("a fault ({fault})"),
        };
        write!(
            f,
            "operation {op}, at byte {offset}: {kind} of {bytes} bytes at {addr:#x}: \
             expected {}, found {}",
            told(expected),
            told(found)
        )
    }
}

/// The naive memory of one trace, and what it found.
#[derive(Debug)]
pub struct Verifier {
    oracle: Quick,
    /// Bytes of the operations so far in the raw format.
    offset: u64,
    verdict: Verdict,
}

impl Verifier {
    /// One whose naive memory is empty; the policies are those of the memory in question.
    pub fn new(policy: &Policy) -> Self {
        Self { oracle: Quick::new(policy), offset: 0, verdict: Verdict::default() }
    }

    /// Writes bytes, as if the program had been loaded before the trace starts.
    ///
    /// # Errors
    /// As the policies say.
    pub fn preload(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.oracle.write(addr, bytes)
    }

    /// What it found so far.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Notes an access, and whether it did what it should.
    fn judge(
        &mut self,
        (kind, addr, bytes): (Kind, u64, usize),
        expected: Result<u64, Fault>,
        found: Result<u64, Fault>,
    ) {
        let (op, offset) = (self.verdict.ops, self.offset);
        self.verdict.ops += 1;
        self.verdict.loads += u64::from(kind != Kind::Store);
        self.offset += (HEAD_BYTES + if kind == Kind::Store { bytes } else { 0 }) as u64;
        if expected.map_err(plain) != found.map_err(plain) {
            self.verdict.differing += 1;
            let first = Difference { op, offset, addr, bytes, kind, expected, found };
            self.verdict.first.get_or_insert(first);
        }
    }

    fn judge_load<const N: usize>(
        &mut self,
        (kind, addr): (Kind, u64),
        expected: Result<[u8; N], Fault>,
        found: Result<[u8; N], Fault>,
    ) {
        self.judge((kind, addr, N), expected.map(folded), found.map(folded));
    }
}

/// The fault of a memory to which a fetch is a load, as [`Memory::fetch`] allows.
fn plain(fault: Fault) -> Fault {
    let plain = |kind| if kind == Kind::Fetch { Kind::Load } else { kind };
    match fault {
        Fault::OutOfRange { addr, bytes, kind } => {
            Fault::OutOfRange { addr, bytes, kind: plain(kind) }
        }
        Fault::Absent { addr, kind } => Fault::Absent { addr, kind: plain(kind) },
        Fault::Denied { addr, kind } => Fault::Denied { addr, kind: plain(kind) },
        Fault::PageLimit { .. } | Fault::OutOfMemory { .. } => fault,
    }
}

/// A value as a number; the loads of traces fit into 8 bytes, of wider ones all bytes count.
fn folded<const N: usize>(value: [u8; N]) -> u64 {
    let pieces = value.chunks(8).map(|piece| {
        let mut all = [0; 8];
        all[..piece.len()].copy_from_slice(piece);
        wide(all)
    });
    pieces.fold(0, |sum, piece| sum.rotate_left(1) ^ piece)
}

/// A memory and the naive one beside it. What it gives is what the memory in question gives.
#[derive(Debug)]
pub struct Checked<'a, M> {
    memory: &'a mut M,
    verifier: &'a mut Verifier,
}

impl<'a, M: Memory> Checked<'a, M> {
    /// Puts them beside each other; they hold the same so far.
    pub fn new(memory: &'a mut M, verifier: &'a mut Verifier) -> Self {
        Self { memory, verifier }
    }
}

impl<M: Memory> Memory for Checked<'_, M> {
    fn load<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        let expected = self.verifier.oracle.load(addr);
        let found = self.memory.load(addr);
        self.verifier.judge_load::<N>((Kind::Load, addr), expected, found);
        found
    }

    fn fetch<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        let expected = self.verifier.oracle.fetch(addr);
        let found = self.memory.fetch(addr);
        self.verifier.judge_load::<N>((Kind::Fetch, addr), expected, found);
        found
    }

    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Fault> {
        let expected = self.verifier.oracle.store(addr, value);
        let found = self.memory.store(addr, value);
        let about = (Kind::Store, addr, N);
        self.verifier.judge(about, expected.map(|()| 0), found.map(|()| 0));
        found
    }

    fn load_seq<const N: usize>(
        &mut self,
        addr: u64,
        count: usize,
        mut sink: impl FnMut(&[[u8; N]]),
    ) -> Result<(), Fault> {
        let Self { memory, verifier } = self;
        let at = |index: usize| addr.wrapping_add(index as u64 * N as u64);
        let mut judge = |index, found| {
            let expected = verifier.oracle.load(at(index));
            verifier.judge_load::<N>((Kind::Load, at(index)), expected, found);
        };
        let mut seen = 0;
        let done = memory.load_seq(addr, count, |values| {
            for value in values {
                judge(seen, Ok(*value));
                seen += 1;
            }
            sink(values);
        });
        // A value that it kept to itself is as good as absent.
        let absent = |index| Fault::Absent { addr: at(index), kind: Kind::Load };
        match done {
            Err(fault) => judge(seen, Err(fault)),
            Ok(()) => (seen..count).for_each(|index| judge(index, Err(absent(index)))),
        }
        done
    }
}
