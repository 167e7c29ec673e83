//! What `/proc` says of a process's memory, as numbers.
//!
//! The one idea: lines of `status`, `smaps` and `maps` in, bytes by kind out; what the kernel
//! writes is taken as it comes, and a map that never ends is read up to a bound.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader, Read},
    ops::Range,
};

use pagelab_sys::process::preload::PACKAGE;

/// Bytes that are read of a map, at most: 100,000 mappings.
const MAP_BYTES: u64 = 96 << 20;
/// What a mapping without a name is called.
const ANONYMOUS: &str = "anonymous";
/// Mappings that are told one by one.
const MAPPINGS: usize = 24;

/// What processes hold, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Holding {
    /// Anonymous, in pages that a PMD maps.
    pub anonymous_huge: u64,
    /// Shared memory, likewise.
    pub shared_huge: u64,
    /// Files, likewise.
    pub file_huge: u64,
    /// Of hugetlb pools.
    pub hugetlb: u64,
}

impl Holding {
    /// The kinds, as a table names them.
    pub const KINDS: [&str; 4] = ["anonymous_huge", "shared_huge", "file_huge", "hugetlb"];

    /// By kind.
    pub fn kinds(&self) -> [u64; 4] {
        [self.anonymous_huge, self.shared_huge, self.file_huge, self.hugetlb]
    }

    /// All that is in pages larger than the base page, as far as page tables say.
    pub fn large(&self) -> u64 {
        self.kinds().iter().sum()
    }

    fn add(&mut self, field: &str, bytes: u64) {
        match field {
            "AnonHugePages" => self.anonymous_huge += bytes,
            "ShmemPmdMapped" => self.shared_huge += bytes,
            "FilePmdMapped" => self.file_huge += bytes,
            "Shared_Hugetlb" | "Private_Hugetlb" => self.hugetlb += bytes,
            _ => (),
        }
    }

    /// The sum.
    pub fn join(&mut self, other: Self) {
        self.anonymous_huge += other.anonymous_huge;
        self.shared_huge += other.shared_huge;
        self.file_huge += other.file_huge;
        self.hugetlb += other.hugetlb;
    }
}

/// What one process holds by its `status`, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    pub(super) anonymous: u64,
    pub(super) file: u64,
    pub(super) shared: u64,
    pub(super) hugetlb: u64,
    /// The most that was present so far, hugetlb pages not included.
    pub(super) peak: u64,
}

impl Weight {
    /// `None` of one that is ending.
    pub fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let mut weight = Self::default();
        let mut is_told = false;
        for (name, bytes) in text.lines().filter_map(field) {
            match name {
                "RssAnon" => weight.anonymous = bytes,
                "RssFile" => weight.file = bytes,
                "RssShmem" => weight.shared = bytes,
                "HugetlbPages" => weight.hugetlb = bytes,
                "VmHWM" => weight.peak = bytes,
                _ => continue,
            }
            is_told = true;
        }
        is_told.then_some(weight)
    }

    /// All that is present, hugetlb pages not included.
    pub(super) fn resident(&self) -> u64 {
        self.anonymous + self.file + self.shared
    }
}

/// A mapping, or all of one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Addresses.
    pub size: u64,
    /// Of them present.
    pub resident: u64,
    /// Of those in pages larger than the base page.
    pub large: u64,
    /// Addresses in mappings that may have transparent huge pages now, by the kernel's word.
    pub eligible: u64,
}

/// The mappings of a process by name, at one look.
pub type Mappings = BTreeMap<String, Mapped>;

/// Whether a look saw as much as another or more: first of what is in large pages, then of all.
pub fn is_fuller(one: &Mappings, other: &Mappings) -> bool {
    let sum = |all: &Mappings, of: fn(&Mapped) -> u64| all.values().map(of).sum::<u64>();
    let seen = |all| [sum(all, |one| one.large), sum(all, |one| one.resident)];
    seen(one) >= seen(other)
}

/// Where a process has anonymous memory that it may write.
pub fn anonymous(pid: u32) -> Vec<Range<u64>> {
    ranges(pid, |access, name| access.starts_with("rw") && (name.is_empty() || name == "[heap]"))
}

/// Where a process has private memory that is no file's, with the name of each mapping as
/// [`mappings`] has it: what folios are looked for in.
pub fn private(pid: u32) -> Vec<(Range<u64>, String)> {
    found(pid, |range, access, name| {
        let is_private = name.is_empty() || ["[heap]", "[stack]"].contains(&name);
        let name = if name.is_empty() { ANONYMOUS } else { name };
        (is_private && access.starts_with("rw")).then(|| (range, name.to_owned()))
    })
}

/// Where a process has code of files.
pub fn code(pid: u32) -> Vec<Range<u64>> {
    ranges(pid, |access, name| access.contains('x') && name.starts_with('/'))
}

