//! What the page draws of replays: what an operation takes, backend by backend.
//!
//! The one idea: a chart is a case, because backends are compared within their process; whose a
//! backend is decides its colour. Values stand in the tables.

use serde::Serialize;

use super::{NOOP, REPLAY, arms, base_of};
use crate::{entry::Entry, numbers::cpu, quantity::Quantity};

/// What an operation takes, backend by backend.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Backends {
    /// Nanoseconds of decoding alone.
    floor: Option<f64>,
    arms: Vec<Backend>,
}

#[derive(Debug, Clone, Serialize)]
struct Backend {
    name: String,
    /// Whose it is: `floor`, `fast-mem`, `base`, `peer` or `ours`.
    family: &'static str,
    /// Nanoseconds and the ends of their interval.
    ns: (f64, f64, f64),
}

/// The backends of a case.
pub(super) fn backends(entry: &Entry) -> Backends {
    let each = |arm: &str| entry.numbers.get(cpu(arm, REPLAY), "ns_per_op");
    let arms = entry.measured().map(|m| arms(entry.case(), m)).unwrap_or_default();
    let base = base_of(&arms);
    let arm = |name: &str| {
        let Quantity { value, low, high, .. } = each(name)?;
        let family = match name {
            name if name.starts_with(NOOP) => "floor",
            name if Some(name) == base => "base",
            name if name.starts_with("paged-") => "fast-mem",
            name if name.starts_with("peer-") => "peer",
            _ => "ours",
        };
        Some(Backend { name: name.to_owned(), family, ns: (value, low, high) })
    };
    Backends {
        floor: each(NOOP).map(|floor| floor.value),
        arms: arms.iter().filter_map(|name| arm(name)).collect(),
    }
}
