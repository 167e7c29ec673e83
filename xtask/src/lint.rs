//! `cargo xtask lint`: everything that can be said about the sources without running them.
//!
//! All checks run even when one fails, so that one round shows all there is to do. Cheap ones come
//! first. Clippy and rustdoc share what they build; neither produces code.

use anyhow::{Result, bail};

use crate::{
    deny, fuzz, portable, shell,
    shell::{cargo, run},
    tidy,
};

type Check = (&'static str, fn() -> Result<()>);

const CHECKS: &[Check] = &[
    ("tidy", tidy::tidy),
    ("fmt", fmt),
    ("clippy", clippy),
    ("doc", doc),
    ("portable", portable::portable_where_possible),
    ("deny", deny::deny),
];

/// Runs every check and fails with the list of those that did.
pub(crate) fn lint() -> Result<()> {
    let (failed, took) = shell::timed(|| CHECKS.iter().filter_map(failure).collect::<Vec<_>>());
    if !failed.is_empty() {
        bail!("{} failed", failed.join(", "));
    }
    eprintln!("\nlint: {} checks passed in {:.0} s", CHECKS.len(), took.as_secs_f64());
    Ok(())
}

/// Runs one check; its name where it failed.
fn failure((name, check): &Check) -> Option<&'static str> {
    let error = check().err()?;
    eprintln!("[{name}] {error:#}");
    Some(name)
}

fn fmt() -> Result<()> {
    // Not by `cargo()`: fmt resolves nothing, so it knows no `--locked`.
    let fmt = |more: &[&str]| run("fmt", shell::program("cargo", ["fmt", "--check"]).args(more));
    let of = |manifest| fmt(&["--manifest-path", manifest]);
    fmt(&["--all"]).and(of("fuzz/Cargo.toml")).and(of("python/Cargo.toml"))
}

fn clippy() -> Result<()> {
    let mut ours = cargo("clippy");
    ours.args(["--workspace", "--all-targets", "--", "--deny", "warnings"]);
    let ours = run("clippy", &mut ours);
    // Not locked: its lock file is made from ours. In our target folder, where most is compiled.
    fuzz::lock_as_shipped()?;
    let mut fuzz = shell::program("cargo", ["clippy", "--manifest-path", "fuzz/Cargo.toml"]);
    fuzz.args(["--no-default-features", "--target-dir", "target", "--", "--deny", "warnings"]);
    let mut python = cargo("clippy");
    python.args([
        "--manifest-path",
        "python/Cargo.toml",
        "--target-dir",
        "target",
        "--",
        "--deny",
        "warnings",
    ]);
    ours.and(run("clippy", &mut fuzz)).and(run("clippy", &mut python))
}

fn doc() -> Result<()> {
    let mut command = cargo("doc");
    command.args(["--workspace", "--no-deps", "--document-private-items"]);
    run("doc", command.env("RUSTDOCFLAGS", "--deny warnings"))
}
