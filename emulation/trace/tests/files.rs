//! Trace files: what is written reads back, and what is damaged is named and never a panic.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside the test functions")]

use std::{
    fs::{self, File},
    io::{Cursor, Read, Write},
    path::{Path, PathBuf},
};

use pagelab_trace::{
    Op, RecordError, Width,
    file::{Compression, Encoder, FileError, StreamError, Streamed, Writer, create, open},
    raw::encode,
    synth::Spec,
};
use tempfile::TempDir;

const SUFFIXES: [&str; 4] = ["", ".gz", ".xz", ".zst"];

fn trace(ops: u64) -> Vec<u8> {
    let spec = Spec::parse("uniform:footprint=1m,width=mixed,stores=0.5").unwrap().with_ops(ops);
    spec.stream().flatten().collect()
}

struct Room {
    dir: TempDir,
}

impl Room {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn packed(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        let mut output = create(File::create(&path).unwrap(), &path).unwrap();
        output.write_all(bytes).unwrap();
        output.finish().unwrap();
        path
    }
}

/// What is in a trace, or the sentence that says why not.
fn contents(path: &Path) -> Result<(Vec<u8>, Streamed), String> {
    let mut encoder = Encoder::default();
    let file = open(path).map_err(|error| error.to_string())?;
    let streamed = file.stream(&mut encoder, |_| {}).map_err(|error| error.to_string())?;
    Ok((encoder.into_bytes(), streamed))
}

#[test]
fn every_compression_reads_back_what_was_written() {
    let room = Room::new();
    let bytes = trace(20_000);
    for suffix in SUFFIXES {
        let path = room.packed(&format!("trace.bin{suffix}"), &bytes);
        let file = open(&path).unwrap();
        assert_eq!(file.compression(), Compression::of_path(&path));
        let stored = fs::metadata(&path).unwrap().len();
        assert_eq!(stored < bytes.len() as u64, !suffix.is_empty(), "{suffix} compresses");
        let mut read = Vec::new();
        file.into_reader().read_to_end(&mut read).unwrap();
        assert!(read == bytes, "{suffix}: bytes");
        let (records, streamed) = contents(&path).unwrap();
        assert!(records == bytes, "{suffix}: records");
        assert_eq!(streamed, Streamed { bytes: bytes.len() as u64, trailing: 0 });
    }
}

#[test]
fn a_trace_longer_than_a_piece_is_streamed_with_progress() {
    let room = Room::new();
    let bytes = trace(200_000);
    assert!(bytes.len() > 2 << 20);
    let path = room.packed("long.zst", &bytes);
    let (mut encoder, mut seen) = (Encoder::default(), Vec::new());
    let streamed = open(&path).unwrap().stream(&mut encoder, |at| seen.push(at)).unwrap();
    assert!(encoder.bytes() == bytes);
    assert!(seen.len() > 2 && seen.is_sorted());
    assert_eq!(seen.last(), Some(&streamed.bytes));
    let mut pieces = 0;
    let result = open(&path).unwrap().pieces(|piece, offset| {
        pieces += 1;
        assert!(piece == &bytes[usize::try_from(offset).unwrap()..][..piece.len()]);
        // Somebody who never takes what is not a multiple of seven.
        Ok::<usize, String>(piece.len() / 7 * 7)
    });
    assert!(pieces > 2);
    let used = bytes.len() / 7 * 7;
    assert_eq!(result.unwrap(), Streamed { bytes: used as u64, trailing: bytes.len() - used });
}

#[test]
fn the_name_does_not_matter_for_reading() {
    let room = Room::new();
    let bytes = trace(100);
    for suffix in SUFFIXES {
        let from = room.packed(&format!("a{suffix}"), &bytes);
        let path = room.path("b.gz");
        fs::copy(from, &path).unwrap();
        assert!(contents(&path).unwrap().0 == bytes, "{suffix}");
    }
}

#[test]
fn files_of_several_parts_are_one_trace() {
    let room = Room::new();
    let bytes = trace(3000);
    let (one, two) = bytes.split_at(bytes.len() / 3);
    for suffix in [".gz", ".xz", ".zst"] {
        let one = fs::read(room.packed(&format!("one{suffix}"), one)).unwrap();
        let two = fs::read(room.packed(&format!("two{suffix}"), two)).unwrap();
        let whole = room.file("whole", &[one, two].concat());
        assert!(contents(&whole).unwrap().0 == bytes, "{suffix}");
    }
}

