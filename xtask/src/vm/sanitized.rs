//! A kernel that checks itself: KASAN, lockdep and page poisoning, for the module's soak.
//!
//! The one idea: no distribution has one, so it is built, once, from the distribution's source,
//! with what `sanitized.config` says beyond `tinyconfig`. It is built where it stays, so that
//! modules can be built against it; what was interrupted goes on where it was, and a note that is
//! written last says by which configuration it is whole.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::apt;
use crate::shell::{self, find, program, run};

/// The package, of the release whose compiler and libraries this machine has.
pub(super) const SOURCE: &str = "linux-source-6.12";
const CONFIG: &str = include_str!("sanitized.config");
/// What says that all is there.
const NOTE: &str = "pagelab.config";
/// Programs that the build needs, and their packages.
const TOOLS: &[(&str, &str)] = &[
    ("make", "make"),
    (COMPILER, COMPILER),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
    ("openssl", "openssl"),
];
const COMPILER: &str = "gcc-12";
/// What programs that the kernel builds for itself include, and the packages that have it: objtool,
/// and what signs modules.
const HEADERS: &[(&str, &str)] =
    &[("/usr/include/gelf.h", "libelf-dev"), ("/usr/include/openssl/evp.h", "libssl-dev")];

/// A kernel that was built, in the folder that modules are built against.
#[derive(Debug)]
pub(super) struct Built {
    /// As `uname -r` says it.
    pub(super) release: String,
    /// The image to boot.
    pub(super) image: PathBuf,
}

/// The kernel in `root`, which is built where that is not whole; `unpack` gets its source.
pub(super) fn kernel(root: &Path, unpack: impl FnOnce(&Path) -> Result<()>) -> Result<Built> {
    let note = root.join(NOTE);
    if fs::read_to_string(&note).ok().as_deref() != Some(CONFIG) {
        install_tools()?;
        if !root.is_dir() {
            source(root, unpack)?;
        }
        eprintln!("[vm] building a kernel in {}: once, and it takes long", root.display());
        let (built, took) = shell::timed(|| build(root));
        built.with_context(|| format!("building the kernel in {}", root.display()))?;
        fs::write(&note, CONFIG).with_context(|| note.display().to_string())?;
        eprintln!("[vm] built in {:.0} min", took.as_secs_f64() / 60.0);
    }
    let release = root.join("include/config/kernel.release");
    let release = fs::read_to_string(&release).with_context(|| release.display().to_string())?;
    let image = root.join("arch/x86/boot/bzImage");
    ensure!(image.is_file(), "{} holds no image", root.display());
    Ok(Built { release: release.trim().to_owned(), image })
}

fn install_tools() -> Result<()> {
    let missing = TOOLS.iter().filter(|(program, _)| find(program).is_none());
    let mut packages: Vec<_> = missing.map(|(_, package)| *package).collect();
    let missing = HEADERS.iter().filter(|(header, _)| !Path::new(header).exists());
    packages.extend(missing.map(|(_, package)| *package));
    if packages.is_empty() { Ok(()) } else { apt::install(&packages) }
}

/// Unpacks the source into a folder, which exists only when it is whole.
fn source(root: &Path, unpack: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let [package, partial] = ["package", "partial"].map(|part| root.with_extension(part));
    for folder in [&package, &partial] {
        let _ = fs::remove_dir_all(folder);
    }
    unpack(&package)?;
    fs::create_dir_all(&partial).with_context(|| partial.display().to_string())?;
    let archive = package.join(format!("usr/src/{SOURCE}.tar.xz"));
    let mut tar = program("tar", ["--extract", "--strip-components=1", "--file"]);
    run("vm", tar.arg(&archive).arg("--directory").arg(&partial))?;
    fs::remove_dir_all(&package).with_context(|| package.display().to_string())?;
    fs::rename(&partial, root).with_context(|| root.display().to_string())
}

fn build(root: &Path) -> Result<()> {
    let path = root.join(".config");
    let read = || fs::read_to_string(&path).with_context(|| path.display().to_string());
    run("vm", &mut make(root, &["tinyconfig"]))?;
    let tiny = read()?;
    fs::write(&path, format!("{tiny}{CONFIG}")).with_context(|| path.display().to_string())?;
    run("vm", &mut make(root, &["olddefconfig"]))?;
    let lost = lost(CONFIG, &read()?);
    ensure!(lost.is_empty(), "the kernel's configuration does not take {}", lost.join(", "));
    run("vm", &mut make(root, &["bzImage", "modules"]))?;
    // Half of what was built nobody needs again; `scripts` and `tools` build modules.
    let mut find = program("find", ["."]);
    find.current_dir(root).args(["-name", "*.o", "-not", "-path", "./scripts/*"]);
    run("vm", find.args(["-not", "-path", "./tools/*", "-delete"]))
}

/// `make` that disturbs nobody.
fn make(root: &Path, targets: &[&str]) -> Command {
    let mut command = program("nice", ["-n", "19", "make", "--silent", "-j2"]);
    command.arg(format!("CC={COMPILER}")).args(targets).current_dir(root).env("LC_ALL", "C");
    command
}

/// Lines of a configuration that did not come into another.
fn lost<'c>(wanted: &'c str, whole: &str) -> Vec<&'c str> {
    let is_there = |line: &str| whole.lines().any(|other| other == line);
    let settings = wanted.lines().filter(|line| line.starts_with("CONFIG_"));
    settings.filter(|line| !is_there(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_the_kernel_dropped_is_found() {
        let wanted = "# About it.\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=y\n";
        assert_eq!(lost(wanted, "CONFIG_A=y\nCONFIG_C=m\n"), ["CONFIG_C=y"]);
        assert!(lost(wanted, "CONFIG_A=y\nCONFIG_C=y\n").is_empty());
    }

    #[test]
    fn it_is_configured_for_what_it_is_for() {
        for setting in ["KASAN", "PROVE_LOCKING", "PAGE_POISONING"] {
            assert!(CONFIG.contains(&format!("CONFIG_{setting}=y\n")), "{setting}");
        }
        assert!(CONFIG.contains("page_poison=1"));
    }

    #[test]
    fn one_that_is_whole_is_used_as_it_is() {
        let root = std::env::temp_dir().join(format!("pagelab-sanitized-{}", std::process::id()));
        for (file, contents) in [
            (NOTE, CONFIG),
            ("include/config/kernel.release", "6.12.1\n"),
            ("arch/x86/boot/bzImage", ""),
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, contents).unwrap();
        }
        let built = kernel(&root, |_| panic!("the source is not needed")).unwrap();
        assert_eq!(built.release, "6.12.1");
        fs::remove_dir_all(root).unwrap();
    }
}
