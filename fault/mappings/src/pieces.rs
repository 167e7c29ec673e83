//! A touch of much memory in pieces, so that what the *host* had to back first can be told apart.
//!
//! The one idea: a lap over gigabytes lasts longer than the two seconds after which the kernel
//! hands free memory to its host again, so no lap is spared, and taking it again does not help. So
//! the lap goes in pieces with a clock pair each. Their CPU time tells the cold ones, because a
//! preemption takes none: those above `COLDER` times the lowest level that the process has seen.
//! A piece next to a cold one may be cold in part and goes with it.
//!
//! Between the pieces, outside every clock pair, the thread's CPU time is read. Nothing allocates.

use std::sync::LazyLock;

use pagelab_bench::measure::REST_NS;
use pagelab_sys::{counts::reported_kib, time::Clock};

use super::sorted::HostLevel;

/// A host's fault was measured at 4 to 5 times a warm one over base pages in bulk and at 7 to 14
/// times over 2 MiB; warm pieces lie within 1.5 times the lowest level.
const COLDER: u64 = 3;

/// Least bytes of a piece: the kernel reports blocks of 2 MiB and more, each of which fills three
/// such pieces, and two clock readings are a thousandth of the touches of one.
const BYTES: usize = 512 << 10;

/// The pieces of one lap.
#[derive(Debug)]
pub(super) struct Pieces {
    bytes: usize,
    level: HostLevel,
    /// Nanoseconds and CPU nanoseconds of each.
    elapsed: Vec<u64>,
    cpu: Vec<u64>,
}

/// What some pieces of a lap took together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) bytes: u64,
    pub(super) ns: u64,
    pub(super) cpu_ns: u64,
}

impl Pieces {
    /// For a lap over so many bytes in pages and steps of these sizes.
    pub(super) fn of(bytes: usize, page: usize, step: usize) -> Self {
        let piece = BYTES.max(page).max(step);
        let count = bytes.div_ceil(piece);
        let level = HostLevel::of(piece as u64);
        // Not zeroes: those would be the zero page, and filling them in would fault.
        Self { bytes: piece, level, elapsed: vec![1; count], cpu: vec![1; count] }
    }

    /// One lap: `touch` is called for each piece, with where it starts and ends.
    pub(super) fn lap(&mut self, bytes: usize, clock: &Clock, touch: &dyn Fn(usize, usize)) {
        let mut cpu = clock.thread_cpu_ns();
        let slots = self.elapsed.iter_mut().zip(&mut self.cpu);
        for (from, (elapsed, cpu_ns)) in (0..bytes).step_by(self.bytes).zip(slots) {
            let to = (from + self.bytes).min(bytes);
            *elapsed = clock.elapsed_ns(clock.span(|| touch(from, to)));
            let now = clock.thread_cpu_ns();
            *cpu_ns = now - cpu;
            cpu = now;
        }
    }

    /// All pieces of the last lap, over so many bytes; what it took is learned from.
    pub(super) fn whole(&mut self, bytes: usize) -> Share {
        self.level.learn(&self.cpu);
        let (elapsed, cpu) = (self.elapsed.iter().sum(), self.cpu.iter().sum());
        Share { bytes: bytes as u64, ns: elapsed, cpu_ns: cpu }
    }

    /// The last lap without what may be cold, and what may be.
    pub(super) fn apart(&self, bytes: usize) -> [Share; 2] {
        let is_cold = |index: usize| {
            let cpu = self.cpu.get(index).copied().unwrap_or(0);
            self.level.warm_ns().is_some_and(|warm| cpu > COLDER * warm.max(1))
        };
        let mut shares = [Share::default(); 2];
        for (index, from) in (0..bytes).step_by(self.bytes).enumerate() {
            let near = [index.wrapping_sub(1), index, index + 1].into_iter().any(is_cold);
            let share = &mut shares[usize::from(near)];
            share.bytes += self.bytes.min(bytes - from) as u64;
            share.ns += self.elapsed[index];
            share.cpu_ns += self.cpu[index];
        }
        shares
    }
}

/// Seconds that a repetition takes over so much memory, roughly, with those that are thrown away
/// because the kernel handed memory to its host meanwhile: the longer one lasts, the likelier.
pub fn seconds(bytes: u64) -> f64 {
    // First touch at 2 GB/s is typical.
    let once = bytes as f64 / 2e9 + 0.002;
    let rest = REST_NS as f64 / 1e9;
    if once >= rest || !host_takes_memory() {
        return once;
    }
    (once / (1.0 - once / rest)).min(rest + once)
}

/// Whether the kernel hands free memory to its host; asked once.
fn host_takes_memory() -> bool {
    static TAKES: LazyLock<bool> = LazyLock::new(|| reported_kib().is_some());
    *TAKES
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// A lap over 16 MiB whose pieces took this.
    fn lap(elapsed: [u64; 32], cpu: [u64; 32]) -> Pieces {
        let mut pieces = Pieces::of(16 * MIB, 4096, 4096);
        (pieces.elapsed, pieces.cpu) = (elapsed.to_vec(), cpu.to_vec());
        pieces
    }

    #[test]
    fn a_stretch_that_the_host_had_to_back_goes_with_its_neighbours_and_nothing_is_lost() {
        let mut times = [100; 32];
        // A block of 2 MiB that starts in the middle of a piece.
        (times[10], times[14]) = (250, 250);
        times[11..14].fill(450);
        let mut pieces = lap(times, times);
        let whole = pieces.whole(16 * MIB);
        let [warm, cold] = pieces.apart(16 * MIB);
        assert_eq!((warm.ns, cold.ns), (27 * 100, 3 * 450 + 2 * 250));
        assert_eq!((warm.bytes, cold.bytes), (27 * MIB as u64 / 2, 5 * MIB as u64 / 2));
        assert_eq!((warm.ns + cold.ns, warm.bytes + cold.bytes), (whole.ns, whole.bytes));
    }

    #[test]
    fn a_preemption_is_not_the_host() {
        let mut elapsed = [100; 32];
        elapsed[7] = 1_000_000;
        let mut pieces = lap(elapsed, [100; 32]);
        let whole = pieces.whole(16 * MIB);
        assert_eq!(pieces.apart(16 * MIB), [whole, Share::default()]);
    }

    #[test]
    fn a_lap_that_is_cold_throughout_is_known_by_an_earlier_one() {
        let mut pieces = lap([100; 32], [100; 32]);
        pieces.whole(16 * MIB);
        (pieces.elapsed, pieces.cpu) = (vec![450; 32], vec![450; 32]);
        let whole = pieces.whole(16 * MIB);
        assert_eq!(pieces.apart(16 * MIB), [Share::default(), whole]);
    }

    #[test]
    fn pieces_cover_every_byte_once_in_order() {
        use std::cell::RefCell;
        let clock = Clock::new(pagelab_sys::time::ClockChoice::Scripted { step_ns: 7 });
        let mut pieces = Pieces::of(5 * MIB / 4, 4096, 4096);
        let seen = RefCell::new(Vec::new());
        pieces.lap(5 * MIB / 4, &clock, &|from, to| seen.borrow_mut().push((from, to)));
        assert_eq!(*seen.borrow(), [(0, MIB / 2), (MIB / 2, MIB), (MIB, 5 * MIB / 4)]);
        assert_eq!(pieces.whole(5 * MIB / 4).ns, 21);
    }
}