#[test]
fn frames_of_zst_that_are_to_be_skipped_are_skipped() {
    let room = Room::new();
    let bytes = trace(100);
    let frame = fs::read(room.packed("a.zst", &bytes)).unwrap();
    let skip = [&[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let path = room.file("b", &[&skip[..], &frame, &skip].concat());
    assert!(contents(&path).unwrap().0 == bytes);
    let path = room.file("c", &[&frame[..], &skip[..skip.len() - 1]].concat());
    assert!(contents(&path).unwrap_err().contains("cannot read"));
}

#[test]
fn a_writer_writes_what_an_encoder_encodes() {
    let spec = Spec::parse("sparse").unwrap().with_ops(50_000);
    let mut writer = Writer::new(Vec::new());
    spec.generate(&mut writer).unwrap();
    let expected: Vec<u8> = spec.stream().flatten().collect();
    assert!(writer.finish().unwrap() == expected);
    // A place that is full says so.
    let mut place = [0; 1000];
    let mut writer = Writer::new(Cursor::new(&mut place[..]));
    assert!(spec.generate(&mut writer).is_err());
}

/// Every kind of record, and where each of them ends.
fn small() -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut ends) = (Vec::new(), vec![0]);
    for index in 0..3 {
        for width in Width::ALL {
            for op in [Op::load(index, width), Op::store(!index, width, u64::MAX)] {
                encode(op, &mut bytes);
                ends.push(bytes.len());
            }
        }
    }
    (bytes, ends)
}

#[test]
fn a_trace_cut_anywhere_is_judged_by_where_it_ends() {
    let room = Room::new();
    let (bytes, ends) = small();
    for cut in 0..=bytes.len() {
        let path = room.file("cut.bin", &bytes[..cut]);
        let end = *ends.iter().rfind(|&&end| end <= cut).unwrap();
        let rest = cut - end;
        match contents(&path) {
            Ok((records, streamed)) => {
                assert!(cut >= 10 && rest < 10, "{cut}");
                assert!(records == bytes[..end]);
                assert_eq!(streamed, Streamed { bytes: end as u64, trailing: rest });
            }
            Err(error) if cut == 0 => assert!(error.contains("cut.bin is empty"), "{error}"),
            Err(error) if cut < 10 => assert!(error.contains("is no trace"), "{error}"),
            Err(error) => {
                assert!(rest >= 10, "{cut}: {error}");
                let offset = format!("at byte {end}: the trace ends inside the value");
                assert!(error.contains("cut.bin: ") && error.contains(&offset), "{error}");
            }
        }
    }
}

#[test]
fn a_compressed_trace_that_is_cut_anywhere_is_an_error() {
    let room = Room::new();
    let (bytes, _) = small();
    for suffix in [".gz", ".xz", ".zst"] {
        let packed = fs::read(room.packed(&format!("a{suffix}"), &bytes)).unwrap();
        for cut in 6..packed.len() {
            let path = room.file("cut", &packed[..cut]);
            let error = contents(&path).expect_err("cut");
            assert!(error.contains("cut"), "{suffix} {cut}: {error}");
        }
    }
}

#[test]
fn a_damaged_byte_is_found_or_changes_nothing() {
    let room = Room::new();
    let (bytes, _) = small();
    for suffix in [".gz", ".xz", ".zst"] {
        let packed = fs::read(room.packed(&format!("a{suffix}"), &bytes)).unwrap();
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 1 << (at % 8);
            let path = room.file("damaged", &damaged);
            if let Ok((records, _)) = contents(&path) {
                assert!(records == bytes, "{suffix}: byte {at} changes the trace in silence");
            }
        }
    }
}

#[test]
fn records_that_make_no_sense_are_named_by_file_and_byte() {
    let room = Room::new();
    let (bytes, ends) = small();
    for (index, &start) in ends[..ends.len() - 1].iter().enumerate() {
        for (at, value, part) in [
            (start, 0, "operation 0 is neither"),
            (start, 3, "operation 3 is neither"),
            (start + 1, 0, "width 0 is none of"),
            (start + 1, 16, "width 16 is none of"),
        ] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            let error = contents(&room.file("bad.bin", &damaged)).unwrap_err();
            assert!(error.contains("bad.bin"), "{error}");
            if index == 0 {
                assert!(error.contains("is no trace: it starts with"), "{error}");
                continue;
            }
            assert!(error.contains(part), "{error}");
            assert!(error.contains(&format!("at byte {start}:")), "{error}");
        }
    }
    let mut damaged = bytes.clone();
    damaged[ends[5]] = 9;
    let failed =
        open(&room.file("bad.bin", &damaged)).unwrap().stream(&mut Encoder::default(), |_| {});
    let expected = RecordError::Op { offset: ends[5] as u64, op: 9 };
    assert!(matches!(failed, Err(StreamError::Record { error, .. }) if error == expected));
}

