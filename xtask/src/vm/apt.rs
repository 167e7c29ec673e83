//! Packages of Debian's suites, through an apt of our own beside the system's.
//!
//! The one idea: apt already knows mirrors, signatures, checksums and interrupted downloads. Ours
//! has its own lists and its own sources, made from the mirror that this machine uses, so the
//! system's suites stay as they are and no privilege is needed. Nothing is installed here: packages
//! are unpacked into folders.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::shell::{find, output, program, run};

/// Debian's own keys, where its package puts them.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// An index that cannot be had is an error, not a warning.
const UPDATE: [&str; 4] = ["--quiet=2", "--option", "APT::Update::Error-Mode=any", "update"];

/// An apt with its own lists.
#[derive(Debug)]
pub(super) struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// Writes the sources and reads the indices of the mirror.
    pub(super) fn prepare(cache: &Path) -> Result<Self> {
        for name in ["apt-get", "apt-cache", "dpkg-deb"] {
            find(name).with_context(|| format!("{name} is missing: this is not Debian"))?;
        }
        ensure!(
            Path::new(KEYS).exists(),
            "{KEYS} is missing: sudo apt-get install debian-archive-keyring"
        );
        let folder = cache.join("apt");
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(part)).context("making the folders of apt")?;
        }
        let targets = program(
            "apt-get",
            ["indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Created-By: Packages"],
        );
        let (main, security) = mirrors(&output(&mut { targets })?)
            .context("apt has no source of Debian's: the lane needs Debian's kernels")?;
        let apt = Self { folder };
        apt.write("status", "")?;
        apt.write("sources.list", &sources(&main, &security))?;
        apt.write("apt.conf", &apt.configuration())?;
        run("vm", &mut apt.command("apt-get", &UPDATE))?;
        Ok(apt)
    }

    /// Names of packages that a pattern of apt's finds.
    pub(super) fn names(&self, pattern: &str) -> Result<Vec<String>> {
        let text = output(&mut self.command("apt-cache", &["search", "--names-only", pattern]))?;
        Ok(text
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .map(str::to_owned)
            .collect())
    }

    /// The packages, of those whose name begins so, that a package depends on, and theirs.
    pub(super) fn dependencies(&self, package: &str, beginning: &str) -> Result<Vec<String>> {
        let only = ["--recurse", "--no-recommends", "--no-suggests", "--no-conflicts"];
        let more = ["--no-breaks", "--no-replaces", "--no-enhances", package];
        let words = [&["depends"], &only[..], &more[..]].concat();
        let text = output(&mut self.command("apt-cache", &words))?;
        // A package's own line begins at the margin, `  Depends: name` below it.
        let names = text.lines().filter(|line| line.starts_with(beginning));
        Ok(names.map(|name| name.split(':').next().unwrap_or(name).to_owned()).collect())
    }

    /// Downloads packages, `name` or `name/suite`, and unpacks them over each other into a folder,
    /// which exists only when it is whole.
    pub(super) fn unpack(&self, packages: &[String], into: &Path) -> Result<()> {
        let debs = self.folder.with_file_name("debs");
        fs::create_dir_all(&debs).context("making the folder of packages")?;
        let words: Vec<&str> = packages.iter().map(String::as_str).collect();
        let words = [&["--quiet=2", "download"], &words[..]].concat();
        let uris = output(&mut self.command("apt-get", &[&["--print-uris"], &words[..]].concat()))?;
        run("vm", self.command("apt-get", &words).current_dir(&debs))?;
        let name = into.file_name().unwrap_or_default().to_string_lossy();
        let partial = into.with_file_name(format!("{name}.partial"));
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial).context("making the folder of a kernel")?;
        let files = file_names(&uris);
        ensure!(files.len() == packages.len(), "apt names {} files for {packages:?}", files.len());
        for file in files {
            let deb = debs.join(file);
            let unpack = [Path::new("--extract"), &deb, &partial];
            output(&mut program("dpkg-deb", unpack))?;
            fs::remove_file(&deb).with_context(|| deb.display().to_string())?;
        }
        fs::rename(&partial, into).with_context(|| into.display().to_string())
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())
    }

    fn command(&self, name: &str, words: &[&str]) -> Command {
        let mut command = program(name, words);
        command.env("APT_CONFIG", self.folder.join("apt.conf"));
        command
    }

    fn configuration(&self) -> String {
        let folder = self.folder.display();
        format!(
            "Dir::Etc::sourcelist \"{folder}/sources.list\";\nDir::Etc::sourceparts \"-\";\n\
             Dir::State::lists \"{folder}/lists\";\nDir::State::status \"{folder}/status\";\n\
             Dir::Cache \"{folder}/cache\";\nAPT::Architecture \"amd64\";\n\
             APT::Architectures \"amd64\";\nAcquire::Languages \"none\";\n\
             Acquire::Retries \"3\";\nAPT::Sandbox::User \"root\";\n"
        )
    }
}

