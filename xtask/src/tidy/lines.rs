//! How much code there is: `cargo xtask tidy --lines`.
//!
//! The one idea: a line counts when something stands on it that is neither a comment nor a test.
//! Rust that a crate's root reaches counts, and C; tests, benches, examples, fuzz targets and
//! vendored files do not, and of `xtask`, which is no part of the product, its own number is shown.

use std::collections::BTreeMap;

use super::{code::bare, modules::Modules, tree::Tree};

/// Lines of code of each of our packages, by the package's folder.
pub(crate) fn by_package(tree: &Tree) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    for package in &tree.packages {
        let folder = package.manifest.trim_end_matches("/Cargo.toml");
        let roots = ["src/lib.rs", "src/main.rs", "build.rs"];
        let roots = roots.map(|root| format!("{folder}/{root}"));
        let roots = roots.iter().filter(|root| tree.files.contains_key(*root));
        let files = roots.flat_map(|root| Modules::of(tree, root).files);
        let all: usize = files.map(|file| full(&file.code)).sum();
        lines.insert(folder.to_owned(), all);
    }
    for (file, text) in tree.with_extension("c").chain(tree.with_extension("h")) {
        let package = lines.keys().find(|package| file.starts_with(&format!("{package}/")));
        let folder = package.cloned().or_else(|| Some(file.split_once('/')?.0.to_owned()));
        let others = ["/vendor/", "/tests/", "/examples/"];
        let is_ours = !others.iter().any(|folder| file.contains(folder));
        if let Some(folder) = folder.filter(|_| is_ours) {
            *lines.entry(folder).or_default() += full(&bare(text));
        }
    }
    lines.retain(|folder, _| folder != "fuzz");
    lines
}

fn full(code: &str) -> usize {
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

/// The table: a line for each package, and what the product is together.
pub(crate) fn table(tree: &Tree) -> String {
    let lines = by_package(tree);
    let own = lines.iter().filter(|(folder, _)| *folder != "xtask");
    let all: usize = own.map(|(_, lines)| lines).sum();
    let rows = lines.iter().map(|(folder, lines)| (folder.as_str(), *lines));
    let rows = rows.chain([("in all, without xtask", all)]);
    rows.map(|(name, lines)| format!("{lines:>7} {name}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{super::tree::Package, *};

    #[test]
    fn only_lines_of_code_count() {
        let text = "//! A.\n\n/* b\nc */\nfn f() {\n    \"a\nb\"; // c\n}\n\
                    #[cfg(test)]\nmod tests;\nmod x;\n";
        let mut tree = Tree::of(&[
            ("crates/a/src/lib.rs", text),
            ("crates/a/src/x.rs", "const X: u8 = 1;\n"),
            ("crates/a/src/tests.rs", "fn t() {}\n"),
            ("crates/a/tests/t.rs", "fn t() {}\n"),
            ("crates/a/twin/a.c", "/* a */\nint b;\n"),
            ("crates/a/examples/a.c", "int c;\n"),
            ("kmod/a.h", "// a\nint b;\n"),
            ("xtask/src/main.rs", "fn main() {}\n"),
        ]);
        for name in ["crates/a", "xtask"] {
            let manifest = format!("{name}/Cargo.toml");
            tree.packages.push(Package { name: name.into(), manifest, imports: Vec::new() });
        }
        let rows = ["7 crates/a", "1 kmod", "1 xtask", "8 in all, without xtask"];
        assert_eq!(table(&tree), rows.map(|row| format!("      {row}")).join("\n"));
    }
}
