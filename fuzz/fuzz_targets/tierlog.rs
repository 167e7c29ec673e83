//! A log of `tier promote` of any bytes: no panic, a refusal that names a line, and a replay that
//! comes out the same twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagelab_fuzz::sow;
use pagelab_live::log::{LogError, SCHEMA, replay};
use serde_json::json;

/// More would fill memory with pages, not find more.
const PAGES_MAX: u32 = 4096;

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    let run = || replay(&mut &*input, PAGES_MAX);
    match (run(), run()) {
        (Ok(one), Ok(other)) => {
            let lines = input.split_inclusive(|byte| *byte == b'\n').count() as u64;
            assert_eq!(one, other);
            assert!(one.1.differing.iter().all(|line| *line <= lines));
            assert!(one.1.differing.len() as u64 <= one.1.decisions);
        }
        (Err(error), Err(_)) => {
            let (LogError::Io { line, .. } | LogError::Line { line, .. }) = error;
            assert!(line > 0);
        }
        _ => panic!("a replay that is refused once only"),
    }
});

/// A log of one pass that leads to moves, for several policies, and one that is cut off.
fn seeds() -> Vec<Vec<u8>> {
    let log = |policy: &str| {
        let node = |tier: u8| json!({ "tier": tier, "pages": 99, "cpus": tier == 0 });
        [
            json!({ "schema": SCHEMA, "pid": 1, "source": "soft-dirty", "nodes": [0, 1] }),
            json!({ "start": { "policy": policy, "pages": 64, "nodes": [node(0), node(1)] } }),
            json!({ "placed": [[0, 64, 1]] }),
            json!({ "world": { "now": 1, "free": [99, 35] } }),
            json!({ "scan": { "pages": [[5, 2], [9, 1]], "writes": true, "window": 1 } }),
            json!({ "decided": [[5, 0], [6, 0], [9, 0]] }),
            json!({ "moved": [[5, 1, "done", 0], [6, 1, "full", 1], [9, 1, "failed", 1]] }),
        ]
        .map(|line| line.to_string() + "\n")
        .concat()
        .into_bytes()
    };
    let mut seeds: Vec<Vec<u8>> =
        ["history:hot=1", "history", "pagelab", "threshold", "tpp"].map(log).into();
    let mut torn = log("history");
    torn.truncate(torn.len() - 9);
    seeds.push(torn);
    seeds
}
