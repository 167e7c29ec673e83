//! Checks of source files: what they start with, how long they are, what must not be left in.

use std::path::Path;

use super::{Problem, tree::Tree};

const LINE_MAX_CHARS: usize = 100;
const FILE_MAX_LINES: usize = 400;
/// Languages whose form we answer for.
const LANGUAGES: &[&str] = &["rs", "c", "h", "S", "py", "sh"];

/// Where unsafe code may be allowed, file by file, with the reason on its first line.
const UNSAFE_ROOMS: &[&str] = &[
    "core/sys/",
    "core/interpose/",
    "emulation/trace/src/decode.rs",
    "emulation/emu/src/raw/",
    "tiering/heat/",
    "program/preload/",
    "segment/library/",
    "emulation/capture/",
];

/// Words that mean «not finished». Written in two halves, so that this file is.
const LEFTOVERS: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("db", "g!")];

/// A Rust file starts with `//!`; only attributes of the file may come before it.
pub(crate) fn module_docs(tree: &Tree) -> Vec<Problem> {
    let silent = tree.with_extension("rs").filter(|(_, text)| !first_text(text).starts_with("//!"));
    let cure = "start with `//!`: what it is for, the one idea, what it is not";
    silent.map(|(file, _)| Problem::new(file, 1, "does not say what it is for", cure)).collect()
}

/// The first line that is not part of an inner attribute.
fn first_text(text: &str) -> &str {
    let mut in_attribute = false;
    for line in text.lines().map(str::trim) {
        in_attribute |= line.starts_with("#!");
        if !in_attribute && !line.is_empty() {
            return line;
        }
        in_attribute &= !line.ends_with(']');
    }
    ""
}

/// A file below `src` that no module names is not compiled, however finished it looks.
pub(crate) fn dead_files(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, _) in tree.with_extension("rs") {
        let Some((package, inside)) = file.split_once("/src/") else { continue };
        let root = ["lib.rs", "main.rs"].contains(&inside) || inside.starts_with("bin/");
        let stem = inside.trim_end_matches(".rs").trim_end_matches("/mod");
        let name = stem.rsplit('/').next().unwrap_or(stem);
        let base = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
        let named = |text: &str| {
            text.lines().map(str::trim).any(|line| {
                let declares = line.strip_suffix(';').is_some_and(|line| {
                    line == format!("mod {name}") || line.ends_with(&format!(" mod {name}"))
                });
                declares
                    || line.contains(&format!("/{base}\""))
                    || line.contains(&format!("\"{base}\""))
            })
        };
        let folder = format!("{package}/");
        let mut own = tree.with_extension("rs").filter(|(other, _)| other.starts_with(&folder));
        if !root && !own.any(|(_, text)| named(text)) {
            let what = "no module names this file, so it is not compiled";
            problems.push(Problem::new(file, 0, what, format!("add `mod {name};`, or delete it")));
        }
    }
    problems
}

/// Only the rooms may open the door that the workspace's lints close.
pub(crate) fn unsafe_rooms(tree: &Tree) -> Vec<Problem> {
    let lint = concat!("unsafe", "_code");
    let mut problems = Vec::new();
    for (file, text) in tree.with_extension("rs") {
        if UNSAFE_ROOMS.iter().any(|room| file.starts_with(room)) {
            continue;
        }
        for (number, line) in numbered(text) {
            if line.contains(lint) && !line.trim_start().starts_with("//") {
                let cure = "move it to core/sys behind a safe function";
                problems.push(Problem::new(file, number, "allows unsafe code", cure));
            }
        }
    }
    problems
}

/// What rustfmt leaves alone, comments and literals, and what it does not know.
pub(crate) fn long_lines(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, text) in ours(tree) {
        let long = |(_, line): &(usize, &str)| line.chars().count() > LINE_MAX_CHARS;
        problems.extend(numbered(text).filter(long).map(|(number, _)| {
            let what = format!("has more than {LINE_MAX_CHARS} characters");
            Problem::new(file, number, what, "say it shorter, or on two lines")
        }));
    }
    problems
}

/// A file is what one reads in one sitting. Tests are not counted.
pub(crate) fn long_files(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, text) in ours(tree).filter(|(file, _)| !is_test(file)) {
        let lines = before_tests(text).lines().count();
        if lines > FILE_MAX_LINES {
            let what = format!("{lines} lines without tests, {FILE_MAX_LINES} are enough");
            problems.push(Problem::new(file, 0, what, "split it where it changes its subject"));
        }
    }
    problems
}

/// What is not finished is an issue, not a comment.
pub(crate) fn leftovers(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, text) in ours(tree) {
        for (number, line) in numbered(text) {
            for word in LEFTOVERS.iter().filter(|word| has_word(line, word)) {
                let what = format!("`{word}` is left in");
                problems.push(Problem::new(file, number, what, "do it, or open an issue"));
            }
        }
    }
    problems
}

/// A test that does not run says why.
pub(crate) fn silent_ignores(tree: &Tree) -> Vec<Problem> {
    let attribute = concat!("#[", "ignore]");
    let mut problems = Vec::new();
    for (file, text) in tree.with_extension("rs") {
        for (number, _) in numbered(text).filter(|(_, line)| line.trim() == attribute) {
            let cure = "write `#[ignore = \"the need that is missing\"]`, or skip with the cure";
            problems.push(Problem::new(file, number, "ignored without a reason", cure));
        }
    }
    problems
}

/// Files in our languages that we wrote: what others wrote lies in a folder `vendor`.
fn ours(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    let files = LANGUAGES.iter().flat_map(|language| tree.with_extension(language));
    files.filter(|(file, _)| !file.contains("/vendor/"))
}

pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

pub(crate) fn is_test(file: &str) -> bool {
    file.starts_with("tests/") || file.contains("/tests/") || file.ends_with("/tests.rs")
}

/// The part of a Rust file before its test module.
pub(crate) fn before_tests(text: &str) -> &str {
    let text = text.strip_suffix("\n#[cfg(test)]\nmod tests;\n").unwrap_or(text);
    text.find("\n#[cfg(test)]\nmod tests {").map_or(text, |end| &text[..end])
}

/// Whether a word occurs that is not part of a longer one.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(part) && !line[at + word.len()..].starts_with(part))
}

#[cfg(test)]
mod tests;
