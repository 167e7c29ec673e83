//! How much time has passed: for bounds and for the figures of the summary.

use std::time::{Duration, Instant};

/// Started once, read often.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch(Instant);

impl Watch {
    /// From now on.
    #[expect(
        clippy::disallowed_methods,
        reason = "times our own commands; no result depends on it"
    )]
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Since it was started.
    pub(super) fn passed(&self) -> Duration {
        self.0.elapsed()
    }
}
