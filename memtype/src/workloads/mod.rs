//! What memory types (WB, UC-, WC, WT) do to loads, stores and fences: memcachetest.

mod asked;
pub mod bandwidth;
mod cost;
mod ground;
pub mod latency;
pub mod needs;
pub mod order;
mod params;
mod point;
mod rounds;
mod signature;
pub mod space;
