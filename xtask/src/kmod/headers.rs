//! Headers of a kernel, wherever they are, seen as if they were installed.
//!
//! The one idea: the packages of Debian name `/usr/src` in one small file and use relative links
//! for the rest. So a folder of links, with that file rewritten, is a kernel to build against, and
//! the headers themselves stay as they are.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// Present in every folder that modules can be built against.
const MARK: &str = "include/config/auto.conf";

/// A folder that modules can be built against.
#[derive(Debug)]
pub(super) struct Headers {
    /// `linux-headers-<release>`, absolute.
    pub(super) folder: PathBuf,
    /// What they are unpacked below: `usr/src` is in it. The folder itself where there is none.
    pub(super) root: PathBuf,
    /// As `uname -r` says it.
    pub(super) release: String,
    /// The compiler that built the kernel, as its configuration names it: `gcc-12`.
    pub(super) compiler: String,
}

impl Headers {
    /// Finds them: `place` is their folder, or a root with `usr/src` or `lib/modules`.
    pub(super) fn find(place: &Path, release: Option<&str>) -> Result<Self> {
        let place =
            place.canonicalize().with_context(|| format!("there is no {}", place.display()))?;
        let mut all = Vec::new();
        for folder in candidates(&place) {
            let headers = Self::read(folder)?;
            if release.is_none_or(|release| release == headers.release) {
                all.push(headers);
            }
        }
        if all.len() > 1 {
            let names: Vec<_> = all.iter().map(|headers| headers.release.as_str()).collect();
            bail!("{} has several: say --release {}", place.display(), names.join(" or "));
        }
        all.pop().with_context(|| {
            format!(
                "{} has no headers of {}: unpack or install linux-headers-{}",
                place.display(),
                release.unwrap_or("any kernel"),
                release.unwrap_or("RELEASE")
            )
        })
    }

    fn read(folder: PathBuf) -> Result<Self> {
        let text = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).with_context(|| path.display().to_string())
        };
        let release = release_of(&text("include/generated/utsrelease.h")?)
            .with_context(|| format!("{} names no release", folder.display()))?;
        let compiler = compiler_of(&text(MARK)?)
            .with_context(|| format!("{} names no compiler", folder.display()))?;
        let below = folder.parent().filter(|parent| parent.ends_with("usr/src"));
        let root = below.and_then(|parent| parent.ancestors().nth(2)).unwrap_or(&folder);
        Ok(Self { root: root.to_owned(), folder, release, compiler })
    }

    /// What tells this kernel from another build of the same release.
    pub(super) fn identity(&self) -> Result<(String, String, Vec<u8>)> {
        let symbols = self.folder.join("Module.symvers");
        let mut symbols = fs::read(&symbols).with_context(|| symbols.display().to_string())?;
        symbols.extend(fs::read(self.certificate()).unwrap_or_default());
        Ok((self.release.clone(), self.compiler.clone(), symbols))
    }

    /// The key that the kernel takes for a signature of its modules, in a tree that made one.
    pub(super) fn signing_key(&self) -> Option<PathBuf> {
        Some(self.folder.join("certs/signing_key.pem")).filter(|key| key.is_file())
    }

    /// The certificate of that key.
    pub(super) fn certificate(&self) -> PathBuf {
        self.folder.join("certs/signing_key.x509")
    }

    /// Makes `overlay` a folder to build against: links to ours, with absolute paths put right.
    pub(super) fn overlay(&self, overlay: &Path) -> Result<()> {
        let makefile = self.folder.join("Makefile");
        let makefile =
            fs::read_to_string(&makefile).with_context(|| makefile.display().to_string())?;
        let parent = overlay.parent().context("an overlay is in a folder")?;
        fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        let Some(makefile) = relocated(&makefile, &self.root, overlay) else {
            // A tree that was built where it is: it knows where that is.
            return symlink(&self.folder, overlay).with_context(|| overlay.display().to_string());
        };
        fs::create_dir(overlay).with_context(|| overlay.display().to_string())?;
        let entries = fs::read_dir(&self.folder);
        for entry in entries.with_context(|| self.folder.display().to_string())? {
            let entry = entry?;
            if entry.file_name() != "Makefile" {
                let link = overlay.join(entry.file_name());
                symlink(entry.path(), &link).with_context(|| link.display().to_string())?;
            }
        }
        let path = overlay.join("Makefile");
        fs::write(&path, makefile).with_context(|| path.display().to_string())
    }
}

