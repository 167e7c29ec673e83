//! Memories that can go back and that can split: snapshots, forks, marks and permissions.
//!
//! The one idea: the model copies everything, always. A [`Branch`] that shares pages must not let
//! it show.

use std::collections::{BTreeMap, BTreeSet};

use pagelab_emu::{
    Edge, Fault, Kind, Memory, Permissions, Policy, Snapshot, Tlb,
    memory::{PAGE_BYTES, page_of},
};
use proptest::prelude::*;

use crate::{
    naive::Naive,
    ops::{Op, Outcome, addresses, cases, ops, sweep},
};

/// A memory that has all of it.
trait Branch: Memory + Sized {
    type Snapshot;
    fn empty(policy: &Policy) -> Self;
    fn snapshot(&mut self) -> Self::Snapshot;
    fn restore(&mut self, snapshot: &Self::Snapshot);
    fn fork(&mut self) -> Self;
    fn mark(&mut self);
    /// Pages written and pages touched since the mark.
    fn marked(&self) -> (Vec<u64>, Vec<u64>);
    fn protect(&mut self, addr: u64, bytes: u64, permissions: Permissions);
}

impl<const N: usize> Branch for Tlb<N> {
    type Snapshot = Snapshot;

    fn empty(policy: &Policy) -> Self {
        Self::new(*policy, false)
    }

    fn snapshot(&mut self) -> Snapshot {
        self.snapshot()
    }

    fn restore(&mut self, snapshot: &Snapshot) {
        self.restore(snapshot);
    }

    fn fork(&mut self) -> Self {
        self.fork()
    }

    fn mark(&mut self) {
        self.mark();
    }

    fn marked(&self) -> (Vec<u64>, Vec<u64>) {
        (self.written_pages(), self.touched_pages())
    }

    fn protect(&mut self, addr: u64, bytes: u64, permissions: Permissions) {
        self.protect(addr, bytes, permissions);
    }
}

/// The oracle with permissions, and with a memory for pages.
#[derive(Clone)]
struct Model {
    memory: Naive,
    permissions: BTreeMap<u64, Permissions>,
    written: Option<BTreeSet<u64>>,
    touched: Option<BTreeSet<u64>>,
}

impl Model {
    /// The numbers of the pages of an access, and the first address in each.
    fn parts(addr: u64, bytes: u64) -> BTreeMap<u64, u64> {
        let mut parts = BTreeMap::new();
        for addr in (0..bytes).map(|at| addr.wrapping_add(at)) {
            parts.entry(page_of(addr)).or_insert(addr);
        }
        parts
    }

    /// Does it where the pages allow it, and notes it.
    fn guarded<T>(
        &mut self,
        (addr, bytes, kind): (u64, usize, Kind),
        access: impl FnOnce(&mut Naive) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let parts = Self::parts(addr, bytes as u64);
        let denied = |(page, addr): (&u64, &u64)| {
            let allowed = self.permissions.get(page).is_none_or(|known| known.allow(kind));
            (!allowed).then_some(*addr)
        };
        // The edge comes first, then the pages in the order of the access.
        let mut denied: Vec<u64> = parts.iter().filter_map(denied).collect();
        denied.sort_by_key(|at| at.wrapping_sub(addr));
        if let Some(addr) = denied.first() {
            let mut probe = self.memory.clone();
            return match access(&mut probe) {
                Err(over @ Fault::OutOfRange { .. }) => Err(over),
                _ => Err(Fault::Denied { addr: *addr, kind }),
            };
        }
        let done = access(&mut self.memory)?;
        if kind == Kind::Store {
            self.written.iter_mut().for_each(|pages| pages.extend(parts.keys()));
        }
        self.touched.iter_mut().for_each(|pages| pages.extend(parts.keys()));
        Ok(done)
    }
}