/// The mirror of Debian's archive and that of its security suites, from `release URI` lines.
fn mirrors(targets: &str) -> Option<(String, String)> {
    let rows = || targets.lines().filter_map(|line| line.trim().split_once(' '));
    let suites = ["bookworm", "trixie", "forky", "sid", "oldstable", "stable", "testing"];
    let main = rows().find(|(suite, _)| suites.contains(suite))?.1;
    let security = rows().find(|(suite, _)| suite.ends_with("-security"));
    let security = security.map_or(main, |(_, uri)| uri);
    Some((main.to_owned(), security.to_owned()))
}

/// The suites that have the kernels and QEMU, whatever this machine's release is.
fn sources(main: &str, security: &str) -> String {
    let rows = [
        (main, "bookworm"),
        (security, "bookworm-security"),
        (main, "bookworm-backports"),
        (main, "trixie-backports"),
    ];
    rows.map(|(uri, suite)| format!("deb [signed-by={KEYS}] {uri} {suite} main\n")).concat()
}

/// The file names in `'URI' NAME SIZE HASH` lines.
fn file_names(uris: &str) -> Vec<&str> {
    let quoted = uris.lines().filter(|line| line.starts_with('\''));
    quoted.filter_map(|line| line.split_whitespace().nth(1)).collect()
}

/// Installs packages on this machine; only where it must be.
pub(super) fn install(packages: &[&str]) -> Result<()> {
    let cure = format!("sudo apt-get install {}", packages.join(" "));
    if output(&mut program("id", ["--user"]))?.trim() != "0" || find("apt-get").is_none() {
        bail!("cure: {cure}");
    }
    let words = ["--quiet=2", "--option", "DPkg::Lock::Timeout=300"];
    run("vm", &mut program("apt-get", [&words[..], &["update"]].concat()))?;
    let install = [&words[..], &["install", "--yes", "--no-install-recommends"], packages].concat();
    let mut command = program("apt-get", install);
    run("vm", command.env("DEBIAN_FRONTEND", "noninteractive")).with_context(|| cure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_this_machines() {
        let targets = "trixie-security http://sec.example/debian-security/\n\
            trixie http://mirror.example/debian/\n";
        let (main, security) = mirrors(targets).unwrap();
        assert_eq!(main, "http://mirror.example/debian/");
        assert_eq!(security, "http://sec.example/debian-security/");
        let list = sources(&main, &security);
        assert_eq!(list.lines().count(), 4);
        assert!(list.contains("http://mirror.example/debian/ trixie-backports main"));
    }

    #[test]
    fn a_machine_without_debians_sources_has_no_mirror() {
        assert_eq!(mirrors("noble http://mirror.example/ubuntu/\n"), None);
        assert_eq!(mirrors(""), None);
        let (main, security) = mirrors("sid http://mirror.example/debian/\n").unwrap();
        assert_eq!(main, security);
    }

    #[test]
    fn the_files_of_a_download_are_read() {
        let uris = "'http://m/pool/a_1%3a2_amd64.deb' a_1%3a2_amd64.deb 12 SHA256:00\nW: x\n";
        assert_eq!(file_names(uris), ["a_1%3a2_amd64.deb"]);
    }
}
