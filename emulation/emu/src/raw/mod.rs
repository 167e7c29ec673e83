//! The rooms that hold memory by pointers; every other file of this crate is safe code.

pub(crate) mod arena;
pub(crate) mod cache;
pub(crate) mod flat;
pub(crate) mod map;
pub(crate) mod pages;
pub(crate) mod tlb;
