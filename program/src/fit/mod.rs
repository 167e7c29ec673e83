//! Which mappings of a program are worth larger pages: what `try --fit` asks.
//!
//! The one idea: what can be chosen is a *unit*, and a unit is what an author can advise and what
//! is found again in the next run. An address is neither, nor is the how-manieth mapping, which
//! threads change; the callers of `mmap` and malloc are, by file and address in it, with the
//! size as a power of two ([`pagelab_interpose::preload::log`]). So units are: each such place
//! that asked for 2 MiB and more, and malloc's heap, of which nobody can have a part: its tunable
//! takes all of it or nothing. The stack, files and shared memory are none; there are rungs for
//! code and for shared memory.
//!
//! A library that is preloaded notes who asked for which memory ([`logged`]) in the one run that
//! `explain` watches; [`played`] gives each first touch to the unit that it was in and plays huge
//! pages through; [`choice`] weighs time against memory; [`record`] is what a run keeps of it.
//! The same library then advises the chosen ones as they are mapped: from the first touch and
//! without privilege, where collapsing from outside would save no fault. That it is worth it is
//! for the rounds to show.
//!
//! What a unit gains is faults alone. Page walks by mapping are a term to add in [`record`].

pub mod choice;
pub mod logged;
pub mod played;
pub mod record;

/// The workload that its record names.
/// The mappings of a program, each with a saving of its own.
pub const WORKLOAD: &str = "try/units";
