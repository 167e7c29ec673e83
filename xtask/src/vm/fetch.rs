//! QEMU and the kernels: from the cache, or from the distribution's packages.
//!
//! The one idea: a kernel is a pattern over package names, resolved when it is fetched, because
//! point releases come and go. What is in the cache is whole and is used as it is, without a
//! network, until somebody asks for newer ones.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::{
    apt::{self, Apt},
    qemu::Qemu,
    sanitized,
    table::{KERNELS, SANITIZED},
};
use crate::shell::{find, program};

/// The oldest QEMU that boots every kernel reliably: 7.2 crashed a third of the boots of 6.12, and
/// the CXL machine came with 10.
const QEMU_MAJOR_MIN: u32 = 10;
const QEMU: &str = "qemu-system-x86_64";

/// A kernel of the lane, unpacked with the headers that modules are built against.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    /// Its name in the lane.
    pub(super) name: String,
    /// Its release, as `uname -r` says it.
    pub(super) release: String,
    /// Where its packages were unpacked.
    pub(super) root: PathBuf,
    /// The image to boot.
    pub(super) image: PathBuf,
    /// `lib/modules/<release>`.
    pub(super) modules: PathBuf,
}

/// Everything that a lane needs of the distribution. One lane at a time uses a cache.
#[derive(Debug)]
pub(super) struct Supplies {
    /// Where they are.
    pub(super) cache: PathBuf,
    /// QEMU.
    pub(super) qemu: Qemu,
    /// Those that were asked for.
    pub(super) kernels: Vec<Kernel>,
    /// Held as long as the supplies are used.
    _lock: File,
}

/// `${XDG_CACHE_HOME:-~/.cache}/pagelab/vm`.
pub(super) fn cache() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    Ok(base.context("neither XDG_CACHE_HOME nor HOME is set")?.join("pagelab/vm"))
}

/// Supplies for the named kernels; fetches what is not there, or everything when asked to.
pub(super) fn supplies(kernels: &[&str], afresh: bool) -> Result<Supplies> {
    let cache = cache()?;
    fs::create_dir_all(&cache).with_context(|| cache.display().to_string())?;
    let lock = lock(&cache)?;
    if afresh {
        for part in ["kernels", "qemu"] {
            let _ = fs::remove_dir_all(cache.join(part));
        }
    }
    let mut apt = None;
    let qemu = qemu(&cache, &mut apt)?;
    let folder = cache.join("kernels");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut found = Vec::new();
    for &name in kernels {
        let root = folder.join(name);
        if name == SANITIZED {
            let unpack = |into: &Path| {
                prepared(&cache, &mut apt)?.unpack(&[sanitized::SOURCE.to_owned()], into)
            };
            let sanitized::Built { release, image } = sanitized::kernel(&root, unpack)?;
            let (name, modules) = (name.to_owned(), root.clone());
            found.push(Kernel { name, release, root, image, modules });
            continue;
        }
        if !root.is_dir() {
            let apt = prepared(&cache, &mut apt)?;
            let packages = packages_of(name, apt)?;
            apt.unpack(&packages, &root)?;
        }
        found.push(kernel(name, root)?);
    }
    Ok(Supplies { cache, qemu, kernels: found, _lock: lock })
}

/// Waits until no other lane uses the cache.
fn lock(cache: &Path) -> Result<File> {
    let path = cache.join("lock");
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    if file.try_lock().is_err() {
        eprintln!("[vm] another lane uses {}: waiting for its end", cache.display());
        file.lock().with_context(|| path.display().to_string())?;
    }
    Ok(file)
}

fn prepared<'a>(cache: &Path, apt: &'a mut Option<Apt>) -> Result<&'a Apt> {
    if apt.is_none() {
        *apt = Some(Apt::prepare(cache)?);
    }
    apt.as_ref().context("apt was prepared just now")
}

/// The system's QEMU where it is new enough; else that of the backports, unpacked.
fn qemu(cache: &Path, apt: &mut Option<Apt>) -> Result<Qemu> {
    if let Some(program) = find(QEMU) {
        let qemu = Qemu { program, data: Vec::new() };
        if version(&qemu).is_some_and(|major| major >= QEMU_MAJOR_MIN) {
            return Ok(qemu);
        }
    }
    let root = cache.join("qemu");
    if !root.is_dir() {
        let packages = [
            "qemu-system-x86/bookworm-backports",
            "qemu-system-data/bookworm-backports",
            "seabios/bookworm",
        ];
        prepared(cache, apt)?.unpack(&packages.map(str::to_owned), &root)?;
    }
    let data = ["usr/share/qemu", "usr/share/seabios"].map(|folder| root.join(folder));
    let qemu = Qemu { program: root.join("usr/bin").join(QEMU), data: data.to_vec() };
    if version(&qemu).is_none() {
        // It lacks only shared libraries, which the system's own QEMU brings.
        apt::install(&["qemu-system-x86"])?;
    }
    let major = version(&qemu).with_context(|| {
        format!("{} does not start: sudo apt-get install qemu-system-x86", qemu.program.display())
    })?;
    ensure!(major >= QEMU_MAJOR_MIN, "QEMU {major} is too old: {QEMU_MAJOR_MIN} is needed");
    Ok(qemu)
}

