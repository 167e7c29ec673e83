//! How the bytes of a trace get to the decoder: from memory, by `read`, or from a mapped file.
//!
//! The one idea: [`Tape::play`] is everything between opening and the digest, so that it can stand
//! inside the clock as a whole. Buffers are made before.

use std::{cell::RefCell, fs::File, hint::black_box, io::Read};

use pagelab_bench::Error;
use pagelab_emu::{
    Fault,
    replay::{Decoder, Replay},
};
use pagelab_sys::{
    SysError,
    memory::{FileMap, HugeBytes, memfd},
};
use pagelab_trace::{Halt, raw::RECORD_BYTES_MAX};

use crate::trace::Trace;

/// How a trace is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Copied to memory beforehand.
    Memory,
    /// By `read`, so many bytes at once.
    Buffered(usize),
    /// Mapped; with all pages present at once or not.
    Mapped {
        /// `MAP_POPULATE`.
        populate: bool,
    },
}

/// The readers by their names.
pub(super) const READERS: [(&str, Reader); 5] = [
    ("memory", Reader::Memory),
    ("buffered-8k", Reader::Buffered(8 << 10)),
    ("buffered-4m", Reader::Buffered(4 << 20)),
    ("mmap", Reader::Mapped { populate: false }),
    ("mmap-populate", Reader::Mapped { populate: true }),
];

/// Why a replay ended before its trace did.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// A bad record or a refused access.
    #[error(transparent)]
    Halt(#[from] Halt<Fault>),
    /// The file could not be opened or read.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// It could not be mapped.
    #[error(transparent)]
    Sys(#[from] SysError),
}

/// What a replay came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Played {
    /// Bytes of the records that were replayed.
    pub(super) bytes: u64,
    /// Calls of `read`.
    pub(super) reads: u64,
    /// Digest of the values of all loads.
    pub(super) digest: u64,
}

/// A trace, and the way to it.
#[derive(Debug)]
pub(super) enum Tape {
    /// In memory.
    Memory(HugeBytes),
    /// In a file, to be opened anew each time.
    Buffered {
        /// The file.
        file: File,
        /// Bytes of the trace.
        length: u64,
        /// Where pieces go: [`CARRY`] bytes for what is left of the piece before, then the piece.
        buffer: RefCell<Vec<u8>>,
    },
    /// In a file, to be mapped anew each time.
    Mapped {
        /// The file.
        file: File,
        /// Bytes of the trace.
        length: usize,
        /// Whether all pages are to be present at once.
        populate: bool,
    },
}

/// Room in front of a piece for the start of a record that the piece completes.
const CARRY: usize = RECORD_BYTES_MAX.next_multiple_of(16);

impl Tape {
    /// Makes a trace ready to be played.
    ///
    /// # Errors
    /// When there is no memory for it, or its file is gone.
    pub(super) fn new(trace: &Trace, reader: Reader) -> Result<Self, Error> {
        let bytes = trace.facts.tally.bytes;
        let length = usize::try_from(bytes).expect("addresses have 64 bits");
        let file = || trace.file.try_clone().map_err(|error| Error::Case(error.to_string()));
        Ok(match reader {
            Reader::Memory => Self::Memory(HugeBytes::read(&trace.file, length)?),
            Reader::Buffered(piece) => {
                // Not zero: the pages are there before a clock runs.
                let buffer = RefCell::new(vec![1; CARRY + piece]);
                Self::Buffered { file: file()?, length: bytes, buffer }
            }
            Reader::Mapped { populate } => Self::Mapped { file: file()?, length, populate },
        })
    }

    /// Replays the whole trace, from opening it to the digest.
    ///
    /// # Errors
    /// At a record that makes no sense, an access that faults, or when the file cannot be read.
    pub(super) fn play(&self, memory: &mut dyn Replay, decoder: Decoder) -> Result<Played, Broken> {
        let (bytes, reads) = match self {
            Self::Memory(bytes) => (memory.replay(bytes, 0, decoder)? as u64, 0),
            Self::Mapped { file, length, populate } => {
                let map = FileMap::of(&memfd::reopen(file)?, *length, *populate)?;
                (memory.replay(&map, 0, decoder)? as u64, 0)
            }
            Self::Buffered { file, length, buffer } => {
                read(&memfd::reopen(file)?, *length, &mut buffer.borrow_mut(), memory, decoder)?
            }
        };
        Ok(Played { bytes, reads, digest: black_box(memory.digest()) })
    }

