//! What kind of program it is, as far as its file says: what a rung can do with it.
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

use elf::{ElfStream, abi::PT_INTERP, endian::AnyEndian};

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
        };
        for _ in 0..SCRIPTS {
            let about = fs::metadata(&path)?;
            program.is_setuid |= about.mode() & 0o6000 != 0 && about.uid() != own_user();
            match interpreter(&path) {
                Some(next) => path = find(next.as_os_str())?,
                None => break,
            }
        }
        if let Some((loader, is_narrow)) = loader(&path) {
            (program.loader, program.is_narrow) = (loader, is_narrow);
        }
        Ok(program)
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

/// Who loads an ELF file, and whether it is of 32 bits; `None` where it is none.
fn loader(path: &Path) -> Option<(Loader, bool)> {
    let mut elf = ElfStream::<AnyEndian, _>::open_stream(File::open(path).ok()?).ok()?;
    let is_narrow = elf.ehdr.class == elf::file::Class::ELF32;
    let named = elf.segments().iter().find(|segment| segment.p_type == PT_INTERP).copied();
    let Some(named) = named else { return Some((Loader::None, is_narrow)) };
    let name = elf.segment_data(&named).map(String::from_utf8_lossy).ok()?.into_owned();
    let file = name.trim_end_matches('\0').rsplit('/').next().unwrap_or_default().to_owned();
    let is_glibc = file.starts_with("ld-linux") || file.starts_with("ld64.so");
    Some((if is_glibc { Loader::Glibc } else { Loader::Other }, is_narrow))
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
}
