#![expect(unsafe_code, reason = "each sample has a word of its own")]
//! One access between two stamps: a load, a store, a store and its fence.
//!
//! The one idea: the closing stamp waits until the access has retired, not until its effect can
//! be seen. A plain store is therefore as cheap as the buffer that takes it, a fence shows the way
//! from the buffer to memory, and a load shows the way there and back.
//!
//! The line may be flushed before each sample, outside the clock; only then is a WB line known to
//! be in no cache.

use super::{
    Loads, Plot, Stores, Width,
    fence::store_load,
    spec::FENCE_WORD,
    stamps::{Raw, Scripted, Stamp},
};
use crate::{
    arch::{self, Word},
    loops::{Dropped, TouchList, touch::MARK},
    memory::word_at,
    time::{Clock, clock::Tsc},
};

listed! {
    /// What one sample does.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Op {
        /// `mov` of 8 bytes from the line.
        Load,
        /// `movntdqa` of 16 bytes from the line.
        LoadNt,
        /// `mov` of 8 bytes to the line.
        Store,
        /// The same, then `sfence`.
        StoreSfence,
        /// The same, then `mfence`.
        StoreMfence,
        /// `movnti` of 8 bytes to the line.
        NtStore,
        /// The same, then `sfence`.
        NtStoreSfence,
        /// `mov` of 8 bytes to the line, then to the uncached word.
        UcFence,
        /// `mov` of 8 bytes to the uncached word alone.
        UcStore,
        /// The same, and the word loaded back.
        UcStoreLoad,
    }
}

impl Op {
    /// What this processor lacks for it.
    pub fn lack(self) -> Option<&'static str> {
        match self {
            Self::LoadNt => Loads::NonTemporal.lack(Width::Bytes16),
            Self::NtStore | Self::NtStoreSfence => Stores::NonTemporal.lack(Width::Bytes8),
            _ => None,
        }
    }

    /// Whether it needs an uncached word.
    pub fn needs_fence_word(self) -> bool {
        matches!(self, Self::UcFence | Self::UcStore | Self::UcStoreLoad)
    }
}

/// In which state a line is when its sample begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// As the sample before left it.
    AsIs,
    /// Flushed from every cache.
    Flushed,
}

/// Whether lines can be flushed from user space.
pub fn can_flush() -> bool {
    arch::HAS_LINE_FLUSH
}

/// Times `op` on every listed offset and hands the nanoseconds to `record`.
///
/// `record` runs between samples, never inside one; it must not allocate or call the kernel.
///
/// # Panics
/// When the list reaches outside the plot or an offset is no multiple of 16, when the operation
/// needs an uncached word and has none, and where [`Op::lack`] or [`can_flush`] says no.
pub fn time_each(
    plot: &mut Plot,
    op: Op,
    fence_word: Option<&Plot>,
    list: &TouchList,
    state: State,
    clock: &Clock,
    record: impl FnMut(u64),
) -> Dropped {
    assert!(op.lack().is_none(), "{op:?} lacks {:?}", op.lack());
    assert!(state == State::AsIs || can_flush(), "no line can be flushed here");
    assert!(fence_word.is_some() || !op.needs_fence_word(), "{op:?} needs an uncached word");
    list.assert_within(plot.bytes(), 16);
    // Nothing is allocated here: whoever counts faults counts those of this function too.
    let offsets = list.offsets();
    let is_whole = |offset: &u64| (offset & !MARK).is_multiple_of(16);
    assert!(offsets.iter().all(is_whole), "16 bytes are loaded at once");
    // A word that no operation asks for is any word.
    let word = usize::try_from(FENCE_WORD).expect("within a page");
    let word = fence_word.unwrap_or(plot).at(word);
    let run = Run { base: plot.start(), word, offsets, state };
    match clock {
        Clock::Tsc(tsc) => run.op(op, TscPair { tsc, aux: arch::ticks_end().1 }, record),
        Clock::Raw { overhead_ns } => run.op(op, Pair(Raw, *overhead_ns), record),
        Clock::Scripted { .. } => run.op(op, Pair(Scripted(clock), 0), record),
    }
}

/// Two readings with a body between them.
trait Sampler {
    /// Nanoseconds of the body; `None` when the thread moved meanwhile.
    fn sample(&mut self, body: impl FnOnce()) -> Option<u64>;
}

/// A body that was moved to another CPU shows in `TSC_AUX` of its closing stamp.
struct TscPair<'clock> {
    tsc: &'clock Tsc,
    aux: u32,
}

impl Sampler for TscPair<'_> {
    #[inline(always)]
    fn sample(&mut self, body: impl FnOnce()) -> Option<u64> {
        let start = arch::ticks_start();
        body();
        let (end, aux) = arch::ticks_end();
        let same = aux == self.aux;
        self.aux = aux;
        same.then(|| self.tsc.elapsed_ns(start, end))
    }
}