    /// Calls of `read` that a replay makes when every call gets all it asks for.
    pub(super) fn expected_reads(&self) -> u64 {
        match self {
            Self::Buffered { length, buffer, .. } => {
                length.div_ceil((buffer.borrow().len() - CARRY) as u64)
            }
            _ => 0,
        }
    }
}

/// Replays `length` bytes of a file, a piece at a time; returns the bytes replayed and the calls.
fn read(
    mut file: &File,
    length: u64,
    buffer: &mut [u8],
    memory: &mut dyn Replay,
    decoder: Decoder,
) -> Result<(u64, u64), Broken> {
    let (mut done, mut fetched, mut calls, mut left) = (0_u64, 0_u64, 0, 0_usize);
    while fetched < length {
        let room = buffer.len() - CARRY;
        let wanted = usize::try_from(length - fetched).unwrap_or(room).min(room);
        let count = file.read(&mut buffer[CARRY..CARRY + wanted])?;
        calls += 1;
        if count == 0 {
            break;
        }
        fetched += count as u64;
        let (start, end) = (CARRY - left, CARRY + count);
        let taken = memory.replay(&buffer[start..end], done, decoder)?;
        done += taken as u64;
        left = end - start - taken;
        // The rest of a record is shorter than the room that is kept for it.
        buffer.copy_within(end - left..end, CARRY - left);
    }
    Ok((done, calls))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use pagelab_emu::{Policy, table::backend};
    use pagelab_trace::{Op, Width, raw::encode};

    use super::*;
    use crate::trace::{Counter, inputs::Facts};

    /// A trace whose records have every length, so that pieces end inside of them.
    fn trace(ops: u64) -> Trace {
        let mut bytes = Vec::new();
        for at in 0..ops {
            let width = Width::ALL[usize::try_from(at % 4).unwrap()];
            let op = Op::store(at * 8, width, at);
            encode(if at % 3 == 0 { Op::load(at * 8, width) } else { op }, &mut bytes);
        }
        let mut counter = Counter::up_to(u64::MAX);
        counter.take(&bytes).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        // What follows a trace that was cut by a count is not part of it.
        bytes.extend([9; 100]);
        file.write_all(&bytes).unwrap();
        let facts = Facts {
            name: "test".into(),
            tally: counter.tally,
            trailing: 0,
            file_system: 0,
            warnings: Vec::new(),
            image: Vec::new(),
        };
        Trace { file, image: None, facts }
    }

    #[test]
    fn every_reader_replays_the_same_operations() {
        let trace = trace(5000);
        let mut all = Vec::new();
        for (word, reader) in READERS {
            let tape = Tape::new(&trace, reader).unwrap();
            for decoder in [Decoder::Fast, Decoder::Safe] {
                let mut memory = (backend("noop").unwrap().make)(&Policy::default()).unwrap();
                let played = tape.play(memory.as_mut(), decoder).unwrap();
                assert_eq!(played.bytes, trace.facts.tally.bytes, "{word}");
                assert_eq!(played.reads, tape.expected_reads(), "{word}");
                all.push(played.digest);
            }
        }
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
    }

    #[test]
    fn a_file_that_became_shorter_is_noticed() {
        let trace = trace(5000);
        trace.file.set_len(20_000).unwrap();
        let tape = Tape::new(&trace, Reader::Buffered(8 << 10)).unwrap();
        let mut memory = (backend("noop").unwrap().make)(&Policy::default()).unwrap();
        let played = tape.play(memory.as_mut(), Decoder::Fast).unwrap();
        assert!(played.bytes < trace.facts.tally.bytes);
    }
}
