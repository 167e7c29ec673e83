//! An image of any bytes: no panic, no more bytes than the file has, and what was read can be
//! written and read again.
//!
//! The one idea: whatever the headers say, every segment that is accepted lies in the address space
//! and in the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagelab_fuzz::{file_of, sow};
use pagelab_trace::image::{Image, Segment};

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    let read = Image::read(file_of(input), None);
    let elf = input.starts_with(b"\x7fELF");
    let image = if elf { Image::from_elf(input) } else { Image::from_raw(0, input.to_vec()) };
    let Ok(image) = image else {
        assert!(read.is_err(), "{read:?}");
        return;
    };
    assert_eq!(read.expect("its bytes are an image"), image);
    assert!(image.bytes() <= input.len() as u64);
    for segment in &image.segments {
        let last = segment.bytes.len().checked_sub(1).expect("no segment is empty");
        assert!(segment.addr.checked_add(last as u64).is_some());
    }
    let mut written = Vec::new();
    image.write_elf(&mut written).expect("a short file has few segments");
    match Image::from_elf(&written) {
        Ok(again) => assert_eq!(again, image),
        Err(why) => assert!(image.segments.is_empty(), "{why}"),
    }

    // As the command line names it: raw bytes at an address that is written in the first ones.
    if let Some((at, _)) = input.split_at_checked(12)
        && let Ok(at) = str::from_utf8(at)
    {
        let named = Image::open(&format!("{}@{at}", file_of(input).display()));
        if let Ok(Image { segments }) = named {
            assert!(segments.iter().all(|segment| segment.bytes == input));
        }
    }
});

/// Files that we write, with 32 bits and with the other byte order, cut and reaching over the end.
fn seeds() -> Vec<Vec<u8>> {
    let segment = |addr, bytes: &[u8]| Segment { addr, bytes: bytes.to_vec() };
    let elf = |segments: Vec<Segment>| {
        let mut bytes = Vec::new();
        Image { segments }.write_elf(&mut bytes).expect("a vector takes it");
        bytes
    };
    let whole = elf(vec![segment(0x1_0000, b"code"), segment(0x2_0ffe, b"data over a page")]);
    let with = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    vec![
        b"0x1000\0\0\0\0\0\0 raw bytes".to_vec(),
        b"0x1000000000 raw bytes".to_vec(),
        whole[..100].to_vec(),
        with(4, 1),
        with(5, 2),
        with(0x38, 255),
        elf(vec![segment(u64::MAX - 3, b"last")]),
        elf(vec![segment(u64::MAX - 2, b"over")]),
        whole,
    ]
}
