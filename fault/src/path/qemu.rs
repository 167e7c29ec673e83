//! Which emulator there is, and our plugin of it.
//!
//! The one idea: the system's is taken where it can do what is asked of it, which it says itself;
//! else that of the lane of machines.

use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

use pagelab_bench::Plain;
use pagelab_sys::files::beside::library;

use super::kernel::cache;

/// The emulator by its name.
const QEMU: &str = "qemu-system-x86_64";
/// The first QEMU whose plugins may read memory.
const VERSION_MIN: (u32, u32) = (9, 2);

/// An emulator that loads plugins.
pub(crate) const EMULATOR: Plain = Plain {
    name: "QEMU 9.2 or newer for x86-64 that loads plugins",
    has: || Emulator::find().is_some(),
    cure: "cargo xtask vm boot/ (on Debian), or sudo apt-get install qemu-system-x86 where that is \
           9.2 or newer; one that says no -plugin in its --help was built without",
};

/// Our plugin.
pub(crate) const PLUGIN: Plain = Plain {
    name: "the plugin libpagelab_capture.so beside this executable",
    has: || plugin().is_some(),
    cure: "cargo build --workspace (with --release for that of target/release)",
};

/// Where it is.
pub(super) fn plugin() -> Option<PathBuf> {
    library("pagelab-capture").ok()?.ok()
}

/// An emulator and where its firmware is.
#[derive(Debug)]
pub(super) struct Emulator {
    pub(super) program: PathBuf,
    pub(super) data: Vec<PathBuf>,
    /// What it says that it is.
    pub(super) version: String,
}

impl Emulator {
    /// The system's where it is new enough; else that of the lane of machines.
    pub(super) fn find() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let systems = env::split_paths(&path).map(|folder| (folder.join(QEMU), Vec::new()));
        let root = cache().map(|cache| cache.join("qemu"));
        let fetched = root.map(|root| {
            let data = ["usr/share/qemu", "usr/share/seabios"].map(|one| root.join(one));
            (root.join("usr/bin").join(QEMU), data.to_vec())
        });
        systems.chain(fetched).find_map(|(program, data)| Self::of(program, data))
    }

    /// A program that is fit.
    fn of(program: PathBuf, data: Vec<PathBuf>) -> Option<Self> {
        let says = |flag| {
            let asked = Command::new(&program).arg(flag).stdin(Stdio::null()).output().ok()?;
            Some(String::from_utf8_lossy(&asked.stdout).into_owned())
        };
        if !program.is_file() {
            return None;
        }
        let version = says("--version").filter(|text| numbers(text) >= Some(VERSION_MIN))?;
        says("--help").filter(|text| text.contains("-plugin"))?;
        Some(Self { program, data, version })
    }
}

/// `QEMU emulator version 10.0.2 (Debian …)`.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let (_, version) = text.split_once(" version ")?;
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_two_numbers() {
        assert_eq!(numbers("QEMU emulator version 10.0.2 (Debian 1:10.0.2)\n"), Some((10, 0)));
        assert_eq!(numbers("QEMU emulator version 9.2\n"), Some((9, 2)));
        assert_eq!(numbers("error while loading shared libraries"), None);
        assert!(Some((10, 0)) >= Some(VERSION_MIN) && Some((7, 2)) < Some(VERSION_MIN));
    }
}
