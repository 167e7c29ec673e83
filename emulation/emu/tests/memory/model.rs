//! Every result and every fault of every memory, under every policy, is the oracle's.

use pagelab_emu::{Memory, Policy};
use proptest::prelude::*;

use crate::{
    list::{Job, every},
    naive::Naive,
    ops::{Op, Outcome, cases, limits, ops, outcomes, policies, sweep},
};

/// Holds each memory to what the oracle gave.
struct Compare<'a> {
    ops: &'a [Op],
    policy: Policy,
    expected: Vec<Outcome>,
}

impl Job for Compare<'_> {
    fn run<M: Memory>(&mut self, name: &'static str, make: impl Fn(&Policy) -> Option<M>) {
        let Some(mut memory) = make(&self.policy) else { return };
        let found = plain(outcomes(self.ops, &mut memory));
        if found == self.expected {
            return;
        }
        let pairs = self.expected.iter().zip(&found);
        let at = pairs.take_while(|(expected, found)| expected == found).count();
        let (op, policy) = (&self.ops[at], self.policy);
        let told = |all: &[Outcome]| format!("{:?}", all.get(at)).chars().take(200).collect();
        let (expected, found): (String, String) = (told(&self.expected), told(&found));
        panic!("{name}, {policy:?}: operation {at}, {op:?}: expected {expected}, found {found}");
    }
}

/// A fetch may be a load to a memory that knows no permissions; `branches.rs` has the others.
fn plain(outcomes: Vec<Outcome>) -> Vec<Outcome> {
    outcomes.into_iter().map(Outcome::of_load).collect()
}

fn compare(ops: &[Op], page_limit: u64) {
    for policy in policies(page_limit) {
        let mut ops = ops.to_vec();
        // To see every byte takes longest: once is enough.
        if policy == (Policy { page_limit, ..Policy::default() }) && !cfg!(miri) {
            ops.extend(sweep());
        }
        let expected = plain(outcomes(&ops, &mut Naive::new(&policy)));
        every(&mut Compare { ops: &ops, policy, expected });
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn a_memory_does_what_the_oracle_does(
        ops in proptest::collection::vec(ops(), 1..if cfg!(miri) { 12 } else { 80 }),
        limit in limits(),
    ) {
        compare(&ops, limit);
    }
}
