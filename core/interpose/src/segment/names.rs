//! The names of the programs that began with segments, and how often each did.
//!
//! Behind the counts a sheet has a table of names, which all processes of a run share: a slot is a
//! count and the two words of a name as the kernel keeps it (`comm`). A name that was taken by two
//! processes at once may have two slots; a reader adds them up. Where the table is full a program
//! is only counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a slot: how often, and the name.
const SLOT: usize = 3;
/// Different names that fit.
const SLOTS: usize = 64;
/// Words of the table.
pub(super) const NAME_WORDS: usize = SLOT * SLOTS;
/// Bytes of a name, with its end: those of the kernel's `TASK_COMM_LEN`.
pub const NAME_BYTES: usize = 16;
/// Set in the second word of a name, whose last byte is its end, so that it is never 0: one that is
/// 0 is not written yet.
const IS_WRITTEN: u64 = 1 << 56;

/// The two words of a name.
fn words(name: [u8; NAME_BYTES]) -> [u64; 2] {
    let word = |half: &[u8]| half.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let (first, second) = name.split_at(NAME_BYTES / 2);
    [word(first), word(second) & (IS_WRITTEN - 1) | IS_WRITTEN]
}

/// Counts a program by its name, in a table that other processes count in meanwhile.
pub fn count_name(table: &[AtomicU64], name: [u8; NAME_BYTES]) {
    let [first, second] = words(name);
    if first == 0 {
        return;
    }
    for [count, one, other] in table.as_chunks::<SLOT>().0 {
        match one.compare_exchange(0, first, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => other.store(second, Ordering::Release),
            // Of another name, or of one that is just being written.
            Err(_) if one.load(Ordering::Acquire) != first => continue,
            Err(_) if other.load(Ordering::Acquire) != second => continue,
            Err(_) => (),
        }
        count.fetch_add(1, Ordering::Relaxed);
        return;
    }
}

/// The names in a table and how often each was counted, in the order in which they came.
pub(super) fn names(table: &[u64]) -> Vec<(String, u64)> {
    let mut names: Vec<(String, u64)> = Vec::new();
    for [count, one, other] in table.as_chunks::<SLOT>().0 {
        let bytes = [one.to_le_bytes(), (other & (IS_WRITTEN - 1)).to_le_bytes()].concat();
        let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        if *count == 0 || name.is_empty() {
            continue;
        }
        let name = String::from_utf8_lossy(name).into_owned();
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known += count,
            None => names.push((name, *count)),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(name: &str) -> [u8; NAME_BYTES] {
        let mut bytes = [0; NAME_BYTES];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        bytes
    }

    fn told(programs: &[&str]) -> Vec<(String, u64)> {
        let table = [const { AtomicU64::new(0) }; NAME_WORDS];
        for name in programs {
            count_name(&table, padded(name));
        }
        names(&table.map(AtomicU64::into_inner))
    }

    #[test]
    fn each_program_has_its_name_and_how_often_it_began() {
        let told = told(&["sh", "gcc", "sh", "x86_64-linux-gn", "x86_64-linux-as", "12345678"]);
        let told: Vec<_> = told.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        let names = ["x86_64-linux-gn", "x86_64-linux-as", "12345678"].map(|name| (name, 1));
        assert_eq!(told, [&[("sh", 2), ("gcc", 1)][..], &names].concat());
    }

    #[test]
    fn of_more_names_than_fit_the_first_are_kept() {
        let many: Vec<String> = (0..SLOTS + 3).map(|nth| format!("p{nth}")).collect();
        let told = told(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(told.len(), SLOTS);
        assert_eq!(told[SLOTS - 1].0, "p63");
    }

    #[test]
    fn a_name_in_two_slots_is_one_program() {
        let mut table = [0; NAME_WORDS];
        let [one, other] = words(padded("cc1"));
        table[..6].copy_from_slice(&[2, one, other, 1, one, other]);
        assert_eq!(names(&table), [("cc1".to_owned(), 3)]);
    }
}
