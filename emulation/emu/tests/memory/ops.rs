//! Operations at random, and what they give.

use pagelab_emu::{Absent, Edge, Fault, Kind, Memory, Policy, memory::PAGE_BYTES};
use proptest::prelude::*;

/// Bytes of an access that has a width.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Width {
    W1,
    W2,
    W4,
    W8,
    W16,
}

/// Calls a method with a width as its constant.
macro_rules! with_width {
    ($width:expr, $N:ident => $body:expr) => {
        match $width {
            Width::W1 => with_width!(@ 1, $N, $body),
            Width::W2 => with_width!(@ 2, $N, $body),
            Width::W4 => with_width!(@ 4, $N, $body),
            Width::W8 => with_width!(@ 8, $N, $body),
            Width::W16 => with_width!(@ 16, $N, $body),
        }
    };
    (@ $bytes:literal, $N:ident, $body:expr) => {{
        const $N: usize = $bytes;
        $body
    }};
}

/// One call of a memory's method.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Load(Width, u64),
    Fetch(Width, u64),
    Store(Width, u64, u128),
    LoadSeq(Width, u64, usize),
    Read(u64, usize),
    Write(u64, Vec<u8>),
    Fill(u64, u64, u8),
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Value(u128),
    Bytes(Vec<u8>),
    /// Values that came, and the fault that ended them.
    Values(Vec<u128>, Option<Fault>),
    Fault(Fault),
}

fn number<const N: usize>(value: [u8; N]) -> u128 {
    let mut all = [0; 16];
    all[..N].copy_from_slice(&value);
    u128::from_le_bytes(all)
}

fn value<const N: usize>(number: u128) -> [u8; N] {
    number.to_le_bytes()[..N].try_into().expect("at most 16 bytes")
}

impl Outcome {
    /// The same from a memory to which a fetch is a load.
    pub(crate) fn of_load(self) -> Self {
        let kind = Kind::Load;
        match self {
            Self::Fault(Fault::OutOfRange { addr, bytes, kind: Kind::Fetch }) => {
                Self::Fault(Fault::OutOfRange { addr, bytes, kind })
            }
            Self::Fault(Fault::Absent { addr, kind: Kind::Fetch }) => {
                Self::Fault(Fault::Absent { addr, kind })
            }
            other => other,
        }
    }
}

impl Op {
    /// Does it.
    pub(crate) fn apply(&self, memory: &mut impl Memory) -> Outcome {
        let done = |result: Result<(), Fault>| match result {
            Ok(()) => Outcome::Done,
            Err(fault) => Outcome::Fault(fault),
        };
        let loaded = |result: Result<u128, Fault>| match result {
            Ok(value) => Outcome::Value(value),
            Err(fault) => Outcome::Fault(fault),
        };
        match self {
            &Self::Load(width, addr) => {
                loaded(with_width!(width, N => memory.load::<N>(addr).map(number)))
            }
            &Self::Fetch(width, addr) => {
                loaded(with_width!(width, N => memory.fetch::<N>(addr).map(number)))
            }
            &Self::Store(width, addr, number) => {
                done(with_width!(width, N => memory.store::<N>(addr, value(number))))
            }
            &Self::LoadSeq(width, addr, count) => {
                let mut seen = Vec::new();
                let result = with_width!(width, N => memory.load_seq::<N>(
                    addr,
                    count,
                    |values: &[[u8; N]]| seen.extend(values.iter().map(|value| number(*value))),
                ));
                Outcome::Values(seen, result.err())
            }
            &Self::Read(addr, bytes) => {
                let mut to = vec![0xa5; bytes];
                match memory.read(addr, &mut to) {
                    Ok(()) => Outcome::Bytes(to),
                    Err(fault) => Outcome::Fault(fault),
                }
            }
            Self::Write(addr, bytes) => done(memory.write(*addr, bytes)),
            &Self::Fill(addr, bytes, value) => done(memory.fill(addr, bytes, value)),
        }
    }

    /// Whether it leaves the memory in a state that nobody specifies when it faults.
    fn is_partial(&self) -> bool {
        matches!(self, Self::Write(..) | Self::Fill(..))
    }
}