/// The first number of its version; `None` where it does not start.
fn version(qemu: &Qemu) -> Option<u32> {
    let answer = program(&qemu.program.to_string_lossy(), ["--version"]).output().ok()?;
    major(&String::from_utf8_lossy(&answer.stdout))
}

/// `QEMU emulator version 10.0.2 (Debian …)`.
fn major(text: &str) -> Option<u32> {
    let (_, version) = text.split_once(" version ")?;
    version.split('.').next()?.parse().ok()
}

/// The packages of a kernel: image, modules, and what its modules are built with.
fn packages_of(name: &str, apt: &Apt) -> Result<Vec<String>> {
    let pattern = match name {
        "6.1" => r"^linux-image-6\.1\.0-[0-9]+-cloud-amd64$",
        "6.1-rt" => r"^linux-image-6\.1\.0-[0-9]+-rt-amd64$",
        "6.12" => r"^linux-image-6\.12\.[0-9.]+\+deb12-cloud-amd64$",
        _ => r"^linux-(image|binary)-[0-9.]+\+deb1[0-9]-cloud-amd64$",
    };
    let names = apt.names(pattern)?;
    let image = newest(&names).with_context(|| format!("no package matches {pattern}"))?;
    let (kind, release) = split(image).context("it matched the pattern")?;
    let mut packages = vec![image.to_owned()];
    if kind == "binary" {
        // Since 7.0 an image is three packages.
        let parts = ["modules", "base"].map(|part| format!("linux-{part}-{release}"));
        for part in parts {
            packages.extend(apt.names(&format!("^{}$", escaped(&part)))?);
        }
    }
    let headers = format!("linux-headers-{release}");
    let deep = apt.dependencies(&headers, "linux-")?;
    // The headers may name the image that they belong to; the meta package of its compiler is not
    // ours to unpack.
    let wanted = |name: &&String| {
        ["linux-headers-", "linux-kbuild-", "linux-compiler-"]
            .iter()
            .any(|kind| name.starts_with(kind))
    };
    packages.extend(deep.iter().filter(wanted).cloned());
    packages.dedup();
    Ok(packages)
}

/// `linux-image-6.1.0-56-cloud-amd64` into `image` and its release.
fn split(package: &str) -> Option<(&str, &str)> {
    package.strip_prefix("linux-")?.split_once('-')
}

/// The name with the highest numbers; of one release, the split one.
fn newest(names: &[String]) -> Option<&str> {
    let key = |name: &&String| {
        let (kind, release) = split(name).unwrap_or_default();
        (numbers(release), kind == "binary")
    };
    names.iter().max_by_key(key).map(String::as_str)
}

/// Every number in a release, in order: `6.12.117+deb12` is above `6.12.95+deb12`.
fn numbers(release: &str) -> Vec<u64> {
    let parts = release.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

fn escaped(name: &str) -> String {
    name.replace('.', r"\.").replace('+', r"\+")
}

/// Finds its way in an unpacked kernel.
fn kernel(name: &str, root: PathBuf) -> Result<Kernel> {
    let folders = ["lib/modules", "usr/lib/modules"].map(|folder| root.join(folder));
    // The headers put a folder of their own there, with nothing but a link in it.
    let releases = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let modules = releases
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|folder| folder.join("modules.builtin").is_file())
        .with_context(|| format!("{} holds no modules: cargo xtask vm --update", root.display()))?;
    let release = modules.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let images = [root.join(format!("boot/vmlinuz-{release}")), modules.join("vmlinuz")];
    let image = images.into_iter().find(|image| image.is_file());
    let image = image.with_context(|| format!("{} holds no image", root.display()))?;
    Ok(Kernel { name: name.to_owned(), release, root, image, modules })
}

impl Supplies {
    /// The kernel of a name.
    pub(super) fn kernel(&self, name: &str) -> Result<&Kernel> {
        let kernel = self.kernels.iter().find(|kernel| kernel.name == name);
        kernel.with_context(|| format!("no kernel is called {name}: {}", KERNELS.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_that_with_the_highest_numbers() {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let list = names(&[
            "linux-image-6.12.95+deb12-cloud-amd64",
            "linux-image-6.12.117+deb12-cloud-amd64",
        ]);
        assert_eq!(newest(&list), Some("linux-image-6.12.117+deb12-cloud-amd64"));
        let list = names(&[
            "linux-image-6.19.14+deb13-cloud-amd64",
            "linux-binary-7.3.4+deb13-cloud-amd64",
            "linux-image-7.3.4+deb13-cloud-amd64",
            "linux-binary-7.2.12+deb13-cloud-amd64",
        ]);
        assert_eq!(newest(&list), Some("linux-binary-7.3.4+deb13-cloud-amd64"));
        assert_eq!(newest(&[]), None);
    }

    #[test]
    fn a_version_is_read_from_what_qemu_says() {
        assert_eq!(major("QEMU emulator version 10.0.2 (Debian 1:10.0.2)\n"), Some(10));
        assert_eq!(major("error while loading shared libraries"), None);
    }

    #[test]
    fn a_package_is_its_kind_and_its_release() {
        let (kind, release) = split("linux-binary-7.3.4+deb13-cloud-amd64").unwrap();
        assert_eq!((kind, release), ("binary", "7.3.4+deb13-cloud-amd64"));
        assert_eq!(escaped("a.b+c"), r"a\.b\+c");
    }
}
