//! What translation costs a load: TLBs, and the walks of those that miss them.

pub mod chase;
mod course;
mod ground;
