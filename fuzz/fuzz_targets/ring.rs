//! A ring of hardware samples, of any bytes at any positions: no panic, no more samples than fit,
//! and the same twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagelab_fuzz::sow;
use pagelab_live::source::hardware::read;

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    let Some((positions, ring)) = input.split_first_chunk::<10>() else { return };
    let (tail, length) = positions.split_at(8);
    let tail = u64::from_ne_bytes(tail.try_into().unwrap_or_default());
    let length = u16::from_ne_bytes([length[0], length[1]]);
    let head = tail.wrapping_add(u64::from(length));
    let run = || {
        let mut found = Vec::new();
        (read(ring, tail, head, &mut |access| found.push(access)), found)
    };
    let (one, other) = (run(), run());
    assert_eq!(one, other);
    assert!(one.1.len() * 64 <= ring.len());
    if let (Ok(told), found) = one {
        assert_eq!(told.samples, found.len() as u64);
    }
});

/// A ring of 256 bytes with two samples and a loss, from its beginning and over its end.
fn seeds() -> Vec<Vec<u8>> {
    let record = |kind: u32, body: &[u64]| {
        let size = u16::try_from(8 + body.len() * 8).expect("a short record");
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(size.to_ne_bytes());
        bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    };
    let sample = record(9, &[7, 5, 0x1000, 1, 300, 4, 0x8000]);
    let records = [sample.clone(), record(2, &[1, 40]), sample].concat();
    [0_usize, 200]
        .map(|tail| {
            let mut ring = vec![0; 256];
            for (nth, byte) in records.iter().enumerate() {
                ring[(tail + nth) % 256] = *byte;
            }
            let mut seed = (tail as u64).to_ne_bytes().to_vec();
            let length = u16::try_from(records.len()).expect("two records and a loss");
            seed.extend(length.to_ne_bytes());
            seed.extend(ring);
            seed
        })
        .into()
}
