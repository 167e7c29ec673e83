//! `cargo xtask test-user`: as root, the tests once more as an ordinary user, for what behaves
//! differently without rights.
//!
//! The binaries are those that root has built: cargo-nextest is given what cargo would print.

use std::{fs, os::unix::fs::chown, process::Command};

use anyhow::{Context, Result, bail};

use super::{BUILT, ran, runner};
use crate::{
    dist,
    shell::{self, cargo, output, program, run},
    workspace,
};

/// The user and group without rights that every distribution has.
const NOBODY: u32 = 65534;
/// A folder of theirs, which is also where cargo-nextest leaves what its profile `user` did.
const FOLDER: &str = "target/nextest/user";

/// The task.
pub(crate) fn user() -> Result<()> {
    if !dist::is_root() {
        eprintln!("[test-user] this is an ordinary user: `cargo xtask test` is the same");
        return Ok(());
    }
    run("test-user", &mut workspace::build())?;
    let Some(nextest) = runner::nextest() else { return Ok(()) };
    let root = std::env::current_dir().context("reading the working directory")?;
    let folder = root.join(FOLDER);
    let of = |name: &str| folder.join(name).display().to_string();
    for part in [folder.clone(), folder.join("tmp")] {
        fs::create_dir_all(&part).context(FOLDER)?;
        chown(part, Some(NOBODY), Some(NOBODY)).context(FOLDER)?;
    }
    let mut metadata = cargo("metadata");
    metadata.args(["--format-version", "1", "--all-features"]);
    fs::write(of("cargo.json"), output(&mut metadata)?)?;
    let mut list = program(&nextest.to_string_lossy(), ["nextest", "list", "--workspace"]);
    list.args(["--list-type", "binaries-only", "--message-format", "json"]);
    fs::write(of("binaries.json"), output(&mut list)?)?;
    if !as_user("test").args(["-r", "Cargo.toml"]).status().is_ok_and(|status| status.success()) {
        let path = root.display();
        shell::warn(&format!(
            "NOT TESTED AS AN ORDINARY USER, who cannot read {path}\nchmod o+rx it"
        ));
        return Ok(());
    }
    let (cargo, binaries, jobs) = (of("cargo.json"), of("binaries.json"), runner::jobs());
    let words = ["--binaries-metadata", &binaries, "--cargo-metadata", &cargo];
    let words = [&words[..], &["--test-threads", &jobs, "--profile", "user"]].concat();
    let test = runner::command(Some(&nextest), &words);
    let mut command = as_user(&test.get_program().to_string_lossy());
    command.args(test.get_args()).env(BUILT, "1");
    // Snapshots are looked for here; else insta asks cargo.
    command.env("INSTA_WORKSPACE_ROOT", &root);
    command.env("HOME", &folder).env("TMPDIR", of("tmp")).env_remove("CARGO_HOME");
    let (count, _) = ran(Some(&of("junit.xml")), &mut command);
    println!("[test-user] {} passed, {} skipped", count.passed, count.skipped);
    if count.failed.is_empty() { Ok(()) } else { bail!("{}", count.failed.join("\n")) }
}

/// A command of that user.
fn as_user(name: &str) -> Command {
    let id = NOBODY.to_string();
    program("setpriv", ["--reuid", &id, "--regid", &id, "--clear-groups", name])
}
