//! `cargo xtask splice`: pages show what the program printed, never what somebody typed.
//!
//! The one idea: a page names a run in `records/` and the parts of its report that it wants, and
//! what stands between its two marks is always `pagelab report` of that run. So a number in a page
//! has a journal behind it, and a page cannot go on showing a form that the report no longer has.
//!
//! Nothing is measured here. `--take` brings a run that was measured into `records/`.

mod page;
mod parts;
mod records;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Parser;

pub(crate) use self::records::unpack;
use self::{page::Mark, records::Records};
use crate::shell::{self, cargo, git, output};

/// What the task takes.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Change nothing; fail where a page differs
    #[arg(long)]
    check: bool,
    /// First keep this run, a directory, in records/
    #[arg(long, value_name = "RUN", requires = "name")]
    take: Option<PathBuf>,
    /// Under this name
    #[arg(long = "as", value_name = "NAME", requires = "take")]
    name: Option<String>,
}

/// Brings every page up to date, or says which is not.
pub(crate) fn splice(asked: &Arguments) -> Result<()> {
    let root = Path::new(".");
    if let (Some(run), Some(name)) = (&asked.take, &asked.name) {
        records::take(run, &root.join(records::FOLDER), name)?;
    }
    shell::run("splice", cargo("build").args(["--package", "pagelab"]))?;
    let stale = stale(root, &target(root).join("debug/pagelab"))?;
    if asked.check {
        return refuse(&stale);
    }
    for (path, text) in stale {
        fs::write(root.join(&path), text).with_context(|| format!("writing {path}"))?;
        eprintln!("[splice] {path}");
    }
    Ok(())
}

fn refuse(stale: &[(String, String)]) -> Result<()> {
    if stale.is_empty() {
        return Ok(());
    }
    let pages: Vec<&str> = stale.iter().map(|(path, _)| path.as_str()).collect();
    bail!("not what the program prints: {}; cure: cargo xtask splice", pages.join(", "))
}

/// Pages that differ from what the program prints, and what they should be.
fn stale(root: &Path, binary: &Path) -> Result<Vec<(String, String)>> {
    let mut records = Records::new(root, binary);
    let mut list = git(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = output(list.args(["--", "*.md"]).current_dir(root))?;
    let mut stale = Vec::new();
    for path in listed.split_terminator('\0') {
        // Listed but gone: deleted, and not yet told to git.
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        let new = page::filled(&text, &mut |mark: &Mark<'_>| {
            let shown = parts::choose(&records.report(mark.record)?, &mark.parts)?;
            Ok(mark.block(&shown))
        });
        let new = new.with_context(|| path.to_owned())?;
        if new != text {
            stale.push((path.to_owned(), new));
        }
    }
    Ok(stale)
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program as it was built last: `cargo test --workspace` has just built it.
    fn binary(root: &Path) -> PathBuf {
        let folders = ["debug", "release"].map(|profile| target(root).join(profile));
        let age = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
        let built = folders.map(|folder| folder.join("pagelab"));
        if let Some(newest) = built.iter().filter(|path| age(path).is_some()).max_by_key(|p| age(p))
        {
            return newest.clone();
        }
        let mut cargo = cargo("build");
        shell::run("build", cargo.args(["--package", "pagelab"]).current_dir(root)).unwrap();
        built[0].clone()
    }

    #[test]
    fn every_page_shows_what_the_program_prints() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        refuse(&stale(root, &binary(root)).unwrap()).unwrap();
    }

    #[test]
    fn a_page_that_differs_is_named_with_the_cure() {
        let stale = [("docs/a.md".to_owned(), String::new())];
        let error = refuse(&stale).unwrap_err().to_string();
        assert!(error.contains("docs/a.md") && error.contains("cargo xtask splice"), "{error}");
    }
}
