//! Whether the processor does what the page table says: a memory type by its timing.
//!
//! A hypervisor may map guest memory so that the guest's PAT has no effect (KVM on Intel does,
//! unless the guest has a device whose DMA does not snoop, or its VMM turns the quirk off). The
//! page table then says UC, and the cache serves every load.
//!
//! The one idea: a line that was loaded a moment ago is in the cache or it is not. In the cache a
//! load takes about a nanosecond; UC and WC memory is never cached, so each load goes to memory and
//! takes 50 ns or more on any machine of today. What lies between is not decided. The judgement is
//! a pure function of a few numbers, so that recorded machines are its tests.

use pagelab_bench::{Error, Witness};
use pagelab_record::{units::whole, vocabulary::Check};
use pagelab_sys::{
    arch,
    loops::TouchList,
    memtype::{
        MemoryType, Plot,
        latency::{Op, State, time_each},
    },
    time::{Clock, ClockChoice},
};

/// How long a load that memory serves takes at least; a cache that is near answers in less.
const MEMORY_NS: f64 = 20.0;
/// A load from memory takes at least this many times a load from the nearest cache. The published
/// ratios are above 100.
const APART: f64 = 8.0;
/// Up to this ratio two kinds of memory count as one.
const ALIKE: f64 = 3.0;
/// Below this difference they do, too: time stamp counters of some machines step by 10 ns.
const NOISE_NS: f64 = 12.0;

/// Samples of each kind; the first ones warm.
const SAMPLES: usize = 512;

/// Nanoseconds of accesses to one line, again and again: to ordinary memory, and to memory of the
/// type in question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Timing {
    /// A load, from ordinary memory.
    pub(super) wb_load: f64,
    /// A load, from the memory in question.
    pub(super) load: f64,
    /// A store that is waited for, to ordinary memory.
    pub(super) wb_store: f64,
    /// The same, to the memory in question.
    pub(super) store: f64,
}

/// What timing says about a memory type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signature {
    /// Accesses take as long as the type implies.
    Honoured,
    /// They take as long as those to WB memory.
    Ignored,
    /// Neither.
    Unclear,
}

/// Judges memory of a type by its timing.
///
/// UC and WC loads are never served by a cache, so a slow one decides. A fast one of UC decides
/// only where stores are fast too: they are neither cached nor combined. WT serves loads from the
/// cache and may combine stores, so fast ones prove nothing.
pub(super) fn judge(memory_type: MemoryType, timing: &Timing) -> Signature {
    let alike = |base: f64, value: f64| value <= ALIKE * base + NOISE_NS;
    let loads_apart = timing.load >= APART * timing.wb_load && timing.load >= MEMORY_NS;
    let loads_alike = alike(timing.wb_load, timing.load);
    let stores_alike = alike(timing.wb_store, timing.store);
    match memory_type {
        MemoryType::Wb | MemoryType::Wp => Signature::Honoured,
        MemoryType::Wt if loads_alike && !stores_alike => Signature::Honoured,
        MemoryType::Wt => Signature::Unclear,
        _ if loads_apart => Signature::Honoured,
        MemoryType::Wc if loads_alike => Signature::Ignored,
        _ if loads_alike && stores_alike => Signature::Ignored,
        _ => Signature::Unclear,
    }
}

/// A judgement, and on what it rests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Probe {
    memory_type: MemoryType,
    signature: Signature,
    timing: Timing,
    is_emulated: bool,
}

/// Judges what a case rests on: its memory or, where that is WB, the UC word of its fence. Nothing
/// where both are WB or not there.
///
/// # Errors
/// When there is no ordinary memory.
pub(super) fn probe(
    plot: &mut Plot,
    fence_word: Option<&mut Plot>,
) -> Result<Option<Probe>, Error> {
    let is_typed = |plot: &&mut Plot| plot.memory_type() != MemoryType::Wb;
    [Some(plot), fence_word].into_iter().flatten().find(is_typed).map(time).transpose()
}

/// Times accesses to one line of the memory in question, and to one of ordinary memory.
fn time(plot: &mut Plot) -> Result<Probe, Error> {
    let memory_type = plot.memory_type();
    let mut ordinary = Plot::ordinary(4096, false, None)?;
    // A clock of its own: that of the case may be a script.
    let clock = Clock::new(ClockChoice::of_this_machine());
    let list = TouchList::new((0..SAMPLES).map(|_| (0, false)));
    let mean = |plot: &mut Plot, op| {
        let mut samples = Vec::with_capacity(SAMPLES);
        time_each(plot, op, None, &list, State::AsIs, &clock, |ns| samples.push(ns));
        middle(&mut samples)
    };
    let timing = Timing {
        wb_load: mean(&mut ordinary, Op::Load),
        load: mean(plot, Op::Load),
        wb_store: mean(&mut ordinary, Op::StoreMfence),
        store: mean(plot, Op::StoreMfence),
    };
    let signature = judge(memory_type, &timing);
    Ok(Probe { memory_type, signature, timing, is_emulated: arch::is_emulated() })
}

/// The mean of the middle half: no interrupt is in it, and a counter that steps is averaged.
fn middle(samples: &mut [u64]) -> f64 {
    samples.sort_unstable();
    let middle = &samples[samples.len() / 4..samples.len() - samples.len() / 4];
    middle.iter().sum::<u64>() as f64 / middle.len().max(1) as f64
}

