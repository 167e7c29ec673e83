//! When faults are told in full and when in brief, so that watching does not slow a program down.
//!
//! The one idea: telling a fault in full (exception, allocations, callers) costs more than the
//! fault itself; its address alone costs a tenth of that. So above [`FAST`] faults a second
//! every address is told all the time, and the rest of it for stretches of [`STRETCH_NS`], as long
//! apart as keeps what is told in full at [`IN_FULL`] a second. A fault told in brief is taken for
//! one of the last that were told in full in the same place ([`super::recent`]).

/// Faults a second from which on they are not all told in full.
const FAST: u64 = 50_000;
/// Below so many a second they are all told in full again.
const SLOW: u64 = 40_000;
/// Faults a second that are told in full then.
const IN_FULL: u64 = 5_000;
/// How long they are told in full at a time.
const STRETCH_NS: u64 = 8_000_000;
/// How long the rate is looked at before it decides.
const LOOK_NS: u64 = 50_000_000;
/// It decides sooner where so many came by then: what was told in full has cost enough.
const LOOK_FAULTS: u64 = 4_000;
/// A stretch in brief lasts at most so long: what a program does changes.
const BRIEF_MAX_NS: u64 = 400_000_000;

/// What is told now, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Telling {
    /// Everything in full, as long as it is slow enough.
    Full,
    /// A stretch in full, of so many a second.
    Stretch { rate: u64 },
    /// In brief, for so long.
    Brief { for_ns: u64 },
}

/// The pace of one session.
#[derive(Debug)]
pub(super) struct Pace {
    telling: Telling,
    since_ns: u64,
    faults: u64,
    stretches: u64,
}

impl Pace {
    /// Of a session that begins then, in full.
    pub(super) fn new(now_ns: u64) -> Self {
        Self { telling: Telling::Full, since_ns: now_ns, faults: 0, stretches: 0 }
    }

    /// What is to be told from now on, where that changes: in full, or in brief; of a session that
    /// has told so many faults by now.
    pub(super) fn next(&mut self, now_ns: u64, faults: u64) -> Option<bool> {
        let elapsed = now_ns.saturating_sub(self.since_ns);
        let came = faults.saturating_sub(self.faults);
        let rate = rate(came, elapsed);
        match self.telling {
            Telling::Full if elapsed < LOOK_NS && came < LOOK_FAULTS => None,
            Telling::Full if rate <= FAST => {
                self.begin(Telling::Full, now_ns, faults);
                None
            }
            Telling::Full => {
                self.stretches += 1;
                self.brief(rate, elapsed, now_ns, faults);
                Some(false)
            }
            Telling::Stretch { .. } if elapsed < STRETCH_NS => None,
            Telling::Stretch { rate } => {
                self.brief(rate, elapsed, now_ns, faults);
                Some(false)
            }
            Telling::Brief { for_ns } if elapsed < for_ns => None,
            Telling::Brief { .. } if rate < SLOW => {
                self.begin(Telling::Full, now_ns, faults);
                Some(true)
            }
            Telling::Brief { .. } => {
                self.stretches += 1;
                self.begin(Telling::Stretch { rate }, now_ns, faults);
                Some(true)
            }
        }
    }

    /// In brief, after so long in full, at a rate that was seen where watching costs least.
    fn brief(&mut self, rate: u64, in_full_ns: u64, now_ns: u64, faults: u64) {
        let for_ns = in_full_ns.saturating_mul((rate / IN_FULL).saturating_sub(1));
        self.begin(Telling::Brief { for_ns: for_ns.min(BRIEF_MAX_NS) }, now_ns, faults);
    }

    fn begin(&mut self, telling: Telling, now_ns: u64, faults: u64) {
        *self = Self { telling, since_ns: now_ns, faults, ..*self };
    }

    /// Stretches in full beside stretches in brief; 0 where all was told in full.
    pub(super) fn stretches(&self) -> u64 {
        self.stretches
    }
}

fn rate(faults: u64, elapsed_ns: u64) -> u64 {
    let rate = u128::from(faults) * 1_000_000_000 / u128::from(elapsed_ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: u64 = 4_000_000;

    /// What share of the faults of so many seconds is told in full, and in how many stretches.
    fn share(seconds: u64, rate: impl Fn(u64) -> u64) -> (f64, u64) {
        let mut pace = Pace::new(0);
        let (mut in_full, mut told, mut all) = (true, 0, 0);
        for now in (0..seconds * 1_000_000_000).step_by(4_000_000) {
            let came = rate(now) * LOOK / 1_000_000_000;
            all += came;
            told += if in_full { came } else { 0 };
            in_full = pace.next(now + LOOK, all).unwrap_or(in_full);
        }
        (told as f64 / all as f64, pace.stretches())
    }

    #[test]
    fn a_slow_program_is_told_in_full() {
        assert_eq!(share(2, |_| FAST), (1.0, 0));
    }

    #[test]
    fn of_a_fast_one_about_as_much_is_told_in_full_whatever_its_rate() {
        for rate in [60_000, 200_000, 1_000_000, 2_000_000] {
            let (share, stretches) = share(10, |_| rate);
            let in_full = share * rate as f64;
            assert!((2_500.0..=45_000.0).contains(&in_full), "{rate}: {in_full}");
            assert!(stretches > 15, "{rate}: {stretches}");
        }
    }

    #[test]
    fn what_gets_slow_again_is_told_in_full_again() {
        let fast_first = |now| if now < 500_000_000 { 300_000 } else { 10_000 };
        let mut pace = Pace::new(0);
        let (mut faults, mut told) = (0, Vec::new());
        for now in (0..4_000_000_000_u64).step_by(4_000_000) {
            faults += fast_first(now) * LOOK / 1_000_000_000;
            told.extend(pace.next(now + LOOK, faults).map(|in_full| (now, in_full)));
        }
        let (last, in_full) = *told.last().unwrap();
        assert!(in_full && last < 1_000_000_000, "{told:?}");
    }
}
