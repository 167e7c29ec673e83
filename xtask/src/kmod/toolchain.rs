//! The compiler that a kernel wants, on this machine or in a root of its own.
//!
//! The one idea: a module is built with the compiler that built the kernel, and with the tools in
//! the kernel's headers, which are programs for the C library of their release. Where this machine
//! cannot run both, a small root of that release can: made once, from the mirror that this machine
//! uses, and kept.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::headers::Headers;
use crate::shell::{find, output, program, run};

/// The release of Debian that has a compiler.
const RELEASES: &[(&str, &str)] =
    &[("gcc-12", "bookworm"), ("gcc-14", "trixie"), ("gcc-15", "forky"), ("gcc-16", "forky")];

/// Runs its arguments below a root, with `/proc` (objtool reads it) and two folders where they are.
/// The mounts are gone with the last process of it.
const IN_ROOT: &str = r#"set -e; root=$1; kernel=$2; work=$3; shift 3
mount --bind /proc "$root/proc"
for folder in "$kernel" "$work"; do
    mkdir -p "$root$folder"
    mount --bind "$folder" "$root$folder"
done
exec chroot "$root" "$@""#;

/// Where `make` runs.
#[derive(Debug)]
pub(super) enum Toolchain {
    /// This machine.
    Host,
    /// A root of another release.
    Root(PathBuf),
}

impl Toolchain {
    /// This machine where it can, otherwise a root below `cache`.
    pub(super) fn of(headers: &Headers, cache: &Path) -> Result<Self> {
        let compiler = headers.compiler.as_str();
        let tools_run = tools_run(&headers.folder)?;
        if tools_run && find(compiler).is_some() && find("make").is_some() {
            return Ok(Self::Host);
        }
        let cure = format!("sudo apt-get install {compiler} make");
        if tools_run && release_of_host().as_deref() == release_with(compiler) {
            bail!("{} is built with {compiler}: {cure}", headers.release);
        }
        let release = release_with(compiler).with_context(|| {
            format!("{} is built with {compiler}, which no known release has", headers.release)
        })?;
        Ok(Self::Root(root(release, compiler, cache)?))
    }

    /// Whether nothing but this machine is needed.
    pub(super) fn is_host(&self) -> bool {
        matches!(self, Self::Host)
    }

    /// `make` with the kernel's compiler.
    pub(super) fn make(&self, headers: &Headers, work: &Path, words: &[String]) -> Command {
        let compiler = format!("CC={}", headers.compiler);
        let mut command = match self {
            Self::Host => program("make", [&compiler]),
            Self::Root(root) => {
                let mut command = program("unshare", ["--mount", "sh", "-c", IN_ROOT, "sh"]);
                command.args([root, &headers.root, work]).args(["make", &compiler]);
                command
            }
        };
        // Messages are compared with nothing, but people search for them.
        command.env("LC_ALL", "C").args(words);
        command
    }
}

/// Whether the programs among the headers run with this machine's C library.
fn tools_run(folder: &Path) -> Result<bool> {
    for tool in ["scripts/basic/fixdep", "tools/objtool/objtool"] {
        let path = folder.join(tool);
        if !path.exists() {
            continue;
        }
        let output = Command::new(&path).output();
        let output = output.with_context(|| format!("starting {}", path.display()))?;
        // Without arguments they fail; what matters is who says so.
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("GLIBC_") || said.contains("error while loading shared libraries") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn release_with(compiler: &str) -> Option<&'static str> {
    RELEASES.iter().find(|(name, _)| *name == compiler).map(|(_, release)| *release)
}

fn release_of_host() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// A root of a release with a compiler: from the cache, or made.
fn root(release: &str, compiler: &str, cache: &Path) -> Result<PathBuf> {
    let root = cache.join(format!("root-{release}-{compiler}"));
    let root = std::path::absolute(&root).with_context(|| root.display().to_string())?;
    ensure!(
        output(&mut program("id", ["--user"]))?.trim() == "0",
        "{compiler} of {release} is used in a root of its own, which only root can enter: run this \
         as root, or on {release}"
    );
    if root.is_dir() {
        return Ok(root);
    }
    for (tool, package) in [("mmdebstrap", "mmdebstrap"), ("unshare", "util-linux")] {
        find(tool).with_context(|| format!("{tool} is missing: sudo apt-get install {package}"))?;
    }
    let list = ["indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Created-By: Packages"];
    let targets = output(&mut program("apt-get", list)).context("asking apt for its mirror")?;
    let mirror = mirror(&targets).context("apt has no source of Debian's")?;
    let partial = root.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    let include = format!("--include={compiler},make,libelf1t64,kmod");
    let mut command = program("mmdebstrap", ["--quiet", "--variant=apt", &include, release]);
    command.arg(&partial).arg(format!("deb {mirror} {release} main"));
    run("kmod", &mut command)
        .with_context(|| format!("making a root of {release} from this machine's mirror"))?;
    fs::rename(&partial, &root).with_context(|| root.display().to_string())?;
    Ok(root)
}

/// The mirror of Debian's archive, from `release URI` lines.
fn mirror(targets: &str) -> Option<&str> {
    let releases = ["bookworm", "trixie", "forky", "sid", "oldstable", "stable", "testing"];
    let rows = targets.lines().filter_map(|line| line.trim().split_once(' '));
    rows.into_iter().find(|(release, _)| releases.contains(release)).map(|(_, uri)| uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_is_looked_for_in_its_release() {
        assert_eq!(release_with("gcc-14"), Some("trixie"));
        assert_eq!(release_with("clang-19"), None);
    }

    #[test]
    fn the_mirror_is_the_archives_and_not_the_security_suites() {
        let targets = "trixie-security http://a/security/\ntrixie http://a/debian/\n";
        assert_eq!(mirror(targets), Some("http://a/debian/"));
        assert_eq!(mirror("noble http://a/ubuntu/\n"), None);
    }

    #[test]
    fn the_compiler_is_told_to_make_here_and_there() {
        let headers = Headers {
            folder: "/k/usr/src/h".into(),
            root: "/k".into(),
            release: "9".into(),
            compiler: "gcc-14".into(),
        };
        let words = ["modules".to_owned()];
        for toolchain in [Toolchain::Host, Toolchain::Root("/r".into())] {
            let command = toolchain.make(&headers, Path::new("/w"), &words);
            let line: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
            assert!(line.ends_with(&["CC=gcc-14".into(), "modules".into()]), "{line:?}");
        }
    }
}
