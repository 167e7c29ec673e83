//! Programs of a guest that are loaded dynamically, with all that loads them.
//!
//! The one idea: a guest has no distribution, so a program brings along what `ldd` names of this
//! machine, at the same places. It is for what needs a dynamic loader of glibc: the library of
//! segments, which lies beside `pagelab`, where that looks for it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::table::Boot;
use crate::shell::{cargo, run};

/// Where programs are compiled to, and the library of segments is built.
const FOLDER: &str = "target/x86_64-unknown-linux-gnu/vm";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Where their sources are.
const SOURCES: &str = "crates/pagelab/tests/explain";
const PACKAGE: &str = "pagelab-segment";
const LIBRARY: &str = "libpagelab_segment.so";

/// Builds what the boots bring along: places in a guest, and files of this machine.
pub(super) fn build(boots: &[Boot]) -> Result<Vec<(String, PathBuf)>> {
    let names: BTreeSet<_> = boots.iter().flat_map(|boot| &boot.programs).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let folder = Path::new(FOLDER);
    let mut library = cargo("build");
    library.args(["--quiet", "--profile", "vm", "--target", TARGET, "--package", PACKAGE]);
    run("vm", &mut library)?;
    fs::create_dir_all(folder).context(FOLDER)?;
    let mut files = vec![(format!("bin/{LIBRARY}"), folder.join(LIBRARY))];
    for name in names {
        let (source, program) = (format!("{SOURCES}/{name}.c"), folder.join(name));
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-pthread", "-o"]).arg(&program).arg(source);
        run("vm", &mut cc).context("to have a compiler: apt-get install gcc libc6-dev")?;
        files.push((format!("bin/{name}"), program));
    }
    let loaded: BTreeSet<_> = files
        .iter()
        .map(|(_, file)| loaded(file))
        .collect::<Result<Vec<_>>>()?
        .concat()
        .into_iter()
        .collect();
    files.extend(loaded.into_iter().map(|file| {
        let place = file.to_string_lossy().trim_start_matches('/').to_owned();
        (place, file)
    }));
    Ok(files)
}

/// What the loader maps for a file, itself included.
fn loaded(file: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(file).output().context("ldd")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = of_ldd(&text);
    if found.is_empty() {
        bail!("ldd {}: {text}", file.display());
    }
    Ok(found)
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
