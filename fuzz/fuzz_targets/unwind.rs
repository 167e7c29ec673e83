//! Unwind tables, registers and stacks of any bytes: no panic, an end, no more frames than asked
//! for, and the same twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagelab_fuzz::sow;
use pagelab_program::explain::{
    frame::Frame,
    unwind::{Tables, Unwinder},
};
use pagelab_sys::counts::perf::Stack;

/// Where `.eh_frame` and `.eh_frame_hdr` lie.
const FRAMES: u64 = 0x4000;
const HEADER: u64 = 0x8000;
/// Callers that are asked for, with the instruction.
const MOST: usize = 25;

/// The first bytes: registers of two bytes each, a frame pointer, and how long both sections are.
const HEAD: usize = 17 * 2 + 8 + 2;

fuzz_target!(init: sow([seed()]), |input: &[u8]| {
    let Some((head, rest)) = input.split_first_chunk::<HEAD>() else { return };
    let (registers, head) = head.split_at(34);
    let mut stack = Stack { chain: Vec::new(), registers: [0; 17], bytes: Vec::new() };
    for (register, bytes) in stack.registers.iter_mut().zip(registers.chunks_exact(2)) {
        *register = u64::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    }
    if let Some((base, _)) = head.split_first_chunk() {
        stack.registers[6] ^= u64::from_le_bytes(*base);
    }
    let (rows, rest) = rest.split_at(usize::from(head[8]).min(rest.len()));
    let (frames, bytes) = rest.split_at(usize::from(head[9]).min(rest.len()));
    stack.bytes = bytes.to_vec();
    let run = || {
        let mut header = vec![1, 0x1B, 3, 0x3B, 0, 0, 0, 0];
        header.extend(rows);
        let mut unwinder = Unwinder::default();
        unwinder.suppose("/p", Tables::of((FRAMES, frames.into()), (HEADER, header.into())));
        let code = |at| (0x1000..0x3000).contains(&at).then(|| Frame { file: "/p".into(), at });
        unwinder.unwind(&stack, MOST, code)
    };
    let (one, other) = (run(), run());
    assert_eq!(one, other);
    assert!(one.0.len() <= MOST);
});

/// A function of 16 bytes at 0x1000 that was called three times, one out of the other.
fn seed() -> Vec<u8> {
    let mut registers = [0_u16; 17];
    (registers[7], registers[16]) = (0x7000, 0x1004);
    let mut seed: Vec<u8> = registers.iter().flat_map(|register| register.to_le_bytes()).collect();
    seed.extend([0; 8]);
    let start = i32::try_from(0x1000 - HEADER.cast_signed()).expect("near");
    let entry = i32::try_from(FRAMES.cast_signed() - HEADER.cast_signed()).expect("near") + 24;
    let rows = [1_u32.to_le_bytes(), start.to_le_bytes(), entry.to_le_bytes()].concat();
    let mut frames = vec![20, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 4];
    frames.extend([0x0C, 7, 16, 0x90, 1, 0, 0, 24, 0, 0, 0, 28, 0, 0, 0]);
    frames.extend([0x1000_u64.to_le_bytes(), 16_u64.to_le_bytes()].concat());
    frames.extend([0; 8]);
    seed.extend([rows.len(), frames.len()].map(|length| u8::try_from(length).expect("short")));
    seed.extend(rows);
    seed.extend(frames);
    seed.extend([1, 0x1008, 2, 0x1010, 3, 0_u64].iter().flat_map(|word| word.to_le_bytes()));
    seed
}
