//! What `/proc` says of a process's memory, as numbers.
//!
//! The one idea: fields of `status`, `smaps` and `maps` in, bytes by kind out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Range,
};

use pagelab_interpose::preload::PACKAGE;
use pagelab_sys::machine::proc::{self, Holding, Mapping};

/// What a mapping without a name is called.
const ANONYMOUS: &str = "anonymous";
/// Mappings that are told one by one.
const MAPPINGS: usize = 24;

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
        let text = proc::text(pid, "status").ok()?;
        let mut weight = Self::default();
        let mut is_told = false;
        for (name, bytes) in proc::sizes(&text) {
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
    ranges(pid, |one| one.rights.starts_with("rw") && ["", "[heap]"].contains(&one.name))
}

/// Where a process has private memory that is no file's, with the name of each mapping as
/// [`mappings`] has it: what folios are looked for in.
pub fn private(pid: u32) -> Vec<(Range<u64>, String)> {
    let text = proc::text(pid, "maps").unwrap_or_default();
    let private = proc::mappings(&text).filter(|one| {
        one.rights.starts_with("rw") && ["", "[heap]", "[stack]"].contains(&one.name)
    });
    private.map(|one| (one.range.clone(), called(&one))).collect()
}

/// Where a process has code of files.
pub fn code(pid: u32) -> Vec<Range<u64>> {
    ranges(pid, |one| one.may('x') && one.name.starts_with('/'))
}

fn ranges(pid: u32, fits: impl Fn(&Mapping<'_>) -> bool) -> Vec<Range<u64>> {
    let text = proc::text(pid, "maps").unwrap_or_default();
    proc::mappings(&text).filter(fits).map(|one| one.range).collect()
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
    let text = proc::text(pid, "maps").ok()?;
    let files = proc::mappings(&text).filter(|one| one.name.starts_with('/'));
    let files: Vec<_> = files.map(|one| (one.may('x'), one.name)).collect();
    let ours = fs::read_link("/proc/self/exe").unwrap_or_default();
    let is_ours = fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == ours);
    in_files(&files, is_ours)
}

/// The same of the mappings of files of a process, each with whether it is code.
fn in_files(files: &[(bool, &str)], is_ours: bool) -> Option<Library> {
    let file = format!("/lib{}.so", PACKAGE.replace('-', "_"));
    let code: BTreeSet<&str> =
        files.iter().filter(|(is_code, _)| *is_code).map(|(_, name)| *name).collect();
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
    proc::text(pid, "statm").is_ok_and(|text| !text.starts_with("0 "))
}

/// What a process holds by page size, and its heaviest mappings by name; `None` where nobody may
/// look, or it is ending.
pub fn mappings(pid: u32) -> Option<(Holding, Mappings)> {
    let (holding, all) = read_smaps(&proc::text(pid, "smaps").ok()?);
    (!all.is_empty()).then(|| (holding, heaviest(all)))
}

fn read_smaps(text: &str) -> (Holding, Mappings) {
    let (mut holding, mut all) = (Holding::default(), Mappings::new());
    for one in proc::mappings(text) {
        let name = called(&one);
        let is_file_code = one.may('x') && name.starts_with('/');
        let name = if is_file_code { format!("{name} (code)") } else { name };
        let mapped = all.entry(name).or_default();
        let is_eligible = one.has("THPeligible", "1");
        for (field, bytes) in one.sizes() {
            holding.add(field, bytes);
            match field {
                "Size" => {
                    mapped.size += bytes;
                    mapped.eligible += if is_eligible { bytes } else { 0 };
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
    }
    (holding, all)
}

/// What a mapping is called: its file, what the kernel calls it, or `anonymous`.
fn called(mapping: &Mapping<'_>) -> String {
    if mapping.name.is_empty() { ANONYMOUS.to_owned() } else { mapping.name.to_owned() }
}

/// The heaviest, and the others as one.
fn heaviest(all: Mappings) -> Mappings {
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
        let (_, all) = read_smaps(SMAPS);
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
        let (holding, _) = read_smaps(SMAPS);
        assert_eq!((holding.kinds(), holding.large()), ([30 << 20, 0, 2 << 20, 4 << 20], 36 << 20));
    }

    #[test]
    fn a_library_may_still_come_while_only_the_loader_is_there() {
        let of = |names: &[&str]| {
            let files: Vec<_> = names.iter().map(|name| (true, *name)).collect();
            in_files(&files, false)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["/a", "/ld.so"]), Some(Library::NotYet));
        assert_eq!(of(&["/a", "/ld.so", "/x/libpagelab_preload.so"]), Some(Library::There));
        assert_eq!(of(&["/a", "/ld.so", "/libc.so"]), Some(Library::Missing));
        assert_eq!(of(&["/static"]), Some(Library::Missing));
        // Mapped, but not its code yet.
        let begun = [(true, "/a"), (false, "/x/libpagelab_preload.so")];
        assert_eq!(in_files(&begun, false), Some(Library::There));
        let forked = ["/pagelab", "/ld.so", "/libc.so"].map(|name| (true, name));
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
