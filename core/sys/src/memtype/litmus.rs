#![expect(unsafe_code, reason = "each round has words of its own")]
//! Message passing: in which order another CPU sees two stores.
//!
//! The one idea: reading back on the CPU that stored proves nothing, for a CPU always sees its own
//! stores. Here one CPU stores a word of data and then, with or without a fence between them, a
//! flag; another one spins on the flag and reads the data as soon as it is up. The new flag with
//! the old data is a reordering, and a count of them is the result.
//!
//! Both CPUs meet before each round at a line of ordinary memory, so that the second one looks at
//! the moment when the first one stores. A round ends with an `sfence`, after the order has been
//! seen: what stays in a buffer must not be taken for a store of the next round. There is no system
//! call inside a run.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    Plot, Stores, Width,
    fence::{FenceAt, with_fence},
    spec::Fence,
};
use crate::{
    SysError,
    arch::{self, Word},
    memory::word_at,
    process::crew,
    time::Clock,
};

/// Bytes between two slots: the data and flag words of a round lie in a slot of their own.
const LINE: usize = 64;

/// Times that the reader looks for the flag before it gives a round up.
const LOOKS: u32 = 100_000;

/// Times that the writer waits for the reader's eyes before it lets its stores through.
const WAITS: u32 = 256;

/// What is stored, and what stands between.
#[derive(Debug, Clone, Copy)]
pub struct Litmus<'plot> {
    /// How the data are stored. The flag is always a plain store.
    pub data: Stores,
    /// What stands between the data and the flag.
    pub fence: Fence<'plot>,
    /// Bytes from the data to the flag: a multiple of 64, not 0, below the plot's length.
    pub distance: usize,
    /// Rounds.
    pub rounds: u64,
}

/// What the second CPU saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Rounds.
    pub rounds: u64,
    /// Rounds in which it saw the new flag while it looked.
    pub observed: u64,
    /// Of these, rounds in which the data were old.
    pub reorderings: u64,
    /// Nanoseconds of all rounds.
    pub ns: u64,
}

/// Words by which both CPUs meet, each on a line of its own (two, for the adjacent-line prefetch).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Mark(AtomicU64);

#[derive(Debug, Default)]
struct Meeting {
    /// The round that the reader is ready for.
    ready: Mark,
    /// The round whose flag the reader has looked for.
    looked: Mark,
    /// The round whose stores have arrived.
    done: Mark,
}

/// Stores and looks `rounds` times: the first CPU stores, the second one looks.
///
/// # Errors
/// When a CPU cannot be had.
///
/// # Panics
/// When both CPUs are one, when the distance is no multiple of 64 or does not fit, and where this
/// processor has no such stores.
pub fn message_passing(
    plot: &mut Plot,
    litmus: &Litmus<'_>,
    cpus: [usize; 2],
    clock: &Clock,
) -> Result<Outcome, SysError> {
    assert_ne!(cpus[0], cpus[1], "one CPU always sees its own stores in order");
    assert!(litmus.data.has(Width::Bytes8), "no such stores: {:?}", litmus.data);
    let slots = Slots::of(plot.bytes(), litmus.distance);
    plot.fill(0);
    for word in 0..plot.words() {
        plot.set_word(word, 0);
    }
    arch::mfence();
    let (plot, meeting) = (&*plot, &Meeting::default());
    let fence = FenceAt::of(plot, litmus.fence, None);
    let done = crew::pinned(&cpus, |index, _| {
        let mut outcome = Outcome::default();
        let span = clock.span(|| {
            let side = Side { base: plot.start(), slots, rounds: litmus.rounds, meeting };
            if index == 1 {
                outcome = side.look();
            } else {
                side.store(litmus.data, fence);
            }
        });
        (outcome, span)
    })?;
    let [(_, stored), (looked, _)] = done[..] else { unreachable!("two workers ran") };
    Ok(Outcome { ns: clock.elapsed_ns(stored), ..looked })
}

/// Where the words of a round lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slots {
    distance: usize,
    in_block: usize,
    blocks: usize,
}

impl Slots {
    /// Data lie in the first half of each block of twice the distance, flags in the second.
    fn of(bytes: usize, distance: usize) -> Self {
        assert!(distance > 0 && distance.is_multiple_of(LINE), "distance {distance}");
        assert!(distance < bytes, "the flag lies outside the plot");
        let in_block = distance.min(bytes - distance) / LINE;
        Self { distance, in_block, blocks: (bytes / (2 * distance)).max(1) }
    }

    fn count(self) -> usize {
        self.in_block * self.blocks
    }

    /// Offsets of the data and the flag of a round.
    #[inline(always)]
    fn offsets(self, slot: usize) -> (usize, usize) {
        let (block, line) = (slot / self.in_block, slot % self.in_block);
        let data = block * 2 * self.distance + line * LINE;
        (data, data + self.distance)
    }
}

/// One of both CPUs.
#[derive(Clone, Copy)]
struct Side<'run> {
    base: *mut u8,
    slots: Slots,
    rounds: u64,
    meeting: &'run Meeting,
}

