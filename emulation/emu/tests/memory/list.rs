//! The list of all memories under test.

use pagelab_emu::{
    Flat, Memory, Policy, Tlb,
    oracle::Quick,
    paged::{
        PageCache, PageMap, Paged, PagedAhash, PagedCache, PagedCacheNeg, PagedFx, PagedLast,
        PagedNohash, PagedSip, Sliced,
    },
    table::MEMORIES,
};

type Sip = std::collections::hash_map::RandomState;
type Ahash = std::hash::BuildHasherDefault<ahash::AHasher>;
type Nohash = nohash_hasher::BuildNoHashHasher<u64>;
type Fx = rustc_hash::FxBuildHasher;
type Last<S> = PageCache<1, false, S>;

/// What is done with each memory.
pub(crate) trait Job {
    /// With an empty memory of these policies from `make`; `None` where it has no such policies.
    fn run<M: Memory>(&mut self, name: &'static str, make: impl Fn(&Policy) -> Option<M>);

    /// The same with a memory that has all policies.
    fn full<M: Memory>(&mut self, name: &'static str, make: impl Fn(&Policy) -> M) {
        self.run(name, |policy| Some(make(policy)));
    }
}

/// Every memory that remembers, under its name in the table where it is there. A new one is one
/// line here; one that has snapshots also gets a line in `branches.rs`.
pub(crate) fn every(job: &mut impl Job) {
    job.full("tlb", |policy| Tlb::<1024>::new(*policy, false));
    job.full("Tlb<2>", |policy| Tlb::<2>::new(*policy, false));
    job.full("paged-last", PagedLast::new);
    job.full("paged-last:any-width", Sliced::<Last<Fx>>::new);
    job.full("paged-cache-4", PagedCache::<4>::new);
    job.full("paged-cache-4-neg", PagedCacheNeg::<4>::new);
    job.full("paged-cache-32-neg", PagedCacheNeg::<32>::new);
    if cfg!(miri) {
        // What follows has no unsafe code, or none of its own, or mappings that Miri has not.
        return;
    }
    // Small, so that its end is among the addresses.
    job.run("flat", |policy| Flat::new(*policy, 22).ok());
    job.full("oracle::Quick", Quick::new);
    job.full("paged-sip", PagedSip::new);
    job.full("paged-ahash", PagedAhash::new);
    job.full("paged-fx", PagedFx::new);
    job.full("paged-nohash", PagedNohash::new);
    job.full("paged-cache-8", PagedCache::<8>::new);
    job.full("paged-cache-16", PagedCache::<16>::new);
    job.full("paged-cache-32", PagedCache::<32>::new);
    job.full("paged-cache-8-neg", PagedCacheNeg::<8>::new);
    job.full("paged-cache-16-neg", PagedCacheNeg::<16>::new);
    job.full("paged-last-sip", Paged::<Last<Sip>>::new);
    job.full("paged-last-ahash", Paged::<Last<Ahash>>::new);
    job.full("paged-last-nohash", Paged::<Last<Nohash>>::new);
    job.full("paged-sip:any-width", Sliced::<PageMap<Sip>>::new);
    job.full("paged-ahash:any-width", Sliced::<PageMap<Ahash>>::new);
    job.full("paged-fx:any-width", Sliced::<PageMap<Fx>>::new);
    job.full("paged-nohash:any-width", Sliced::<PageMap<Nohash>>::new);
    job.full("paged-last-sip:any-width", Sliced::<Last<Sip>>::new);
    job.full("paged-last-ahash:any-width", Sliced::<Last<Ahash>>::new);
    job.full("paged-last-nohash:any-width", Sliced::<Last<Nohash>>::new);
}

/// Rows that are in no line above: their address space is smaller, or loads make pages.
const EXCUSED: &[&str] = &["peer-vm-memory", "paged-last:any-width-creating"];

#[test]
#[cfg_attr(miri, ignore = "under Miri not every memory is in the list")]
fn every_row_that_remembers_is_under_test() {
    struct Names(Vec<&'static str>);
    impl Job for Names {
        fn run<M: Memory>(&mut self, name: &'static str, make: impl Fn(&Policy) -> Option<M>) {
            assert!(make(&Policy::default()).is_some(), "{name} cannot be made");
            self.0.push(name);
        }
    }
    let mut names = Names(EXCUSED.to_vec());
    every(&mut names);
    for row in MEMORIES.iter().filter(|row| row.remembers) {
        assert!(names.0.contains(&row.name), "{} is in no line of `every`", row.name);
    }
}
