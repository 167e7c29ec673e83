//! `memtype/bandwidth`: what WB, UC-, WC and WT memory do to a stream of stores or loads.
//!
//! A repetition is `iterations` rounds over one region. In round `k` word `i` becomes `i + k`, so
//! that every round writes other values; verifying them is outside the clock. Three times are taken
//! of each round: `issue` ends when the last store was issued, `test` where the named test ends
//! (with its fence, if it has one), `completion` when an `sfence` and an `mfence` after everything
//! have retired. A test without a fence says nothing about when its stores arrive; `completion`
//! does.
//!
//! It measures memory types, not DRAM: the default of 16 MiB, the original's, fits many a
//! last-level cache, and WB memory is then as fast as that cache.

use std::{cell::RefCell, rc::Rc};

use pagelab_bench::{
    Kind, Param,
    inputs::Inputs,
    need::{Need, Needed},
    refusal::{Refusal, listed, refuse},
    workload::{Error, Trial, Workload},
};
use pagelab_record::Case;
use pagelab_sys::{
    memtype::{Engine, MemoryType, Width},
    process::sched::Pinned,
};

use super::{
    cost,
    params::{self, count},
    point::{Fence, Loads, Point, Stores, Verify},
    rounds::{Reading, Setup, Shared, Storing},
    signature,
    space::{self, Space},
};
use crate::memtype::needs::{LoadWidth, Module, StoreWidth, of_space};

const PARAMS: &[Param] = &[
    Param::axis(
        "test",
        Kind::Choice(&[
            "write",
            "write_nofence",
            "write_ucfence",
            "ntwrite",
            "ntwrite_nofence",
            "ntwrite_nofence_deferred",
            "ntwrite_ucfence",
            "read",
            "ntwrite_readback",
            "unnamed",
        ]),
        "write",
    )
    .help(
        "a test of memcachetest; what follows from it can be said \
               otherwise below, and a test without its name is unnamed. The …nofence tests end \
               when the last store was issued: see the series completion beside them",
    ),
    params::TYPE,
    Param::axis("store", Kind::Choice(&["auto", "none", "plain", "nt"]), "auto")
        .help("none, ordinary stores, or non-temporal ones; auto: what the test says"),
    Param::axis(
        "fence",
        Kind::Choice(&["auto", "none", "sfence", "uc-store", "uc-store-load"]),
        "auto",
    )
    .help("what ends a round: nothing, sfence, a store to UC memory, or that and a load of it"),
    Param::axis("verify", Kind::Choice(&["auto", "each-round", "deferred"]), "auto")
        .help("compare every word after each round, or after the last one; not timed"),
    Param::axis("load", Kind::Choice(&["auto", "none", "plain", "nt"]), "auto").help(
        "none, ordinary loads, or movntdqa, which makes WC memory readable; with stores: \
               read back and compared, inside the clock",
    ),
    Param::axis("width", Kind::Choice(&["auto", "8", "16", "32", "64"]), "auto").help(
        "bytes of a store or load; auto: 8, and 32 or 16 for non-temporal ones (with AVX2 or \
               without); what an nt store wrote, plain loads read back by 8",
    ),
    Param::axis("size", Kind::Size, "16m").help("memory that a round covers, all threads together"),
    Param::axis("iterations", Kind::Count { max: 100_000, auto: false }, "50")
        .help("rounds in a repetition; a repetition with uc takes 3 s for 50 rounds of 16m"),
    Param::axis("threads", Kind::Count { max: 4096, auto: false }, "1")
        .help("threads, each with its share of the memory"),
    params::CPU,
    params::NODE,
    params::FRAMES,
    params::LEAF,
    Param::axis("fence-word", Kind::Choice(&["own", "overlap"]), "own").help(
        "own: a page of its own; overlap: word 511 of the measured uc memory, which is then \
               skipped, as the original did",
    ),
    Param::axis("sum", Kind::Choice(&["reset", "accumulated"]), "reset").help(
        "reset: the sum of the loads; accumulated: started from the last verification's sum, \
               as the original printed it",
    ),
    Param::arms("arms", Kind::Choice(&["pagelab", "c"]), "pagelab")
        .help("c adds a C loop of the same width as an arm of the same case"),
    Param::axis("lie", Kind::Choice(&["none", "wb", "huge", "stale"]), "none").help(
        "do something else than the case says; the record must come out invalid: wb memory \
               of the module for another type, huge leaves for 4k, or values of another round",
    ),
];