#[test]
fn a_visitor_that_stops_is_told_apart_from_the_file() {
    struct Third(u32);
    impl pagelab_trace::Visit for Third {
        type Stop = String;

        fn load<const N: usize>(&mut self, _: u64) -> Result<(), String> {
            self.0 += 1;
            if self.0 == 3 { Err("enough".to_owned()) } else { Ok(()) }
        }

        fn store<const N: usize>(&mut self, addr: u64, _: [u8; N]) -> Result<(), String> {
            self.load::<N>(addr)
        }
    }
    let room = Room::new();
    let path = room.file("a.bin", &trace(10));
    let error = open(&path).unwrap().stream(&mut Third(0), |_| {}).unwrap_err();
    assert!(matches!(&error, StreamError::Taker { stop, .. } if stop == "enough"), "{error}");
    assert!(error.to_string().ends_with("a.bin: enough"), "{error}");
}

#[test]
fn what_is_no_trace_is_refused_with_what_was_expected() {
    let room = Room::new();
    for (name, bytes) in [
        ("picture", &b"\x89PNG\r\n\x1a\n0123456789"[..]),
        ("text", b"I  04001234,3\n L 1ffe,8\n"),
        ("short", &[1]),
        ("zeros", &[0; 100]),
    ] {
        let error = open(&room.file(name, bytes)).unwrap_err();
        assert!(matches!(error, FileError::NotATrace { .. }), "{name}: {error}");
        let text = error.to_string();
        assert!(text.contains(name) && text.contains("expected operation 1 or 2"), "{text}");
    }
    for suffix in [".gz", ".xz", ".zst"] {
        let path = room.packed(&format!("text{suffix}"), b"not a trace at all");
        let text = open(&path).unwrap_err().to_string();
        let inside = format!("inside its {}", &suffix[1..]);
        assert!(text.contains(&inside), "{text}");
    }
    let missing = open(&room.path("missing")).unwrap_err().to_string();
    assert!(missing.contains("cannot open") && missing.contains("missing"), "{missing}");
    assert!(matches!(open(room.dir.path()), Err(FileError::Io { .. })));
}

#[test]
fn an_empty_trace_is_an_error_compressed_or_not() {
    let room = Room::new();
    for suffix in SUFFIXES {
        let path = room.packed(&format!("empty{suffix}"), b"");
        let text = open(&path).unwrap_err().to_string();
        assert!(text.contains("empty"), "{suffix}: {text}");
    }
}

#[test]
fn windows_that_would_fill_memory_are_refused() {
    let room = Room::new();
    // A frame of Zstandard with a window of 2^40 bytes, and one block.
    let window = (40 - 10) << 3;
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, window, 1, 0, 0];
    let text = open(&room.file("bomb.zst", &frame)).unwrap_err().to_string();
    assert!(text.contains("bomb.zst") && text.contains("indow"), "{text}");
    // The same for a dictionary of 4 GiB in xz: the byte before the padding of the block's header.
    let mut packed = fs::read(room.packed("a.xz", &small().0)).unwrap();
    let length = 4 * (usize::from(packed[12]) + 1);
    let header = &mut packed[12..12 + length];
    let filter = header.windows(2).position(|pair| pair == [0x21, 1]).unwrap();
    header[filter + 2] = 40;
    let sum = crc32(&header[..length - 4]);
    header[length - 4..].copy_from_slice(&sum.to_le_bytes());
    let text = open(&room.file("bomb.xz", &packed)).unwrap_err().to_string();
    assert!(text.contains("bomb.xz") && text.contains("mem"), "{text}");
}

/// CRC-32 as in zip and xz.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum: u32, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ ((sum & 1) * 0xedb8_8320))
    })
}

#[test]
fn a_plain_file_is_handed_out_from_its_start() {
    let room = Room::new();
    let bytes = trace(1000);
    let mut file = open(&room.file("a.bin", &bytes)).unwrap().into_plain().unwrap();
    let mut read = Vec::new();
    file.read_to_end(&mut read).unwrap();
    assert!(read == bytes);
    let packed = open(&room.packed("a.gz", &bytes)).unwrap().into_plain().unwrap_err();
    let mut read = Vec::new();
    packed.into_reader().read_to_end(&mut read).unwrap();
    assert!(read == bytes, "what is not plain comes back whole");
}
