//! The fast decoder and the bounds-checked one do the same with any bytes.
//!
//! The one idea: both hand out their operations to a scribe, and both lists, both results and both
//! errors are equal; so are those of a reader that gets the bytes in pieces. The slice ends where
//! its allocation does, so that the sanitizer sees a read beyond it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagelab_fuzz::{mend, sow};
use pagelab_trace::{Halt, Op, Visit, Width, decode, op::wide, raw};

/// Writes down what it sees, up to a number of operations.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Scribe {
    seen: Vec<Op>,
    most: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Enough;

impl Scribe {
    fn note(&mut self, op: Op) -> Result<(), Enough> {
        if self.seen.len() == self.most {
            return Err(Enough);
        }
        self.seen.push(op);
        Ok(())
    }
}

impl Visit for Scribe {
    type Stop = Enough;

    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Enough> {
        self.note(Op::load(addr, Width::of(N).expect("a decoder knows four widths")))
    }

    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Enough> {
        let width = Width::of(N).expect("a decoder knows four widths");
        self.note(Op::store(addr, width, wide(value)))
    }
}

/// Which of the two.
#[derive(Debug, Clone, Copy)]
enum Decoder {
    Fast,
    Safe,
}

impl Decoder {
    fn visit(self, bytes: &[u8], offset: u64, to: &mut Scribe) -> Result<usize, Halt<Enough>> {
        match self {
            Self::Fast => decode::visit(bytes, offset, to),
            Self::Safe => raw::visit(bytes, offset, to),
        }
    }

    /// Everything that a reader does who gets the bytes in pieces: bytes that trail at the end.
    fn read(
        self,
        bytes: &[u8],
        offset: u64,
        mut pieces: impl Iterator<Item = usize>,
        to: &mut Scribe,
    ) -> Result<usize, Halt<Enough>> {
        let (mut at, mut end) = (0, 0);
        while end < bytes.len() {
            end += pieces.next().unwrap_or(usize::MAX).clamp(1, bytes.len() - end);
            let piece: Box<[u8]> = bytes[at..end].into();
            at += self.visit(&piece, offset + at as u64, to)?;
        }
        Ok(raw::finish(&bytes[at..], offset + at as u64)?)
    }
}

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    let Some((&[flags, most, far, cut, again], bytes)) = input.split_first_chunk() else { return };
    let mut bytes: Box<[u8]> = bytes.into();
    if flags & 1 != 0 {
        mend(&mut bytes);
    }
    let most = if flags & 2 != 0 { usize::from(most) } else { usize::MAX };
    let offset = u64::from(far) << 48;
    let scribe = Scribe { seen: Vec::new(), most };

    let (mut fast, mut safe) = (scribe.clone(), scribe.clone());
    let found = decode::visit(&bytes, offset, &mut fast);
    let expected = raw::visit(&bytes, offset, &mut safe);
    assert_eq!(found, expected);
    assert_eq!(fast, safe);

    let mut whole = scribe.clone();
    let expected = Decoder::Safe.read(&bytes, offset, std::iter::empty(), &mut whole);
    assert_eq!(whole, safe);
    for decoder in [Decoder::Fast, Decoder::Safe] {
        let pieces = [cut, again].map(usize::from).into_iter().cycle();
        let mut pieced = scribe.clone();
        let found = decoder.read(&bytes, offset, pieces, &mut pieced);
        assert_eq!(found, expected, "{decoder:?}");
        assert_eq!(pieced, safe, "{decoder:?}");
    }
});

/// Short traces of every record there is, whole and spoilt, with several ways to cut them.
fn seeds() -> Vec<Vec<u8>> {
    let mut trace = Vec::new();
    for (at, width) in Width::ALL.into_iter().cycle().take(12).enumerate() {
        let addr = 0x1_0ffc << at;
        raw::encode(Op::load(addr, width), &mut trace);
        raw::encode(Op::load(addr, Width::W2), &mut trace);
        raw::encode(Op::store(addr, width, 0x0102_0304_0506_0708), &mut trace);
    }
    let with = |control: [u8; 5], trace: &[u8]| [&control, trace].concat();
    vec![
        with([0, 0, 0, 17, 40], &trace),
        with([0, 0, 255, 1, 1], &trace),
        with([2, 7, 1, 200, 9], &trace),
        with([1, 0, 0, 19, 18], &[0; 100]),
        with([0, 0, 0, 30, 3], &trace[..trace.len() - 4]),
        with([0, 0, 0, 30, 3], &[&trace, &[3; 20][..]].concat()),
        with([0, 0, 0, 30, 3], &[&trace, &[1; 1][..], &[3; 20][..]].concat()),
    ]
}
