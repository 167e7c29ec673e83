//! `cargo xtask portable`: the crates that need no particular OS compile for others.
//!
//! The one idea: checking needs a target's standard library, and neither its linker nor its C
//! compiler, so one Linux machine can answer for all. That they also run there is not checked.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};

use crate::shell::{cargo, output, program, run, warn};

/// Crates that promise it. The others compile C, or ask Linux for something.
const PACKAGES: &[&str] = &["pagelab-record", "pagelab-trace", "pagelab-emu"];

/// One target for each thing that differs: the family of the OS, the OS, the architecture.
const TARGETS: &[&str] =
    &["x86_64-pc-windows-gnu", "aarch64-apple-darwin", "aarch64-unknown-linux-gnu"];

/// Lean, as most people take them, and with every feature.
const FORMS: &[&str] = &["--no-default-features", "--all-features"];

/// Installs the targets where they are missing, and checks every crate for every one.
pub(crate) fn portable() -> Result<()> {
    add_targets()?;
    check_all()
}

/// The same, but for a machine that cannot install the targets, where it is skipped.
pub(crate) fn portable_where_possible() -> Result<()> {
    if let Err(error) = add_targets() {
        warn(&format!(
            "OTHER SYSTEMS WERE NOT CHECKED: {error:#}\nCure: rustup target add {}",
            TARGETS.join(" ")
        ));
        return Ok(());
    }
    check_all()
}

fn add_targets() -> Result<()> {
    let root = output(&mut program("rustc", ["--print", "sysroot"]))?;
    let libraries = Path::new(root.trim()).join("lib/rustlib");
    let missing = |target: &&&str| !libraries.join(target).is_dir();
    let missing: Vec<&str> = TARGETS.iter().filter(missing).copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut add = program("rustup", ["target", "add"]);
    run("portable", add.args(missing)).context("this Rust lacks the libraries of other systems")
}

fn check_all() -> Result<()> {
    FORMS.iter().try_for_each(|form| run("portable", &mut check(form)))
}

fn check(form: &str) -> Command {
    let mut command = cargo("check");
    command.arg(form);
    command.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    command.args(TARGETS.iter().flat_map(|target| ["--target", target]));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_is_checked_for_every_target() {
        let command = check(FORMS[0]);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        for (option, values) in [("--package", PACKAGES), ("--target", TARGETS)] {
            let given = words.windows(2).filter(|pair| pair[0] == option).map(|pair| &*pair[1]);
            assert_eq!(given.collect::<Vec<_>>(), values);
        }
    }
}
