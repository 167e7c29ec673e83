//! Images: what is written reads back, and no file makes the reader panic or grow.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside the test functions")]

use std::{fs, path::Path};

use pagelab_trace::image::{Image, Segment, Why, sidecar};
use proptest::prelude::*;

fn elf_of(image: &Image) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.write_elf(&mut bytes).unwrap();
    bytes
}

fn example() -> Image {
    let segment = |addr, bytes: &[u8]| Segment { addr, bytes: bytes.to_vec() };
    Image {
        segments: vec![
            segment(0x1_0000, b"text"),
            segment(0x7fff_fff0, &[7; 16]),
            segment(u64::MAX, b"!"),
        ],
    }
}

/// Offset of a field of a program header of [`elf_of`].
fn field(header: usize, at: usize) -> usize {
    64 + 56 * header + at
}

const P_TYPE: usize = 0;
const P_OFFSET: usize = 8;
const P_VADDR: usize = 16;
const P_FILESZ: usize = 32;
const P_MEMSZ: usize = 40;

fn with(bytes: &[u8], at: usize, value: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    bytes
}

#[test]
fn files_are_told_apart_by_magic_and_address() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a@b");
    let text = path.to_str().unwrap();
    let image = example();
    fs::write(&path, elf_of(&image)).unwrap();
    assert_eq!(Image::open(text).unwrap(), image);
    let raw = Image::open(&format!("{text}@0x1000")).unwrap();
    assert_eq!(raw.segments, [Segment { addr: 0x1000, bytes: elf_of(&image) }]);
    assert_eq!(Image::open(&format!("{text}@4096")).unwrap(), raw);
    fs::write(&path, b"raw").unwrap();
    let raw = Image::open(text).unwrap();
    assert_eq!(raw.segments, [Segment { addr: 0, bytes: b"raw".to_vec() }]);
    assert_eq!(raw.bytes(), 3);
    fs::write(&path, b"").unwrap();
    assert_eq!(Image::open(text).unwrap(), Image::default());
}

#[test]
fn errors_name_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let error = |bytes: &[u8], addr| {
        fs::write(&path, bytes).unwrap();
        Image::read(&path, addr).unwrap_err().to_string()
    };
    for (bytes, addr, part) in [
        (&b"\x7fELF"[..], None, "not a valid ELF file"),
        (b"ab", Some(u64::MAX), "2 bytes at 0xffffffffffffffff reach over the end"),
    ] {
        let text = error(bytes, addr);
        assert!(text.contains("image: ") && text.contains(part), "{text}");
    }
    let text = Image::read(&dir.path().join("missing"), None).unwrap_err().to_string();
    assert!(text.contains("missing: cannot read the image"), "{text}");
    assert!(Image::read(dir.path(), None).is_err());
}

#[test]
fn only_what_is_loaded_and_in_the_file_is_stored() {
    let bytes = elf_of(&example());
    let load = |bytes: &[u8]| Image::from_elf(bytes).map(|image| image.segments);
    let all = example().segments;
    // Longer in memory than in the file: bss is not stored, however long it says it is.
    assert_eq!(load(&with(&bytes, field(0, P_MEMSZ), u64::MAX)).unwrap(), all);
    let note = with(&bytes, field(1, P_TYPE), 4);
    assert_eq!(load(&note).unwrap(), [all[0].clone(), all[2].clone()]);
    let bss = with(&bytes, field(1, P_FILESZ), 0);
    assert_eq!(load(&bss).unwrap(), [all[0].clone(), all[2].clone()]);
    let nothing = Image::default();
    assert!(matches!(load(&elf_of(&nothing)), Err(Why::NothingToLoad)));
}

