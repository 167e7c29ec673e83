//! Samples of the processor, IBS of AMD and PEBS of Intel: what a ring of theirs says.
//!
//! The one idea: both are read in one layout, which whoever opens the event asks for:
//! `TID TIME ADDR CPU WEIGHT DATA_SRC PHYS_ADDR`. A ring is bytes with two positions that only
//! grow; a record that is no sample is passed over by its length, and one whose length makes no
//! sense ends the reading. Not yet seen on hardware: what is read here are recorded bytes.

use pagelab_sys::machine::Tree;

use super::Lack;

/// An access that the processor sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The process.
    pub pid: u32,
    /// When, nanoseconds of the clock that the event has.
    pub time_ns: u64,
    /// The address; of an access without one, 0.
    pub address: u64,
    /// The address of the memory behind it; 0 where the kernel does not show it.
    pub frame: u64,
    /// A store, or else a load.
    pub store: bool,
    /// Cycles that it took, or what the processor has in their place.
    pub weight: u64,
}

/// What is wrong with a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRing {
    /// Its bytes are no power of two, or none.
    #[error("a ring has a power of two of bytes, not {0}")]
    Size(usize),
    /// More is to be read than it holds.
    #[error("from {tail} to {head} is more than a ring of {bytes} bytes holds")]
    Positions {
        /// Where reading begins.
        tail: u64,
        /// Where it ends.
        head: u64,
        /// Bytes of the ring.
        bytes: usize,
    },
    /// A record is shorter than its header, or longer than what is left.
    #[error("the record at {at} says that it has {bytes} bytes")]
    Record {
        /// Where it begins.
        at: u64,
        /// What it says.
        bytes: u16,
    },
}

/// What was read of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ring {
    /// Samples.
    pub samples: u64,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// Records of other kinds.
    pub others: u64,
}

const HEADER: usize = 8;
/// Bytes of a sample behind its header.
const SAMPLE_BYTES: usize = 56;
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// Operation of `DATA_SRC`, which has the lowest five bits: a store.
const STORE: u64 = 4;

/// Reads what lies between two positions of a ring.
///
/// # Errors
/// At the first thing that makes no sense; what came before it was handed on.
pub fn read(
    ring: &[u8],
    tail: u64,
    head: u64,
    found: &mut dyn FnMut(Access),
) -> Result<Ring, BadRing> {
    if !ring.len().is_power_of_two() {
        return Err(BadRing::Size(ring.len()));
    }
    let bytes = ring.len();
    if head.checked_sub(tail).is_none_or(|count| count > bytes as u64) {
        return Err(BadRing::Positions { tail, head, bytes });
    }
    let mut read = Ring::default();
    let mut at = tail;
    while head - at >= HEADER as u64 {
        let header: [u8; HEADER] = part(ring, at);
        let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        let size = u16::from_ne_bytes([header[6], header[7]]);
        let length = usize::from(size);
        if length < HEADER || u64::from(size) > head - at {
            return Err(BadRing::Record { at, bytes: size });
        }
        match kind {
            SAMPLE if length == HEADER + SAMPLE_BYTES => {
                read.samples += 1;
                found(access(&part(ring, at + HEADER as u64)));
            }
            LOST if length >= HEADER + 16 => {
                let lost: [u8; 16] = part(ring, at + HEADER as u64);
                read.lost = read.lost.saturating_add(word(&lost, 1));
            }
            _ => read.others += 1,
        }
        at += u64::from(size);
    }
    Ok(read)
}

/// Bytes of a ring from a position on, over its end.
fn part<const N: usize>(ring: &[u8], at: u64) -> [u8; N] {
    let first = usize::try_from(at % ring.len() as u64).unwrap_or(0);
    std::array::from_fn(|nth| ring[(first + nth) % ring.len()])
}

fn word(bytes: &[u8], nth: usize) -> u64 {
    bytes.as_chunks().0.get(nth).map_or(0, |word| u64::from_ne_bytes(*word))
}

fn access(bytes: &[u8; SAMPLE_BYTES]) -> Access {
    let pid = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let [time_ns, address, weight, source, frame] = [1, 2, 4, 5, 6].map(|nth| word(bytes, nth));
    Access { pid, time_ns, address, frame, store: source & 31 & STORE != 0, weight }
}

