//! Names of code that a program made itself: `/tmp/perf-PID.map`, which JIT compilers write.
//!
//! A line is `START SIZE name`, both numbers hexadecimal
//! (`tools/perf/Documentation/jit-interface.txt`
//! of Linux). Code is written over other code, so later lines are right.
//!
//! The file is another program's: it is read only where that program's user or root owns it, never
//! through a link, and no more than `BYTES_MAX` of it. Names are cut and have no control
//! characters. A program in a PID namespace writes another number, and in a mount namespace
//! another `/tmp`: its file is not found.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    io::Read,
    os::unix::fs::MetadataExt,
    path::Path,
    rc::Rc,
};

use pagelab_sys::files::regular::{self, Links};

/// The most that is read of a file, in bytes.
const BYTES_MAX: u64 = 64 << 20;
/// Lines of a file; what comes later is left out.
const LINES_MAX: usize = 1 << 20;
/// Characters of a name.
const NAME_MAX: usize = 200;
/// Processes of which such a file is looked for.
const PROCESSES_MAX: usize = 4096;

/// The file of each process that runs code outside every file.
#[derive(Debug, Default)]
pub(super) struct MapFiles {
    paths: HashMap<u32, Rc<str>>,
    /// The user of the process.
    pub(super) owners: Owners,
}

/// Who may have written each file.
pub(super) type Owners = HashMap<Rc<str>, u32>;

impl MapFiles {
    /// The path of the file of a process, while the process runs; whether it is there is not asked.
    pub(super) fn of(&mut self, pid: u32) -> Option<Rc<str>> {
        if let Some(path) = self.paths.get(&pid) {
            return Some(Rc::clone(path));
        }
        if self.owners.len() >= PROCESSES_MAX {
            return None;
        }
        let path: Rc<str> = format!("/tmp/perf-{pid}.map").into();
        let owner = fs::metadata(format!("/proc/{pid}")).map_or(0, |folder| folder.uid());
        self.owners.insert(Rc::clone(&path), owner);
        self.paths.insert(pid, Rc::clone(&path));
        Some(path)
    }
}

/// The functions of such a file.
#[derive(Debug, Default)]
pub struct PerfMap {
    text: Vec<u8>,
    /// By first address: the address behind the last, and where the name is.
    functions: BTreeMap<u64, (u64, (usize, usize))>,
}

impl PerfMap {
    /// Reads the file that this user or root has written; empty where it may not be used.
    pub(super) fn read(path: &str, owner: u32) -> Self {
        let mut text = Vec::new();
        let is_owners = |file: &File| {
            let who = file.metadata().map(|file| file.uid());
            who.is_ok_and(|who| who == 0 || who == owner)
        };
        let file = regular::open(Path::new(path), Links::Refused).ok();
        if let Some(file) = file.filter(is_owners) {
            // What was read before it failed is as good.
            let _ = file.take(BYTES_MAX).read_to_end(&mut text);
        }
        Self::parse(text)
    }

    /// What a text says; lines that are none of the form are passed over.
    pub fn parse(text: Vec<u8>) -> Self {
        let (mut functions, mut at) = (BTreeMap::new(), 0);
        for line in text.split(|byte| *byte == b'\n').take(LINES_MAX) {
            if let Some((start, end, name)) = function(line) {
                put(&mut functions, start, end, (at + name, at + line.len()));
            }
            at += line.len() + 1;
        }
        Self { text, functions }
    }

    /// The name of the function that an address lies in.
    pub fn find(&self, address: u64) -> Option<String> {
        let (_, (end, (from, to))) = self.functions.range(..=address).next_back()?;
        let name = String::from_utf8_lossy(self.text.get(*from..*to)?);
        let name: String = name.chars().filter(|c| !c.is_control()).take(NAME_MAX).collect();
        (address < *end).then(|| name.trim().to_owned())
    }
}

/// The addresses of a line, and where in it the name begins.
fn function(line: &[u8]) -> Option<(u64, u64, usize)> {
    let space = |from: usize| Some(from + line.get(from..)?.iter().position(|b| *b == b' ')?);
    let first = space(0)?;
    let second = space(first + 1)?;
    let number = |bytes: &[u8]| {
        let text = str::from_utf8(bytes).ok()?;
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    let (start, size) = (number(&line[..first])?, number(&line[first + 1..second])?);
    let end = start.checked_add(size)?;
    (size > 0 && second + 1 < line.len()).then_some((start, end, second + 1))
}

/// Puts a function in place of what was there.
fn put<T: Copy>(functions: &mut BTreeMap<u64, (u64, T)>, start: u64, end: u64, name: T) {
    let below = functions.range(..start).next_back().filter(|(_, of)| of.0 > start);
    if let Some((from, (to, other))) = below.map(|(from, of)| (*from, *of)) {
        functions.insert(from, (start, other));
        if to > end {
            functions.insert(end, (to, other));
        }
    }
    while let Some((from, (to, other))) = functions.range(start..end).next().map(|(a, b)| (*a, *b))
    {
        functions.remove(&from);
        if to > end {
            functions.insert(end, (to, other));
        }
    }
    functions.insert(start, (end, name));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_function_has_the_name_of_the_last_line_about_it() {
        let text = "1000 100 first\n1040 0x20 py::inner:/a b.py\n\nnone\nzz 10 x\n2000 0 empty\n\
                    ffffffffffffffff 2 over\n3000 10 \n4000 8 a\x1b[31mb\n";
        let map = PerfMap::parse(text.as_bytes().to_vec());
        let found = |at| map.find(at);
        assert_eq!(found(0x1000).as_deref(), Some("first"));
        assert_eq!(found(0x1040).as_deref(), Some("py::inner:/a b.py"));
        assert_eq!(found(0x1060).as_deref(), Some("first"), "it goes on behind");
        assert_eq!(found(0x4007).as_deref(), Some("a[31mb"), "nothing that a terminal obeys");
        assert!(
            [0xFFF, 0x1100, 0x2000, 0x3000, 0x4008, u64::MAX].iter().all(|at| found(*at).is_none())
        );
        let long = PerfMap::parse(format!("1000 1 {}", "x".repeat(5000)).into_bytes());
        assert_eq!(long.find(0x1000).unwrap().len(), NAME_MAX);
    }

    #[test]
    fn a_file_is_its_owners_and_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("map"), folder.path().join("link"));
        fs::write(&file, "1000 10 f\n").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let owner = fs::metadata(&file).unwrap().uid();
        let found = |path: &Path, owner| {
            PerfMap::read(path.to_str().unwrap(), owner).find(0x1000).is_some()
        };
        assert!(found(&file, owner) && !found(&link, owner));
        assert_eq!(found(&file, owner + 1), owner == 0, "root's is anybody's");
        assert!(!found(folder.path(), owner));
    }

    proptest! {
        #[test]
        fn the_last_of_several_wins(
            all in prop::collection::vec((0_u64..40, 1_u64..20), 0..20),
        ) {
            let line = |(nth, (start, size)): (usize, &(u64, u64))| {
                format!("{start:x} {size:x} {nth}\n")
            };
            let text: String = all.iter().enumerate().map(line).collect();
            let map = PerfMap::parse(text.into_bytes());
            for at in 0..64 {
                let is_in = |(start, size): &(u64, u64)| (*start..start + size).contains(&at);
                let last = all.iter().rposition(is_in);
                prop_assert_eq!(map.find(at), last.map(|nth| nth.to_string()));
            }
        }
    }
}