/// Any other clock, with the cost of an empty pair.
struct Pair<S>(S, u64);

impl<S: Stamp> Sampler for Pair<S> {
    #[inline(always)]
    fn sample(&mut self, body: impl FnOnce()) -> Option<u64> {
        let start = self.0.start();
        body();
        Some((self.0.end() - start).saturating_sub(self.1))
    }
}

/// Where samples are taken.
struct Run<'list> {
    base: *mut u8,
    word: Word<'list>,
    offsets: &'list [u64],
    state: State,
}

impl<'list> Run<'list> {
    fn op(&self, op: Op, sampler: impl Sampler, record: impl FnMut(u64)) -> Dropped {
        let word = self.word;
        match op {
            Op::Load => self.each(sampler, record, |at, _| {
                std::hint::black_box(arch::load_word(at));
            }),
            Op::LoadNt => self.each(sampler, record, |at, _| {
                // SAFETY: offsets are multiples of 16 (asserted) with 16 bytes in the plot, and the
                // processor has the load (asserted).
                unsafe { arch::load_nt(at) };
            }),
            Op::Store => self.each(sampler, record, arch::store_word),
            Op::StoreSfence => self.each(sampler, record, |at, value| {
                arch::store_word(at, value);
                arch::sfence();
            }),
            Op::StoreMfence => self.each(sampler, record, |at, value| {
                arch::store_word(at, value);
                arch::mfence();
            }),
            Op::NtStore => self.each(sampler, record, arch::store_word_nt),
            Op::NtStoreSfence => self.each(sampler, record, |at, value| {
                arch::store_word_nt(at, value);
                arch::sfence();
            }),
            Op::UcFence => self.each(sampler, record, |at, value| {
                arch::store_word(at, value);
                arch::store_word(word, value);
            }),
            Op::UcStore => self.each(sampler, record, |_, value| arch::store_word(word, value)),
            Op::UcStoreLoad => self.each(sampler, record, |_, value| store_load(word, value)),
        }
    }

    /// The loop: what an earlier sample left under way is let through before the next one.
    #[inline(always)]
    fn each(
        &self,
        mut sampler: impl Sampler,
        mut record: impl FnMut(u64),
        body: impl Fn(Word<'list>, u64),
    ) -> Dropped {
        let mut dropped = Dropped::default();
        for (value, offset) in self.offsets.iter().enumerate() {
            let at = word_at(self.base, usize::try_from(offset & !MARK).unwrap_or(0));
            // SAFETY: the list lies within the plot (asserted), which is borrowed.
            let at = unsafe { Word::new(at) };
            if self.state == State::Flushed {
                arch::flush_line(at);
            }
            arch::mfence();
            match sampler.sample(|| body(at, value as u64)) {
                Some(ns) => record(ns),
                None => dropped.migrated += 1,
            }
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::ClockChoice;

    #[test]
    fn every_operation_takes_every_sample_and_stores_where_it_says() {
        let mut plot = Plot::ordinary(4096, false, None).unwrap();
        let mut word = Plot::ordinary(4096, false, None).unwrap();
        let list = TouchList::new((0..4096).step_by(64).map(|offset| (offset, false)));
        let clock = Clock::new(ClockChoice::Scripted { step_ns: 3 });
        for op in Op::ALL.into_iter().filter(|op| op.lack().is_none()) {
            for state in [State::AsIs, State::Flushed] {
                if state == State::Flushed && !can_flush() {
                    continue;
                }
                plot.fill(1000);
                word.set_word(511, 1000);
                let mut samples = Vec::new();
                let dropped = time_each(&mut plot, op, Some(&word), &list, state, &clock, |ns| {
                    samples.push(ns);
                });
                assert_eq!(samples, [3; 64], "{op:?}");
                assert_eq!(dropped, Dropped::default());
                let stored = (0..64_usize).all(|line| plot.word(line * 8) == line as u64);
                let to_line = !matches!(op, Op::Load | Op::LoadNt | Op::UcStore | Op::UcStoreLoad);
                assert_eq!(stored, to_line, "{op:?}");
                let fenced = word.word(511) == 63;
                assert_eq!(fenced, op.needs_fence_word(), "{op:?}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "needs an uncached word")]
    fn a_fence_by_an_uncached_word_needs_the_word() {
        let mut plot = Plot::ordinary(4096, false, None).unwrap();
        let list = TouchList::new([(0, false)]);
        let clock = Clock::new(ClockChoice::Scripted { step_ns: 1 });
        time_each(&mut plot, Op::UcFence, None, &list, State::AsIs, &clock, |_| ());
    }
}