/// What the case asks for.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
struct Asked {
    point: Point,
    space: Space,
    width: Width,
    workers: usize,
    engines: Vec<Engine>,
    cpus: Option<Vec<usize>>,
    is_uc: bool,
    /// The fence word lies in the measured memory.
    overlaps: bool,
    accumulates: bool,
    lies_truly: bool,
}

impl Asked {
    fn of(case: &Case) -> Self {
        let is = |name: &str, value: &str| case.get(name) == Some(value);
        Self {
            point: Point::of(case),
            space: Space::of(case),
            width: width(case),
            workers: space::workers(case),
            engines: arms(case),
            cpus: case.get("cpu").and_then(pagelab_sys::machine::topology::parse_list),
            is_uc: is("type", "uc"),
            overlaps: is("fence-word", "overlap"),
            accumulates: is("sum", "accumulated"),
            lies_truly: lie_is_true(case),
        }
    }

    fn may_overlap(&self) -> bool {
        self.is_uc && (self.point.has_uc_fence() || self.point.is_read())
    }
}

/// What is turned away beside what concerns the memory.
const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.point.is_read() && asked.point.load == Loads::None,
        "store=none with load=none",
        "nothing would be measured; say one of them",
    ),
    Refusal::new(
        |asked| asked.point.is_read() && asked.point.fence != Fence::None,
        "a fence with store=none",
        "there is no store that it would wait for; use fence=none",
    ),
    Refusal::new(
        |asked| asked.point.load == Loads::NonTemporal && asked.width.bytes() == 8,
        "load=nt with width=8",
        "movntdqa loads 16 bytes or more; use width=16",
    ),
    Refusal::new(
        |asked| asked.point.load != Loads::None && asked.point.verify == Verify::Deferred,
        "verify=deferred with a load",
        "what is loaded is verified in the round that loads it; use verify=each-round",
    ),
    Refusal::new(
        |asked| asked.overlaps && !asked.may_overlap(),
        "fence-word=overlap without type=uc and a uc fence (or a read of what one left)",
        "only there did the original's fence word lie in the measured memory; use fence-word=own",
    ),
    Refusal::new(
        |asked| asked.accumulates && !asked.point.is_read(),
        "sum=accumulated with stores",
        "only the read test printed such a sum; use test=read",
    ),
    Refusal::new(
        |asked| asked.engines.contains(&Engine::C) && asked.overlaps && !asked.point.is_read(),
        "arms=c with stores and fence-word=overlap",
        "the C loop skips no word; use fence-word=own",
    ),
    Refusal::new(
        |asked| !asked.space.bytes.is_multiple_of(4096 * asked.workers as u64),
        "size not divisible by 4k × threads",
        "every thread has whole pages; use a multiple of that",
    ),
    Refusal::new(
        |asked| asked.cpus.as_ref().is_some_and(|cpus| cpus.len() < asked.workers),
        "cpu with fewer CPUs than threads",
        "two threads on a CPU measure the scheduler",
    ),
    Refusal::new(
        |asked| asked.lies_truly,
        "a lie that would be the truth, or that this memory or test cannot tell",
        "nothing would be proven",
    ),
];

/// See the module's documentation.
#[derive(Debug)]
pub struct Bandwidth;

