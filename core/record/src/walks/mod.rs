//! Page walks of a program, from the pages that were walked to within windows of time.
//!
//! The one idea: Denning's working set. The pages that are walked to within a window τ, N(τ), grow
//! with τ by the walks whose page was not walked to for so long: N'(τ) is their rate. So the slope
//! at the start is the rate of all walks, and what the slope loses between two windows are walks
//! that come again after a time in between; N at that time is how many pages lay between. Nothing
//! is assumed of the program but that a window is like the next one, and, for the part before the
//! shortest window, that a page is walked to at random times.

mod captured;
mod curve;
mod looks;

pub use captured::{Captured, End, Pages, Uses, tlb_levels};
pub use curve::{Band, Curve};
pub use looks::{Look, Looks, Walked, busy};