/// What each operation gives, up to the first that leaves an unspecified state.
pub(crate) fn outcomes(ops: &[Op], memory: &mut impl Memory) -> Vec<Outcome> {
    let mut all = Vec::new();
    for op in ops {
        let outcome = op.apply(memory);
        let ends = op.is_partial() && matches!(outcome, Outcome::Fault(_));
        all.push(outcome);
        if ends {
            break;
        }
    }
    all
}

/// Few pages, so that they meet again: some share a slot in caches of 2 to 1024 slots, some are
/// neighbours of each other, and the last of them is the neighbour of the first.
const PAGES: &[u64] = &[
    0,
    1,
    2,
    3,
    32,
    33,
    1023,
    1024,
    1025,
    (1 << 51) + 32,
    (1 << 52) - 1025,
    (1 << 52) - 2,
    (1 << 52) - 1,
];

/// Reads every page that operations meet again.
pub(crate) fn sweep() -> Vec<Op> {
    PAGES.iter().map(|page| Op::Read(page * PAGE_BYTES as u64, PAGE_BYTES)).collect()
}

pub(crate) fn addresses() -> impl Strategy<Value = u64> {
    let page = prop_oneof![20 => proptest::sample::select(PAGES), 1 => 0..1u64 << 52];
    let offset = prop_oneof![0..16u64, 4080..4096u64, 4095..4096u64, 0..4096u64];
    (page, offset).prop_map(|(page, offset)| page * PAGE_BYTES as u64 + offset)
}

fn widths() -> impl Strategy<Value = Width> {
    proptest::sample::select(&[Width::W1, Width::W2, Width::W4, Width::W8, Width::W16])
}

/// Lengths of slices: mostly short, sometimes over two page boundaries.
fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 0..40usize, 1 => 4090..4200usize, 1 => 8190..8200usize]
}

pub(crate) fn ops() -> impl Strategy<Value = Op> {
    // Slices are rare: one that faults ends a run.
    prop_oneof![
        8 => (widths(), addresses()).prop_map(|(width, addr)| Op::Load(width, addr)),
        2 => (widths(), addresses()).prop_map(|(width, addr)| Op::Fetch(width, addr)),
        8 => (widths(), addresses(), any::<u128>())
            .prop_map(|(width, addr, value)| Op::Store(width, addr, value)),
        2 => (widths(), addresses(), 0..600usize)
            .prop_map(|(width, addr, count)| Op::LoadSeq(width, addr, count)),
        2 => (addresses(), lengths()).prop_map(|(addr, bytes)| Op::Read(addr, bytes)),
        1 => (addresses(), lengths(), any::<u8>()).prop_map(|(addr, bytes, first)| {
            let values = (0..=250).map(|at| first.wrapping_add(at)).cycle();
            Op::Write(addr, values.take(bytes).collect())
        }),
        1 => (addresses(), lengths(), any::<u8>())
            .prop_map(|(addr, bytes, value)| Op::Fill(addr, bytes as u64, value)),
    ]
}

/// Limits: none, none that is ever reached, few pages, a part of a page, no page.
pub(crate) fn limits() -> impl Strategy<Value = u64> {
    let page = PAGE_BYTES as u64;
    let few = proptest::sample::select(vec![6 * page, 3 * page + 5, 2 * page, page, page - 1, 0]);
    prop_oneof![2 => Just(u64::MAX), 1 => Just(64 * page), 3 => few]
}

/// Every combination of the other two policies.
pub(crate) fn policies(page_limit: u64) -> [Policy; 4] {
    [
        Policy { edge: Edge::Trap, absent: Absent::Zero, page_limit },
        Policy { edge: Edge::Trap, absent: Absent::Fault, page_limit },
        Policy { edge: Edge::Wrap, absent: Absent::Zero, page_limit },
        Policy { edge: Edge::Wrap, absent: Absent::Fault, page_limit },
    ]
}

/// So many cases; few in an interpreter; as many as `PROPTEST_CASES` says where it is set.
pub(crate) fn cases(many: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(if cfg!(miri) { 2 } else { many }),
        // What failed is printed in its smallest form: to be kept as a test of its own.
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
