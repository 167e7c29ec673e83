//! Readers of the text files of `/proc`, one for each format.
//!
//! They take text, so that a test needs no process, and borrow from it: nothing is allocated for a
//! line. A line that the format does not allow is skipped.

mod groups;
mod holding;
mod numa_maps;
mod swaps;
mod zones;

use std::{
    ffi::OsStr,
    fmt::Display,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

pub use groups::{Group, Mount, group, groups, mounts};
pub use holding::Holding;
pub use numa_maps::{Placement, placements};
pub use pagelab_interpose::proc_maps::{Mapping, field, mappings, sizes};
pub use swaps::{InUse, in_use};
pub use zones::{Zone, zones};

const TEXT_BYTES: u64 = 96 << 20;

/// The text of a file of a process (its number, or `self`); bytes that are no UTF-8 are replaced.
///
/// # Errors
/// When there is no such process, or it may not be looked at.
pub fn text(process: impl Display, file: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    open(process, file)?.read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Opens a file of a process, of which no more is read than the `smaps` of 100,000 mappings has.
pub(crate) fn open(process: impl Display, file: &str) -> io::Result<io::Take<File>> {
    Ok(File::open(format!("/proc/{process}/{file}"))?.take(TEXT_BYTES))
}

/// The threads of a process.
///
/// # Errors
/// As [`text`].
pub fn threads(pid: u32) -> io::Result<Vec<u32>> {
    numbers(format!("/proc/{pid}/task"))
}

/// Processes whose environment has all of some entries `NAME=value`.
pub fn with_environment(entries: &[String]) -> Vec<u32> {
    let has_all = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut wanted = entries.iter().map(String::as_bytes);
        wanted.all(|wanted| environment.split(|byte| *byte == 0).any(|entry| entry == wanted))
    };
    numbers("/proc").unwrap_or_default().into_iter().filter(has_all).collect()
}

fn numbers(folder: impl AsRef<Path>) -> io::Result<Vec<u32>> {
    let listed = fs::read_dir(folder)?.flatten();
    Ok(listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// The counts of a text of `name count` lines, such as `/proc/vmstat`.
pub fn counts(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.split('\n').filter_map(|line| {
        let (name, count) = line.split_once(' ')?;
        Some((name, count.trim().parse().ok()?))
    })
}

/// `/proc/PID/stat`: the name of a process may hold anything, brackets too, so that fields are
/// counted from its end.
#[derive(Debug)]
pub struct Stat(String);

impl Stat {
    /// That of a process; `None` of one that is gone.
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&text(pid, "stat").ok()?)
    }

    /// That in a text.
    pub fn parse(text: &str) -> Option<Self> {
        text.rsplit_once(") ").map(|(_, fields)| Self(fields.to_owned()))
    }

    /// The letter of its state; `Z` and `X` of one that has ended.
    pub fn state(&self) -> Option<char> {
        self.0.chars().next()
    }

    /// The field of a number in proc(5), from 4 on, which is its parent.
    pub fn number(&self, field: usize) -> Option<u64> {
        self.0.split_whitespace().nth(field.checked_sub(3)?)?.parse().ok()
    }
}

/// A path as `swaps` and `mountinfo` have it: white space and backslashes as three octal digits.
fn unescape(word: &str) -> PathBuf {
    let bytes = word.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = word.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            plain.push(byte);
            at += 4;
        } else {
            plain.push(bytes[at]);
            at += 1;
        }
    }
    PathBuf::from(OsStr::from_bytes(&plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_numbers_with_a_name() {
        let text = "pgfault 9\nnr_dirty\nbad x\nlast 1";
        assert_eq!(counts(text).collect::<Vec<_>>(), [("pgfault", 9), ("last", 1)]);
    }

    #[test]
    fn fields_of_stat_are_found_behind_any_name() {
        let stat = Stat::parse("7 (a ) b) S 1 7 7 0 -1 4194560 320 5 2").unwrap();
        assert_eq!(
            (stat.state(), stat.number(4), stat.number(10)),
            (Some('S'), Some(1), Some(320))
        );
        assert_eq!((stat.number(8), stat.number(13), stat.number(2)), (None, None, None));
        assert!(Stat::parse("7 (gone").is_none());
        assert!(Stat::of(u32::MAX).is_none());
        assert!(Stat::of(std::process::id()).is_some_and(|stat| stat.number(10) > Some(0)));
    }

    #[test]
    fn files_of_this_process_are_read_and_of_none_are_not() {
        assert!(text("self", "maps").unwrap().contains("[stack]"));
        assert_eq!(text(u32::MAX, "maps").unwrap_err().raw_os_error(), Some(2));
    }

    #[test]
    fn a_backslash_without_three_digits_is_itself() {
        for (word, plain) in [
            ("/a\\040", "/a "),
            ("/a\\04", "/a\\04"),
            ("/a\\", "/a\\"),
            ("\\134b\\040\\011c", "\\b \tc"),
            ("/a\\999", "/a\\999"),
            ("", ""),
        ] {
            assert_eq!(unescape(word), PathBuf::from(plain), "{word}");
        }
    }
}
