//! What a capture needs of this host: a QEMU that loads plugins, and our plugin.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, anyhow};

use super::program::executables;
use crate::exit::Failure;

/// Our plugin.
const PLUGIN: &str = "libpagelab_capture.so";

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

/// Our plugin: beside the executable, or in its library folder.
///
/// # Errors
/// When it is in neither.
pub(super) fn plugin() -> Result<PathBuf, Failure> {
    let executable =
        env::current_exe().context("cannot find this executable").map_err(Failure::internal)?;
    let folder = executable.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(PLUGIN), folder.join("../lib/pagelab").join(PLUGIN)];
    if let Some(found) = places.into_iter().find(|place| place.is_file()) {
        return Ok(found);
    }
    let release = if folder.ends_with("release") { " --release" } else { "" };
    let what = format!("{PLUGIN}, in {} or its ../lib/pagelab", folder.display());
    Err(lacks(&what, &format!("cargo build{release} -p pagelab-capture")))
}

fn lacks(what: &str, cure: &str) -> Failure {
    Failure::host(anyhow!("this host lacks {what}: {cure}"))
}