impl<'run> Side<'run> {
    /// The data and the flag of a round.
    #[inline(always)]
    fn words(self, slot: usize) -> (Word<'run>, Word<'run>) {
        let (data, flag) = self.slots.offsets(slot);
        let [data, flag] = [data, flag].map(|offset| word_at(self.base, offset));
        // SAFETY: slots lie within the plot (asserted where they are made), which is borrowed.
        let data = unsafe { Word::new(data) };
        // SAFETY: as above.
        (data, unsafe { Word::new(flag) })
    }

    /// The CPU that stores.
    fn store(self, data: Stores, fence: FenceAt<'_>) {
        match data {
            Stores::Plain => self.store_by(fence, arch::store_word),
            Stores::NonTemporal => self.store_by(fence, arch::store_word_nt),
        }
    }

    #[inline(always)]
    fn store_by(self, fence: FenceAt<'_>, store: impl Fn(Word<'run>, u64)) {
        let Meeting { ready, looked, done } = self.meeting;
        let mut slot = 0;
        for round in 1..=self.rounds {
            let (data, flag) = self.words(slot);
            while ready.0.load(Ordering::Acquire) < round {
                std::hint::spin_loop();
            }
            with_fence!(fence, round, |fence| {
                store(data, round);
                fence();
                arch::store_word(flag, round);
            });
            let mut waits = 0;
            while waits < WAITS && looked.0.load(Ordering::Acquire) < round {
                waits += 1;
                std::hint::spin_loop();
            }
            arch::sfence();
            done.0.store(round, Ordering::Release);
            slot = if slot + 1 == self.slots.count() { 0 } else { slot + 1 };
        }
    }

    /// The CPU that looks.
    fn look(self) -> Outcome {
        let Meeting { ready, looked, done } = self.meeting;
        let mut outcome = Outcome { rounds: self.rounds, ..Outcome::default() };
        let mut slot = 0;
        for round in 1..=self.rounds {
            let (data, flag) = self.words(slot);
            ready.0.store(round, Ordering::Release);
            let mut looks = 0;
            let mut up = false;
            while !up && looks < LOOKS {
                up = arch::load_word(flag) == round;
                looks += 1;
            }
            // The data are loaded after the flag, whatever the processor would have guessed.
            arch::lfence();
            let seen = arch::load_word(data);
            looked.0.store(round, Ordering::Release);
            outcome.observed += u64::from(up);
            outcome.reorderings += u64::from(up && seen != round);
            while done.0.load(Ordering::Acquire) < round {
                std::hint::spin_loop();
            }
            slot = if slot + 1 == self.slots.count() { 0 } else { slot + 1 };
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{machine::Topology, memtype::FenceWord, time::ClockChoice};

    #[test]
    fn no_two_words_of_any_slots_share_a_line() {
        for (bytes, distance) in
            [(8192, 64), (8192, 4096), (8192, 4160), (65536, 4160), (4096, 4032), (65536, 16448)]
        {
            let slots = Slots::of(bytes, distance);
            let words = (0..slots.count()).flat_map(|slot| {
                let (data, flag) = slots.offsets(slot);
                assert_eq!(flag - data, distance);
                [data, flag]
            });
            let mut words: Vec<usize> = words.collect();
            assert!(words.iter().all(|word| word.is_multiple_of(64) && word + 8 <= bytes));
            words.sort_unstable();
            let count = words.len();
            words.dedup();
            assert!(count > 0 && words.len() == count, "{bytes} {distance}: a line is used twice");
        }
    }

    #[test]
    #[should_panic(expected = "distance 32")]
    fn data_and_flag_on_one_line_are_refused() {
        Slots::of(4096, 32);
    }

    /// What the manual forbids is never seen; how often the rest is seen is not for a test to say.
    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn what_the_manual_forbids_is_not_seen() {
        let cpus = Topology::machine().cpus().allowed;
        let [first, second, ..] = cpus[..] else {
            eprintln!("skipped: one CPU; to run it: a machine with two");
            return;
        };
        let clock = Clock::new(ClockChoice::Scripted { step_ns: 1 });
        let word = Plot::ordinary(4096, false, None).unwrap();
        let mut plot = Plot::ordinary(8 * 4096, false, None).unwrap();
        let (own, plain, nt) = (FenceWord::Own(&word), Stores::Plain, Stores::NonTemporal);
        let forbidden = [
            (plain, Fence::None),
            (plain, Fence::Sfence),
            (plain, Fence::Mfence),
            (plain, Fence::UcStore(own)),
            (nt, Fence::Sfence),
            (nt, Fence::Mfence),
        ];
        for (data, fence) in forbidden {
            if !data.has(Width::Bytes8) {
                continue;
            }
            let litmus = Litmus { data, fence, distance: 4096 + 64, rounds: 300 };
            let seen = message_passing(&mut plot, &litmus, [first, second], &clock).unwrap();
            assert_eq!((seen.rounds, seen.reorderings), (300, 0), "{data:?} {fence:?}");
            assert!(seen.observed <= 300);
        }
        assert_eq!(word.word(511), 300, "the fence's word got the number of the last round");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_and_nobody_waits() {
        let mut plot = Plot::ordinary(8192, false, None).unwrap();
        let litmus = Litmus { data: Stores::Plain, fence: Fence::None, distance: 4096, rounds: 9 };
        let clock = Clock::new(ClockChoice::Scripted { step_ns: 1 });
        let here = Topology::machine().cpus().allowed[0];
        assert!(message_passing(&mut plot, &litmus, [here, 100_000], &clock).is_err());
    }
}
