//! The dependencies: licences, sources, bans and advisories, by `cargo-deny` and `deny.toml`.
//!
//! What can be checked anywhere must pass. Advisories need a database that lives on the network:
//! where it cannot be reached they are skipped, loudly; where it can, they must pass too.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{self, in_ci, program, run};

/// The versions that read our `deny.toml` as it is meant.
const VERSION: &str = "^0.20";

/// The workspaces that are shipped, each with a lock of its own.
const WORKSPACES: [&str; 2] = ["Cargo.toml", "python/Cargo.toml"];

/// Installs `cargo-deny` where it is missing, then runs it.
pub(crate) fn deny() -> Result<()> {
    let present = program("cargo", ["deny", "--version"]).output();
    if !present.is_ok_and(|output| output.status.success()) {
        install()?;
    }
    for workspace in WORKSPACES {
        run("deny", check(workspace).args(["licenses", "bans", "sources"]))?;
    }
    WORKSPACES.iter().try_for_each(|workspace| advisories(workspace))
}

/// A check of a workspace, by way of cargo, which also looks where it installs, whether or not that
/// is in `PATH`.
fn check(workspace: &str) -> Command {
    let mut command = program("cargo", ["deny", "--all-features", "--manifest-path", workspace]);
    command.args(["--config", "deny.toml", "check", "--hide-inclusion-graph"]);
    command
}

/// Without optimisation and debug information: a minute instead of five, and as fast to run.
fn install() -> Result<()> {
    let mut command =
        program("cargo", ["install", "--locked", "--debug", "cargo-deny", "--version", VERSION]);
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    if let Err(error) = run("deny", &mut command) {
        shell::warn(&format!("cargo-deny could not be installed: {error:#}"));
        bail!("cure: cargo install --locked cargo-deny --version {VERSION}");
    }
    Ok(())
}

fn advisories(workspace: &str) -> Result<()> {
    let mut command = check(workspace);
    command.arg("advisories");
    // A network that swallows packets is an unreachable network.
    command.env("GIT_HTTP_LOW_SPEED_LIMIT", "1000").env("GIT_HTTP_LOW_SPEED_TIME", "20");
    let output = command.output().context("starting cargo-deny")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if unreachable(&said) {
        let where_ = if in_ci() { "CI" } else { "this machine" };
        shell::warn(&format!(
            "ADVISORIES WERE NOT CHECKED: {where_} cannot reach the RustSec database.\n\
             Licences, bans and sources were. Cure: `cargo deny check advisories` with a network."
        ));
        return Ok(());
    }
    eprint!("{said}");
    if !output.status.success() {
        bail!(
            "advisories of {workspace} failed: update the crate, or give the reason in deny.toml"
        );
    }
    Ok(())
}

/// Whether the database is what failed, and not what it says.
fn unreachable(said: &str) -> bool {
    said.contains("failed to fetch advisory database")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lock_that_is_kept_is_looked_at() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let listed =
            program("git", ["ls-files", "*Cargo.lock"]).current_dir(&root).output().unwrap();
        let kept = String::from_utf8(listed.stdout).unwrap().replace(".lock", ".toml");
        if kept.is_empty() {
            return; // sources without their history
        }
        assert_eq!(kept.lines().collect::<Vec<_>>(), WORKSPACES);
    }

    #[test]
    fn only_an_unreachable_database_excuses() {
        assert!(unreachable("[ERROR] failed to fetch advisory database https://… with cli"));
        assert!(!unreachable("error[vulnerability]: use after free\nadvisories FAILED"));
        assert!(!unreachable("advisories ok"));
    }
}
