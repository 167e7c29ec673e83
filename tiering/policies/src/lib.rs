//! Which pages are hot, and who moves them: hotness map, policies, simulator.
//!
//! The one idea: a [`Policy`] is a pure state machine. It is told what was observed and at what
//! time, and says which pages should move; it reads no clock, does no I/O and draws no random
//! number. [`simulate`] drives it over an invented machine; a live engine can drive the same policy
//! over a real one.
//!
//! Nothing here measures, and no number here comes from anybody's table: what a scenario needs to
//! know about a machine is given to it.

mod driver;
pub mod map;
pub mod policy;
mod random;
pub mod sim;
mod spec;

pub use driver::{Driver, Event, Impossible, Run, Start};
pub use policy::{POLICIES, Policy, PolicySpec};
pub use sim::{Curve, GENERATORS, Outcome, Scenario, Source, Tiers, Work, WorkSpec, simulate};
pub use spec::{Parameter, Row, Spec};

/// Bytes of a base page.
pub const PAGE_BYTES: u64 = 4096;
/// Base pages of what one PMD maps: a block.
pub const BLOCK_PAGES: u32 = 512;
/// Base pages of a sparse memory section of 128 MiB.
pub const SECTION_PAGES: u32 = 32_768;
/// Nanoseconds of a second.
pub const SECOND: u64 = 1_000_000_000;
/// Nanoseconds of a millisecond.
pub const MILLISECOND: u64 = 1_000_000;

/// The whole part of a count, or of a share of one, which is not negative and below 2^53.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a count fits")]
pub(crate) const fn whole(count: f64) -> u64 {
    count as u64
}
