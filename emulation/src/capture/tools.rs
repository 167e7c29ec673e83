//! What a capture needs of this host: a QEMU that loads plugins, and our plugin.

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::Context;
use pagelab_sys::files::beside::library;

use super::program::executables;
use pagelab_cli::exit::Failure;

/// The package of our plugin.
const PLUGIN: &str = "pagelab-capture";

/// A QEMU by name, if it loads plugins.
///
/// # Errors
/// When this host has none: how to get one.
pub(super) fn emulator(name: &str) -> Result<PathBuf, Failure> {
    let Some(path) = executables(OsStr::new(name)).next() else {
        return Err(lacks(name, "sudo apt-get install qemu-user"));
    };
    let help = Command::new(&path).arg("--help").stdin(Stdio::null()).output();
    let help =
        help.with_context(|| format!("cannot start {}", path.display())).map_err(Failure::host)?;
    if !String::from_utf8_lossy(&help.stdout).contains("-plugin") {
        let what = format!("a {name} that loads plugins ({} was built without)", path.display());
        let cure = "use one that is not static, or build QEMU with --enable-plugins";
        return Err(lacks(&what, cure));
    }
    Ok(path)
}

/// Our plugin.
///
/// # Errors
/// When it is not where it should be: how to get it.
pub(super) fn plugin() -> Result<PathBuf, Failure> {
    let found =
        library(PLUGIN).context("cannot find this executable").map_err(Failure::internal)?;
    found.map_err(|missing| lacks(&missing.to_string(), &missing.cure))
}

fn lacks(what: &str, cure: &str) -> Failure {
    host!("this host lacks {what}: {cure}")
}