impl Memory for Model {
    fn load<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        self.guarded((addr, N, Kind::Load), |memory| memory.load(addr))
    }

    fn fetch<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        self.guarded((addr, N, Kind::Fetch), |memory| memory.fetch(addr))
    }

    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Fault> {
        self.guarded((addr, N, Kind::Store), |memory| memory.store(addr, value))
    }

    fn read(&mut self, addr: u64, to: &mut [u8]) -> Result<(), Fault> {
        self.guarded((addr, to.len(), Kind::Load), |memory| memory.read(addr, to))
    }

    fn write(&mut self, addr: u64, from: &[u8]) -> Result<(), Fault> {
        self.guarded((addr, from.len(), Kind::Store), |memory| memory.write(addr, from))
    }

    fn fill(&mut self, addr: u64, bytes: u64, value: u8) -> Result<(), Fault> {
        let about = (addr, usize::try_from(bytes).expect("a short slice"), Kind::Store);
        self.guarded(about, |memory| memory.fill(addr, bytes, value))
    }
}

impl Branch for Model {
    type Snapshot = (Naive, BTreeMap<u64, Permissions>);

    fn empty(policy: &Policy) -> Self {
        let (permissions, written, touched) = (BTreeMap::new(), None, None);
        Self { memory: Naive::new(policy), permissions, written, touched }
    }

    fn snapshot(&mut self) -> Self::Snapshot {
        (self.memory.clone(), self.permissions.clone())
    }

    fn restore(&mut self, snapshot: &Self::Snapshot) {
        (self.memory, self.permissions) = snapshot.clone();
        // What happened since the mark did not happen.
        self.written.iter_mut().for_each(BTreeSet::clear);
        self.touched.iter_mut().for_each(BTreeSet::clear);
    }

    fn fork(&mut self) -> Self {
        Self { written: None, touched: None, ..self.clone() }
    }

    fn mark(&mut self) {
        (self.written, self.touched) = (Some(BTreeSet::new()), Some(BTreeSet::new()));
    }

    fn marked(&self) -> (Vec<u64>, Vec<u64>) {
        let all = |pages: &Option<BTreeSet<u64>>| pages.iter().flatten().copied().collect();
        (all(&self.written), all(&self.touched))
    }

    fn protect(&mut self, addr: u64, bytes: u64, permissions: Permissions) {
        for page in Self::parts(addr, bytes).into_keys() {
            self.permissions.insert(page, permissions);
        }
    }
}

/// One thing done to the branch in hand, or another branch taken in hand.
#[derive(Debug, Clone)]
enum Step {
    Access(Op),
    Snapshot,
    Restore(prop::sample::Index),
    Fork,
    Switch(prop::sample::Index),
    Drop(prop::sample::Index),
    Mark,
    Marked,
    Protect(u64, u64, Permissions),
}

fn steps() -> impl Strategy<Value = Step> {
    let any_permissions = (any::<bool>(), any::<bool>(), any::<bool>());
    let permissions = prop_oneof![
        Just(Permissions::ALL),
        any_permissions.prop_map(|(load, store, fetch)| Permissions { load, store, fetch }),
    ];
    prop_oneof![
        30 => ops().prop_map(Step::Access),
        2 => Just(Step::Snapshot),
        3 => any::<prop::sample::Index>().prop_map(Step::Restore),
        2 => Just(Step::Fork),
        4 => any::<prop::sample::Index>().prop_map(Step::Switch),
        1 => any::<prop::sample::Index>().prop_map(Step::Drop),
        1 => Just(Step::Mark),
        2 => Just(Step::Marked),
        1 => (addresses(), 0..5000u64, permissions).prop_map(|(addr, bytes, permissions)| {
            Step::Protect(addr.min(u64::MAX - bytes), bytes, permissions)
        }),
    ]
}

/// What a step gave, where it gives something.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Nothing,
    Access(Outcome),
    Marked(Vec<u64>, Vec<u64>),
}

/// All branches and snapshots, and the branch in hand.
struct Tree<B: Branch> {
    branches: Vec<B>,
    snapshots: Vec<B::Snapshot>,
    hand: usize,
}