/// AMD's.
pub(super) fn probe_ibs(tree: &Tree) -> Result<(), Lack> {
    let is_there = tree.text("sys/bus/event_source/devices/ibs_op/type").is_some();
    there(is_there, "no ibs_op: this is no processor of AMD, or a guest that does not see it")
}

/// Intel's.
pub(super) fn probe_pebs(tree: &Tree) -> Result<(), Lack> {
    let loads = |pmu: &str| {
        tree.text(format!("sys/bus/event_source/devices/{pmu}/events/mem-loads")).is_some()
    };
    let is_there = loads("cpu") || loads("cpu_core");
    there(is_there, "no mem-loads: this is no processor of Intel, or a guest that does not see it")
}

fn there(is_there: bool, lacks: &str) -> Result<(), Lack> {
    let cure = "a machine of its own, or a guest with a virtual PMU";
    if is_there { Ok(()) } else { Err(Lack::new(lacks, cure)) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn record(kind: u32, body: &[u64]) -> Vec<u8> {
        let size = u16::try_from(HEADER + body.len() * 8).unwrap();
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(size.to_ne_bytes());
        bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn sample(pid: u32, address: u64, operation: u64) -> Vec<u8> {
        record(SAMPLE, &[u64::from(pid) | 9 << 32, 5, address, 1, 300, operation, 0x8000])
    }

    /// A ring that begins so far before its end.
    fn ring(records: &[Vec<u8>], before: usize) -> (Vec<u8>, u64, u64) {
        let mut ring = vec![0; 1024];
        let bytes = records.concat();
        let tail = 4096 - before;
        for (nth, byte) in bytes.iter().enumerate() {
            ring[(tail + nth) % 1024] = *byte;
        }
        (ring, tail as u64, (tail + bytes.len()) as u64)
    }

    #[test]
    fn samples_are_read_over_the_end_of_a_ring() {
        let other = record(3, &[0; 4]);
        let records =
            [sample(7, 0x1000, 2), other, record(LOST, &[1, 40]), sample(8, 0x2008, STORE)];
        for before in [0, 4, 20, 64, 100, 900] {
            let (ring, tail, head) = ring(&records, before);
            let mut found = Vec::new();
            let told = read(&ring, tail, head, &mut |access| found.push(access)).unwrap();
            assert_eq!(told, Ring { samples: 2, lost: 40, others: 1 });
            let access = |pid, address, store| Access {
                pid,
                time_ns: 5,
                address,
                frame: 0x8000,
                store,
                weight: 300,
            };
            assert_eq!(found, [access(7, 0x1000, false), access(8, 0x2008, true)]);
        }
    }

    #[test]
    fn what_makes_no_sense_ends_the_reading_and_says_where() {
        let ignore = &mut |_| ();
        assert_eq!(read(&[], 0, 0, ignore), Err(BadRing::Size(0)));
        assert_eq!(read(&[0; 12], 0, 8, ignore), Err(BadRing::Size(12)));
        for (tail, head) in [(9, 8), (0, 17), (0, u64::MAX)] {
            let bad = BadRing::Positions { tail, head, bytes: 16 };
            assert_eq!(read(&[0; 16], tail, head, ignore), Err(bad));
        }
        assert_eq!(read(&[0; 16], 0, 8, ignore), Err(BadRing::Record { at: 0, bytes: 0 }));
        let (ring, tail, head) = ring(&[sample(7, 1, 2), sample(7, 1, 2)], 0);
        let cut = read(&ring, tail, head - 8, ignore);
        assert_eq!(cut, Err(BadRing::Record { at: tail + 64, bytes: 64 }));
    }

    #[test]
    fn a_processor_that_samples_is_found_by_its_events() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::at(folder.path());
        assert!(probe_ibs(&tree).is_err() && probe_pebs(&tree).is_err());
        let devices = Path::new("sys/bus/event_source/devices");
        let events = ["ibs_op/type", "cpu_core/events/mem-loads"];
        let tree = tree.with(events.map(|path| (devices.join(path), "11\n")));
        assert!(probe_ibs(&tree).is_ok() && probe_pebs(&tree).is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_ring_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..130),
            tail in any::<u64>(),
            length in 0_u64..130,
        ) {
            let _ = read(&bytes, tail, tail.saturating_add(length), &mut |_| ());
        }
    }
}
