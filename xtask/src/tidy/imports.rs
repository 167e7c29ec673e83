//! Which crate of ours may import which: the table of the house, against what cargo resolves.
//!
//! The table may name crates that do not exist yet; a crate that exists must be in the table.

use super::{Problem, tree::Tree};

/// What every part may import.
const CORE: &[&str] = &["interpose", "record", "sys", "bench", "report", "cli"];

/// The core, libraries for others and tools: each crate, and what it may import of ours.
const HOUSE: &[(&str, &[&str])] = &[
    ("record", &[]),
    ("initrd", &[]),
    ("trace", &[]),
    ("interpose", &[]),
    ("sys", &["interpose"]),
    ("emu", &["trace"]),
    ("tier", &["trace"]),
    ("live", &["tier", "interpose", "sys"]),
    ("bench", &["record", "sys"]),
    ("report", &["record"]),
    ("cli", &["record", "sys", "bench", "report"]),
    ("heat", &["interpose"]),
    ("preload", &["interpose"]),
    ("segment", &["interpose"]),
    ("capture", &["trace", "sys"]),
    ("vm", &["record", "sys"]),
    ("xtask", &["initrd"]),
];

/// Parts, and what stands on them: each crate, and what it may import beside [`CORE`].
const PARTS: &[(&str, &[&str])] = &[
    ("mappings", &[]),
    ("fault", &["mappings", "initrd"]),
    ("memtype", &[]),
    ("segments", &["mappings", "memtype"]),
    ("translation", &["mappings", "segments"]),
    ("emulation", &["trace", "emu"]),
    ("program", &["mappings", "fault", "translation", "emulation", "trace"]),
    ("tiering", &["mappings", "emulation", "trace", "tier", "live"]),
    ("parts", &["fault", "memtype", "segments", "translation", "emulation", "program", "tiering"]),
    // For its tests; the program itself knows its parts by `parts` alone.
    ("pagelab", &["parts", "mappings", "fault", "translation", "program", "trace"]),
    ("fuzz", &["parts", "fault", "program", "tiering", "tier", "live", "trace"]),
    ("python", &["parts", "emulation", "tiering", "trace"]),
];

/// Each crate, and the tables of what it may import.
fn house() -> impl Iterator<Item = (&'static str, [&'static [&'static str]; 2])> {
    let parts = PARTS.iter().map(|(name, imports)| (*name, [CORE, imports]));
    HOUSE.iter().map(|(name, imports)| (*name, [&[][..], imports])).chain(parts)
}

/// Every import is one that the house allows.
pub(crate) fn imports(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in &tree.packages {
        let Some((_, allowed)) = house().find(|(name, _)| *name == package.name) else {
            let what = format!("`{}` is not in the house", package.name);
            let cure = "decide what it may import: ARCHITECTURE.md, then HOUSE in xtask";
            problems.push(Problem::new(&package.manifest, 0, what, cure));
            continue;
        };
        for import in &package.imports {
            // A crate that imports itself turns its own features on for its tests.
            if allowed.concat().contains(&import.as_str()) || *import == package.name {
                continue;
            }
            let text = tree.files.get(&package.manifest).map_or("", String::as_str);
            let line = text.lines().position(|line| line.contains(import.as_str()));
            let what = format!("`{}` imports `{import}`", package.name);
            let cure = "move the code to where both can see it, or the value through the binary";
            let line = line.map_or(0, |index| index + 1);
            problems.push(Problem::new(&package.manifest, line, what, cure));
        }
    }
    problems
}

/// `unsafe_code = "deny"` holds only where the workspace's lints are taken.
pub(crate) fn lints(tree: &Tree) -> Vec<Problem> {
    let takes = |text: &str| {
        let mut lines = text.lines().skip_while(|line| line.trim() != "[lints]").skip(1);
        lines.find(|line| !line.trim().is_empty()).is_some_and(|line| line == "workspace = true")
    };
    let careless = tree.packages.iter().filter(|package| {
        let text = tree.files.get(&package.manifest).map_or("", String::as_str);
        !takes(text)
    });
    let problem = |manifest: &str| {
        let what = "does not take the workspace's lints";
        Problem::new(manifest, 0, what, "add `[lints]` with `workspace = true`")
    };
    careless.map(|package| problem(&package.manifest)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::Package;
    use super::*;

    fn tree(name: &str, imports: &[&str], manifest: &str) -> Tree {
        let path = format!("crates/{name}/Cargo.toml");
        let mut tree = Tree::of(&[(&path, manifest)]);
        tree.packages.push(Package {
            name: name.into(),
            manifest: path,
            imports: imports.iter().map(|import| (*import).to_owned()).collect(),
        });
        tree
    }

    #[test]
    fn an_import_that_the_house_allows_is_fine() {
        assert_eq!(imports(&tree("report", &["record"], "")), []);
    }

    #[test]
    fn an_import_that_it_does_not_is_found_with_its_line() {
        let problems = imports(&tree("report", &["sys"], "[dependencies]\npagelab-sys = {}\n"));
        assert_eq!(problems.len(), 1);
        assert_eq!((problems[0].line, &*problems[0].what), (2, "`report` imports `sys`"));
    }

    #[test]
    fn a_crate_that_nobody_decided_on_is_found() {
        assert_eq!(imports(&tree("misc", &[], ""))[0].what, "`misc` is not in the house");
    }

    #[test]
    fn the_house_has_no_cycles() {
        for (index, (name, imports)) in house().enumerate() {
            for import in imports.concat() {
                let below = house().take(index).any(|(name, _)| name == import);
                assert!(below, "{name} imports {import}, which is not above it in the table");
            }
        }
    }

    #[test]
    fn every_crate_takes_the_lints() {
        assert_eq!(lints(&tree("sys", &[], "[lints]\nworkspace = true\n")), []);
        assert_eq!(lints(&tree("sys", &[], "[lints.rust]\nmissing_docs = \"allow\"\n")).len(), 1);
        assert_eq!(lints(&tree("sys", &[], "")).len(), 1);
    }
}