impl<B: Branch> Tree<B> {
    fn step(&mut self, step: &Step) -> Seen {
        let branch = &mut self.branches[self.hand];
        match step {
            Step::Access(op) => return Seen::Access(op.apply(branch)),
            Step::Snapshot => self.snapshots.push(branch.snapshot()),
            Step::Restore(_) if self.snapshots.is_empty() => {}
            Step::Restore(index) => branch.restore(index.get(&self.snapshots)),
            Step::Fork => {
                let fork = branch.fork();
                self.branches.push(fork);
            }
            Step::Switch(index) => self.hand = index.index(self.branches.len()),
            Step::Drop(index) => {
                if self.branches.len() > 1 {
                    self.branches.swap_remove(index.index(self.branches.len()));
                    self.hand = 0;
                }
            }
            Step::Mark => branch.mark(),
            Step::Marked => {
                let (written, touched) = branch.marked();
                return Seen::Marked(written, touched);
            }
            Step::Protect(addr, bytes, permissions) => branch.protect(*addr, *bytes, *permissions),
        }
        Seen::Nothing
    }
}

/// A fault may come after some of the bytes: then what is held and noted is not specified.
fn is_unspecified(step: &Step, seen: &Seen) -> bool {
    let faulted = matches!(seen, Seen::Access(Outcome::Fault(_) | Outcome::Values(_, Some(_))));
    faulted && !matches!(step, Step::Access(Op::Load(..) | Op::Fetch(..) | Op::Store(..)))
}

fn all_seen<B: Branch>(policy: &Policy, steps: &[Step]) -> Vec<Seen> {
    let mut tree = Tree::<B> { branches: vec![B::empty(policy)], snapshots: vec![], hand: 0 };
    let mut all = Vec::new();
    for step in steps {
        let seen = tree.step(step);
        let ends = is_unspecified(step, &seen);
        all.push(seen);
        if ends {
            return all;
        }
    }
    if cfg!(miri) {
        return all;
    }
    for mut branch in tree.branches {
        branch.protect(0, 0x1000, Permissions::ALL);
        all.extend(sweep().iter().map(|op| Seen::Access(op.apply(&mut branch))));
    }
    all
}

fn compare<B: Branch>(policy: &Policy, steps: &[Step], expected: &[Seen]) {
    let found = all_seen::<B>(policy, steps);
    for (at, (expected, found)) in expected.iter().zip(&found).enumerate() {
        assert!(expected == found, "{at}, {:?}: {expected:?} {found:?}", steps.get(at));
    }
    assert_eq!(expected.len(), found.len());
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn what_a_branch_does_stays_in_it(
        steps in proptest::collection::vec(steps(), 1..if cfg!(miri) { 12 } else { 100 }),
        wraps in any::<bool>(),
    ) {
        let edge = if wraps { Edge::Wrap } else { Edge::Trap };
        let policy = Policy { edge, ..Policy::default() };
        let expected = all_seen::<Model>(&policy, &steps);
        // A memory that has snapshots is one line here.
        compare::<Tlb<2>>(&policy, &steps, &expected);
        compare::<Tlb<1024>>(&policy, &steps, &expected);
    }
}

#[test]
fn a_fork_counts_its_own_pages() {
    let page = PAGE_BYTES as u64;
    let policy = Policy { page_limit: 2 * page, ..Policy::default() };
    let mut parent = Tlb::<2>::new(policy, false);
    parent.store_u8(0, 1).unwrap();
    let mut child = parent.fork();
    // To copy a shared page makes no page more.
    child.store_u8(0, 2).unwrap();
    child.store_u8(page, 2).unwrap();
    let full = Err(Fault::PageLimit { addr: 2 * page, limit: 2 * page });
    assert_eq!(child.store_u8(2 * page, 2), full);
    parent.store_u8(5 * page, 1).unwrap();
    assert_eq!(parent.store_u8(6 * page, 1).map_err(|_| ()), Err(()));
    assert_eq!((parent.load_u8(0), child.load_u8(0)), (Ok(1), Ok(2)));
}