impl Workload for Bandwidth {
    fn name(&self) -> &'static str {
        "memtype/bandwidth"
    }

    fn summary(&self) -> &'static str {
        "stores and loads of WB, UC, WC and WT memory: every width, fence and way of storing"
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
    }

    fn resolve(&self, case: Case) -> Case {
        let point = Point::of(&case);
        let bytes = params::bytes(&case, "size");
        let case = Space::resolve(point.put(case), bytes);
        if case.get("width") == Some("auto") {
            let width = automatic_width(point).bytes().to_string();
            return case.with("width", &width);
        }
        case
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        let asked = Asked::of(case);
        refuse(REFUSALS, &asked)?;
        refuse(space::REFUSALS, &asked.space)
    }

    fn refusals(&self) -> Vec<(&'static str, &'static str)> {
        listed(REFUSALS).chain(listed(space::REFUSALS)).collect()
    }

    fn needs(&self, case: &Case) -> Vec<Needed> {
        let (point, space) = (Point::of(case), Space::of(case));
        let mut needs = of_space(&space);
        if point.has_uc_fence() && has_own_fence_word(case) {
            needs.push(Module.needed());
        }
        let nt = point.store == Stores::NonTemporal;
        if !point.is_read() {
            needs.push(StoreWidth { nt, bytes: width(case).bytes() }.needed());
        }
        if point.load != Loads::None {
            let nt = point.load == Loads::NonTemporal;
            needs.push(LoadWidth { nt, bytes: load_width(case).bytes() }.needed());
        }
        needs.push(space::cpu_needs(case, "cpu", space::workers(case)));
        needs
    }

    fn footprint(&self, case: &Case) -> u64 {
        Space::of(case).bytes + 4096
    }

    fn seconds(&self, case: &Case) -> f64 {
        cost::seconds(case, arms(case).len(), width(case), load_width(case))
    }

    fn smallest(&self) -> &'static [(&'static str, &'static str)] {
        &[("size", "64k"), ("iterations", "3")]
    }

    fn prepare(&self, case: &Case, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let (point, space) = (Point::of(case), Space::of(case));
        let cpus = space::cpus_of(case, "cpu", space::workers(case));
        if let Some(cpu) = cpus.first() {
            // The process ends with the case: its first thread stays where it is.
            std::mem::forget(Pinned::to(*cpu)?);
        }
        let mut plot = space.lying(case.get("lie").unwrap_or("none")).plot()?;
        let overlaps = !has_own_fence_word(case);
        let mut fence_word = if point.has_uc_fence() && !overlaps {
            Some(Space::of_fence_word(space.node).plot()?)
        } else {
            None
        };
        let probe = signature::probe(&mut plot, fence_word.as_mut())?;
        let shared = Rc::new(RefCell::new(Shared { plot, fence_word, probe, filled: false }));
        let setup = Setup {
            point,
            space,
            width: width(case),
            load_width: load_width(case),
            rounds: count(case, "iterations"),
            cpus,
            overlaps,
            accumulates: case.get("sum") == Some("accumulated"),
            is_stale: case.get("lie") == Some("stale"),
        };
        let trial = |engine| -> Box<dyn Trial> {
            if point.is_read() {
                Box::new(Reading::new(engine, setup.clone(), Rc::clone(&shared)))
            } else {
                Box::new(Storing::new(engine, setup.clone(), Rc::clone(&shared)))
            }
        };
        Ok(arms(case).into_iter().map(trial).collect())
    }
}

fn arms(case: &Case) -> Vec<Engine> {
    let asked = case.get("arms").unwrap_or("pagelab");
    let all = [("pagelab", Engine::Pagelab), ("c", Engine::C)];
    let asked = |arm: &str| asked.split(',').any(|word| word == arm);
    all.into_iter().filter(|(arm, _)| asked(arm)).map(|(_, engine)| engine).collect()
}

fn has_own_fence_word(case: &Case) -> bool {
    case.get("fence-word") != Some("overlap")
}

/// Whether the case's lie changes nothing that the case says.
fn lie_is_true(case: &Case) -> bool {
    let space = Space::of(case);
    let is_ordinary = space.source == space::Source::Ordinary;
    match case.get("lie") {
        Some("wb") => space.memory_type == MemoryType::Wb,
        // Below 2 MiB there is no room for one.
        Some("huge") => !is_ordinary || space.leaf > 4096 || space.bytes < 2 << 20,
        Some("stale") => !Point::of(case).is_read(),
        _ => false,
    }
}

/// The width that the original's binary takes: 8 bytes, and AVX where it has it for streams.
fn automatic_width(point: Point) -> Width {
    if point.store != Stores::NonTemporal && point.load != Loads::NonTemporal {
        return Width::Bytes8;
    }
    let has_32 = pagelab_sys::memtype::Stores::NonTemporal.has(Width::Bytes32);
    if has_32 { Width::Bytes32 } else { Width::Bytes16 }
}

fn width(case: &Case) -> Width {
    Width::of_bytes(count(case, "width")).unwrap_or(Width::Bytes8)
}

