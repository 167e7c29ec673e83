//! What the page draws of replays: what an operation takes, backend by backend.
//!
//! The one idea: lanes are of one case, because backends are compared within their process; whose a
//! backend is decides its colour. Values stand in the tables.

use super::{NOOP, REPLAY, arms, base_of};
use pagelab_report::{Entry, Key, Lanes, chart::Row, cpu, hue};

/// The backends of a case, where it has some to compare.
pub(super) fn backends(entry: &Entry, trace: &str) -> Option<Lanes> {
    let each = |arm: &str| entry.numbers.get(cpu(arm, REPLAY), "ns_per_op");
    let arms = entry.measured().map(|m| arms(entry.case(), m)).unwrap_or_default();
    let base = base_of(&arms);
    let whose = |name: &str| match name {
        name if name.starts_with(NOOP) => 0,
        name if Some(name) == base => 1,
        name if name.starts_with("paged-") => 2,
        name if name.starts_with("peer-") => 3,
        _ => 4,
    };
    let keys = vec![
        Key::new("decoding", None),
        Key::new("base", Some(hue(1))),
        Key::new("fast-mem's", Some(hue(0))),
        Key::new("others'", Some(hue(3))),
        Key::new("pagelab's", Some(hue(2))),
    ];
    let row = |name: &&str| -> Option<Row> {
        Some(((*name).to_owned(), vec![(whose(name), each(name)?)]))
    };
    let rows: Vec<Row> = arms.iter().filter_map(row).collect();
    if rows.len() < 2 {
        return None;
    }
    let title = format!("One operation of {trace}, by backend");
    let caption = "CPU time; whiskers are intervals. The line through all is noop: decoding alone.";
    Lanes::bars([&title, caption], keys, rows, each(NOOP).map(|floor| (floor, "noop"))).shown()
}
