//! The lines that memcachetest's program prints of a device, from our records.
//!
//! The one idea: the same quantities by the same definitions (bytes of all rounds over the time of
//! all rounds), so that the two can be read side by side. The rate is in MiB/s, as the original's
//! is, whatever its label says; the original's 50 rounds are shown where there are so many.

use std::cmp::Reverse;

use pagelab_record::{
    units::parse_bytes,
    vocabulary::{arm::OURS, series::TEST, workload::MEMTYPE_BANDWIDTH as BANDWIDTH},
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
    let lines: Vec<(u64, String)> =
        TESTS.iter().filter_map(|test| line(both, memory_type, test, &device)).collect();
    let (bytes, _) = lines.first()?;
    let mib = *bytes as f64 / MIB;
    let head = format!("{device} size: {bytes} bytes ({mib:.2} MiB) source=--size");
    let lines = lines.into_iter().map(|(_, line)| line);
    Some(std::iter::once(head).chain(lines).collect::<Vec<_>>().join("\n"))
}

/// What is printed of a test, and the bytes of a round.
fn line(both: &Both, memory_type: &str, test: &str, device: &str) -> Option<(u64, String)> {
    let rounds = |entry: &&Entry| entry.parameter("iterations").parse::<u64>().unwrap_or(0);
    let mine = both.here.iter().filter(|entry| {
        entry.record.workload == BANDWIDTH
            && entry.parameter("type") == memory_type
            && entry.parameter("size") == "16m"
            && test_of(entry.case()) == test
            && entry.has_row()
    });
    // Of several cases of a test the first with the most rounds, as the suite lists them.
    let entry = mine.min_by_key(|entry| Reverse(rounds(entry)))?;
    let bytes = parse_bytes(entry.parameter("size")).ok()?;
    let broken: Vec<String> = entry.failed_claims().map(display_claim).collect();
    if !broken.is_empty() {
        return Some((bytes, format!("{device} {test} verify: FAILED ({})", broken.join("; "))));
    }
    let rate = entry.numbers.get(elapsed(OURS, TEST), "bandwidth")?.value;
    let seconds = (bytes * rounds(&entry)) as f64 / rate;
    let told = format!("{:.2} MiB/s ({seconds:.3} s)", rate / MIB);
    let line = if test == "read" {
        let sum = entry.sum_of("sum").map_or_else(String::new, |sum| format!(" sum=0x{sum:x}"));
        format!("{device} read : {told}{sum}")
    } else {
        format!("{device} {test} verify: ok\n{device} {test}: {told}")
    };
    Some((bytes, line))
}
