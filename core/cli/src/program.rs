//! What kind of program it is, as far as its file says: what can be done with it.
//!
//! The one idea: nothing is run to find out. The file is found as a shell would find it, a script
//! leads to its interpreter, and the ELF header says who loads it.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use elf::{
    ElfStream,
    abi::{DT_NEEDED, PT_INTERP, PT_LOAD},
    endian::AnyEndian,
    segment::ProgramHeader,
};

/// A script whose interpreter is a script, so many times over, is none that the kernel runs.
const SCRIPTS: usize = 5;
/// The kernel reads so much of a first line (`BINPRM_BUF_SIZE`).
const FIRST_LINE: u64 = 256;

/// A program and its arguments.
#[derive(Debug, Clone)]
pub struct Program {
    /// The words that start it.
    pub words: Vec<OsString>,
    /// Who loads what is executed in the end.
    pub loader: Loader,
    /// Whether it takes the rights of another user, and so looks at no preloaded library.
    pub is_setuid: bool,
    /// Whether it is of 32 bits.
    pub is_narrow: bool,
    /// Whether it is static and has glibc in it: its malloc reads tunables, and nothing is
    /// preloaded into it.
    pub is_static_glibc: bool,
    /// The runtime of `AddressSanitizer` that it loads, which ends it where another library comes
    /// first.
    pub asan: Option<String>,
}

/// Who makes an executable file a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loader {
    /// The dynamic loader of glibc: its tunables and preloaded libraries count.
    Glibc,
    /// Another dynamic loader: preloaded libraries count, if they are made for it.
    Other,
    /// None: the kernel alone.
    None,
    /// Nobody could tell.
    Unknown,
}

impl Program {
    /// Looks at a program.
    ///
    /// # Errors
    /// When there is no such program, or it may not be executed.
    pub fn of(words: &[OsString]) -> io::Result<Self> {
        let name = words.first().ok_or(io::ErrorKind::NotFound)?;
        let mut path = find(name)?;
        let mut program = Self {
            words: words.to_vec(),
            loader: Loader::Unknown,
            is_setuid: false,
            is_narrow: false,
            is_static_glibc: false,
            asan: None,
        };
        for _ in 0..SCRIPTS {
            let about = fs::metadata(&path)?;
            program.is_setuid |= about.mode() & 0o6000 != 0 && about.uid() != own_user();
            match interpreter(&path) {
                Some(next) => path = find(next.as_os_str())?,
                None => break,
            }
        }
        if let Some(kind) = kind(&path) {
            (program.loader, program.is_narrow) = (kind.loader, kind.is_narrow);
            (program.is_static_glibc, program.asan) = (kind.is_static_glibc, kind.asan);
        }
        Ok(program)
    }

    /// Whether glibc starts it, from outside or from within, and reads `GLIBC_TUNABLES`.
    pub fn takes_tunables(&self) -> bool {
        (self.loader == Loader::Glibc || self.is_static_glibc) && !self.is_setuid
    }

    /// Why no library can be preloaded into it, where its own runtime ends it then.
    pub fn refuses_preload(&self) -> Option<String> {
        let asan = self.asan.as_ref()?;
        Some(format!(
            "is built with AddressSanitizer, whose runtime ({asan}) ends it where another library \
             is loaded first (LD_PRELOAD)"
        ))
    }

