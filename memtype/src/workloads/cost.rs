//! How long a repetition of `memtype/bandwidth` takes, before it was measured: for `--dry-run`, and
//! for the time after which a case counts as hung. The rates of uncached memory are memcachetest's.

use pagelab_sys::memtype::{self, MemoryType, Width};

use super::{
    asked::Asked,
    point::{Loads, Verify},
};

/// Seconds of one repetition of an arm, verification included: right in order of magnitude, so
/// that a person learns beforehand what uncached memory costs.
pub(super) fn seconds(asked: &Asked) -> f64 {
    let Asked { point, space, width, load_width, .. } = *asked;
    let (bytes, iterations) = (space.bytes as f64, asked.iterations as f64);
    let memory_type = space.memory_type;
    let store_s = store_ns(memory_type, width) * bytes / 1e9;
    let load = |nt, width| load_ns(memory_type, nt, width) * bytes / 1e9;
    let timed_load_s = match point.load {
        Loads::None => 0.0,
        Loads::Plain => load(false, load_width),
        Loads::NonTemporal => load(true, load_width),
    };
    let verify_s = load(false, Width::widest(memtype::Stores::Plain));
    let round_s = match (point.is_read(), point.load, point.verify) {
        (true, ..) => timed_load_s,
        (false, Loads::None, Verify::EachRound) => store_s + verify_s,
        (false, Loads::None, Verify::Deferred) => store_s + verify_s / iterations,
        (false, ..) => store_s + timed_load_s,
    };
    // Before each repetition of stores every word is set to what no round stores.
    let reset_s = if point.is_read() { 0.0 } else { store_ns(memory_type, Width::Bytes8) };
    let reset_s = reset_s * bytes / 1e9;
    iterations * round_s + reset_s
}
/// Nanoseconds to store a byte. UC: one transaction of 33 ns for up to 16 bytes, by memcachetest.
fn store_ns(memory_type: MemoryType, width: Width) -> f64 {
    match memory_type {
        MemoryType::Wb | MemoryType::Wp => 0.1,
        MemoryType::Wc => 0.06,
        MemoryType::Wt => 1.0,
        MemoryType::UcMinus | MemoryType::Uc => 33.4 / (width.bytes() as f64).min(16.0),
    }
}

/// Nanoseconds to load a byte. UC and WC: one transaction of 80 ns for up to 16 bytes; `movntdqa`
/// from WC takes a line of 64 bytes at once.
fn load_ns(memory_type: MemoryType, nt: bool, width: Width) -> f64 {
    match memory_type {
        MemoryType::Wb | MemoryType::Wp | MemoryType::Wt => 0.1,
        MemoryType::Wc if nt => 80.0 / 64.0,
        _ => 80.0 / (width.bytes() as f64).min(16.0),
    }
}

#[cfg(test)]
mod tests {
    use crate::workloads::bandwidth::BANDWIDTH;
    use pagelab_bench::{Workload, plan::complete};

    #[test]
    fn uncached_memory_is_estimated_by_the_published_times() {
        let seconds = |pairs: &[(&str, &str)]| {
            BANDWIDTH.read(&complete(&BANDWIDTH, pairs).unwrap()).seconds()
        };
        // Published: 3.506 s of stores, 8.357 s of loads; verification loads wider.
        let write = seconds(&[("type", "uc"), ("verify", "deferred"), ("test", "write_nofence")]);
        assert!((3.0..5.0).contains(&write), "{write}");
        let read = seconds(&[("type", "uc"), ("test", "read")]);
        assert!((7.0..10.0).contains(&read), "{read}");
        let wc = seconds(&[("type", "wc"), ("test", "read")]);
        assert!((7.0..10.0).contains(&wc), "{wc}");
        assert!(seconds(&[]) < 1.0);
        assert!(seconds(&[("arms", "pagelab,c")]) > 1.9 * seconds(&[]) - 0.02);
    }
}
