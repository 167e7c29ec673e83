//! `cargo xtask kmod`: the kernel module, built for a kernel whose headers are somewhere.
//!
//! The one idea: nothing is installed and nothing of the kernel's is changed. The headers are seen
//! through a folder of our own, the sources are copied beside it, and the module is kept under the
//! hash of everything it was made from. Warnings are errors here.
//!
//! It is not how a user builds the module: that is `make -C kmod`, or DKMS.

#[cfg(test)]
mod dkms;
mod headers;
#[cfg(test)]
mod layout;
mod toolchain;

use std::{
    collections::hash_map::DefaultHasher,
    env, fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process,
};

use anyhow::{Context, Result, ensure};
use clap::Parser;

use self::{headers::Headers, toolchain::Toolchain};
use crate::shell::{find, run};

/// Where the sources are, from the repository's root.
const SOURCES: &str = "memtype/kmod";
const MODULE: &str = "pagelab.ko";

/// Variables of the kernel's build. The first two are about type information for BPF, which needs
/// pahole and which nobody reads of this module; the module is small without debugging symbols.
const VARIABLES: &[&str] =
    &["CONFIG_DEBUG_INFO_BTF_MODULES=", "CONFIG_PAHOLE_VERSION=0", "W=1", "KCFLAGS=-Werror -g0"];

/// What the task takes.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Headers of a kernel: their folder, or the root that they are unpacked below (`/` for what
    /// is installed)
    #[arg(long, value_name = "DIR")]
    kernel: PathBuf,
    /// The kernel's release, where DIR has the headers of several
    #[arg(long, value_name = "NAME")]
    release: Option<String>,
    /// Copy the module there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Check the sources with sparse as well
    #[arg(long)]
    sparse: bool,
}

/// Builds the module and says where it is.
pub(crate) fn kmod(asked: &Arguments) -> Result<()> {
    let headers = Headers::find(&asked.kernel, asked.release.as_deref())?;
    let cache = cache()?;
    if asked.sparse {
        check(&headers, &cache)?;
    }
    let built = build_for(&headers, &cache)?;
    let shown = match &asked.out {
        None => built,
        Some(folder) => {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            let copy = folder.join(MODULE);
            fs::copy(&built, &copy).with_context(|| copy.display().to_string())?;
            copy
        }
    };
    eprintln!("\nkmod: for {}:", headers.release);
    println!("{}", shown.display());
    Ok(())
}

/// The module for the kernel `version` (`uname -r`), whose headers are below `kernel_root`; from
/// the cache where nothing has changed since.
pub(crate) fn build(kernel_root: &Path, version: &str, cache: &Path) -> Result<PathBuf> {
    build_for(&Headers::find(kernel_root, Some(version))?, cache)
}

fn build_for(headers: &Headers, cache: &Path) -> Result<PathBuf> {
    let sources = sources(Path::new(SOURCES))?;
    let folder = cache.join("kmod").join(&headers.release);
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    // Absolute: make changes its working directory.
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    let built = folder.join(key(headers, &sources)?).join(MODULE);
    if built.is_file() {
        return Ok(built);
    }
    let work = Work::prepare(&folder, headers, &sources)?;
    let toolchain = Toolchain::of(headers, cache)?;
    run("kmod", &mut toolchain.make(headers, &work.0, &work.make(VARIABLES)))
        .with_context(|| format!("the module does not build for {}", headers.release))?;
    let made = work.sources().join(MODULE);
    ensure!(made.is_file(), "make made no {MODULE} for {}", headers.release);
    if let Some(key) = headers.signing_key() {
        let mut sign = process::Command::new(headers.folder.join("scripts/sign-file"));
        sign.arg("sha256").arg(key).arg(headers.certificate()).arg(&made);
        run("kmod", &mut sign)?;
    }
    let target = built.parent().context("a module is in a folder")?;
    fs::create_dir_all(target).with_context(|| target.display().to_string())?;
    // Renamed, not copied: whoever finds the file finds all of it.
    fs::rename(&made, &built).with_context(|| built.display().to_string())?;
    Ok(built)
}

