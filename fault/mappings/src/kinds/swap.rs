//! Swap-in: memory that was written, evicted to swap of the case's own, and is touched again.
//!
//! The one idea: eviction is proven, not assumed. `MADV_PAGEOUT` is a request; what counts is that
//! afterwards no page is in the page table or in the swap cache (`mincore`), that every page is in
//! swap and all in one space (`pagemap`), and that the space that was made for the case holds that
//! much (`/proc/swaps`). Only then does each touch have to read its page.
//!
//! With readahead (`page-cluster=default`) a fault may bring pages that others touch later; those
//! take a minor fault. Nobody knows beforehand which, so that loop asks `getrusage` between two
//! samples, outside the clock pair. A device that the kernel reads synchronously (zram) has no
//! readahead at all: `do_swap_page` goes past the swap cache (since Linux 4.15).
//!
//! It is not about reclaim: what the kernel chooses to evict, and what writing costs, is elsewhere.

use pagelab_bench::{Error, Kind, Need, Param, Read, Witness};
use pagelab_record::{Case, vocabulary::Check};
use pagelab_sys::{
    Area, SysError,
    counts::Counters,
    knobs::{SwapSpace, zram},
    loops::Access,
    machine::{
        Topology, Tree,
        proc::{InUse, in_use},
    },
    memory::{Scanner, Swapped, in_core},
    process::Pinned,
};

use super::anon::base_only;
use crate::{
    Called, Calls, Expectation, FaultKind, Stage,
    choices::{Content, SwapTo},
    needs::{NO_READAHEAD, Own, ZSWAP_OFF},
};

/// What only this kind reads.
pub const PARAMS: [Param; 4] = [
    Param::axis("swap", Kind::Choice(SwapTo::WORDS), "zram").help(
        "kind=swap: a zram device, or a swap file on a disk; made for the case, then removed",
    ),
    Param::axis(
        "algorithm",
        Kind::Choice(&["auto", "lzo-rle", "lzo", "lz4", "lz4hc", "zstd", "deflate", "842"]),
        "auto",
    )
    .help("kind=swap: how zram compresses; auto is the kernel's default"),
    Param::axis("page-cluster", Kind::Choice(&["0", "default"]), "0")
        .help("kind=swap: 0 reads the page that is missing and no other; default: as it is set"),
    Param::axis("content", Kind::Choice(Content::WORDS), "half").help(
        "kind=swap: what is swapped; half: every other 512 bytes random, the rest 16 bits; \
             alike: the same in every page",
    ),
];

/// Says which algorithm `auto` is, where a device is there to ask.
pub fn resolve(case: Case) -> Case {
    let to_zram = case.is("kind", "swap") && case.is("swap", "zram");
    if !(to_zram && case.is("algorithm", "auto")) {
        return case;
    }
    match zram::algorithms(&Tree::machine()).first() {
        Some(default) => case.with("algorithm", default),
        None => case,
    }
}

/// Bytes that one repetition touches where the case does not say: writing them out takes ten times
/// as long as reading them, and zram takes as much memory again.
pub const SIZE: u64 = 32 << 20;

/// A touch of a page that was swapped out.
pub(super) const SWAP: FaultKind = FaultKind {
    name: "swap",
    help: "store to a page that was swapped out: reads it back",
    allocates_tables: false,
    refuse: |asked| base_only(asked, "large folios are split or come back one by one"),
    needs: |asked| {
        // More than twice the size: a space that is half full gives its slots back at once, and
        // then a page that was only read would have to be written out again.
        let bytes = asked.size * 5 / 2 + (1 << 20);
        let mut needs = vec![ZSWAP_OFF.needed()];
        if !asked.swap.reads_ahead {
            needs.push(NO_READAHEAD.needed());
        }
        let algorithm = asked.swap.algorithm.clone();
        needs.push(match asked.swap.to {
            SwapTo::File => Own::SwapFile(bytes).needed(),
            SwapTo::Zram => Own::Zram { bytes, algorithm }.needed(),
        });
        needs
    },
    modules: &["zram", "lz4"],
    // What the zram of every kernel since 6.1 offers: what this one offers is not known there. What
    // is in a page decides how many instructions unpack it.
    in_machine: &[("algorithm", "lz4"), ("content", "alike")],
    stage: |asked, space, inputs| {
        let missing = || Error::Case("no swap space was made for this case".to_owned());
        let swap = inputs.swap().cloned().ok_or_else(missing)?;
        Ok(Box::new(Evicted {
            name: named(&swap),
            swap,
            content: asked.swap.content,
            pages: space.bytes() / 4096,
            scanner: Scanner::open()?,
            proof: Proof::default(),
            loop_: Loop { asks: asked.swap.reads_ahead, ..Loop::default() },
        }))
    },
    ..FaultKind::PLAIN
};

