//! Whether the variables of a variant are in the environment of a process.
//!
//! `/proc/PID/environ` shows the memory in which the kernel left the variables, as it is now: the
//! process may have written there. glibc 2.36 ends each tunable that it knows in its place
//! (`parse_tunables`), so `GLIBC_TUNABLES=a=1:b=2` reads as `a=1`, and `b=2` as an entry behind it.
//! nginx, redis and postgres put their title over the area. A difference in the text is a missing
//! variable only where neither explains it.

use std::fs;

use pagelab_sys::machine::proc::Stat;

/// Whether a process was started with the variables of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// With all of them.
    Yes,
    /// Without one of them, or with another value.
    No,
    /// Unknown: the area may not be read, is not set up yet, or was overwritten.
    Unknown,
}

impl Reached {
    /// Reads the environment of a process.
    pub(super) fn of(pid: u32, wanted: &[(String, String)]) -> Self {
        if wanted.is_empty() {
            return Self::Yes;
        }
        let read = || fs::read(format!("/proc/{pid}/environ"));
        let mut area = read();
        // `execve` sets up the area late, and it is empty until then: an area that is there is read
        // again.
        if area.as_ref().is_ok_and(Vec::is_empty) {
            if !is_set_up(pid) {
                return Self::Unknown;
            }
            area = read();
        }
        area.map_or(Self::Unknown, |area| Self::in_area(&area, wanted))
    }

    fn in_area(area: &[u8], wanted: &[(String, String)]) -> Self {
        if wanted.iter().all(|(name, value)| has(area, name, value)) {
            return Self::Yes;
        }
        // A title runs over from the arguments, which lie before it: it takes the first entry.
        let first = area.split(|byte| *byte == 0).next().unwrap_or_default();
        if area.is_empty() || is_assignment(first) { Self::No } else { Self::Unknown }
    }
}

/// Whether the kernel has placed the environment of a process, which may be empty: `env_end` of
/// `/proc/PID/stat` (Linux 3.5).
fn is_set_up(pid: u32) -> bool {
    /// Its number in proc(5).
    const ENV_END: usize = 51;
    Stat::of(pid).and_then(|stat| stat.number(ENV_END)).is_some_and(|end| end != 0)
}

/// Whether an entry is as `execve` was given it.
fn is_assignment(entry: &[u8]) -> bool {
    let name = entry.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.len() < entry.len() && !name.is_empty() && name.iter().all(u8::is_ascii_graphic)
}

/// Whether an area has a variable of this value, or of a list with all words of it in their order:
/// a wrapper adds to `LD_PRELOAD` what it preloads itself.
fn has(area: &[u8], name: &str, value: &str) -> bool {
    let mut entries = area.split(|byte| *byte == 0);
    let of_name = |entry: &[u8]| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(value.to_vec())
    };
    let Some(found) = entries.by_ref().find_map(of_name) else { return false };
    if found == value.as_bytes() {
        return true;
    }
    // What follows a word that was ended in its place is an entry to whoever reads the area.
    let mut there = words(&found).chain(entries.flat_map(words));
    let mut wanted = words(value.as_bytes()).peekable();
    wanted.peek().is_some() && wanted.all(|word| there.any(|other| other == word))
}

