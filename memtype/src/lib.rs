//! What memory types (WB, UC-, WC, WT) do to loads, stores and fences.
//!
//! The workloads are in [`workloads`], what reports show of them in `views`; `memtype/kmod` is the
//! kernel module that gives memory of a chosen type.

mod views;
pub mod workloads;

use pagelab_cli::Part;

/// The part of pagelab that is about memory types.
pub const PART: Part = Part { views: views::VIEWS, ..Part::NONE };
