//! What a guest runs: its first process, `pagelab`, and what these are loaded with.
//!
//! The one idea: they are built as the tests are, so the machines cost no build of their own.
//! A guest has no distribution: each program brings along what `ldd` names of this machine, at the
//! same places. Symbols are left here, because an emulated processor unpacks every byte.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::table::Boot;
use crate::{
    shell::{program, run},
    workspace,
};

/// Where everything is built.
const BUILT: &str = "target/debug";
/// Where what goes into a guest lies, without its symbols.
const FOLDER: &str = "target/guest";
/// The libraries that programs are loaded with, which `pagelab` looks for beside itself.
const LIBRARIES: [&str; 3] =
    ["libpagelab_heat.so", "libpagelab_preload.so", "libpagelab_segment.so"];
/// Where programs that cases bring along have their sources.
const SOURCES: &str = "tests/programs";

/// What guests are packed of.
#[derive(Debug)]
pub(super) struct Programs {
    /// `pagelab` as it was built, which boots machines itself.
    pub(super) pagelab: PathBuf,
    /// Of every guest: places in it, and files of this machine.
    pub(super) always: Vec<(String, PathBuf)>,
    /// Of those whose cases ask for a program.
    pub(super) asked: Vec<(String, PathBuf)>,
}

/// Builds them, with everything else that there is.
pub(super) fn everything() -> Result<()> {
    run("vm", workspace::build().arg("--quiet"))
}

/// What the boots need of what was built.
pub(super) fn programs(boots: &[Boot]) -> Result<Programs> {
    fs::create_dir_all(FOLDER).context(FOLDER)?;
    let mut always = vec![
        ("init".to_owned(), stripped("guest")?),
        ("bin/pagelab".to_owned(), stripped("pagelab")?),
    ];
    let names: BTreeSet<_> = boots.iter().flat_map(|boot| &boot.programs).collect();
    let mut asked = Vec::new();
    if !names.is_empty() {
        for library in LIBRARIES {
            asked.push((format!("bin/{library}"), stripped(library)?));
        }
    }
    for name in names {
        let (source, program) = (format!("{SOURCES}/{name}.c"), Path::new(FOLDER).join(name));
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-pthread", "-s", "-o"]).arg(&program).arg(source);
        run("vm", &mut cc).context("to have a compiler: apt-get install gcc libc6-dev")?;
        asked.push((format!("bin/{name}"), program));
    }
    add_loaded(&mut always)?;
    add_loaded(&mut asked)?;
    Ok(Programs { pagelab: Path::new(BUILT).join("pagelab"), always, asked })
}

/// A file that was built, without its symbols: whatever links Rust has the program for it.
fn stripped(name: &str) -> Result<PathBuf> {
    let (from, to) = (Path::new(BUILT).join(name), Path::new(FOLDER).join(name));
    let mut strip = program("strip", ["-o"]);
    run("vm", strip.arg(&to).arg(&from)).context("to have strip: apt-get install binutils")?;
    Ok(to)
}

/// Adds what the loader maps for these files, itself included.
fn add_loaded(files: &mut Vec<(String, PathBuf)>) -> Result<()> {
    let mut loaded = BTreeSet::new();
    for (_, file) in files.iter() {
        let output = Command::new("ldd").arg(file).output().context("ldd")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let found = of_ldd(&text);
        if found.is_empty() {
            bail!("ldd {}: {text}", file.display());
        }
        loaded.extend(found);
    }
    files.extend(loaded.into_iter().map(|file| {
        let place = file.to_string_lossy().trim_start_matches('/').to_owned();
        (place, file)
    }));
    Ok(())
}

/// Paths in what `ldd` says: `libc.so.6 => /lib/libc.so.6 (0x7f)`, `/lib64/ld.so (0x7f)`.
fn of_ldd(text: &str) -> Vec<PathBuf> {
    let path =
        |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    text.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_and_each_library_are_brought_along() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 \
                    (0x00007f81)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f82)\n";
        let paths = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(of_ldd(text), paths.map(PathBuf::from));
        assert!(of_ldd("\tnot a dynamic executable\n").is_empty());
    }
}