/// Loads that follow stores are 8 bytes wide, as the original's, unless they are `movntdqa`.
fn load_width(case: &Case) -> Width {
    let point = Point::of(case);
    if point.is_readback() && point.load == Loads::Plain { Width::Bytes8 } else { width(case) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_bench::plan::complete;

    fn refused(pairs: &[(&str, &str)]) -> bool {
        complete(&Bandwidth, pairs).is_err()
    }

    fn completed(pairs: &[(&str, &str)]) -> Case {
        complete(&Bandwidth, pairs).unwrap()
    }

    #[test]
    fn every_refusal_has_a_case_that_meets_it_and_the_neighbour_is_accepted() {
        assert!(refused(&[("store", "none")]));
        assert!(refused(&[("test", "read"), ("fence", "sfence")]));
        assert!(refused(&[("test", "read"), ("load", "nt"), ("width", "8")]));
        assert!(refused(&[("test", "ntwrite_nofence_deferred"), ("load", "plain")]));
        assert!(refused(&[("test", "write_ucfence"), ("fence-word", "overlap")]));
        assert!(refused(&[("type", "uc"), ("fence-word", "overlap")]));
        assert!(refused(&[("sum", "accumulated")]));
        let overlap = [("type", "uc"), ("test", "write_ucfence"), ("fence-word", "overlap")];
        assert!(refused(&[&overlap[..], &[("arms", "pagelab,c")]].concat()));
        assert!(refused(&[("size", "12k"), ("threads", "2")]));
        assert!(refused(&[("cpu", "0"), ("threads", "2")]));
        assert!(refused(&[("type", "uc"), ("frames", "ordinary")]));
        assert!(refused(&[("type", "wt"), ("frames", "contiguous")]));
        assert!(refused(&[("frames", "scattered"), ("leaf", "2m")]));
        assert!(refused(&[("frames", "ordinary"), ("leaf", "1g"), ("size", "1g")]));
        assert!(refused(&[("frames", "reserved"), ("node", "0")]));
        assert!(refused(&[("frames", "contiguous"), ("leaf", "2m"), ("size", "3m")]));

        assert!(refused(&[("lie", "wb")]));
        assert!(refused(&[("lie", "huge"), ("frames", "ordinary"), ("leaf", "2m")]));
        assert!(refused(&[("lie", "stale")]));

        assert!(!refused(&[("test", "ntwrite"), ("width", "8")]), "movnti");
        assert!(!refused(&[("lie", "wb"), ("type", "uc")]));
        assert!(!refused(&[("lie", "huge"), ("frames", "ordinary")]));
        assert!(!refused(&[("lie", "stale"), ("test", "read")]));
        assert!(!refused(&[("test", "read"), ("load", "nt"), ("width", "16")]));
        assert!(!refused(&overlap));
        assert!(!refused(&[("type", "uc"), ("test", "read"), ("fence-word", "overlap")]));
        assert!(!refused(&[("test", "read"), ("sum", "accumulated")]));
        assert!(!refused(&[("arms", "pagelab,c"), ("threads", "2")]));
        assert!(!refused(&[("size", "16k"), ("threads", "2"), ("cpu", "0-1")]));
        assert!(!refused(&[("type", "wt")]));
        assert!(!refused(&[("frames", "reserved"), ("leaf", "1g"), ("size", "1g")]));
    }

    #[test]
    fn a_complete_case_leaves_nothing_to_decide_and_stays_as_it_is() {
        for (test, _) in super::super::point::NAMED {
            let case = completed(&[("test", test)]);
            assert_eq!(case.get("test"), Some(test));
            let auto = case.0.iter().filter(|(name, value)| *name != "cpu" && *value == "auto");
            assert_eq!(auto.count(), 0, "{case}");
            let pairs: Vec<(&str, &str)> =
                case.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(completed(&pairs), case);
        }
        assert_eq!(completed(&[("fence", "uc-store-load")]).get("test"), Some("unnamed"));
    }

    #[test]
    fn widths_are_those_of_the_original_and_what_is_read_back_is_read_by_words() {
        assert_eq!(width(&completed(&[])), Width::Bytes8);
        assert!(width(&completed(&[("test", "ntwrite")])) >= Width::Bytes16);
        let readback = completed(&[("test", "ntwrite_readback"), ("width", "16")]);
        assert_eq!((width(&readback), load_width(&readback)), (Width::Bytes16, Width::Bytes8));
        let nt = completed(&[("test", "ntwrite"), ("load", "nt"), ("width", "16")]);
        assert_eq!(load_width(&nt), Width::Bytes16);
    }

    #[test]
    fn a_fence_in_uc_memory_needs_the_module_even_where_the_data_are_ordinary() {
        let needs = |pairs: &[(&str, &str)]| Bandwidth.needs(&completed(pairs));
        assert!(
            needs(&[("frames", "ordinary"), ("test", "write_ucfence")]).contains(&Module.needed())
        );
        assert!(!needs(&[("frames", "ordinary")]).contains(&Module.needed()));
        assert!(needs(&[("type", "wc")]).contains(&Module.needed()));
        let wide = needs(&[("test", "ntwrite"), ("width", "64")]);
        assert!(wide.contains(&StoreWidth { nt: true, bytes: 64 }.needed()));
    }
}
