//! What memory types (WB, UC-, WC, WT) do to loads, stores and fences: seed 004.

pub mod bandwidth;
mod cost;
pub mod latency;
pub(crate) mod needs;
pub mod order;
mod params;
mod point;
mod rounds;
mod signature;
pub mod space;
