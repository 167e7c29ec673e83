//! What every command stands on, and what a part of pagelab brings.
//!
//! Arguments, a run from its first journal line to its report, progress, output, exit codes; and
//! [`Part`], the one registry: nothing here knows a part by name.

#[macro_use]
pub mod exit;

pub mod args;
pub mod examples;
pub mod history;
pub mod latest;
pub mod lock;
pub mod output;
pub mod part;
pub mod plan;
pub mod preload;
pub mod program;
pub mod progress;
pub mod published;
pub mod resume;
pub mod session;
pub mod settings;
pub mod suites;
pub mod trials;
mod turns;

pub use anyhow;
pub use part::{DoctorSection, Hidden, Part, Resume, Source};
