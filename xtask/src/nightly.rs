//! A nightly Rust beside ours, for what stable cannot do: sanitizers and Miri.
//!
//! The one idea: it is asked for by name through rustup, so that nothing that is built here by
//! default ever depends on it. What is missing is installed by its ordinary client, and the
//! command is shown.

use std::{ffi::OsStr, process::Command};

use anyhow::{Context, Result};

use crate::shell::{output, program, run};

const TOOLCHAIN: &str = "nightly";

/// Installs the toolchain where it is missing.
pub(crate) fn ensure() -> Result<()> {
    if succeeds(&mut program("rustup", ["run", TOOLCHAIN, "rustc", "--version"])) {
        return Ok(());
    }
    let install = ["toolchain", "install", TOOLCHAIN, "--profile", "minimal"];
    run("nightly", &mut program("rustup", install)).context(
        "only a nightly Rust can do this; with a Rust that is not rustup's, install rustup first",
    )
}

/// Installs components of the toolchain where they are missing.
pub(crate) fn ensure_components(components: &[&str]) -> Result<()> {
    ensure()?;
    let list = ["component", "list", "--installed", "--toolchain", TOOLCHAIN];
    let installed = output(&mut program("rustup", list))?;
    let missing = missing(components, &installed);
    if missing.is_empty() {
        return Ok(());
    }
    let mut add = program("rustup", ["component", "add", "--toolchain", TOOLCHAIN]);
    run("nightly", add.args(missing)).context("not every nightly has every component: try later")
}

/// Which of these no line of rustup's list names; it adds the platform to some names.
fn missing<'a>(components: &[&'a str], installed: &str) -> Vec<&'a str> {
    let has = |component: &str| {
        installed.lines().any(|line| {
            line.strip_prefix(component)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    };
    components.iter().copied().filter(|component| !has(component)).collect()
}

/// A cargo command of the toolchain.
pub(crate) fn cargo<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Command {
    let mut command = program("rustup", ["run", TOOLCHAIN, "cargo"]);
    command.args(arguments);
    // What the cargo that started us says of itself is not true of that one.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command
}

/// Whether a command can be started and succeeds; what it prints is of no interest.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_known_with_and_without_its_platform() {
        let installed = "cargo-x86_64-unknown-linux-gnu\nrust-src\nrust-std-x86_64\n";
        assert_eq!(missing(&["cargo", "rust-src"], installed), [""; 0]);
        assert_eq!(missing(&["miri", "rust-src", "car"], installed), ["miri", "car"]);
    }

    #[test]
    fn success_is_the_status() {
        assert!(succeeds(&mut program("true", [""; 0])));
        assert!(!succeeds(&mut program("false", [""; 0])));
        assert!(!succeeds(&mut program("no-such-program", [""; 0])));
    }
}
