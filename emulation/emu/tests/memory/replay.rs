//! Replays: the same digest from every memory and both decoders, and what `verify` finds.

use pagelab_emu::{
    Fault, Memory, Policy,
    paged::PagedFx,
    replay::{Decoder, Player, Replay},
    table::{BASE, Backend, MEMORIES, backend},
    verify::{Verdict, Verifier},
};
use pagelab_trace::{Halt, Op, Width, raw};
use proptest::prelude::*;

use crate::{
    naive::Naive,
    ops::{addresses, cases},
};

const DECODERS: [Decoder; 2] = [Decoder::Fast, Decoder::Safe];

fn encoded(ops: &[Op]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for op in ops {
        raw::encode(*op, &mut bytes);
    }
    bytes
}

/// Loads and stores that a peer can do, too: below 2^45.
fn traces() -> impl Strategy<Value = Vec<Op>> {
    let op = (addresses(), proptest::sample::select(&Width::ALL), any::<Option<u64>>());
    let op = op.prop_map(|(addr, width, value)| match value {
        Some(value) => Op::store(addr >> 20, width, value),
        None => Op::load(addr >> 20, width),
    });
    proptest::collection::vec(op, 0..200)
}

/// An empty memory of that row; `None` where the host has no room for it, as it may.
fn make(row: &Backend, policy: &Policy) -> Option<Box<dyn Replay>> {
    if cfg!(miri) && row.name == "flat" {
        return None; // Miri has no such mappings.
    }
    let made = (row.make)(policy);
    let may_be_refused = row.name == "flat" || row.name.starts_with("peer-");
    assert!(made.is_ok() || may_be_refused, "{}", row.name);
    made.ok()
}

/// Replays all of it in pieces of that size, as a file is read.
fn in_pieces(memory: &mut dyn Replay, trace: &[u8], piece: usize, decoder: Decoder) {
    let (mut done, mut end) = (0, 0);
    while end < trace.len() {
        end = (end + piece).min(trace.len());
        let taken = memory.replay(&trace[done..end], done as u64, decoder);
        done += taken.expect("a good trace");
    }
    assert_eq!(done, trace.len());
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    #[cfg_attr(miri, ignore = "minutes; `model.rs` has the same memories")]
    fn every_memory_and_decoder_gives_the_same_digest(ops in traces(), piece in 18..300usize) {
        let trace = encoded(&ops);
        let policy = Policy::default();
        let mut model = Player::new(Naive::new(&policy));
        model.replay(&trace, 0, Decoder::Safe).unwrap();
        for row in MEMORIES.iter().filter(|row| row.remembers) {
            for decoder in DECODERS {
                let Some(mut whole) = make(row, &policy) else { continue };
                prop_assert_eq!(whole.replay(&trace, 0, decoder), Ok(trace.len()));
                prop_assert_eq!(whole.digest(), model.digest(), "{}, {:?}", row.name, decoder);
                drop(whole);
                let Some(mut pieces) = make(row, &policy) else { continue };
                in_pieces(&mut *pieces, &trace, piece, decoder);
                prop_assert_eq!(pieces.digest(), model.digest(), "{} in pieces", row.name);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "minutes; `model.rs` has the same memories")]
    fn every_memory_stands_verification(ops in traces()) {
        let trace = encoded(&ops);
        let policy = Policy::default();
        for row in MEMORIES.iter().filter(|row| row.remembers) {
            let mut verifier = Verifier::new(&policy);
            let Some(mut memory) = make(row, &policy) else { continue };
            memory.preload(0x1000, b"an image").unwrap();
            verifier.preload(0x1000, b"an image").unwrap();
            memory.verify(&trace, 0, Decoder::Fast, &mut verifier).unwrap();
            let loads = ops.iter().filter(|op| op.access == pagelab_trace::Access::Load).count();
            let all = (ops.len() as u64, loads as u64);
            let Verdict { ops, loads, differing, first } = verifier.verdict().clone();
            prop_assert_eq!((ops, loads, differing, first), (all.0, all.1, 0, None));
        }
    }
}

/// A memory that gets one byte of one address wrong.
struct Liar(PagedFx, u64);

impl Memory for Liar {
    fn load<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        let mut value = self.0.load(addr)?;
        value[0] ^= u8::from(addr == self.1);
        Ok(value)
    }

    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Fault> {
        self.0.store(addr, value)
    }
}

