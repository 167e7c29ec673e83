//! The fast decoder and the bounds-checked one do the same with any bytes.
//!
//! The one idea: everything that either hands out is written down, and where it stops; the two
//! lists are equal for good traces, spoilt ones, random bytes, and visitors that stop early.

use pagelab_trace::{
    Access, Halt, Op, RecordError, Visit, Width, decode,
    op::wide,
    raw::{self, HEAD_BYTES, RECORD_BYTES_MAX},
};
use proptest::prelude::*;

/// Writes down what it sees, up to a number of operations.
#[derive(Debug, PartialEq, Eq)]
struct Scribe {
    seen: Vec<Op>,
    most: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Enough(usize);

impl Scribe {
    fn new(most: usize) -> Self {
        Self { seen: Vec::new(), most }
    }

    fn note(&mut self, op: Op) -> Result<(), Enough> {
        if self.seen.len() == self.most {
            return Err(Enough(self.most));
        }
        self.seen.push(op);
        Ok(())
    }
}

impl Visit for Scribe {
    type Stop = Enough;

    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Enough> {
        self.note(Op::load(addr, Width::of(N).expect("a width")))
    }

    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Enough> {
        self.note(Op::store(addr, Width::of(N).expect("a width"), wide(value)))
    }
}

type Done = Result<usize, Halt<Enough>>;

/// What both decoders make of these bytes; they must agree.
fn both(bytes: &[u8], offset: u64, most: usize) -> (Done, Vec<Op>) {
    // A copy of exactly this length, so that a read beyond it can be seen by Miri and sanitizers.
    let bytes: Box<[u8]> = bytes.into();
    let (mut fast, mut safe) = (Scribe::new(most), Scribe::new(most));
    let found = decode::visit(&bytes, offset, &mut fast);
    let expected = raw::visit(&bytes, offset, &mut safe);
    assert_eq!(found, expected);
    assert_eq!(fast, safe);
    (found, fast.seen)
}

fn ops() -> impl Strategy<Value = Op> {
    let access = prop_oneof![Just(None), any::<u64>().prop_map(Some)];
    let fields = (any::<u64>(), proptest::sample::select(&Width::ALL), access);
    fields.prop_map(|(addr, width, value)| match value {
        Some(value) => Op::store(addr, width, value),
        None => Op::load(addr, width),
    })
}

fn traces() -> impl Strategy<Value = Vec<Op>> {
    proptest::collection::vec(ops(), 0..60)
}

fn encoded(ops: &[Op]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for op in ops {
        raw::encode(*op, &mut bytes);
    }
    bytes
}

/// Bytes that are often, but not always, the start of a record.
fn almost_records() -> impl Strategy<Value = Vec<u8>> {
    let start = (prop_oneof![20 => 1..3u8, 1 => any::<u8>()], widths());
    let record = (start, proptest::collection::vec(any::<u8>(), 8..17));
    let record = record.prop_map(|((op, width), rest)| {
        let value = if op == raw::STORE { usize::from(width).min(8) } else { 0 };
        let mut bytes = vec![op, width];
        bytes.extend(rest.into_iter().chain([0; 8]).take(8 + value));
        bytes
    });
    proptest::collection::vec(record, 0..40).prop_map(|records| records.concat())
}

fn widths() -> impl Strategy<Value = u8> {
    prop_oneof![
        20 => proptest::sample::select(&[1u8, 2, 4, 8]),
        1 => any::<u8>(),
    ]
}

fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 8 } else { 512 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_trace_is_decoded_into_what_was_encoded(ops in traces(), offset in 0..1u64 << 50) {
        let bytes = encoded(&ops);
        let (done, seen) = both(&bytes, offset, usize::MAX);
        prop_assert_eq!(done, Ok(bytes.len()));
        prop_assert_eq!(seen, ops);
    }

    #[test]
    fn a_cut_trace_ends_before_the_cut_record(
        ops in traces(),
        cut in any::<prop::sample::Index>(),
    ) {
        let bytes = encoded(&ops);
        let cut = cut.index(bytes.len() + 1);
        let (done, seen) = both(&bytes[..cut], 0, usize::MAX);
        let done = done.unwrap();
        prop_assert_eq!(&encoded(&seen), &bytes[..done]);
        prop_assert!(cut - done < RECORD_BYTES_MAX);
        // The rest of it continues where this stopped.
        let (rest, tail) = both(&bytes[done..], done as u64, usize::MAX);
        prop_assert_eq!(rest, Ok(bytes.len() - done));
        prop_assert_eq!([seen, tail].concat(), ops);
    }

    #[test]
    fn both_decoders_stop_at_the_same_bad_record(bytes in almost_records(), offset in 0..99u64) {
        let (done, seen) = both(&bytes, offset, usize::MAX);
        let good = encoded(&seen).len();
        match done {
            Ok(done) => prop_assert_eq!(done, good),
            Err(Halt::Record(RecordError::Op { offset: at, op })) => {
                prop_assert_eq!((at, op), (offset + good as u64, bytes[good]));
            }
            Err(Halt::Record(RecordError::Width { offset: at, width })) => {
                prop_assert_eq!((at, width), (offset + good as u64, bytes[good + 1]));
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_decoders_do_the_same_with_random_bytes(
        bytes in proptest::collection::vec(prop_oneof![0..9u8, any::<u8>()], 0..200),
        offset in any::<u32>(),
    ) {
        // They agree, or it panics.
        let _ = both(&bytes, u64::from(offset), usize::MAX);
    }

    #[test]
    fn a_visitor_stops_both_decoders_at_the_record_it_refuses(
        ops in traces(),
        most in any::<prop::sample::Index>(),
        offset in 0..99u64,
    ) {
        let most = most.index(ops.len() + 1);
        let (done, seen) = both(&encoded(&ops), offset, most);
        prop_assert_eq!(&seen, &ops[..most]);
        if most < ops.len() {
            let at = offset + encoded(&ops[..most]).len() as u64;
            prop_assert_eq!(done, Err(Halt::Visitor { offset: at, stop: Enough(most) }));
        }
    }
}

#[test]
fn every_record_is_decoded_wherever_the_bytes_end() {
    for width in Width::ALL {
        for op in [Op::load(0x0102_0304, width), Op::store(u64::MAX, width, u64::MAX - 7)] {
            // As the first record, followed by more and more.
            let mut bytes = encoded(&[op]);
            let length = bytes.len();
            for trailing in 0..RECORD_BYTES_MAX {
                let (_, seen) = both(&bytes, 0, 1);
                assert_eq!(seen, [op], "{trailing} bytes after it");
                bytes.push(raw::LOAD);
            }
            for short in 0..length {
                assert_eq!(both(&bytes[..short], 0, usize::MAX), (Ok(0), vec![]));
            }
        }
    }
}

#[test]
fn every_first_pair_of_bytes_is_judged_alike() {
    // Few, but both operations, in an interpreter.
    let last = if cfg!(miri) { 3 } else { u8::MAX };
    for (op, width) in (0..=last).flat_map(|op| [0, 1, 2, 3, 4, 8, 16, 255].map(|w| (op, w))) {
        for length in [HEAD_BYTES - 1, HEAD_BYTES, RECORD_BYTES_MAX, RECORD_BYTES_MAX + 1] {
            let mut bytes = vec![0; length];
            (bytes[0], bytes[1]) = (op, width);
            let (done, seen) = both(&bytes, 0, 1);
            let width_known = [1, 2, 4, 8].contains(&width);
            let value = if op == raw::STORE { usize::from(width) } else { 0 };
            let expected = match op {
                _ if length < HEAD_BYTES => Ok(0),
                raw::LOAD | raw::STORE if !width_known => {
                    Err(RecordError::Width { offset: 0, width })
                }
                raw::LOAD | raw::STORE if length < HEAD_BYTES + value => Ok(0),
                raw::LOAD | raw::STORE => Ok(HEAD_BYTES + value),
                _ => Err(RecordError::Op { offset: 0, op }),
            };
            assert_eq!(done, expected.map_err(Halt::Record));
            assert_eq!(seen.len(), usize::from(expected.is_ok_and(|bytes| bytes > 0)));
        }
    }
}

#[test]
fn a_store_keeps_the_low_bytes_of_its_value() {
    let op = Op::store(0, Width::W2, 0x1234_5678);
    assert_eq!(op.access, Access::Store(0x5678));
    assert_eq!(both(&encoded(&[op]), 0, 9).1, [op]);
}
