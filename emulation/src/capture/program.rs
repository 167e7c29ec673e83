//! What a program is: which QEMU runs it, and whether its loader is here.
//!
//! The one idea: whatever QEMU would refuse, or would run as something else, is refused before
//! anything is created, with what to do instead.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::File,
    io::{Read, Seek, SeekFrom},
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::Context;
use elf::{ElfStream, abi, endian::AnyEndian, file::Class};

use pagelab_cli::exit::Failure;

/// Machines whose programs can be captured: ELF's number, and the QEMU that runs them.
const MACHINES: &[(u16, &str)] =
    &[(abi::EM_RISCV, "qemu-riscv64"), (abi::EM_X86_64, "qemu-x86_64")];
/// The variable by which QEMU is told a sysroot.
const SYSROOT: &str = "QEMU_LD_PREFIX";
/// Where Debian's cross packages put another machine's loader and libraries.
const CROSS: &[&str] = &["/usr/riscv64-linux-gnu", "/usr/x86_64-linux-gnu"];

/// A program that QEMU can run.
#[derive(Debug)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// The QEMU that runs it: `qemu-riscv64`.
    pub emulator: &'static str,
    /// Where its loader is looked for first.
    pub sysroot: Option<PathBuf>,
}

impl Program {
    /// Finds a program as a shell would, and looks into it; `command` is what captures programs.
    ///
    /// # Errors
    /// When there is none, or it is none that can be captured.
    pub(super) fn find(
        name: &OsStr,
        sysroot: Option<&PathBuf>,
        command: &str,
    ) -> Result<Self, Failure> {
        let path = in_path(name)
            .ok_or_else(|| usage!("there is no program {}", name.to_string_lossy()))?;
        let sysroot = sysroot.cloned().or_else(|| env::var_os(SYSROOT).map(PathBuf::from));
        let shown = path.display();
        let mut file = File::open(&path)
            .with_context(|| format!("cannot read {shown}"))
            .map_err(Failure::usage)?;
        let refused = |why: String| usage!("{shown} {why}");
        if let Some(interpreter) = interpreter(&mut file) {
            return Err(refused(format!(
                "is a script: capture what runs it: {command} -- {interpreter} {shown}"
            )));
        }
        let elf = ElfStream::<AnyEndian, _>::open_stream(&mut file)
            .map_err(|_| refused("is no program: not an ELF file".to_owned()))?;
        let machine = elf.ehdr.e_machine;
        let known = MACHINES.iter().find(|(number, _)| *number == machine);
        let is_wide = elf.ehdr.class == Class::ELF64 && elf.ehdr.endianness == AnyEndian::Little;
        let Some((_, emulator)) = known.filter(|_| is_wide) else {
            return Err(refused(format!(
                "is for a machine that cannot be captured (ELF machine {machine}): only riscv64 \
                 and x86-64 programs can"
            )));
        };
        if elf.ehdr.e_type != abi::ET_EXEC && elf.ehdr.e_type != abi::ET_DYN {
            return Err(refused("is no program but a part of one (ELF type)".to_owned()));
        }
        let loader = elf.segments().iter().find(|part| part.p_type == abi::PT_INTERP).copied();
        if let Some(loader) = loader {
            let mut name = vec![0; usize::try_from(loader.p_filesz.min(4096)).unwrap_or(0)];
            file.seek(SeekFrom::Start(loader.p_offset))
                .and_then(|_| file.read_exact(&mut name))
                .map_err(|_| refused("is cut short: its loader's name is missing".to_owned()))?;
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            has_loader(Path::new(OsStr::from_bytes(name)), sysroot.as_deref()).map_err(refused)?;
        }
        Ok(Self { path, emulator, sysroot })
    }
}

/// Where a word leads to, as in a shell: by `PATH` unless it holds a slash.
fn in_path(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    executables(name).next()
}

/// The executables of this name in the folders of `PATH`.
pub(super) fn executables(name: &OsStr) -> impl Iterator<Item = PathBuf> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&folders).collect();
    let name = OsString::from(name);
    folders.into_iter().map(move |folder| folder.join(&name)).filter(|path| {
        path.metadata()
            .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    })
}

/// What a script names on its first line.
fn interpreter(file: &mut File) -> Option<String> {
    let mut start = [0; 256];
    let count = file.read(&mut start).ok()?;
    file.rewind().ok()?;
    let line = start[..count].strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

/// Whether the loader of a dynamic program is where QEMU looks for it; what to do otherwise.
fn has_loader(loader: &Path, sysroot: Option<&Path>) -> Result<(), String> {
    let below = |root: &Path| root.join(loader.strip_prefix("/").unwrap_or(loader));
    if loader.exists() || sysroot.is_some_and(|root| below(root).exists()) {
        return Ok(());
    }
    let cure = CROSS
        .iter()
        .find(|root| below(Path::new(root)).exists())
        .map_or("DIR, the folder that holds it, or link the program with -static", |root| root);
    let loader = loader.display();
    Err(format!("is dynamic, and its loader {loader} is not here: --sysroot {cure}"))
}
