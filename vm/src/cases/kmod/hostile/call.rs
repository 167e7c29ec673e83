//! What a hostile caller may do, and how often.

use fastrand::Rng;

/// What a hostile caller does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Open,
    OpenShared,
    Close,
    Alloc,
    Prove,
    Fork,
    Garbage,
    Nowhere,
    Query,
    Info,
    Map,
    Unmap,
    Remap,
    Repage,
    Protect,
    Advise,
    Lock,
    CopyOut,
    CopyIn,
    Pin,
    Touch,
    Misuse,
    Walk,
}

/// How often each, in proportion.
const WEIGHTS: &[(Call, usize)] = &[
    (Call::Open, 30),
    (Call::OpenShared, 20),
    (Call::Close, 20),
    (Call::Alloc, 30),
    (Call::Prove, 200),
    (Call::Fork, 1),
    (Call::Garbage, 60),
    (Call::Nowhere, 20),
    (Call::Query, 20),
    (Call::Info, 10),
    (Call::Map, 180),
    (Call::Unmap, 30),
    (Call::Remap, 60),
    (Call::Repage, 15),
    (Call::Protect, 40),
    (Call::Advise, 40),
    (Call::Lock, 5),
    (Call::CopyOut, 80),
    (Call::CopyIn, 120),
    (Call::Pin, 20),
    (Call::Touch, 2),
    (Call::Misuse, 5),
    (Call::Walk, 3),
];

impl Call {
    pub(super) fn roll(dice: &mut Rng) -> Self {
        let all: usize = WEIGHTS.iter().map(|(_, weight)| weight).sum();
        let mut rest = dice.usize(..all);
        for (call, weight) in WEIGHTS {
            if rest < *weight {
                return *call;
            }
            rest -= weight;
        }
        Self::Info
    }
}