/// Runs sparse, on this machine, and fails where it finds something.
fn check(headers: &Headers, cache: &Path) -> Result<()> {
    find("sparse").context("sparse is missing: sudo apt-get install sparse")?;
    let folder = cache.join("kmod").join(&headers.release);
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    let work = Work::prepare(&folder, headers, &sources(Path::new(SOURCES))?)?;
    let toolchain = Toolchain::of(headers, cache)?;
    ensure!(toolchain.is_host(), "sparse can only check for kernels that build without a chroot");
    let checked = [VARIABLES, &["C=2", "CHECK=sparse", "CF=-Wsparse-error"]].concat();
    run("sparse", &mut toolchain.make(headers, &work.0, &work.make(&checked)))
}

/// A folder for one build, gone after it.
#[derive(Debug)]
struct Work(PathBuf);

impl Work {
    fn prepare(below: &Path, headers: &Headers, sources: &[(PathBuf, Vec<u8>)]) -> Result<Self> {
        let work = Self(below.join(format!("work-{}", process::id())));
        headers.overlay(&work.headers())?;
        for (name, contents) in sources {
            let file = work.sources().join(name);
            let folder = file.parent().context("a file is in a folder")?;
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            fs::write(&file, contents).with_context(|| file.display().to_string())?;
        }
        Ok(work)
    }

    fn headers(&self) -> PathBuf {
        self.0.join("headers")
    }

    fn sources(&self) -> PathBuf {
        self.0.join("sources")
    }

    /// The words after `make`.
    fn make(&self, variables: &[&str]) -> Vec<String> {
        let mut words = vec![
            "-C".to_owned(),
            self.headers().display().to_string(),
            format!("M={}", self.sources().display()),
        ];
        words.extend(variables.iter().map(|&variable| variable.to_owned()));
        words.push("modules".to_owned());
        words
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `${XDG_CACHE_HOME:-~/.cache}/pagelab/vm`, which the VM lane uses too.
fn cache() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    Ok(base.context("neither XDG_CACHE_HOME nor HOME is set")?.join("pagelab/vm"))
}

/// What the module is made from, sorted by name: nothing that an earlier build left.
fn sources(folder: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    for part in [folder.to_owned(), folder.join("uapi")] {
        for entry in fs::read_dir(&part).with_context(|| part.display().to_string())? {
            let path = entry?.path();
            let name = path.strip_prefix(folder)?.to_owned();
            if is_source(&name) {
                let contents = fs::read(&path).with_context(|| path.display().to_string())?;
                files.push((name, contents));
            }
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "{} has no sources", folder.display());
    Ok(files)
}

fn is_source(name: &Path) -> bool {
    let text = name.to_string_lossy();
    let extension = name.extension().is_some_and(|extension| extension == "c" || extension == "h");
    text == "Kbuild" || (extension && !text.ends_with(".mod.c") && !text.starts_with("tests/"))
}

/// The same for the same sources, kernel and variables.
fn key(headers: &Headers, sources: &[(PathBuf, Vec<u8>)]) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    (sources, VARIABLES, headers.identity()?).hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_what_make_reads_and_nothing_that_it_wrote() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../memtype/kmod");
        let sources = sources(&folder).unwrap();
        let has = |name: &str| sources.iter().any(|(path, _)| path == Path::new(name));
        assert!(["Kbuild", "compat.h", "uapi/pagelab.h"].into_iter().all(has));
        let made = ["pagelab.mod.c", "main.o", "pagelab.ko", "tests/layout.c", "Makefile"];
        assert!(!made.into_iter().any(|name| is_source(Path::new(name))));
    }

    #[test]
    fn every_file_that_kbuild_names_is_there() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../memtype/kmod");
        let kbuild = fs::read_to_string(folder.join("Kbuild")).unwrap();
        let objects = kbuild.lines().find_map(|line| line.strip_prefix("pagelab-y := ")).unwrap();
        for object in objects.split_whitespace() {
            let source = folder.join(object).with_extension("c");
            assert!(source.is_file(), "{object}");
        }
    }

    #[test]
    fn version_conditions_are_in_one_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../memtype/kmod");
        for (name, contents) in sources(&folder).unwrap() {
            let text = String::from_utf8(contents).unwrap();
            let versions = text.contains("LINUX_VERSION_CODE");
            assert!(!versions || name == Path::new("compat.h"), "{}", name.display());
        }
    }
}
