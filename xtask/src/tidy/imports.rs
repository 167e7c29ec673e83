//! Which crate of ours may import which: the table of the house, against what cargo resolves.
//!
//! The table may name crates that do not exist yet; a crate that exists must be in the table.

use super::{Problem, tree::Tree};

/// The house: each crate, and the crates of ours that it may import.
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
    ("emulation", &["record", "trace", "sys", "emu", "bench", "report", "cli"]),
    ("memtype", &["record", "sys", "bench", "report", "cli"]),
    ("mappings", &["record", "sys", "bench"]),
    ("fault", &["record", "initrd", "sys", "bench", "mappings", "report", "cli"]),
    ("segments", &["interpose", "record", "sys", "bench", "mappings", "report", "cli", "memtype"]),
    ("translation", &["record", "sys", "bench", "mappings", "segments", "report", "cli"]),
    (
        "program",
        &[
            "interpose",
            "record",
            "trace",
            "sys",
            "bench",
            "fault",
            "mappings",
            "report",
            "cli",
            "emulation",
            "translation",
        ],
    ),
    (
        "tiering",
        &[
            "interpose",
            "record",
            "trace",
            "sys",
            "tier",
            "live",
            "bench",
            "mappings",
            "report",
            "cli",
            "emulation",
        ],
    ),
    (
        "pagelab",
        &[
            "interpose",
            "record",
            "trace",
            "sys",
            "emu",
            "bench",
            "mappings",
            "fault",
            "report",
            "cli",
            "emulation",
            "memtype",
            "segments",
            "translation",
            "program",
            "tiering",
        ],
    ),
    ("heat", &["interpose"]),
    ("preload", &["interpose"]),
    ("segment", &["interpose"]),
    ("capture", &["trace", "sys"]),
    (
        "fuzz",
        &[
            "record",
            "trace",
            "tier",
            "sys",
            "live",
            "bench",
            "mappings",
            "fault",
            "report",
            "cli",
            "emulation",
            "memtype",
            "segments",
            "translation",
            "program",
            "tiering",
        ],
    ),
    (
        "python",
        &[
            "record",
            "trace",
            "sys",
            "bench",
            "mappings",
            "fault",
            "report",
            "cli",
            "emulation",
            "memtype",
            "segments",
            "translation",
            "program",
            "tiering",
        ],
    ),
    ("vm", &["record", "sys"]),
    ("xtask", &["initrd"]),
];

/// Every import is one that the house allows.
pub(crate) fn imports(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in &tree.packages {
        let Some((_, allowed)) = HOUSE.iter().find(|(name, _)| *name == package.name) else {
            let what = format!("`{}` is not in the house", package.name);
            let cure = "decide what it may import: ARCHITECTURE.md, then HOUSE in xtask";
            problems.push(Problem::new(&package.manifest, 0, what, cure));
            continue;
        };
        for import in &package.imports {
            // A crate that imports itself turns its own features on for its tests.
            if allowed.contains(&import.as_str()) || *import == package.name {
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
        for (index, (name, imports)) in HOUSE.iter().enumerate() {
            for import in *imports {
                let below = HOUSE[..index].iter().any(|(name, _)| name == import);
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