/// The space as claims name it.
fn named(swap: &SwapSpace) -> String {
    let path = swap.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    swap.algorithm.as_ref().map_or(path.clone(), |algorithm| format!("{path} ({algorithm})"))
}

/// Writes what is swapped out.
fn fill(content: Content, area: &Area) {
    let seeded = || fastrand::Rng::with_seed(0x7377_6170);
    let (mut random, mut at) = (seeded(), 0_u64);
    area.fill(|| {
        let is_small = at / 64 % 2 == 1;
        if content == Content::Alike && at.is_multiple_of(512) {
            random = seeded();
        }
        at += 1;
        match content {
            Content::Zero => 0,
            Content::Half | Content::Alike if is_small => random.u64(..) & 0xffff,
            _ => random.u64(..),
        }
    });
}

/// Memory that is in swap.
#[derive(Debug)]
struct Evicted {
    name: String,
    swap: SwapSpace,
    content: Content,
    pages: u64,
    scanner: Scanner,
    proof: Proof,
    loop_: Loop,
}

/// What was found before the touches.
#[derive(Debug, Default)]
struct Proof {
    in_core: u64,
    swapped: Swapped,
    used_kib: u64,
    others: Vec<InUse>,
    counters: Counters,
}

/// What a loop that asks was told.
#[derive(Debug, Default)]
struct Loop {
    asks: bool,
    minor: Vec<bool>,
    neither: u64,
}

/// Asks from every CPU in turn. What a disk has written waits in a batch of the CPU that took the
/// interrupt, and cannot be reclaimed from there; `MADV_PAGEOUT` empties that of its own CPU.
fn page_out_everywhere(area: &Area) -> Result<(), SysError> {
    for cpu in Topology::machine().cpus().online {
        // Where this process may not run it cannot ask; if that matters, the claims say so.
        if let Ok(_there) = Pinned::to(cpu) {
            area.page_out()?;
        }
    }
    Ok(())
}

/// Attempts at bringing every page out.
const ATTEMPTS: u32 = 12;

impl Evicted {
    /// Writes everything out until nothing is left in memory, or gives up: then the claims say so.
    fn evict(&mut self, area: &Area) -> Result<(), SysError> {
        for attempt in 0..ATTEMPTS {
            area.page_out()?;
            if attempt > 0 {
                page_out_everywhere(area)?;
            }
            self.proof.swapped = self.scanner.swapped(area)?;
            let mut cached = Vec::new();
            self.proof.in_core = in_core(area, |offset| cached.push(offset))?;
            if self.proof.in_core == 0 && self.proof.swapped.pages == self.pages {
                break;
            }
            // To a disk a page is written behind our back; it stays in the swap cache, from where
            // it goes when it is mapped, clean, and evicted once more.
            std::thread::sleep(std::time::Duration::from_millis(5) * (attempt + 1));
            for offset in cached {
                std::hint::black_box(area.word(offset));
            }
        }
        Ok(())
    }

    fn others(&self) -> Vec<InUse> {
        let all = in_use(&Tree::machine()).into_iter();
        let others = all.filter(|area| area.path != self.swap.path);
        // How much of them is in use is their owners' business.
        others.map(|area| InUse { used_kib: 0, ..area }).collect()
    }
}

