//! When to take a look that costs something: as often as its share of the time allows, and late.

use pagelab_sys::time::monotonic_raw_ns;

/// Expensive looks take at most this part of the time: one in a hundred.
const SHARE: u64 = 100;

/// A look that costs something: taken when it is due, and affordable.
#[derive(Debug, Default)]
pub(super) struct Expensive {
    /// Nanoseconds that all of them took.
    pub(super) spent_ns: u64,
    last_ns: u64,
    taken: usize,
}

/// When expensive looks are due, in hundredths of the time that the program is known to take: late,
/// because most programs hold most in the end.
const DUE: [u64; 6] = [10, 30, 60, 80, 92, 98];

impl Expensive {
    /// Looks, if what was spent and one more look are no more than their share of the time;
    /// `whole_ns` is what the program takes, where that is known.
    pub(super) fn when_affordable(
        &mut self,
        gone_ns: u64,
        whole_ns: Option<u64>,
        look: impl FnOnce(),
    ) {
        let whole_ns = whole_ns.unwrap_or(gone_ns).max(gone_ns);
        let due = DUE.get(self.taken).map_or(0, |part| whole_ns / 100 * part);
        // What turns out to be expensive is left for the end: the next to last time that it is due.
        if gone_ns < due || (self.spent_ns + self.last_ns) * SHARE > whole_ns {
            return;
        }
        let begun = monotonic_raw_ns();
        look();
        self.last_ns = monotonic_raw_ns() - begun;
        self.spent_ns += self.last_ns;
        let affordable = (whole_ns / SHARE).saturating_sub(self.spent_ns) / self.last_ns.max(1);
        let left = usize::try_from(affordable).unwrap_or(DUE.len());
        self.taken = (self.taken + 1).max(DUE.len().saturating_sub(left.saturating_add(1)));
    }
}
