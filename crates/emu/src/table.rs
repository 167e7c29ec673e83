//! Every backend, in one visible table.

use crate::{
    Policy,
    replay::{Player, Replay},
};

/// A row of [`MEMORIES`].
#[derive(Debug, Clone, Copy)]
pub struct Backend {
    /// Its name, as an arm of a replay.
    pub name: &'static str,
    /// One line: how it works.
    pub summary: &'static str,
    /// Whether loads return what was stored; `noop` only decodes.
    pub remembers: bool,
    /// Makes an empty one.
    pub make: fn(&Policy) -> Result<Box<dyn Replay>, Unfit>,
}

/// Why a backend cannot be made: what it lacks here, and what to use instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub String);

/// The seed's best configuration, decoded as the seed does: what others are compared with.
pub const BASE: &str = "paged-cache-32-neg";

/// Every backend, in the order that `pagelab list` prints them.
pub const MEMORIES: &[Backend] = &[Backend {
    name: "noop",
    summary: "decodes and forgets: what replaying costs without a memory",
    remembers: false,
    make: |_| Ok(Box::new(Player::new(crate::noop::Noop))),
}];

/// The backend of that name.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn backend(name: &str) -> Result<&'static Backend, String> {
    MEMORIES.iter().find(|backend| backend.name == name).ok_or_else(|| {
        let names: Vec<&str> = MEMORIES.iter().map(|backend| backend.name).collect();
        format!("no backend is called `{name}`; there are {}", names.join(", "))
    })
}
