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
    Described, Error, Experiment, Inputs, Kind, Need, Needed, Over, Param, Read, Refusal, Trial,
    words_of,
};
use pagelab_sys::memtype::{Engine, MemoryType, Width};

use super::needs::{AccessWidth, Module, of_space};
use super::{
    asked::{Asked, ENGINES, Lie},
    cost,
    ground::Ground,
    params,
    point::{Fence, Loads, Point, Stores, Verify},
    rounds::{Reading, Setup, Storing},
    space::{self, Space},
};
use pagelab_bench::cpus::stay;

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
    .asks(&["uc-store"])
    .help("what ends a round: nothing, sfence, a store to UC memory, or that and a load of it"),
    Param::axis("verify", Kind::Choice(&["auto", "each-round", "deferred"]), "auto")
        .help("compare every word after each round, or after the last one; not timed"),
    Param::axis("load", Kind::Choice(&["auto", "none", "plain", "nt"]), "auto").asks(&["nt"]).help(
        "none, ordinary loads, or movntdqa, which makes WC memory readable; with stores: \
               read back and compared, inside the clock",
    ),
    Param::axis("width", Kind::Choice(&["auto", "8", "16", "32", "64"]), "auto")
        .asks(&["32", "64"])
        .help(
            "bytes of a store or load; auto: 8, and 32 or 16 for non-temporal ones (with AVX2 or \
               without); what an nt store wrote, plain loads read back by 8",
        ),
    params::SIZE,
    Param::axis("iterations", Kind::Count { max: 100_000, auto: false }, "50")
        .help("rounds in a repetition; a repetition with uc takes 3 s for 50 rounds of 16m"),
    Param::axis("threads", Kind::Count { max: 4096, auto: false }, "1")
        .asks(&["2"])
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
    Param::arms("arms", Kind::Choice(&words_of(&ENGINES)), "pagelab")
        .help("c adds a C loop of the same width as an arm of the same case"),
    Param::axis("lie", Kind::Choice(Lie::WORDS), "none").help(
        "do something else than the case says; the record must come out invalid: wb memory \
               of the module for another type, huge leaves for 4k, or values of another round",
    ),
];

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
        |asked| {
            asked.engines.iter().any(|(_, engine)| *engine == Engine::C)
                && asked.overlaps
                && !asked.point.is_read()
        },
        "arms=c with stores and fence-word=overlap",
        "the C loop skips no word; use fence-word=own",
    ),
    Refusal::new(
        |asked| !asked.space.bytes.is_multiple_of(4096 * asked.workers as u64),
        "size not divisible by 4k × threads",
        "every thread has whole pages; use a multiple of that",
    ),
    Refusal::new(
        |asked| asked.cpus.listed.as_ref().is_some_and(|cpus| cpus.len() < asked.workers),
        "cpu with fewer CPUs than threads",
        "two threads on a CPU measure the scheduler",
    ),
    Refusal::new(
        Asked::lies_truly,
        "a lie that would be the truth, or that this memory or test cannot tell",
        "nothing would be proven",
    ),
];

/// What it is called.
pub(crate) const NAME: &str = BANDWIDTH.about.name;

/// See the module's documentation.
pub const BANDWIDTH: Described<Asked> = Described {
    resolve: |case| {
        let point = Point::of(&case);
        let bytes = case.bytes("size").unwrap_or(0);
        let case = Space::resolve(point.put(case), bytes);
        if case.is("width", "auto") {
            return case.with("width", &automatic_width(point).bytes().to_string());
        }
        case
    },
    refusals: REFUSALS,
    parts: &[&Over { of: |asked: &Asked| &asked.space, tables: &[space::REFUSALS] }],
    ..Described::new(
        "memtype/bandwidth",
        "stores and loads of WB, UC, WC and WT memory: every width, fence and way of storing",
        PARAMS,
        &[("size", "64k"), ("iterations", "3")],
        Asked::of,
    )
};

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        let Self { point, space, .. } = *self;
        let mut needs = of_space(&space);
        if point.has_uc_fence() && !self.overlaps {
            needs.push(Module.needed());
        }
        let nt = point.store == Stores::NonTemporal;
        if !point.is_read() {
            needs.push(AccessWidth { loads: false, nt, bytes: self.width.bytes() }.needed());
        }
        if point.load != Loads::None {
            let nt = point.load == Loads::NonTemporal;
            needs.push(AccessWidth { loads: true, nt, bytes: self.load_width.bytes() }.needed());
        }
        needs.push(space::cpu_needs(&self.cpus, self.workers));
        needs
    }

    fn footprint(&self) -> u64 {
        self.space.bytes + 4096
    }

    fn seconds(&self) -> f64 {
        self.engines.len() as f64 * cost::seconds(self) + 0.005
    }

    fn prepare(&self, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let Self { point, space, .. } = *self;
        let cpus = space::cpus_of(&self.cpus, self.workers);
        stay(cpus.first().copied())?;
        let mut lying = space;
        match self.lie {
            Lie::Wb => lying.memory_type = MemoryType::Wb,
            Lie::Huge => lying.leaf = 2 << 20,
            Lie::None | Lie::Stale => (),
        }
        let has_word = point.has_uc_fence() && !self.overlaps;
        let ground = Rc::new(RefCell::new(Ground::new(space, &lying, has_word)?));
        let trial = |arm| -> Box<dyn Trial> {
            let setup = Setup { arm, asked: self.clone(), cpus: cpus.clone() };
            if point.is_read() {
                Box::new(Reading::new(setup, Rc::clone(&ground)))
            } else {
                Box::new(Storing::new(setup, Rc::clone(&ground)))
            }
        };
        Ok(self.engines.iter().copied().map(trial).collect())
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

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_bench::plan::complete;
    use pagelab_record::Case;

    fn completed(pairs: &[(&str, &str)]) -> Case {
        complete(&BANDWIDTH, pairs).unwrap()
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
        let asked = |pairs: &[(&str, &str)]| Asked::of(&completed(pairs));
        assert_eq!(asked(&[]).width, Width::Bytes8);
        assert!(asked(&[("test", "ntwrite")]).width >= Width::Bytes16);
        let readback = asked(&[("test", "ntwrite_readback"), ("width", "16")]);
        assert_eq!((readback.width, readback.load_width), (Width::Bytes16, Width::Bytes8));
        let nt = asked(&[("test", "ntwrite"), ("load", "nt"), ("width", "16")]);
        assert_eq!(nt.load_width, Width::Bytes16);
    }

    #[test]
    fn a_fence_in_uc_memory_needs_the_module_even_where_the_data_are_ordinary() {
        let needs = |pairs: &[(&str, &str)]| Asked::of(&completed(pairs)).needs();
        assert!(
            needs(&[("frames", "ordinary"), ("test", "write_ucfence")]).contains(&Module.needed())
        );
        assert!(!needs(&[("frames", "ordinary")]).contains(&Module.needed()));
        assert!(needs(&[("type", "wc")]).contains(&Module.needed()));
        let wide = needs(&[("test", "ntwrite"), ("width", "64")]);
        assert!(wide.contains(&AccessWidth { loads: false, nt: true, bytes: 64 }.needed()));
    }
}
