//! The measured loops: what stands between two clock readings.
//!
//! They reach an [`crate::Area`] that was checked before the clock started, and decide nothing.

pub mod beside;
pub mod bulk;
pub mod calls;
pub mod fork;
pub mod hints;
pub mod note;
pub mod peers;
pub mod stamped;
pub mod touch;
pub mod twin;