fn ranges(pid: u32, fits: impl Fn(&str, &str) -> bool) -> Vec<Range<u64>> {
    found(pid, |range, access, name| fits(access, name).then_some(range))
}

/// What is found in the lines of `/proc/PID/maps`: a range, its access and its name.
fn found<T>(pid: u32, of: impl Fn(Range<u64>, &str, &str) -> Option<T>) -> Vec<T> {
    let Ok(file) = fs::File::open(format!("/proc/{pid}/maps")) else { return Vec::new() };
    let lines = BufReader::new(file.take(MAP_BYTES)).split(b'\n').map_while(Result::ok);
    let found = lines.filter_map(|line| {
        let line = String::from_utf8_lossy(&line);
        let (low, high, access, name) = parts(&line)?;
        of(low..high, access, &name)
    });
    found.collect()
}

/// Whether our library is among the mappings of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// It is.
    There,
    /// It is not, and may still come: the process has not executed its program yet, or has the
    /// program and a loader only, which maps what is preloaded before anything else.
    NotYet,
    /// It is not, though other libraries are, or there is no loader.
    Missing,
}

/// Whether our library is among the mappings of a process; `None` where nobody may look, or it is
/// ending.
pub fn library(pid: u32) -> Option<Library> {
    let files = found(pid, |_, access, name| {
        name.starts_with('/').then(|| (access.contains('x'), name.to_owned()))
    });
    let ours = fs::read_link("/proc/self/exe").unwrap_or_default();
    let is_ours = fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == ours);
    in_files(&files, is_ours)
}

/// The same of the mappings of files of a process, each with whether it is code.
fn in_files(files: &[(bool, String)], is_ours: bool) -> Option<Library> {
    let file = format!("/lib{}.so", PACKAGE.replace('-', "_"));
    let code: BTreeSet<&str> =
        files.iter().filter(|(is_code, _)| *is_code).map(|(_, name)| name.as_str()).collect();
    if code.is_empty() {
        return None;
    }
    Some(match files.iter().any(|(_, name)| name.ends_with(&file)) {
        true => Library::There,
        false if is_ours || code.len() == 2 => Library::NotYet,
        false => Library::Missing,
    })
}

/// Whether a process has memory still: not one that is ending.
pub fn is_there(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/statm")).is_ok_and(|text| !text.starts_with("0 "))
}

/// What a process holds by page size; `None` where nobody may look, or it is ending.
pub fn rollup(pid: u32) -> Option<Holding> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let mut holding = Holding::default();
    let mut is_told = false;
    for (field, bytes) in text.lines().filter_map(field) {
        holding.add(field, bytes);
        is_told = true;
    }
    is_told.then_some(holding)
}

/// A line of `smaps` that has a number of KiB.
fn field(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.split_once(':')?;
    let kib: u64 = rest.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some((name, kib.checked_mul(1024)?))
}

/// What a process holds by page size, and its heaviest mappings by name; `None` where nobody may
/// look, or it is ending.
pub fn mappings(pid: u32) -> Option<(Holding, BTreeMap<String, Mapped>)> {
    let file = fs::File::open(format!("/proc/{pid}/smaps")).ok()?;
    let (holding, all) = read_smaps(BufReader::new(file.take(MAP_BYTES)));
    (!all.is_empty()).then(|| (holding, heaviest(all)))
}

fn read_smaps(text: impl BufRead) -> (Holding, BTreeMap<String, Mapped>) {
    let mut all: BTreeMap<String, Mapped> = BTreeMap::new();
    let mut holding = Holding::default();
    let mut name = String::new();
    let mut size = 0;
    for line in text.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if let Some(header) = header(&line) {
            name = header;
            continue;
        }
        let mapped = all.entry(name.clone()).or_default();
        if line.strip_prefix("THPeligible:").is_some_and(|word| word.trim() == "1") {
            mapped.eligible += size;
        }
        let Some((field, bytes)) = field(&line) else { continue };
        holding.add(field, bytes);
        match field {
            "Size" => {
                size = bytes;
                mapped.size += bytes;
            }
            "Rss" => mapped.resident += bytes,
            "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => mapped.large += bytes,
            "Shared_Hugetlb" | "Private_Hugetlb" => {
                mapped.large += bytes;
                mapped.resident += bytes;
            }
            _ => (),
        }
    }
    (holding, all)
}

/// The first line of a mapping: its ends, how it may be accessed, and its name.
fn parts(line: &str) -> Option<(u64, u64, &str, String)> {
    let (range, rest) = line.split_once(' ')?;
    let (low, high) = range.split_once('-')?;
    let [low, high] = [low, high].map(|word| u64::from_str_radix(word, 16).ok());
    let mut words = rest.split_whitespace();
    let access = words.next()?;
    // Offset, device and inode; the name has the rest, with its blanks.
    Some((low?, high?, access, words.skip(3).collect::<Vec<_>>().join(" ")))
}