#[test]
fn what_an_elf_file_says_of_itself_is_not_believed() {
    let bytes = elf_of(&example());
    let load = |at, value| Image::from_elf(&with(&bytes, at, value));
    assert!(matches!(load(field(0, P_FILESZ), 1 << 40), Err(Why::Elf(_))));
    assert!(matches!(load(field(0, P_OFFSET), u64::MAX), Err(Why::Elf(_))));
    assert!(matches!(load(field(1, P_VADDR), u64::MAX - 14), Err(Why::OutOfRange { .. })));
    assert!(load(field(1, P_VADDR), u64::MAX - 15).is_ok());
    // Many segments of the same bytes would be many times the file.
    let mut same = bytes.clone();
    for header in 0..3 {
        same = with(&same, field(header, P_OFFSET), 0);
        same = with(&same, field(header, P_FILESZ), bytes.len() as u64 / 2);
        same = with(&same, field(header, P_VADDR), 0);
    }
    assert!(matches!(Image::from_elf(&same), Err(Why::TooLarge)));
    let mut big_endian = bytes.clone();
    big_endian[5] = 2;
    assert!(Image::from_elf(&big_endian).is_err());
}

#[test]
fn a_program_of_32_bits_is_read() {
    let mut bytes = [&b"\x7fELF"[..], &[1, 1, 1], &[0; 9]].concat();
    for half in [2_u16, 0xf3] {
        bytes.extend(half.to_le_bytes()); // type, machine
    }
    for word in [1_u32, 0x1_0000, 52, 0, 0] {
        bytes.extend(word.to_le_bytes()); // version, entry, program and section headers, flags
    }
    for half in [52_u16, 32, 1, 0, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    for word in [1_u32, 84, 0x8000_0000, 0, 4, 4096, 5, 4] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(b"code");
    let image = Image::from_elf(&bytes).unwrap();
    assert_eq!(image.segments, [Segment { addr: 0x8000_0000, bytes: b"code".to_vec() }]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_real_program_has_its_text() {
    let program = std::env::current_exe().unwrap();
    let image = Image::read(&program, None).unwrap();
    assert!(image.segments.len() > 1 && image.bytes() > 100_000, "{image:?}");
    // In one piece: a compiler may take a constant apart that it compares with.
    let words = std::hint::black_box(b"what is written reads back");
    assert!(image.segments.iter().any(|segment| segment.bytes.windows(26).any(|w| w == words)));
}

#[test]
fn a_sidecar_has_the_name_of_its_trace() {
    assert_eq!(sidecar(Path::new("dir/a.bin.gz")), Path::new("dir/a.bin.gz.image"));
    assert_eq!(sidecar(Path::new("a")), Path::new("a.image"));
}

#[test]
fn an_image_has_no_more_segments_than_a_header_counts() {
    let segment = Segment { addr: 0, bytes: vec![0] };
    let image = Image { segments: vec![segment; 65_535] };
    assert!(image.write_elf(&mut Vec::new()).is_err());
}

fn segments() -> impl Strategy<Value = Vec<Segment>> {
    let segment = (any::<u64>(), proptest::collection::vec(any::<u8>(), 1..50));
    let inside = segment.prop_map(|(addr, bytes)| Segment {
        addr: addr.min(u64::MAX - bytes.len() as u64 + 1),
        bytes,
    });
    proptest::collection::vec(inside, 1..8)
}

proptest! {
    #[test]
    fn what_is_written_reads_back(segments in segments()) {
        let image = Image { segments };
        prop_assert_eq!(Image::from_elf(&elf_of(&image)).unwrap(), image);
    }

    #[test]
    fn no_bytes_make_the_reader_panic_or_grow(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        elf in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if elf {
            bytes.splice(..0, *b"\x7fELF\x02\x01\x01");
        }
        if let Ok(image) = Image::from_elf(&bytes) {
            prop_assert!(image.bytes() <= bytes.len() as u64);
        }
    }

    #[test]
    fn no_damage_makes_the_reader_panic_or_grow(
        segments in segments(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = elf_of(&Image { segments });
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(image) = Image::from_elf(&bytes) {
            prop_assert!(image.bytes() <= bytes.len() as u64);
        }
    }
}