impl Stage for Evicted {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        let others = self.others();
        fill(self.content, area);
        self.evict(area)?;
        let ours = in_use(&Tree::machine()).into_iter().find(|one| one.path == self.swap.path);
        self.proof.used_kib = ours.map_or(0, |ours| ours.used_kib);
        self.proof.others = others;
        self.proof.counters = Counters::read(None);
        self.loop_.minor.clear();
        Ok(())
    }

    fn expect(&self, first_touch: Expectation) -> Expectation {
        // A loop that asked knows of each touch what it took; the counts must add up to the same.
        let minor = self.loop_.minor.iter().filter(|minor| **minor).count() as u64;
        let major = first_touch.present.saturating_sub(minor);
        Expectation { faults: minor, major, ..first_touch }
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let Proof { in_core, swapped, used_kib, others, counters } = &self.proof;
        let name = &self.name;
        witness.expect(Check::InCoreBefore, 0, *in_core);
        witness.expect(Check::InSwapBefore, self.pages, swapped.pages);
        witness.expect(Check::SwapSpaces, 1, u64::from(swapped.spaces));
        let claim = format!("KiB of {name} in use before the touches, at least");
        witness.expect_at_least((Check::SwapInUse, &claim), self.pages * 4, *used_kib);
        let changed = u64::from(*others != self.others());
        witness.expect(Check::SwapOthersChanged, 0, changed);
        let moved = Counters::read(None).since(counters);
        let of = |counter: &str| moved.get(counter).unwrap_or(0);
        let major =
            self.expect(Expectation { present: self.pages, ..Expectation::default() }).major;
        // Linux 6.12 has the zero map and no counter for it yet: then zeros come from nowhere.
        if self.content != Content::Zero || moved.get("swpin_zero").is_some() || of("pswpin") > 0 {
            witness.expect_at_least(Check::SwapRead, major, of("pswpin") + of("swpin_zero"));
        }
        if self.loop_.asks {
            witness.expect(Check::TouchesWithoutFault, 0, self.loop_.neither);
        }
        witness.expect(Check::FromZswap, 0, of("zswpin"));
        witness.count("swapped_in_major", major);
        witness.count("swapped_in_from_device", of("pswpin").min(self.pages));
        witness.count("swapped_in_zero_map", of("swpin_zero").min(self.pages));
        Ok(())
    }

    fn others(&self) -> Option<(&'static str, &[bool])> {
        self.loop_.asks.then_some(("fault-readahead", &self.loop_.minor))
    }

    fn calls(&mut self, calls: Calls<'_>, record: &mut dyn FnMut(u64)) -> Called {
        let Loop { asks, minor, neither } = &mut self.loop_;
        if !*asks {
            return None;
        }
        let Calls { area, list, clock } = calls;
        minor.clear();
        minor.reserve(list.len());
        *neither = 0;
        area.sample_and_ask(list, Access::Write, clock, |ns, counted| {
            record(ns);
            minor.push(counted.major_faults == 0);
            *neither += u64::from(counted.major_faults + counted.minor_faults == 0);
        });
        Some(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::asked;

    #[test]
    fn a_case_asks_for_a_space_of_its_own_and_settings_that_it_relies_on() {
        let case = [("kind", "swap"), ("swap", "file"), ("size", "32m")]
            .into_iter()
            .fold(Case::default(), |case, (name, value)| case.with(name, value));
        let needs = (SWAP.needs)(&asked(&case));
        assert!(needs.contains(&NO_READAHEAD.needed()) && needs.contains(&ZSWAP_OFF.needed()));
        let Some(Own::SwapFile(bytes)) = needs.last().and_then(|need| need.of()) else { panic!() };
        assert!(*bytes > 2 * SIZE);
    }

    #[test]
    fn half_of_the_content_has_small_words() {
        use pagelab_sys::memory::{Backing, Layout};
        let area = Area::mapped(Layout::contiguous(8192), Backing::Anonymous, 4096).unwrap();
        fill(Content::Half, &area);
        let small = (0..1024).filter(|word| area.word(word * 8) <= 0xffff).count();
        assert_eq!(small, 512);
        assert!((64..128).all(|word| area.word(word * 8) <= 0xffff));
        assert_ne!(area.word(0), area.word(4096));
        fill(Content::Alike, &area);
        assert!((0..512).all(|word| area.word(word * 8) == area.word(4096 + word * 8)));
        fill(Content::Zero, &area);
        assert!((0..1024).all(|word| area.word(word * 8) == 0));
    }
}