#[test]
fn verification_says_which_load_was_wrong_and_where() {
    let policy = Policy::default();
    let ops = [
        Op::store(0x2000, Width::W4, 0x0102_0304),
        Op::load(0x2000, Width::W2),
        Op::store(0x3000, Width::W8, 7),
        Op::load(0x3000, Width::W8),
        Op::load(0x3000, Width::W8),
    ];
    for decoder in DECODERS {
        let mut verifier = Verifier::new(&policy);
        let mut liar = Player::new(Liar(PagedFx::new(&policy), 0x3000));
        // In two pieces: what it says counts from the start of the trace.
        let trace = encoded(&ops);
        let done = liar.verify(&trace[..30], 0, decoder, &mut verifier).unwrap();
        assert_eq!(done, 24);
        liar.verify(&trace[done..], done as u64, decoder, &mut verifier).unwrap();
        let verdict = verifier.verdict();
        assert_eq!((verdict.ops, verdict.loads, verdict.differing), (5, 3, 2));
        let first = verdict.first.clone().unwrap();
        assert_eq!((first.op, first.offset, first.addr, first.bytes), (3, 42, 0x3000, 8));
        assert_eq!(
            first.to_string(),
            "operation 3, at byte 42: load of 8 bytes at 0x3000: expected 0x7, found 0x6"
        );
    }
}

#[test]
fn verification_expects_the_faults_of_the_policies() {
    let trace = encoded(&[Op::store(0, Width::W1, 1), Op::store(0x9000, Width::W1, 1)]);
    let tight = Policy { page_limit: 4096, ..Policy::default() };
    let halt = Halt::Visitor { offset: 11, stop: Fault::PageLimit { addr: 0x9000, limit: 4096 } };
    let mut memory = (backend(BASE).unwrap().make)(&tight).unwrap();
    let mut verifier = Verifier::new(&tight);
    assert_eq!(memory.verify(&trace, 0, Decoder::Fast, &mut verifier), Err(halt));
    assert_eq!(verifier.verdict().differing, 0);

    let mut memory = (backend(BASE).unwrap().make)(&tight).unwrap();
    let mut verifier = Verifier::new(&Policy::default());
    assert_eq!(memory.verify(&trace, 0, Decoder::Fast, &mut verifier), Err(halt));
    assert_eq!(verifier.verdict().differing, 1);
}

#[test]
fn a_digest_depends_on_the_order_of_loads_and_counts_zeros() {
    let digest = |ops: &[Op]| {
        let mut memory = (backend("paged-fx").unwrap().make)(&Policy::default()).unwrap();
        memory.replay(&encoded(ops), 0, Decoder::Fast).unwrap();
        memory.digest()
    };
    let (set, a, b) = (Op::store(0, Width::W1, 9), Op::load(0, Width::W1), Op::load(1, Width::W1));
    assert_ne!(digest(&[set, a, b]), digest(&[set, b, a]));
    assert_ne!(digest(&[a]), digest(&[a, a]));
}

#[test]
fn the_noop_has_a_digest_of_addresses() {
    let digest = |addr| {
        let mut noop = (backend("noop").unwrap().make)(&Policy::default()).unwrap();
        noop.replay(&encoded(&[Op::load(addr, Width::W8)]), 0, Decoder::Fast).unwrap();
        noop.digest()
    };
    assert_ne!(digest(0x1000), digest(0x1008));
}

#[test]
fn the_base_is_in_the_table_and_an_unknown_name_is_answered_with_all() {
    assert_eq!(backend(BASE).unwrap().name, BASE);
    let message = backend("warp").unwrap_err();
    assert!(MEMORIES.iter().all(|row| message.contains(row.name)), "{message}");
    assert_eq!(MEMORIES[0].name, "noop");
}