/// The words of a list: tunables end with a colon, preloaded libraries with a colon or a blank.
fn words(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b':' | b' ')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    const TUNABLES: &str = "GLIBC_TUNABLES";
    const THREE: &str = "glibc.malloc.mmap_threshold=4294967296:\
                         glibc.malloc.trim_threshold=68719476736:glibc.malloc.top_pad=67108864";

    fn wanted(variables: &[(&str, &str)]) -> Vec<(String, String)> {
        variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn reached(area: &[u8], name: &str, value: &str) -> Reached {
        Reached::in_area(area, &wanted(&[(name, value)]))
    }

    /// A process that waits.
    struct Waiting(Child);

    impl Drop for Waiting {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn tunables_that_glibc_ended_in_their_place_are_there() {
        // As glibc 2.36 leaves them, and as the kernel does.
        let cut = format!("A=b\0{TUNABLES}={}\0HOME=/\0", THREE.replace(':', "\0"));
        let whole = format!("A=b\0{TUNABLES}={THREE}\0HOME=/\0");
        for area in [cut, whole] {
            assert_eq!(reached(area.as_bytes(), TUNABLES, THREE), Reached::Yes);
            // One that glibc does not know keeps its colon.
            let other = format!("no.such=1:{THREE}");
            assert_eq!(reached(area.as_bytes(), TUNABLES, &other), Reached::No);
        }
        let unknown = b"GLIBC_TUNABLES=no.such=1:glibc.malloc.hugetlb=1\0glibc.malloc.perturb=0\0";
        let value = "no.such=1:glibc.malloc.hugetlb=1:glibc.malloc.perturb=0";
        assert_eq!(reached(unknown, TUNABLES, value), Reached::Yes);
    }

    #[test]
    fn a_missing_or_shorter_value_is_not_there() {
        for (area, value) in [
            (&b"HOME=/\0"[..], "1"),
            (b"", "1"),
            (b"NAME=2\0", "1"),
            (b"NAME=2\0", ""),
            (b"NAME=\0", "1"),
            (b"NAME=1\0", "1:2"),
            (b"NAME=1\0A=b\0", "1:2"),
            (b"NAME=2:1\0", "1:2"),
            (b"NAME=10\0", "1"),
            (b"OTHER_NAME=1\0", "1"),
        ] {
            assert_eq!(reached(area, "NAME", value), Reached::No, "{area:?}");
        }
    }

    #[test]
    fn a_value_of_any_variable_is_there_with_what_a_wrapper_adds() {
        for (area, value) in [
            (&b"NAME=1\0"[..], "1"),
            (b"NAME=\0", ""),
            (b"NAME=1\x002\0", "1:2"),
            (b"NAME=/other.so:/ours.so\0", "/ours.so"),
            (b"NAME=/ours.so /other.so\0", "/ours.so"),
            (b"A=b\0NAME=thp:always,metadata_thp:auto\0", "thp:always,metadata_thp:auto"),
        ] {
            assert_eq!(reached(area, "NAME", value), Reached::Yes, "{area:?}");
        }
        let both = wanted(&[("NAME", "1"), ("OTHER", "2")]);
        assert_eq!(Reached::in_area(b"OTHER=2\0NAME=1\0", &both), Reached::Yes);
        assert_eq!(Reached::in_area(b"OTHER=2\0", &both), Reached::No);
    }

    #[test]
    fn an_area_with_a_title_in_it_says_nothing() {
        for area in [&b"ker process\0\0\0\0"[..], b"\0\0\0\0", b"\0\0\0HOME=/\0", b"a b=c\0"] {
            assert_eq!(reached(area, "NAME", "1"), Reached::Unknown, "{area:?}");
        }
        assert_eq!(reached(b"\0\0\0NAME=1\0", "NAME", "1"), Reached::Yes);
    }

    #[test]
    fn a_process_has_what_it_was_started_with_whatever_its_libc_made_of_it() {
        let start = |variables: &[(&str, &str)]| {
            let mut command = Command::new("sleep");
            command.env_clear().envs(variables.iter().copied());
            Waiting(command.arg("1000").spawn().unwrap())
        };
        let all = wanted(&[(TUNABLES, THREE), ("OTHER", "a:b")]);
        // glibc may come to its tunables before or after a look.
        let with = start(&[(TUNABLES, THREE), ("OTHER", "a:b")]);
        assert_eq!(Reached::of(with.0.id(), &all), Reached::Yes);
        let without = start(&[]);
        assert_eq!(Reached::of(without.0.id(), &all), Reached::No);
        assert_eq!(Reached::of(without.0.id(), &[]), Reached::Yes);
        assert_eq!(Reached::of(u32::MAX, &all), Reached::Unknown);
    }

    #[test]
    fn a_process_that_ended_says_nothing() {
        let mut child = Command::new("true").env_clear().spawn().unwrap();
        // It is kept as a zombie until it is waited for.
        while Stat::of(child.id()).unwrap().state() != Some('Z') {
            std::thread::yield_now();
        }
        assert_eq!(Reached::of(child.id(), &wanted(&[("NAME", "1")])), Reached::Unknown);
        child.wait().unwrap();
    }
}