    /// The words as one line, for people.
    pub fn line(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}

fn own_user() -> u32 {
    fs::metadata("/proc/self").map_or(0, |about| about.uid())
}

/// The file that a shell would run.
fn find(name: &OsStr) -> io::Result<PathBuf> {
    let runs = |path: &Path| {
        fs::metadata(path).is_ok_and(|about| about.is_file() && about.mode() & 0o111 != 0)
    };
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        fs::metadata(&path)?;
        return if runs(&path) { Ok(path) } else { Err(io::ErrorKind::PermissionDenied.into()) };
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut paths = env::split_paths(&folders).map(|folder| folder.join(name));
    paths.find(|path| runs(path)).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Who a script is for; `env` hands on to the first word that is no assignment and no flag.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut first = Vec::new();
    File::open(path).ok()?.take(FIRST_LINE).read_to_end(&mut first).ok()?;
    let line = first.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let text = String::from_utf8_lossy(line).into_owned();
    let mut words = text.split_whitespace();
    let name = words.next()?;
    if !name.ends_with("/env") {
        return Some(name.into());
    }
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(Into::into)
}

/// What an ELF file is.
struct Kind {
    loader: Loader,
    is_narrow: bool,
    is_static_glibc: bool,
    asan: Option<String>,
}

/// What the runtime of `AddressSanitizer` is called, of gcc and of clang, where it is a library:
/// one that is linked in does not look at what else is loaded.
const ASAN: [&str; 2] = ["libasan.so", "libclang_rt.asan"];

/// Texts that glibc has to have in a program to read tunables in it (2.26), each of which ends with
/// a 0. The first alone is also in programs that set the variable for others.
const OF_TUNABLES: [&[u8]; 2] = [b"GLIBC_TUNABLES", b"glibc.malloc.mmap_threshold"];

/// The kind of an ELF file; `None` where it is none.
fn kind(path: &Path) -> Option<Kind> {
    let mut elf = ElfStream::<AnyEndian, _>::open_stream(File::open(path).ok()?).ok()?;
    let is_narrow = elf.ehdr.class == elf::file::Class::ELF32;
    let named = elf.segments().iter().find(|segment| segment.p_type == PT_INTERP).copied();
    let Some(named) = named else {
        let is_static_glibc = has_texts(&mut elf, &OF_TUNABLES);
        return Some(Kind { loader: Loader::None, is_narrow, is_static_glibc, asan: None });
    };
    let name = elf.segment_data(&named).map(String::from_utf8_lossy).ok()?.into_owned();
    let file = name.trim_end_matches('\0').rsplit('/').next().unwrap_or_default().to_owned();
    let is_glibc = file.starts_with("ld-linux") || file.starts_with("ld64.so");
    let loader = if is_glibc { Loader::Glibc } else { Loader::Other };
    let asan = libraries(&mut elf);
    let asan = asan.into_iter().find(|library| ASAN.iter().any(|asan| library.starts_with(asan)));
    Some(Kind { loader, is_narrow, is_static_glibc: false, asan })
}

/// The libraries that an ELF file is loaded with (`DT_NEEDED`).
fn libraries(elf: &mut ElfStream<AnyEndian, File>) -> Vec<String> {
    let Ok(Some(entries)) = elf.dynamic() else { return Vec::new() };
    let needed = entries.iter().filter(|entry| entry.d_tag == DT_NEEDED);
    let names: Vec<usize> = needed.filter_map(|entry| entry.d_val().try_into().ok()).collect();
    let Ok(Some((_, texts))) = elf.dynamic_symbol_table() else { return Vec::new() };
    names.into_iter().filter_map(|at| texts.get(at).ok()).map(str::to_owned).collect()
}

/// Whether what is loaded of an ELF file has all of these texts, each with a 0 behind it: stripped
/// files have no symbols, but these.
fn has_texts(elf: &mut ElfStream<AnyEndian, File>, texts: &[&[u8]]) -> bool {
    let is_loaded = |segment: &&ProgramHeader| segment.p_type == PT_LOAD;
    let segments: Vec<ProgramHeader> = elf.segments().iter().filter(is_loaded).copied().collect();
    let mut found = vec![false; texts.len()];
    for segment in segments {
        let Ok(data) = elf.segment_data(&segment) else { continue };
        for piece in data.split(|byte| *byte == 0) {
            for (found, text) in found.iter_mut().zip(texts) {
                *found |= piece.ends_with(text);
            }
        }
    }
    found.into_iter().all(|found| found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(words: &[&str]) -> io::Result<Program> {
        Program::of(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_shell_is_found_and_is_loaded_by_somebody() {
        let shell = program(&["sh", "-c", "true"]).unwrap();
        assert_ne!(shell.loader, Loader::Unknown);
        assert_eq!((shell.line().as_str(), shell.is_setuid), ("sh -c true", false));
        assert_eq!(program(&["/no/such"]).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(program(&["no-such-word"]).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(program(&["/etc"]).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(program(&[]).is_err());
    }

    #[test]
    fn a_script_is_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        for (line, loader) in [
            ("#!/bin/sh\n", program(&["sh"]).unwrap().loader),
            ("#!/usr/bin/env -S A=b sh -e\n", program(&["sh"]).unwrap().loader),
            ("no program at all", Loader::Unknown),
        ] {
            let path = folder.path().join("script");
            fs::write(&path, line).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(program(&[path.to_str().unwrap()]).unwrap().loader, loader, "{line}");
        }
    }

    /// A file of 64 bits with these texts in one segment, which no loader is named for.
    fn fixed(texts: &[u8]) -> Vec<u8> {
        let mut file = vec![0_u8; 64 + 56];
        file[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0");
        let mut put = |at: usize, value: u64, bytes: usize| {
            file[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        };
        // e_version, e_phoff, e_ehsize, e_phentsize, e_phnum.
        put(20, 1, 4);
        put(32, 64, 8);
        put(52, 64, 2);
        put(54, 56, 2);
        put(56, 1, 2);
        // p_type, p_offset, p_filesz, p_memsz.
        put(64, u64::from(PT_LOAD), 4);
        put(64 + 8, 120, 8);
        put(64 + 32, texts.len() as u64, 8);
        put(64 + 40, texts.len() as u64, 8);
        file.extend(texts);
        file
    }

    #[test]
    fn a_static_program_takes_tunables_where_glibc_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        for (texts, takes) in [
            (&b"a\0GLIBC_TUNABLES\0b\0glibc.malloc.mmap_threshold\0\0"[..], true),
            // Another library of C, and one that sets the variable for others.
            (b"a\0b\0", false),
            (b"GLIBC_TUNABLES\0glibc.malloc.hugetlb=1\0", false),
            (b"GLIBC_TUNABLESglibc.malloc.mmap_threshold=4\0", false),
            (b"", false),
        ] {
            let path = folder.path().join("fixed");
            fs::write(&path, fixed(texts)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            let program = program(&[path.to_str().unwrap()]).unwrap();
            assert_eq!(program.loader, Loader::None);
            assert_eq!((program.is_static_glibc, program.takes_tunables()), (takes, takes));
        }
        let shell = program(&["sh"]).unwrap();
        assert!(!shell.is_static_glibc);
        assert_eq!(shell.takes_tunables(), shell.loader == Loader::Glibc);
    }
}
