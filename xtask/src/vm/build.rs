//! The static programs that a guest runs: its first process and `pagelab`.
//!
//! The one idea: both are built as `cargo xtask dist` builds, for musl, with a profile that is
//! quick to build. Nothing else goes into a guest, so nothing of this machine can be missing there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    dist,
    shell::{cargo, run},
};

const FOLDER: &str = "target/x86_64-unknown-linux-musl/vm";

/// The programs of a guest.
#[derive(Debug)]
pub(super) struct Programs {
    /// The first process.
    pub(super) guest: PathBuf,
    /// What is under test.
    pub(super) pagelab: PathBuf,
}

/// Builds both.
pub(super) fn programs() -> Result<Programs> {
    build(&["pagelab-vm", "pagelab"])?;
    let folder = Path::new(FOLDER);
    Ok(Programs { guest: folder.join("guest"), pagelab: folder.join("pagelab") })
}

/// Builds the plugin of QEMU, for this host, and puts it beside a program.
pub(super) fn plugin_beside(program: &Path) -> Result<()> {
    const PLUGIN: &str = "libpagelab_capture.so";
    let mut command = cargo("build");
    command.args(["--quiet", "--profile", "vm", "--package", "pagelab-capture"]);
    run("vm", &mut command)?;
    let beside = program.with_file_name(PLUGIN);
    let built = Path::new("target/vm").join(PLUGIN);
    fs::copy(&built, &beside).with_context(|| built.display().to_string())?;
    Ok(())
}

fn build(packages: &[&str]) -> Result<()> {
    let mut command = cargo("build");
    command.args(["--quiet", "--profile", "vm", "--target", dist::TARGET]);
    for package in packages {
        command.args(["--package", package]);
    }
    dist::for_musl(&mut command)?;
    run("vm", &mut command)
}