impl Probe {
    /// The claim that the type is honoured, or why there is none.
    pub(super) fn testify(&self, witness: &mut Witness) {
        let name = self.memory_type.name();
        let Timing { wb_load, load, wb_store, store } = self.timing;
        let seen = format!(
            "a load takes {load:.0} ns (WB {wb_load:.0} ns), a store with mfence \
             {store:.0} ns (WB {wb_store:.0} ns)"
        );
        for (name, ns) in [
            ("probe_load_ns", load),
            ("probe_load_wb_ns", wb_load),
            ("probe_store_ns", store),
            ("probe_store_wb_ns", wb_store),
        ] {
            witness.set(name, whole(ns.round()));
        }
        match self.signature {
            _ if self.is_emulated => witness.warn(
                "an emulated processor has no memory types: the page table is proven, times mean \
                 nothing"
                    .to_owned(),
            ),
            Signature::Honoured | Signature::Ignored => {
                let ignored = self.signature == Signature::Ignored;
                let claim = format!("{name} memory that is as fast as WB: PAT ignored");
                witness.expect((Check::PatIgnored, &claim), 0, u64::from(ignored));
                if ignored {
                    witness.warn(format!(
                        "this {name} memory behaves as WB: {seen}. The hypervisor ignores the \
                         guest's PAT (KVM on Intel does, unless its VMM disables \
                         KVM_X86_QUIRK_IGNORE_GUEST_PAT or the guest has a device with DMA that \
                         does not snoop): run on the host, or on a machine of that kind"
                    ));
                }
            }
            Signature::Unclear => witness.warn(format!(
                "timing does not show whether this memory is {name}: {seen}; the page table says so"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nanoseconds of 8 bytes at a rate in MiB/s, as the original prints it.
    fn word_ns(mib_s: f64) -> f64 {
        8e9 / (mib_s * 1_048_576.0)
    }

    fn timing(wb: (f64, f64), typed: (f64, f64)) -> Timing {
        Timing { wb_load: wb.0, wb_store: wb.1, load: typed.0, store: typed.1 }
    }

    /// The published run of memcachetest: read and write of WB.
    fn published_wb() -> (f64, f64) {
        (word_ns(13198.05), word_ns(14605.71))
    }

    #[test]
    fn the_published_run_had_its_memory_types_honoured() {
        let uc = timing(published_wb(), (word_ns(95.72), word_ns(228.20)));
        let wc = timing(published_wb(), (word_ns(104.03), word_ns(25622.50)));
        assert_eq!(judge(MemoryType::UcMinus, &uc), Signature::Honoured);
        assert_eq!(judge(MemoryType::Wc, &wc), Signature::Honoured);
        assert!((uc.load - 79.7).abs() < 0.1 && (wc.load - 73.3).abs() < 0.1);
    }

    #[test]
    fn a_guest_whose_pat_is_ignored_reads_every_type_from_its_cache() {
        // WB memory against WB memory, as probed in a KVM guest whose counter steps by 10 ns: what
        // a guest sees of memory of any type whose PAT is ignored.
        for (wb, typed) in [
            ((2.81, 20.0), (2.19, 20.0)),
            ((0.0, 18.5), (0.0, 18.3)),
            ((0.0, 18.7), (0.04, 19.3)),
            ((2.93, 20.0), (3.24, 20.0)),
            ((0.0, 18.9), (10.0, 30.0)),
        ] {
            let timing = timing(wb, typed);
            assert_eq!(judge(MemoryType::UcMinus, &timing), Signature::Ignored, "{timing:?}");
            assert_eq!(judge(MemoryType::Wc, &timing), Signature::Ignored, "{timing:?}");
        }
    }

    #[test]
    fn memory_that_no_cache_holds_is_recognised_on_the_same_machine() {
        // The same guest, with each line flushed before its sample: a load and a fenced store go
        // to memory, as they do in UC memory.
        let timing = timing((2.81, 20.0), (110.0, 130.0));
        assert_eq!(judge(MemoryType::UcMinus, &timing), Signature::Honoured);
        assert_eq!(judge(MemoryType::Wc, &timing), Signature::Honoured);
    }

    #[test]
    fn an_emulated_processor_knows_no_types_and_all_accesses_are_alike() {
        // Probed in guests of QEMU's TCG, kernels 6.12 and 6.1, on a busy host: UC-, then WC.
        for (wb, typed) in [((105.0, 106.0), (102.0, 99.0)), ((57.0, 60.0), (92.0, 48.0))] {
            let timing = timing(wb, typed);
            assert_eq!(judge(MemoryType::UcMinus, &timing), Signature::Ignored, "{timing:?}");
        }
        for (wb, typed) in [((108.0, 82.0), (122.0, 85.0)), ((80.0, 18.0), (50.0, 15.0))] {
            let timing = timing(wb, typed);
            assert_eq!(judge(MemoryType::Wc, &timing), Signature::Ignored, "{timing:?}");
        }
    }

    #[test]
    fn what_lies_between_is_not_decided() {
        assert_eq!(
            judge(MemoryType::UcMinus, &timing((0.6, 0.5), (16.0, 0.6))),
            Signature::Unclear
        );
        assert_eq!(
            judge(MemoryType::UcMinus, &timing((0.6, 25.0), (2.0, 180.0))),
            Signature::Unclear
        );
        assert_eq!(judge(MemoryType::Wc, &timing((30.0, 30.0), (120.0, 30.0))), Signature::Unclear);
    }

    #[test]
    fn wt_is_never_called_ignored_because_its_loads_are_cached_and_its_stores_may_combine() {
        assert_eq!(judge(MemoryType::Wt, &timing((0.6, 0.5), (0.6, 0.5))), Signature::Unclear);
        assert_eq!(judge(MemoryType::Wt, &timing((0.6, 0.5), (0.6, 30.0))), Signature::Honoured);
    }

    #[test]
    fn wb_memory_has_nothing_to_prove() {
        assert_eq!(judge(MemoryType::Wb, &timing((0.6, 0.5), (0.6, 0.5))), Signature::Honoured);
    }
}
