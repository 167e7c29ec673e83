//! The dependencies: licences, sources, bans and advisories, by `cargo-deny` and `deny.toml`.
//!
//! What can be checked anywhere must pass. Advisories need a database that lives on the network:
//! where it cannot be reached they are skipped, loudly; where it can, they must pass too.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, bail};

use crate::{
    prebuilt::prebuilt,
    shell::{self, in_ci, run},
};

/// The version that reads our `deny.toml` as it is meant.
const VERSION: &str = "0.20.2";

/// The workspaces that are shipped, each with a lock of its own.
const WORKSPACES: [&str; 2] = ["Cargo.toml", "python/Cargo.toml"];

/// Runs `cargo-deny`, installed where it is missing.
pub(crate) fn deny() -> Result<()> {
    let fix = || format!("to have it: cargo install --locked cargo-deny --version {VERSION}");
    let deny = prebuilt("cargo-deny", VERSION).with_context(fix)?;
    for workspace in WORKSPACES {
        run("deny", check(&deny, workspace).args(["licenses", "bans", "sources"]))?;
    }
    WORKSPACES.iter().try_for_each(|workspace| advisories(&deny, workspace))
}

/// A check of a workspace.
fn check(deny: &Path, workspace: &str) -> Command {
    let mut command = Command::new(deny);
    command.args(["--all-features", "--manifest-path", workspace, "--config", "deny.toml"]);
    command.args(["check", "--hide-inclusion-graph"]);
    command
}

fn advisories(deny: &Path, workspace: &str) -> Result<()> {
    let mut command = check(deny, workspace);
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
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let listed = shell::git(["ls-files", "*Cargo.lock"]).current_dir(&root).output().unwrap();
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
