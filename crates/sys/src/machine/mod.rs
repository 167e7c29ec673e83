//! The machine as it is: its shape, its settings, its rights.
//!
//! The one idea: files below `/sys` and `/proc` are read through a [`topology::Tree`], so that a
//! test has a machine of its own. Nothing here changes anything: that is [`crate::knobs`].

pub mod blocks;
pub mod environment;
pub mod rights;
pub mod thp;
pub mod topology;
pub mod value;