fn candidates(place: &Path) -> Vec<PathBuf> {
    if place.join(MARK).is_file() {
        return vec![place.to_owned()];
    }
    let list = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let installed = list(place.join("usr/src")).map(|entry| entry.path());
    // `build` is a link to an absolute path: true of the running system only.
    let built = list(place.join("lib/modules")).map(|entry| entry.path().join("build"));
    let mut all: Vec<PathBuf> = installed
        .chain(built)
        .filter(|folder| folder.join(MARK).is_file())
        .filter_map(|folder| folder.canonicalize().ok())
        .collect();
    all.sort();
    all.dedup();
    all
}

fn release_of(header: &str) -> Option<String> {
    let quoted = header.lines().find_map(|line| line.strip_prefix("#define UTS_RELEASE "))?;
    Some(quoted.trim().trim_matches('"').to_owned())
}

/// `CONFIG_CC_VERSION_TEXT="x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0"`: `gcc-14`.
fn compiler_of(configuration: &str) -> Option<String> {
    let text =
        configuration.lines().find_map(|line| line.strip_prefix("CONFIG_CC_VERSION_TEXT="))?;
    let name = text.trim_matches('"').split_whitespace().next()?;
    Some(name.strip_prefix("x86_64-linux-gnu-").unwrap_or(name).to_owned())
}

/// A makefile of a package with its absolute paths below `root`, and what it writes in `overlay`.
/// `None` where it has no such paths.
fn relocated(makefile: &str, root: &Path, overlay: &Path) -> Option<String> {
    if !makefile.lines().any(|line| line.starts_with("include /usr/src/")) {
        return None;
    }
    let root = root.display().to_string();
    let root = root.trim_end_matches('/');
    let line = |line: &str| {
        if line.starts_with("KBUILD_OUTPUT=") {
            return format!("KBUILD_OUTPUT={}\n", overlay.display());
        }
        let moved = line.strip_prefix("include /usr/src/");
        moved.map_or_else(|| format!("{line}\n"), |rest| format!("include {root}/usr/src/{rest}\n"))
    };
    Some(makefile.lines().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_and_the_release_are_read() {
        let configuration = "CONFIG_A=y\nCONFIG_CC_VERSION_TEXT=\"x86_64-linux-gnu-gcc-14 (Debian \
            14.2.0-19) 14.2.0\"\n";
        assert_eq!(compiler_of(configuration).unwrap(), "gcc-14");
        assert_eq!(compiler_of("CONFIG_CC_VERSION_TEXT=gcc (GCC) 15.2.1\n").unwrap(), "gcc");
        assert_eq!(compiler_of("CONFIG_A=y\n"), None);
        assert_eq!(release_of("#define UTS_RELEASE \"6.1.0-1-amd64\"\n").unwrap(), "6.1.0-1-amd64");
    }

    #[test]
    fn a_packages_makefile_is_moved_and_another_is_not() {
        let text = "KBUILD_OUTPUT=/usr/src/linux-headers-7-cloud\n\
            include /usr/src/linux-headers-7-common/Makefile\n";
        let moved = relocated(text, Path::new("/k/7"), Path::new("/w/headers")).unwrap();
        let expected = "KBUILD_OUTPUT=/w/headers\n\
            include /k/7/usr/src/linux-headers-7-common/Makefile\n";
        assert_eq!(moved, expected);
        let installed = relocated(text, Path::new("/"), Path::new("/w/headers")).unwrap();
        assert!(installed.ends_with("include /usr/src/linux-headers-7-common/Makefile\n"));
        assert_eq!(relocated("VERSION = 7\n", Path::new("/"), Path::new("/w")), None);
    }

    #[test]
    fn an_overlay_is_links_and_one_file() {
        let work = std::env::temp_dir().join(format!("pagelab-headers-{}", std::process::id()));
        let folder = work.join("usr/src/linux-headers-9-x");
        for part in ["include/config", "include/generated"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        fs::write(folder.join(MARK), "CONFIG_CC_VERSION_TEXT=gcc-9\n").unwrap();
        fs::write(folder.join("Makefile"), "include /usr/src/common/Makefile\n").unwrap();
        let release = folder.join("include/generated/utsrelease.h");
        fs::write(release, "#define UTS_RELEASE \"9-x\"\n").unwrap();

        let headers = Headers::find(&work, None).unwrap();
        assert_eq!((headers.release.as_str(), headers.compiler.as_str()), ("9-x", "gcc-9"));
        assert_eq!(headers.root, work.canonicalize().unwrap());
        let overlay = work.join("overlay");
        headers.overlay(&overlay).unwrap();
        assert!(overlay.join("include").is_symlink());
        assert!(!overlay.join("Makefile").is_symlink());
        let error = Headers::find(&work, Some("10-y")).unwrap_err().to_string();
        assert!(error.contains("linux-headers-10-y"), "{error}");
        fs::remove_dir_all(work).unwrap();
    }
}
