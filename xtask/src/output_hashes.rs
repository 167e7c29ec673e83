//! `cargo xtask output-hashes`: whether a change left what the program prints as it was.
//!
//! Every journal of the repository in every form, beside each publication too, then `list`, the man
//! pages and the completions. One line for each output, so that a difference names the command.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Parser;
use sha2::{Digest as _, Sha256};

use crate::{
    shell::{self, git, output, program},
    splice, workspace,
};

/// What the outputs were when they were last meant to change.
const BASELINE: &str = "tests/output-hashes.txt";
/// Where journals are unpacked: a report names its journal, and so each has one place.
const FOLDER: &str = "target/output-hashes";
const FORMS: [&str; 5] = ["terminal", "markdown", "html", "json", "csv"];

/// What the task takes.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Make what is printed now the baseline
    #[arg(long)]
    write: bool,
    /// Of another build, in place of the one that is built now
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

/// Compares the outputs with the baseline, or rewrites it.
pub(crate) fn output_hashes(asked: &Arguments) -> Result<()> {
    if asked.program.is_none() {
        shell::run("output-hashes", workspace::build().arg("--quiet"))?;
    }
    let program = asked.program.as_deref().unwrap_or("target/debug/pagelab".as_ref());
    let now = hashes(&std::path::absolute(program)?)?;
    if asked.write {
        return fs::write(BASELINE, now).context(BASELINE);
    }
    let before = fs::read_to_string(BASELINE).context(BASELINE)?;
    let missing = |from: &str, of: &str| -> Vec<String> {
        let known: BTreeSet<_> = of.lines().collect();
        from.lines().filter(|line| !known.contains(line)).map(str::to_owned).collect()
    };
    let (new, gone) = (missing(&now, &before), missing(&before, &now));
    if !new.is_empty() || !gone.is_empty() {
        bail!("not as before:\n{}\nbefore:\n{}", new.join("\n"), gone.join("\n"));
    }
    eprintln!("[output-hashes] {} outputs are as they were", now.lines().count());
    Ok(())
}

/// A line for each output: its hash and the command's words.
fn hashes(binary: &Path) -> Result<String> {
    let folder = Path::new(FOLDER);
    // Errors: it may not be there.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).context(FOLDER)?;
    let mut publications: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir("published").context("published")? {
        publications.push(std::path::absolute(entry?.path())?);
    }
    publications.sort();
    let mut lines = String::new();
    let mut add = |words: &[&str], shown: &str| -> Result<()> {
        let mut command = program(&binary.to_string_lossy(), words);
        command.current_dir(folder).env("COLUMNS", "100").env("NO_COLOR", "1");
        let text = output(&mut command)?;
        writeln!(lines, "{}  {shown}", hash(text.as_bytes())).context("a line")
    };
    for journal in journals(folder)? {
        for form in FORMS {
            let words = ["report", &journal, "--format", form];
            add(&words, &words.join(" "))?;
        }
        // The section is the same data in every form.
        for publication in &publications {
            let name = publication.file_name().unwrap_or_default().to_string_lossy();
            let words = ["report", &journal, "--published", &publication.to_string_lossy()];
            add(&words, &format!("report {journal} --published {name}"))?;
        }
    }
    add(&["list"], "list")?;
    add(&["generate", "--out", "generated"], "generate")?;
    for file in files(&folder.join("generated"))? {
        let text = fs::read(&file).with_context(|| file.display().to_string())?;
        let name = file.strip_prefix(folder)?.display();
        writeln!(lines, "{}  {name}", hash(&text))?;
    }
    Ok(lines)
}

/// As many digits as tell outputs apart.
fn hash(text: &[u8]) -> String {
    let digest = Sha256::digest(text);
    digest.iter().take(8).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The journals of the repository, unpacked into `folder`; their names there, sorted.
fn journals(folder: &Path) -> Result<Vec<String>> {
    let listed = output(&mut git(["ls-files", "--", "tests/data", "records"]))?;
    let mut names = Vec::new();
    for path in listed.lines().filter(|path| path.contains(".jsonl")) {
        let unpacked = path.trim_end_matches(".xz");
        let bytes = if unpacked == path { fs::read(path)? } else { splice::unpack(path.as_ref())? };
        let name = unpacked.replace('/', "-");
        fs::write(folder.join(&name), bytes).with_context(|| name.clone())?;
        names.push(name);
    }
    names.sort();
    Ok(names)
}

/// Every file below a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?);
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
