//! A trace, a piece at a time, into any visitor: for what needs to see it once and must not hold
//! it in memory.

use std::io::{ErrorKind, Read};

use pagelab_sys::process::Pulse;
use pagelab_trace::{Halt, RecordError, Visit, decode, raw};

use super::{
    door::{self, Opened},
    source::Source,
};

/// Said of a trace without a record.
pub const EMPTY: &str = "the trace holds no operation";

/// What is wrong with a trace, and what to do about it.
pub(super) fn bad_record(error: &RecordError, ops: u64) -> String {
    let advice = if ops == 0 {
        "it is no trace in the raw format".to_owned()
    } else {
        format!("the {ops} operations before it are whole: --ops {ops} uses these")
    };
    format!("{error}; {advice}")
}

/// Bytes that are read and decoded at once: small enough for the second-level cache.
const PIECE: usize = 1 << 18;

/// A trace that is to be looked at.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Where it comes from.
    pub source: Source,
    /// How many operations; `None` is all.
    pub ops: Option<u64>,
    /// The seed of a generator.
    pub seed: u64,
}

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Streamed {
    /// Operations.
    pub ops: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Bytes after the last complete record.
    pub trailing: u64,
}

impl Stream {
    /// Hands every operation to a visitor, and counts on the pulse.
    ///
    /// # Errors
    /// A sentence that names the trace, the offset of a bad record, and what to do.
    pub fn visit<V>(&self, visitor: &mut V, pulse: &Pulse) -> Result<Streamed, String>
    where
        V: Visit,
        V::Stop: std::fmt::Display,
    {
        let path = match &self.source {
            Source::Generator(spec) => {
                let ops = self.ops.unwrap_or(0);
                pulse.begin(ops);
                let mut direct = Direct { inner: visitor, done: Streamed::default(), pulse };
                let spec = door::spec(spec, ops, self.seed)?;
                return match spec.generate(&mut direct) {
                    Ok(()) => Ok(direct.done),
                    Err(stop) => Err(format!("{}: {stop}", self.source)),
                };
            }
            Source::File(path) => path,
        };
        let failed = |why: String| format!("{}: {why}", self.source);
        let (mut reader, end): (Box<dyn Read + Send>, u64) = match door::open(path)? {
            Opened::Plain(file) => {
                let length = file.metadata().map_or(0, |metadata| metadata.len());
                (Box::new(file), length)
            }
            Opened::Packed(reader) => (reader, 0),
        };
        pulse.begin(self.ops.unwrap_or(end));
        let mut pump = Pump {
            visitor,
            left: self.ops.unwrap_or(u64::MAX),
            done: Streamed::default(),
            pulse,
            by_bytes: self.ops.is_none(),
        };
        pump.read(reader.as_mut()).map_err(failed)?;
        Ok(pump.done)
    }
}

/// Hands on what a generator makes, and counts it.
struct Direct<'d, V> {
    inner: &'d mut V,
    done: Streamed,
    pulse: &'d Pulse,
}

/// Operations between two counts on the pulse, less one.
const PULSE_MASK: u64 = (1 << 20) - 1;

impl<V> Direct<'_, V> {
    #[inline(always)]
    fn count(&mut self, bytes: usize) {
        self.done.ops += 1;
        self.done.bytes += bytes as u64;
        if self.done.ops & PULSE_MASK == 0 {
            self.pulse.advance(PULSE_MASK + 1, self.done.ops);
        }
    }
}

impl<V: Visit> Visit for Direct<'_, V> {
    type Stop = V::Stop;

    #[inline(always)]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Self::Stop> {
        self.count(raw::HEAD_BYTES);
        self.inner.load::<N>(addr)
    }

    #[inline(always)]
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Self::Stop> {
        self.count(raw::HEAD_BYTES + N);
        self.inner.store(addr, value)
    }
}

/// Feeds a visitor.
struct Pump<'p, V> {
    visitor: &'p mut V,
    left: u64,
    done: Streamed,
    pulse: &'p Pulse,
    by_bytes: bool,
}

impl<V> Pump<'_, V>
where
    V: Visit,
    V::Stop: std::fmt::Display,
{
    fn read(&mut self, reader: &mut dyn Read) -> Result<(), String> {
        let mut buffer = vec![0; PIECE];
        let mut filled = 0;
        while self.left > 0 {
            let count = match reader.read(&mut buffer[filled..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other.map_err(|error| self.unreadable(&error))?,
            };
            filled += count;
            let taken = self.take(&buffer[..filled])?;
            buffer.copy_within(taken..filled, 0);
            filled -= taken;
            if count == 0 {
                let rest = raw::finish(&buffer[..filled], self.done.bytes);
                let trailing = rest.map_err(|error| bad_record(&error, self.done.ops))?;
                self.done.trailing = trailing as u64;
                break;
            }
        }
        Ok(())
    }

    /// A file that was packed may be damaged too.
    fn unreadable(&self, error: &std::io::Error) -> String {
        let ops = self.done.ops;
        format!("after {ops} operations: {error}; --ops {ops} uses these")
    }

    /// Hands the complete records of a piece to the visitor, up to the limit; returns their bytes.
    fn take(&mut self, piece: &[u8]) -> Result<usize, String> {
        let mut counted = Counted { inner: self.visitor, ops: 0, left: self.left };
        let taken = match decode::visit(piece, self.done.bytes, &mut counted) {
            Ok(taken) => taken,
            Err(Halt::Visitor { offset, stop: Stop::Enough }) => {
                usize::try_from(offset - self.done.bytes).unwrap_or(piece.len())
            }
            Err(Halt::Visitor { offset, stop: Stop::Inner(stop) }) => {
                return Err(format!("at byte {offset}: {stop}"));
            }
            // Whatever follows the last record that is wanted, it is not looked at.
            Err(Halt::Record(error)) if counted.ops == self.left => {
                usize::try_from(offset_of(&error) - self.done.bytes).unwrap_or(piece.len())
            }
            Err(Halt::Record(error)) => {
                let ops = self.done.ops + counted.ops;
                return Err(bad_record(&error, ops));
            }
        };
        let ops = counted.ops;
        self.left -= ops;
        self.done.ops += ops;
        self.done.bytes += taken as u64;
        let position = if self.by_bytes { self.done.bytes } else { self.done.ops };
        self.pulse.advance(ops, position);
        Ok(taken)
    }
}

/// Where a bad record starts.
fn offset_of(error: &RecordError) -> u64 {
    match *error {
        RecordError::Op { offset, .. }
        | RecordError::Width { offset, .. }
        | RecordError::Truncated { offset, .. } => offset,
    }
}

/// Counts what a visitor sees, and ends it at a limit.
struct Counted<'v, V> {
    inner: &'v mut V,
    ops: u64,
    left: u64,
}

enum Stop<S> {
    Enough,
    Inner(S),
}

impl<V: Visit> Counted<'_, V> {
    #[inline(always)]
    fn count(&mut self) -> Result<(), Stop<V::Stop>> {
        if self.ops == self.left {
            return Err(Stop::Enough);
        }
        self.ops += 1;
        Ok(())
    }
}

impl<V: Visit> Visit for Counted<'_, V> {
    type Stop = Stop<V::Stop>;

    #[inline(always)]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Self::Stop> {
        self.count()?;
        self.inner.load::<N>(addr).map_err(Stop::Inner)
    }

    #[inline(always)]
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Self::Stop> {
        self.count()?;
        self.inner.store(addr, value).map_err(Stop::Inner)
    }
}