/// What a mapping is called by its first line: its file, what the kernel calls it, or `anonymous`.
fn header(line: &str) -> Option<String> {
    let (_, _, access, name) = parts(line)?;
    let name = if name.is_empty() { ANONYMOUS.to_owned() } else { name };
    let is_code = access.contains('x');
    Some(if is_code && name.starts_with('/') { format!("{name} (code)") } else { name })
}

/// The heaviest, and the others as one.
fn heaviest(all: BTreeMap<String, Mapped>) -> BTreeMap<String, Mapped> {
    let mut sorted: Vec<(String, Mapped)> = all.into_iter().collect();
    sorted.sort_by_key(|(_, mapped)| std::cmp::Reverse(mapped.resident));
    let mut others = Mapped::default();
    for (_, mapped) in sorted.drain(sorted.len().min(MAPPINGS)..) {
        others.size += mapped.size;
        others.resident += mapped.resident;
        others.large += mapped.large;
        others.eligible += mapped.eligible;
    }
    if others.size > 0 {
        sorted.push(("others".to_owned(), others));
    }
    sorted.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_look_that_is_kept_saw_most_in_large_pages_and_then_most_of_all() {
        let look = |resident, large| {
            let mapped = Mapped { resident, large, ..Mapped::default() };
            Mappings::from([(ANONYMOUS.to_owned(), mapped)])
        };
        assert!(is_fuller(&look(9, 8), &look(99, 4)) && !is_fuller(&look(99, 4), &look(9, 8)));
        assert!(is_fuller(&look(9, 0), &look(4, 0)) && !is_fuller(&look(4, 0), &look(9, 0)));
        assert!(!is_fuller(&Mappings::default(), &look(1, 0)), "none at all tells nothing");
    }

    const SMAPS: &str = "\
55d0-55d8 r-xp 00000000 fe:00 12 /usr/bin/a name
Size:               8192 kB
Rss:                4096 kB
Pss:                2048 kB
FilePmdMapped:      2048 kB
THPeligible:           0
7f00-7f40 rw-p 00000000 00:00 0
Size:              65536 kB
Rss:               32768 kB
AnonHugePages:     30720 kB
THPeligible:           1
VmFlags: rd wr
7f50-7f60 rw-p 00000000 00:0f 9 /anon_hugepage (deleted)
Size:               4096 kB
Rss:                   0 kB
Private_Hugetlb:    4096 kB
THPeligible:           0
";

    #[test]
    fn mappings_are_told_by_name_with_what_they_hold() {
        let (_, all) = read_smaps(SMAPS.as_bytes());
        let mib = |mapped: &Mapped| {
            [mapped.size, mapped.resident, mapped.large, mapped.eligible].map(|n| n >> 20)
        };
        let told: Vec<(&str, [u64; 4])> =
            all.iter().map(|(name, mapped)| (name.as_str(), mib(mapped))).collect();
        let expected = [
            ("/anon_hugepage (deleted)", [4, 4, 4, 0]),
            ("/usr/bin/a name (code)", [8, 4, 2, 0]),
            ("anonymous", [64, 32, 30, 64]),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_held_is_counted_once() {
        let (holding, _) = read_smaps(SMAPS.as_bytes());
        let expected = Holding {
            anonymous_huge: 30 << 20,
            shared_huge: 0,
            file_huge: 2 << 20,
            hugetlb: 4 << 20,
        };
        assert_eq!((holding, holding.large() >> 20), (expected, 36));
    }

    #[test]
    fn a_library_may_still_come_while_only_the_loader_is_there() {
        let of = |names: &[&str]| {
            let files: Vec<_> = names.iter().map(|name| (true, (*name).to_owned())).collect();
            in_files(&files, false)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["/a", "/ld.so"]), Some(Library::NotYet));
        assert_eq!(of(&["/a", "/ld.so", "/x/libpagelab_preload.so"]), Some(Library::There));
        assert_eq!(of(&["/a", "/ld.so", "/libc.so"]), Some(Library::Missing));
        assert_eq!(of(&["/static"]), Some(Library::Missing));
        // Mapped, but not its code yet.
        let begun = [(true, "/a".to_owned()), (false, "/x/libpagelab_preload.so".to_owned())];
        assert_eq!(in_files(&begun, false), Some(Library::There));
        let forked = ["/pagelab", "/ld.so", "/libc.so"].map(|name| (true, name.to_owned()));
        assert_eq!(in_files(&forked, true), Some(Library::NotYet));
    }

    #[test]
    fn of_many_mappings_the_heaviest_are_named() {
        let many = (1..=100_u64).map(|n| {
            let mapped = Mapped { size: n, resident: n, large: 0, eligible: 0 };
            (format!("m{n}"), mapped)
        });
        let told = heaviest(many.collect());
        assert_eq!(told.len(), MAPPINGS + 1);
        assert_eq!(told["others"].resident, (1..=76).sum::<u64>());
    }
}
