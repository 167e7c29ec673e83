//! What is touched: offsets in their order, and how much is written at each.
//!
//! The one idea: the list is made and present before the clock starts, so that the measured loop
//! reads numbers and decides nothing. It knows no memory: the loops check it against theirs.

/// What is written where: `bytes` (a multiple of 8) at every `step`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stride {
    /// Distance of the touches.
    pub step: usize,
    /// Bytes written at each.
    pub bytes: usize,
}

/// Offsets in the order in which they are touched, already present in memory.
#[derive(Debug, Clone)]
pub struct TouchList {
    offsets: Vec<u64>,
    highest: u64,
}

/// Bit 0 of an entry marks a touch whose latency is kept apart; offsets are multiples of 8.
pub(crate) const MARK: u64 = 1;

impl TouchList {
    /// A list of (offset, kept apart). Offsets are multiples of 8.
    pub fn new(touches: impl IntoIterator<Item = (usize, bool)>) -> Self {
        let entry = |(offset, apart): (usize, bool)| {
            assert!(offset.is_multiple_of(8), "offset {offset} is not a multiple of 8");
            offset as u64 | u64::from(apart)
        };
        let offsets: Vec<u64> = touches.into_iter().map(entry).collect();
        let highest = offsets.iter().map(|offset| offset & !MARK).max().unwrap_or(0);
        Self { offsets, highest }
    }

    /// The same touches, none of them kept apart.
    #[must_use]
    pub fn unmarked(mut self) -> Self {
        for offset in &mut self.offsets {
            *offset &= !MARK;
        }
        self
    }

    /// The same touches, those kept apart that have their flag set, in the list's order.
    ///
    /// # Panics
    /// When there is not one flag for each touch.
    #[must_use]
    pub fn marked(mut self, flags: &[bool]) -> Self {
        assert_eq!(self.offsets.len(), flags.len(), "one flag for each touch");
        for (offset, flag) in self.offsets.iter_mut().zip(flags) {
            *offset = *offset & !MARK | u64::from(*flag);
        }
        self
    }

    /// Number of touches.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether nothing is touched.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Number of touches that are kept apart.
    pub fn kept_apart(&self) -> usize {
        self.offsets.iter().filter(|offset| *offset & MARK != 0).count()
    }

    /// Whether the latency of a touch is kept apart, in the list's order.
    pub fn marks(&self) -> impl Iterator<Item = bool> {
        self.offsets.iter().map(|offset| offset & MARK != 0)
    }

    /// Offset of each touch and whether its latency is kept apart, in the list's order.
    pub fn touches(&self) -> impl Iterator<Item = (usize, bool)> {
        #[expect(clippy::cast_possible_truncation, reason = "offsets were made from usize")]
        self.offsets.iter().map(|offset| ((offset & !MARK) as usize, offset & MARK != 0))
    }

    pub(crate) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    pub(crate) fn assert_within(&self, extent: usize, bytes: usize) {
        assert!(self.highest + bytes as u64 <= extent as u64, "touch outside the area");
    }
}
