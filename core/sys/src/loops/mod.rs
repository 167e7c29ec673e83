//! The measured loops: what stands between two clock readings.
//!
//! They reach an [`crate::Area`] that was checked before the clock started, and decide nothing.

pub mod beside;
pub mod bulk;
pub mod calls;
pub mod chain;
pub mod chase;
pub mod draws;
pub mod fork;
mod hints;
pub mod marks;
pub mod note;
pub mod peers;
mod stamped;
pub(crate) mod touch;
pub mod twin;
mod walk;

pub use hints::{Marking, Unmarking, await_passes};
pub use stamped::Stamps;
pub use touch::{Access, Dropped, MIGRATED, Paced, Stride, TouchList, sample_nothing};
pub use walk::Walk;
