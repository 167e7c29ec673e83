//! A trace file of any bytes: no panic, memory that the file cannot choose, and streaming gives
//! what reading the whole and decoding it gives.
//!
//! The one idea: the file is read twice. Once as bytes, which the bounds-checked decoder gets at
//! once; once as a stream, piece by piece, whatever sizes the decompressor makes of them.
#![no_main]

use std::{
    env, fs,
    io::{Read, Write},
    process,
};

use libfuzzer_sys::fuzz_target;
use pagelab_fuzz::{BYTES_MAX, file_of, sow};
use pagelab_trace::{
    Halt, Op, RecordError, Visit, Width,
    file::{self, FileError, StreamError, Streamed},
    op::wide,
    raw::{self, HEAD_BYTES},
};

/// Digests what it sees, up to a number of operations.
#[derive(Debug, Default, PartialEq, Eq)]
struct Digest {
    ops: u64,
    sum: u64,
}

#[derive(Debug)]
struct Enough;

impl std::fmt::Display for Enough {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("enough")
    }
}

impl Digest {
    fn note(&mut self, kind: u64, addr: u64, value: u64) -> Result<(), Enough> {
        if self.ops == BYTES_MAX / HEAD_BYTES as u64 {
            return Err(Enough);
        }
        self.ops += 1;
        for word in [kind, addr, value] {
            self.sum = self.sum.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word;
        }
        Ok(())
    }
}

impl Visit for Digest {
    type Stop = Enough;

    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Enough> {
        self.note(N as u64, addr, 0)
    }

    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Enough> {
        self.note(16 + N as u64, addr, wide(value))
    }
}

/// What the whole should give.
fn decoded(bytes: &[u8]) -> (Digest, Result<Streamed, RecordError>) {
    let mut digest = Digest::default();
    let done = match raw::visit(bytes, 0, &mut digest) {
        Ok(used) => raw::finish(&bytes[used..], used as u64)
            .map(|trailing| Streamed { bytes: used as u64, trailing }),
        Err(Halt::Record(error)) => Err(error),
        Err(Halt::Visitor { .. }) => unreachable!("it takes as many as there can be"),
    };
    (digest, done)
}

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    let path = file_of(input);
    let Ok(opened) = file::open(path) else { return };
    let mut whole = Vec::new();
    let read = opened.into_reader().take(BYTES_MAX).read_to_end(&mut whole);

    let opened = file::open(path).expect("it was opened before");
    let (mut digest, mut seen) = (Digest::default(), 0);
    let streamed = opened.stream(&mut digest, |bytes| {
        assert!(bytes >= seen, "progress goes forward");
        seen = bytes;
    });
    if read.is_err() {
        // A record before the place may make no sense, too.
        assert!(streamed.is_err(), "{read:?} {streamed:?}");
        return;
    }
    if whole.len() as u64 == BYTES_MAX {
        return;
    }
    let (expected, done) = decoded(&whole);
    match (streamed, done) {
        (Ok(found), Ok(done)) => assert_eq!((found, seen), (done, done.bytes)),
        (Err(StreamError::Record { error, .. }), Err(done)) => assert_eq!(error, done),
        (found, done) => panic!("{found:?} {done:?}"),
    }
    assert_eq!(digest, expected);
});

/// A trace in every compression, whole, cut, spoilt, twice; and headers that ask for much.
fn seeds() -> Vec<Vec<u8>> {
    let mut trace = Vec::new();
    for (at, width) in Width::ALL.into_iter().cycle().take(40).enumerate() {
        raw::encode(Op::load(0x1_0000 + 2 * at as u64, Width::W2), &mut trace);
        raw::encode(
            Op::store(0x7fff_0000 - 8 * at as u64, width, 0x0102_0304_0506_0708),
            &mut trace,
        );
    }
    let packed = |extension: &str| -> Result<Vec<u8>, FileError> {
        let name = format!("pagelab-fuzz-seed-{}.{extension}", process::id());
        let name = env::temp_dir().join(name);
        let create = FileError::io("write", &name);
        let mut output = file::create(fs::File::create(&name).map_err(create)?, &name)?;
        output.write_all(&trace).map_err(|source| output.failed(source))?;
        output.finish()?;
        let read = FileError::io("read", &name);
        let bytes = fs::read(&name).map_err(read)?;
        fs::remove_file(&name).map_err(read)?;
        Ok(bytes)
    };
    let mut seeds = vec![trace.clone()];
    for extension in ["gz", "xz", "zst"] {
        let whole = packed(extension).expect("a seed can be written");
        let (mut spoilt, middle) = (whole.clone(), whole.len() / 2);
        spoilt[middle] ^= 0x10;
        seeds.extend([whole[..middle].to_vec(), spoilt, whole.repeat(2), whole]);
    }
    // xz: a dictionary of 128 MiB, of 192 MiB, and of 4 GiB.
    let xz = packed("xz").expect("a seed can be written");
    seeds.extend([30, 31, 40].map(|size| with_dictionary(xz.clone(), size)));
    // Zstandard: a frame to skip, then frames with a window of their own and blocks of one byte.
    let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let frame =
        |window: u8, blocks: &[u8]| [&[0x28, 0xb5, 0x2f, 0xfd, 0, window][..], blocks].concat();
    // 64 bytes 1, and the last block: 20 bytes 1.
    let blocks = [0x02, 0x02, 0x00, 1, 0xa3, 0x00, 0x00, 1];
    seeds.extend([skipped.clone(), [skipped, frame(0, &blocks)].concat()]);
    seeds.extend([frame(17 << 3, &blocks), frame(31 << 3, &blocks)]);
    seeds
}

/// The same xz file, which says that its dictionary has another size.
fn with_dictionary(mut xz: Vec<u8>, size: u8) -> Vec<u8> {
    // Behind the header of the stream: the length in words, flags, and filter LZMA2 with a byte.
    let header = &mut xz[12..];
    let end = usize::from(header[0]) * 4;
    assert_eq!(header[1..4], [0, 0x21, 1], "our own files have the shortest header");
    header[4] = size;
    let checksum = crc32(&header[..end]).to_le_bytes();
    header[end..end + 4].copy_from_slice(&checksum);
    xz
}

fn crc32(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xedb8_8320 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}
