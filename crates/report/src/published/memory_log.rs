//! The lines that memcachetest's program prints of a device, from our records.
//!
//! The one idea: the same quantities by the same definitions (bytes of all rounds over the time of
//! all rounds), so that the two can be read side by side. The rate is in MiB/s, as the original's
//! is, whatever its label says; its 50 rounds are shown where there are so many. What was measured
//! behind its nodes is shown before what was not, and has the original's source of its size.

use std::cmp::Reverse;

use pagelab_record::{
    units::parse_bytes,
    vocabulary::{
        arm::OURS, counter::NODE_BYTES, series::TEST, workload::MEMTYPE_BANDWIDTH as BANDWIDTH,
    },
};

use super::figure::Both;
use crate::{Entry, cases::test_of, elapsed, entry::display_claim};

/// In the order in which the original runs them.
const TESTS: [&str; 9] = [
    "write",
    "write_nofence",
    "write_ucfence",
    "ntwrite",
    "ntwrite_nofence",
    "ntwrite_readback",
    "ntwrite_nofence_deferred",
    "ntwrite_ucfence",
    "read",
];
const MIB: f64 = 1_048_576.0;

/// The lines of a memory type, where anything of it was measured.
pub(super) fn frame(both: &Both, memory_type: &str) -> Option<String> {
    let device = format!("/dev/memcache_{memory_type}");
    let mine = both.here.iter().filter(|entry| {
        entry.record.workload == BANDWIDTH
            && entry.parameter("type") == memory_type
            && entry.has_row()
    });
    let (behind, others): (Vec<&Entry>, Vec<&Entry>) =
        mine.partition(|entry| entry.counter(NODE_BYTES).is_some());
    let shown = if behind.is_empty() { others } else { behind };
    // A device has one size: the original's, or where nobody asked for that, one of the others.
    let size = ["16m"].into_iter().chain(shown.iter().map(|entry| entry.parameter("size")));
    let size = size.into_iter().find(|size| shown.iter().any(|e| e.parameter("size") == *size))?;
    let shown: Vec<&Entry> = shown.into_iter().filter(|e| e.parameter("size") == size).collect();
    let bytes = parse_bytes(size).ok()?;
    let lines: Vec<String> =
        TESTS.iter().filter_map(|test| line(&shown, test, &device, bytes)).collect();
    let is_told = shown.iter().any(|entry| entry.counter(NODE_BYTES) == Some(bytes));
    let (source, mib) = (if is_told { "ioctl" } else { "--size" }, bytes as f64 / MIB);
    let head = format!("{device} size: {bytes} bytes ({mib:.2} MiB) source={source}");
    let all = std::iter::once(head).chain(lines).collect::<Vec<_>>();
    (all.len() > 1).then(|| all.join("\n"))
}

/// What is printed of a test over so many bytes.
fn line(shown: &[&Entry], test: &str, device: &str, bytes: u64) -> Option<String> {
    let rounds = |entry: &Entry| entry.parameter("iterations").parse::<u64>().unwrap_or(0);
    let mine = shown.iter().filter(|entry| test_of(entry.case()) == test);
    // Of several cases of a test the first with the most rounds, as the suite lists them.
    let entry = mine.min_by_key(|entry| Reverse(rounds(entry)))?;
    let broken: Vec<String> = entry.failed_claims().map(display_claim).collect();
    if !broken.is_empty() {
        return Some(format!("{device} {test} verify: FAILED ({})", broken.join("; ")));
    }
    let rate = entry.numbers.get(elapsed(OURS, TEST), "bandwidth")?.value;
    let seconds = (bytes * rounds(entry)) as f64 / rate;
    let told = format!("{:.2} MiB/s ({seconds:.3} s)", rate / MIB);
    Some(if test == "read" {
        let sum = entry.sum_of("sum").map_or_else(String::new, |sum| format!(" sum=0x{sum:x}"));
        format!("{device} read : {told}{sum}")
    } else {
        format!("{device} {test} verify: ok\n{device} {test}: {told}")
    })
}
